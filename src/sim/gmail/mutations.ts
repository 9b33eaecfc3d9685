/** Things that happen in a mailbox without its owner's app: mail arrives, labels change, mail vanishes. */
import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { MutationKind } from '../fault-rules.ts'
import { arrive } from './generate.ts'
import type { Mailbox } from './mailbox.ts'
import type { SimMessage } from './mailbox-contract.ts'

export type Arrival = { raw?: Buffer; labelIds?: readonly string[]; internalMs?: number; threadId?: string }

/** A look over the whole mailbox is repeated only after so many picks from it. */
const PICKS_PER_LOOK = 200
const PICK_TRIES_MAX = 20
const OLD_MS_MAX = 5 * 365 * 86_400_000

export class Mutations {
  readonly #mailbox: Mailbox
  readonly #clock: Clock
  #ids: string[] = []
  #picksLeft = 0

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

  /** With the bytes that are given, or with a letter that fits the mailbox. */
  arrive({ raw, labelIds, internalMs, threadId }: Arrival, random: Random): SimMessage {
    const now = (): number => this.#clock.now()
    if (raw === undefined) {
      return arrive(this.#mailbox, {
        now,
        random,
        ...(internalMs === undefined ? {} : { internalMs }),
        ...(labelIds === undefined ? {} : { labelIds }),
      })
    }
    return this.#mailbox.insert({
      raw,
      labelIds: labelIds ?? ['INBOX', 'UNREAD'],
      internalMs: internalMs ?? now(),
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
    if (what === 'delete') {
      this.#mailbox.delete(id)
      return
    }
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
}
