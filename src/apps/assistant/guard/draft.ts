/**
 * What a model wrote, before it becomes a draft. The model may have been taken over by the mail that it read: whatever
 * could carry something out, or bring somebody else in, must come from the one who is answered, from what the owner's
 * own archive gave, or from the owner; all else is taken out, visibly, and told. Links must be the same to the last character: a
 * form that is filled in by its address is another link.
 *
 * That a draft has no new recipients and no attachments is not decided here: reply.ts gives none the chance.
 */
import { cutText } from '../../../search/extract/clean-text.ts'
import type { ContextPassage, Mailbox, Style, VisibleMessage } from '../contract.ts'
import { withoutInvisible } from '../text/invisible.ts'
import { keyOf, type Reference, referencesIn } from './references.ts'
import { SECRET_MARK, withoutSecrets } from './secrets.ts'

export type DraftFacts = {
  thread: readonly VisibleMessage[]
  answered: VisibleMessage
  context: readonly ContextPassage[]
  owner: Mailbox
  /** What the user said, and what they had written themselves. */
  instruction?: string
  earlier?: string
  /** Its sign-off and examples are the user's own words. */
  style?: Style
}

export type RemovedCode =
  | 'image'
  | 'link'
  | 'address'
  | 'number'
  | 'token'
  | 'secret'
  | 'markup'
  | 'header'
  | 'invisible'
  | 'length'

export type Removed = { code: RemovedCode; text: string }

export type GuardedDraft = { text: string; removed: readonly Removed[] }

const DRAFT_CHARS_MAX = 20_000
const FACT_CHARS_MAX = 400_000
const REMOVED_MAX = 100
const REMOVED_CHARS_MAX = 200
const SECRETS_MAX = 200
const ROUNDS_MAX = 6
const SECRET_CHARS_MIN = 4

export const MARKS: Record<Reference['kind'] | 'image', string> = {
  image: '[image removed]',
  link: '[link removed]',
  address: '[address removed]',
  number: '[number removed]',
  token: SECRET_MARK,
}

export function guardDraft(text: string, facts: DraftFacts): GuardedDraft {
  const removed: Removed[] = []
  const note = (code: RemovedCode, what: string): void => {
    if (removed.length < REMOVED_MAX) removed.push({ code, text: cutText(what.trim(), REMOVED_CHARS_MAX) })
  }
  const seen = withoutInvisible(text.toWellFormed())
  if (seen.found.length > 0) note('invisible', seen.found.join(', '))
  let draft = plainWidth(seen.text)
  if (draft.length > DRAFT_CHARS_MAX) {
    note('length', `${draft.length} characters`)
    draft = `${cutText(draft, DRAFT_CHARS_MAX)}\n[TODO: the draft was longer and has been cut]`
  }
  draft = withoutHeaders(draft, note)
  const known = knownOf(facts)
  // What is taken out may bring together what stood apart.
  for (let [before, rounds] = ['', 0]; before !== draft && rounds < ROUNDS_MAX; rounds++) {
    before = draft
    draft = withoutMarkup(draft, known, note)
    draft = withoutUnknown(draft, known, note)
    draft = withoutKnownSecrets(draft, known, note)
  }
  return { text: tidy(draft), removed }
}

type Note = (code: RemovedCode, what: string) => void

type Known = {
  links: Set<string>
  hosts: Set<string>
  addresses: Set<string>
  numbers: string[]
  /** All of it, for long words. */
  text: string
  /** What must not be repeated, unless the owner said it themself. */
  secrets: string[]
  own: string
}

/** Nothing else is known: what is not in here was invented, or put in by somebody. */
function knownOf(facts: DraftFacts): Known {
  const { thread, answered, context, owner, instruction = '', earlier = '', style } = facts
  const own = [instruction, earlier, style?.signOff ?? '', ...(style?.examples ?? [])].join('\n')
  const known: Known = {
    links: new Set(),
    hosts: new Set(),
    addresses: new Set([owner.address.toLowerCase()]),
    numbers: [],
    text: '',
    secrets: [],
    own,
  }
  for (const mail of ofBothSides(thread, answered, owner)) {
    for (const { address } of [mail.from, ...mail.replyTo, ...mail.to, ...mail.cc]) {
      known.addresses.add(address.toLowerCase())
      known.hosts.add(address.slice(address.lastIndexOf('@') + 1).toLowerCase())
    }
    learn(known, `${mail.subject}\n${mail.newText || mail.text}`)
  }
  for (const { title, text, url } of context) {
    learn(known, `${title}\n${text}`, CAPABILITY)
    if (url !== '') known.links.add(keyOf('link', url))
  }
  known.hosts.add(owner.address.slice(owner.address.lastIndexOf('@') + 1).toLowerCase())
  learn(known, own)
  return known
}

