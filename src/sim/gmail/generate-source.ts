/**
 * The bytes of a generated mailbox: made from the seed and a message's position whenever they are asked
 * for, and remembered for a moment, because a message is usually asked for several things in a row.
 */
import { mixed, streamOf } from './generate-chance.ts'
import { encodedWords } from './generate-charsets.ts'
import { compose, kindAt } from './generate-kinds.ts'
import { Letter, type LetterPlan, someone } from './generate-letter.ts'
import type { Person } from './generate-people.ts'
import type { Timeline } from './generate-timeline.ts'
import { WORDINGS } from './generate-words.ts'
import type { RawSource } from './mailbox-message.ts'

const REMEMBERED_MAX = 32
/** Larger ones are not worth the memory. */
const REMEMBERED_BYTES_MAX = 256 * 1024
const REFERENCES_MAX = 12

export class GeneratedMail implements RawSource {
  readonly #timeline: Timeline
  readonly #address: string
  readonly #scale: number
  readonly #remembered = new Map<number, Buffer>()

  constructor(options: { timeline: Timeline; address: string; scale: number }) {
    this.#timeline = options.timeline
    this.#address = options.address
    this.#scale = options.scale
  }

  raw(index: number): Buffer {
    const known = this.#remembered.get(index)
    if (known) return known
    const kind = kindAt({ ...this.#timeline.options, index })
    const bytes = Buffer.from(compose(kind, new Letter(this.#plan(index))), 'latin1')
    if (bytes.length <= REMEMBERED_BYTES_MAX) {
      this.#remembered.set(index, bytes)
      if (this.#remembered.size > REMEMBERED_MAX)
        this.#remembered.delete(this.#remembered.keys().next().value!)
    }
    return bytes
  }

  messageIdOf(index: number): string | undefined {
    const kind = kindAt({ ...this.#timeline.options, index })
    return kind === 'no-message-id' || kind === 'no-headers' ? undefined : this.#messageId(index)
  }

  indexOf(messageId: string): number | undefined {
    const match = /^[0-9a-z]{1,8}\.([0-9a-z]{1,7})@/.exec(messageId)
    const index = match ? Number.parseInt(match[1]!, 36) : -1
    if (index < 0 || index >= this.#timeline.options.messages) return undefined
    return this.messageIdOf(index) === messageId ? index : undefined
  }

  /** A message with a doubled Message-ID has that of the one before it. */
  #messageId(index: number): string {
    const { seed } = this.#timeline.options
    const isDouble = kindAt({ ...this.#timeline.options, index }) === 'duplicate-message-id'
    const at = isDouble ? index - 1 : index
    return `${mixed(seed, at, 0x1d5).toString(36)}.${at.toString(36)}@${this.#timeline.personOf(at).domain}`
  }

  #plan(index: number): LetterPlan {
    const { options, people, root, internalMs } = this.#timeline
    const random = streamOf(options.seed, index, 0x1e7)
    const person = this.#timeline.personOf(index)
    const copies = person.isList ? 0 : Math.floor(random() ** 4 * 4)
    return {
      index,
      random,
      owner: this.#address,
      person,
      fromOwner: this.#timeline.isFromOwner(index),
      copied: Array.from({ length: copies }, () => someone(random, people)),
      subject: subjectOf({
        person,
        number: mixed(options.seed, root[index]!, 0x5b),
        isReply: root[index] !== index,
      }),
      sentMs: internalMs[index]! - Math.floor(random() * 60_000),
      messageId: this.#messageId(index),
      references: this.#references(index),
      scale: this.#scale,
      headers: options.profile === 'small' ? 'few' : 'full',
    }
  }

  #references(index: number): string[] {
    const references: string[] = []
    let at = this.#timeline.parent[index]!
    while (at >= 0 && references.length < REFERENCES_MAX) {
      references.push(this.#messageId(at))
      at = this.#timeline.parent[at]!
    }
    return references.reverse()
  }
}

const subjects = new Map<string, string>()

/** All messages of a thread have the same number. */
export function subjectOf(options: { person: Person; number: number; isReply: boolean }): string {
  const { person, number } = options
  const { topics, charsets } = WORDINGS[person.language]
  const topic = topics[number % topics.length]!
  const charset = charsets[(number >>> 8) % charsets.length]!
  const as = (number >>> 9) & 1 ? 'B' : 'Q'
  const key = `${charset} ${as} ${topic}`
  let encoded = subjects.get(key)
  if (encoded === undefined) {
    encoded = encodedWords(topic, { charset: charset === 'us-ascii' ? 'utf-8' : charset, as })
    subjects.set(key, encoded)
  }
  return `${options.isReply ? 'Re: ' : ''}${encoded} ${(number >>> 12) % 10_000}`
}
