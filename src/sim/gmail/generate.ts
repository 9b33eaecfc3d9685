/**
 * Mailboxes made from a seed: the same options give the same ids, dates, labels and bytes. Nothing but a
 * small record per message is kept; bytes are made when asked for.
 */
import { type Random, seededRandom } from '../../base/random.ts'
import { below, mixed, oneOf } from './generate-chance.ts'
import { compose, kindAt, type MessageKind, type Profile } from './generate-kinds.ts'
import { Letter, type LetterPlan, someone } from './generate-letter.ts'
import { type Person, peopleOf } from './generate-people.ts'
import { GeneratedMail, subjectOf } from './generate-source.ts'
import { Timeline, USER_LABELS } from './generate-timeline.ts'
import { Mailbox, type SimMessage } from './mailbox.ts'
import { topHeaders } from './message-content.ts'
import { headerOf } from './message-headers.ts'

const MESSAGES_MAX = 5_000_000
const SAMPLE = 600
const SCALE_MAX = 50
const REPLY_CANDIDATES = 30

export type GenerateOptions = {
  address: string
  seed: number
  messages: number
  /** All internal dates lie from here to before `toMs`. */
  fromMs: number
  toMs: number
  now: () => number
  /** `mixed` has every kind of message, `plain` only sound ones, `small` only short texts. */
  profile?: Profile
  /** Makes bodies and attachments larger or smaller until the mean size is about this. */
  meanBytes?: number
}

export function generateMailbox(options: GenerateOptions): Mailbox {
  const { address, seed, now } = options
  if (!(options.messages >= 0 && options.messages <= MESSAGES_MAX) || !(options.fromMs < options.toMs)) {
    throw new RangeError(
      `a mailbox needs 0 to ${MESSAGES_MAX} messages and a time that begins before it ends`,
    )
  }
  const mailbox = new Mailbox({ address, now, random: seededRandom(mixed(seed, 0x1b0)) })
  const labelIds = USER_LABELS.map((name) => mailbox.createLabel({ name }).id)
  const timeline = new Timeline({ ...options, profile: options.profile ?? 'mixed' })
  const scale = options.meanBytes === undefined ? 1 : scaleFor({ timeline, address }, options.meanBytes)
  mailbox.load(new GeneratedMail({ timeline, address, scale }), timeline.entries(labelIds))
  return mailbox
}

/** Sizes grow with the scale in a straight line, apart from what a message has anyway. */
function scaleFor(made: { timeline: Timeline; address: string }, meanBytes: number): number {
  const atNone = meanSize(new GeneratedMail({ ...made, scale: 0 }), made.timeline)
  const atOne = meanSize(new GeneratedMail({ ...made, scale: 1 }), made.timeline)
  if (atOne <= atNone) return 1
  return Math.min(SCALE_MAX, Math.max(0, (meanBytes - atNone) / (atOne - atNone)))
}

function meanSize(mail: GeneratedMail, timeline: Timeline): number {
  const { messages } = timeline.options
  const count = Math.min(SAMPLE, messages)
  let bytes = 0
  for (let at = 0; at < count; at += 1) bytes += mail.raw(Math.floor((at * messages) / count)).length
  return count === 0 ? 0 : bytes / count
}

export type ArriveOptions = {
  random: Random
  /** When it is dated; now if not said. */
  internalMs?: number
  kind?: MessageKind
  labelIds?: readonly string[]
}

/** A new message comes in, every third time as an answer to one of the newest. */
export function arrive(mailbox: Mailbox, options: ArriveOptions & { now: () => number }): SimMessage {
  const { random } = options
  const index = below(random, 2 ** 31)
  const kind = options.kind ?? kindAt({ seed: 1, index, profile: 'mixed' })
  const sentMs = options.internalMs ?? options.now()
  const answered = random() < 0.35 ? answerTo(mailbox, random) : undefined
  const plan = answered ?? beginning(random)
  const letter = new Letter({
    ...plan,
    index,
    random,
    owner: mailbox.address,
    sentMs,
    fromOwner: false,
    copied: [],
    messageId: `${below(random, 2 ** 31).toString(36)}.${index.toString(36)}@${plan.person.domain}`,
    scale: 1,
    headers: 'full',
  })
  const category = plan.person.isList ? 'CATEGORY_PROMOTIONS' : 'CATEGORY_PERSONAL'
  return mailbox.insert({
    raw: Buffer.from(compose(kind, letter), 'latin1'),
    labelIds: options.labelIds ?? ['INBOX', 'UNREAD', category],
    internalMs: sentMs,
  })
}

type Conversation = Pick<LetterPlan, 'person' | 'subject' | 'references'>

let acquaintances: readonly Person[] | undefined

function beginning(random: Random): Conversation {
  acquaintances ??= peopleOf(1)
  const person = someone(random, acquaintances)
  return {
    person,
    subject: subjectOf({ person, number: below(random, 2 ** 31), isReply: false }),
    references: [],
  }
}

function answerTo(mailbox: Mailbox, random: Random): Conversation | undefined {
  const candidates = mailbox.newest(REPLY_CANDIDATES)
  if (candidates.length === 0) return undefined
  const headers = topHeaders(oneOf(random, candidates).raw())
  const mailboxHeader = headerOf(headers, 'from') ?? ''
  const address = /<([\w.+-]+@([\w.-]+))>$/.exec(mailboxHeader)
  const messageId = /^<([^<>\s]+)>$/.exec(headerOf(headers, 'message-id') ?? '')?.[1]
  const subject = headerOf(headers, 'subject')
  if (!address || address[1] === mailbox.address || !messageId || !subject) return undefined
  const person: Person = {
    address: address[1]!,
    domain: address[2]!,
    language: 'en',
    mailbox: mailboxHeader,
    isList: false,
  }
  return { person, subject: subject.startsWith('Re: ') ? subject : `Re: ${subject}`, references: [messageId] }
}