/**
 * What the owner wrote, and who is answered. Somebody else in the thread may have put their account number there for
 * the owner to repeat to the one who pays.
 */
function ofBothSides(
  thread: readonly VisibleMessage[],
  answered: VisibleMessage,
  owner: Mailbox,
): VisibleMessage[] {
  const sides = new Set([owner, answered.from].map(({ address }) => address.toLowerCase()))
  const others = thread.filter(({ id, from, isDraft }) => {
    return id !== answered.id && !isDraft && sides.has(from.address.toLowerCase())
  })
  return [...others, answered]
}

/** A link that opens something for whoever has it. */
const CAPABILITY =
  /reset|verif|confirm|magic|login|signin|sign-in|passw|token|invite|auth|unsubscribe|session|recover|otp|secret|[?&](?:key|code|sig|signature|k|t)=/i

function learn(known: Known, text: string, refused?: RegExp): void {
  const { text: clean, secrets } = withoutSecrets(cutText(text, FACT_CHARS_MAX))
  for (const secret of secrets) if (known.secrets.length < SECRETS_MAX) known.secrets.push(secret)
  if (known.text.length < FACT_CHARS_MAX) known.text += `\n${clean}`
  for (const { kind, key } of referencesIn(plainWidth(clean))) {
    if (kind === 'link' && !refused?.test(key)) {
      known.links.add(key)
      known.hosts.add(key.split(/[/?#:]/, 1)[0]!)
    } else if (kind === 'address') {
      known.addresses.add(key)
      known.hosts.add(key.slice(key.lastIndexOf('@') + 1))
    } else if (kind === 'number') known.numbers.push(key)
  }
}

function isKnown(known: Known, { kind, key }: Pick<Reference, 'kind' | 'key'>): boolean {
  switch (kind) {
    case 'link':
      // Never, whoever wrote it first: these run something, or carry a file.
      if (/^[a-z][a-z0-9+.-]*:(?!\d)/i.test(key)) return false
      return known.links.has(key) || (!/[/?#]/.test(key) && known.hosts.has(key))
    case 'address':
      return known.addresses.has(key)
    case 'number':
      return known.numbers.some((one) => isSameNumber(one, key))
    case 'token':
      return known.text.includes(key)
  }
}

/** With and without the number of its country. */
function isSameNumber(one: string, other: string): boolean {
  if (one === other) return true
  const [long, short] = one.length >= other.length ? [one, other] : [other, one]
  return short.length >= 7 && long.length - short.length <= 4 && long.endsWith(short)
}

const LEADING_HEADER =
  /^(?:to|cc|bcc|from|subject|reply-to|attachments?|an|betreff|von|à|objet|para|asunto|content-type|x-[\w-]{1,40})\s?:.*(?:\n|$)/i

/** A model that writes a whole message: whom it goes to and what it is called is not its to say. */
function withoutHeaders(draft: string, note: Note): string {
  let text = draft.trimStart()
  for (let lines = 0; lines < 20; lines++) {
    const line = LEADING_HEADER.exec(text)?.[0]
    if (line === undefined) return text
    note('header', line)
    text = text.slice(line.length).trimStart()
  }
  return text
}

const IMAGE = /!\[[^\]\n]{0,500}\](?:\s?\([^)\n]{0,2500}\)?|\s?\[[^\]\n]{0,200}\]?)?/g
const MARKDOWN_LINK = /\[([^\]\n]{0,500})\]\(\s?<?([^)\s>]{0,2500})>?(?:\s[^)\n]{0,300})?\)/g
const TAG = /<\/?[a-z!][a-z0-9-]{0,30}(?:\s[^<>]{0,4000})?\/?>|<!--[^<>]{0,4000}-->/gi

