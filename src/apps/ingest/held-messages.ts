/**
 * The messages that one receiver has, from their receipt to their acknowledgement. In memory only: everything that must
 * not be forgotten is in the ledger, and a message that is forgotten here comes again.
 *
 *   ready ──a shard is taken──▶ reading ──all its shards are settled──▶ completed ──acknowledged──▶ (gone)
 *     └── its visibility ends, the service says that it is another's, or what it told of is known no more ──▶ (gone)
 */
import type { QueueMessage } from '../../cloud/queue.ts'
import { type Found, isLater } from './plan.ts'
import { isSettled } from './shard-states.ts'
import type { ShardStanding } from './store/tables.ts'
import type { Granted } from './visibility.ts'

export type HeldState = 'ready' | 'reading' | 'completed'

export type Held = Granted & {
  message: QueueMessage
  /** Its shards that are not known to be settled, and up to which event of the object it told of each. */
  waiting: Map<string, string | null>
  state: HeldState
  /** In the order in which they were held. */
  n: number
}

export class HeldMessages {
  readonly #held = new Map<string, Held>()
  readonly #byShard = new Map<string, Set<string>>()
  readonly #completed = new Set<string>()
  #n = 0

  get size(): number {
    return this.#held.size
  }

  all(): Held[] {
    return [...this.#held.values()]
  }

  /** One that comes again is acknowledged by what came last. */
  hold(message: QueueMessage, shards: readonly Pick<Found, 'id' | 'sequencer'>[], nowMs: number): void {
    this.drop(message.id)
    this.#n += 1
    const { visibleAtMs } = message
    const granted = { receivedAtMs: nowMs, grantedAtMs: nowMs, visibleAtMs }
    const waiting = new Map(shards.map(({ id, sequencer }) => [id, sequencer]))
    this.#held.set(message.id, { ...granted, message, waiting, state: 'ready', n: this.#n })
    for (const shard of waiting.keys()) {
      const of = this.#byShard.get(shard) ?? new Set()
      this.#byShard.set(shard, of.add(message.id))
    }
  }

  /** What is held by now: whoever asks the ledger now learns nothing about what is held later. */
  mark(): number {
    return this.#n
  }

  /** The shards of which it matters what became. */
  waiting(): string[] {
    return [...this.#byShard.keys()]
  }

  completed(): Held[] {
    return [...this.#completed].map((id) => this.#held.get(id)!)
  }

  /**
   * What the ledger said of a shard when so many were held. Where it is known no more, or settled without what a message
   * told of it, it went with its pipeline, unread, and at most another has its name: that proves nothing. Such messages
   * are let go of, and whoever gets them next decides.
   */
  learn(shard: string, standing: ShardStanding | undefined, mark: number): void {
    for (const held of this.#heldOf(shard)) {
      // What was replaced when we looked may be back by this message.
      if (held.n > mark) continue
      if (standing && !isSettled(standing.state)) {
        if (standing.token !== null) held.state = 'reading'
      } else if (standing && isCovered(held, shard, standing.sequencer)) this.#settle(held, shard)
      else this.drop(held.message.id)
    }
  }

  /** A shard was settled here, with what was told of it when it was read. What came later is learned from the ledger. */
  settled(shard: string, sequencer: string | null): void {
    for (const held of this.#heldOf(shard)) if (isCovered(held, shard, sequencer)) this.#settle(held, shard)
  }

  #heldOf(shard: string): Held[] {
    return [...(this.#byShard.get(shard) ?? [])].map((id) => this.#held.get(id)!)
  }

  #settle(held: Held, shard: string): void {
    held.waiting.delete(shard)
    this.#leave(shard, held.message.id)
    held.state = held.waiting.size === 0 ? 'completed' : 'reading'
    if (held.state === 'completed') this.#completed.add(held.message.id)
  }

  #leave(shard: string, id: string): void {
    const of = this.#byShard.get(shard)
    of?.delete(id)
    if (of?.size === 0) this.#byShard.delete(shard)
  }

  extended(id: string, { nowMs, byMs }: { nowMs: number; byMs: number }): void {
    const held = this.#held.get(id)
    if (!held) return
    held.grantedAtMs = nowMs
    held.visibleAtMs = nowMs + byMs
  }

  drop(id: string): void {
    const held = this.#held.get(id)
    if (!held) return
    this.#held.delete(id)
    this.#completed.delete(id)
    for (const shard of held.waiting.keys()) this.#leave(shard, id)
  }
}

function isCovered({ waiting }: Held, shard: string, sequencer: string | null): boolean {
  return !isLater({ sequencer: waiting.get(shard) ?? null }, { sequencer })
}
