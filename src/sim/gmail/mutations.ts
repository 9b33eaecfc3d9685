/** Things that happen in a mailbox without its owner's app: mail arrives, labels change, mail vanishes. */
import type { Clock } from '../../clock.ts'
import type { Random } from '../../random.ts'
import type { MutationKind } from '../fault-rules.ts'
import type { Mailbox } from './mailbox.ts'
import type { SimMessage } from './mailbox-contract.ts'

export type Arrival = { raw?: Buffer; labelIds?: readonly string[]; internalMs?: number; threadId?: string }

/** A look over the whole mailbox is repeated only after so many picks from it. */
const PICKS_PER_LOOK = 200
const PICK_TRIES_MAX = 20
const OLD_MS_MAX = 5 * 365 * 86_400_000
const WORDS = [
  'tide',
  'harbour',
  'ledger',
  'invoice',
  'Grüße',
  'meeting',
  'ferry',
  'signal',
  'window',
  'photo',
]

export class Mutations {
  readonly #mailbox: Mailbox
  readonly #clock: Clock
  #ids: string[] = []
  #picksLeft = 0
  #arrived = 0

  constructor(options: { mailbox: Mailbox; clock: Clock }) {
    this.#mailbox = options.mailbox
    this.#clock = options.clock
  }

  apply({ what, count, random }: { what: MutationKind; count: number; random: Random }): void {
    for (let time = 0; time < count; time++) {
      if (what === 'arrive') this.arrive({}, random)
      else if (what === 'arrive-old') this.arrive({ internalMs: this.#oldMs(random) }, random)
      else this.#change(what, random)
    }
  }

  arrive(arrival: Arrival, random: Random): SimMessage {
    this.#arrived += 1
    const { raw, labelIds = ['INBOX', 'UNREAD'], internalMs = this.#clock.now(), threadId } = arrival
    return this.#mailbox.insert({
      raw: raw ?? this.#write(internalMs, random),
      labelIds,
      internalMs,
      ...(threadId === undefined ? {} : { threadId }),
    })
  }

  /** Ids of living messages, drawn by chance. */
  pick(count: number, random: Random): string[] {
    const picked = new Set<string>()
    for (let time = 0; time < count; time++) {
      const id = this.#pickOne(random, picked)
      if (id !== undefined) picked.add(id)
    }
    return [...picked]
  }

  #change(what: 'relabel' | 'delete', random: Random): void {
    const [id] = this.pick(1, random)
    if (id === undefined) return
    if (what === 'delete') return this.#mailbox.delete(id)
    const isStarred = this.#mailbox.get(id)?.labelIds.has('STARRED')
    this.#mailbox.modify(id, isStarred ? { remove: ['STARRED'] } : { add: ['STARRED'] })
  }

  #pickOne(random: Random, except: ReadonlySet<string>): string | undefined {
    if (this.#picksLeft <= 0) {
      this.#ids = []
      for (const { id, deleted } of this.#mailbox.dump()) if (!deleted) this.#ids.push(id)
      this.#picksLeft = PICKS_PER_LOOK
    }
    for (let tries = 0; tries < PICK_TRIES_MAX && this.#ids.length > 0; tries++) {
      this.#picksLeft -= 1
      const id = this.#ids[Math.floor(random() * this.#ids.length)]!
      if (!except.has(id) && this.#mailbox.get(id)) return id
    }
    return undefined
  }

  #oldMs(random: Random): number {
    return Math.floor(this.#clock.now() - random() * OLD_MS_MAX)
  }

  #write(internalMs: number, random: Random): Buffer {
    const word = (): string => WORDS[Math.floor(random() * WORDS.length)]!
    const text = Array.from({ length: 12 }, word).join(' ')
    const date = new Date(internalMs).toUTCString().replace('GMT', '+0000')
    const lines = [
      `From: Someone <sender${this.#arrived}@example.org>`,
      `To: <${this.#mailbox.address}>`,
      `Subject: Arrival ${this.#arrived}`,
      `Date: ${date}`,
      `Message-ID: <arrival-${this.#arrived}-${Math.floor(random() * 2 ** 32).toString(36)}@example.org>`,
      'MIME-Version: 1.0',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: 8bit',
      '',
      `${text}.`,
      '',
    ]
    return Buffer.from(lines.join('\r\n'))
  }
}