function withoutMarkup(draft: string, known: Known, note: Note): string {
  return draft
    .replace(IMAGE, (image) => {
      note('image', image)
      return MARKS.image
    })
    .replace(TAG, (tag) => {
      const isImage = /^<(?:img|image|svg|picture|source|video|audio|iframe|object|embed|link|input)\b/i.test(
        tag,
      )
      note(isImage ? 'image' : 'markup', tag)
      return isImage ? MARKS.image : ''
    })
    .replace(MARKDOWN_LINK, (link, shown: string, target: string) => {
      const [reference] = referencesIn(target)
      const isWhole = reference?.from === 0 && reference.to === target.length
      if (isWhole && isKnown(known, reference)) return `${shown} (${target})`
      note('link', link)
      return `${shown} ${MARKS.link}`
    })
}

function withoutUnknown(draft: string, known: Known, note: Note): string {
  let [out, at] = ['', 0]
  for (const reference of referencesIn(draft)) {
    const end = reference.to + tailOf(draft, reference)
    if (reference.from < at || (end === reference.to && isKnown(known, reference))) continue
    const raw = draft.slice(reference.from, end)
    note(reference.kind, reference.kind === 'token' ? hint(raw) : raw)
    out += draft.slice(at, reference.from)
    // Apart from signs that would make Markdown of it.
    out += `${out.endsWith('!') ? ' ' : ''}${MARKS[reference.kind]}${'(['.includes(draft[end] ?? ' ') ? ' ' : ''}`
    at = end
  }
  return out + draft.slice(at)
}

/** Where every program sees the end of a link. */
const TAIL = /[^\s<>"“”«»]{0,2000}/uy
const CLOSING = /^(?:['’]s)?[.,;:!?)\]}'’*_…|`]*$/u
const PORT_OR_PATH = /^(?::\d|\\)/

/**
 * How much follows a link without a blank that some program may take for a part of it: what is put there is told to the
 * link's owner by whoever opens it. A bare host ends with its name, but for a port and a path.
 */
function tailOf(draft: string, { kind, from, to }: Reference): number {
  if (kind !== 'link') return 0
  TAIL.lastIndex = to
  const [tail = ''] = TAIL.exec(draft) ?? []
  const isBare = !/[/?#:]/.test(draft.slice(from, to))
  const isEnd = isBare ? !PORT_OR_PATH.test(tail) : CLOSING.test(tail)
  return isEnd ? 0 : tail.replace(/[.,;:!?)\]]+$/, '').length
}

function withoutKnownSecrets(draft: string, known: Known, note: Note): string {
  let text = draft
  for (const secret of known.secrets) {
    if (isWord(secret) || known.own.includes(secret) || !text.includes(secret)) continue
    text = text.replaceAll(secret, SECRET_MARK)
    note('secret', hint(secret))
  }
  const { text: clean, secrets } = withoutSecrets(text)
  if (clean === text || (secrets.length > 0 && secrets.every((secret) => known.own.includes(secret))))
    return text
  for (const secret of secrets) note('secret', hint(secret))
  if (secrets.length === 0) note('secret', SECRET_MARK)
  return clean
}

/** Too common to be looked for by itself. */
function isWord(secret: string): boolean {
  return secret.length < SECRET_CHARS_MIN || (secret.length < 8 && /^\p{L}\p{Ll}+$/u.test(secret))
}

/** What was taken out is shown on a page and kept: a secret must not be. */
function hint(secret: string): string {
  return `${secret.slice(0, 2)}… (${secret.length} characters)`
}

/** Letters of mathematics and signs of full width make links and numbers, too; the latter where they stand among letters. */
function plainWidth(text: string): string {
  return text
    .replace(/[\u{1d400}-\u{1d7ff}]/gu, (char) => char.normalize('NFKC'))
    .replace(/[０-９Ａ-Ｚａ-ｚ]/g, (char) => String.fromCharCode(char.charCodeAt(0) - 0xfee0))
    .replace(/(?<=[A-Za-z0-9/：／])[：／．＠。｡․﹒](?=[A-Za-z0-9/／])/g, (char) =>
      '。｡․﹒'.includes(char) ? '.' : String.fromCharCode(char.charCodeAt(0) - 0xfee0),
    )
}

function tidy(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{4,}/g, '\n\n\n')
    .trim()
}
