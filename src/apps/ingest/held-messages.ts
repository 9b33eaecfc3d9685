/**
 * The messages that one receiver has, from their receipt to their acknowledgement. In memory only: everything that must
 * not be forgotten is in the ledger, and a message that is forgotten here comes again.
 *
 *   ready ──a shard is taken──▶ reading ──all its shards are settled──▶ completed ──acknowledged──▶ (gone)
 *     └── its visibility ends, the service says that it is another's, or a shard of it is known no more ──▶ (gone)
 */
import type { QueueMessage } from '../../cloud/queue.ts'
import { isSettled } from './shard-states.ts'
import type { ShardStanding } from './store/tables.ts'
import type { Granted } from './visibility.ts'

export type HeldState = 'ready' | 'reading' | 'completed'

export type Held = Granted & {
  message: QueueMessage
  /** Its shards that are not known to be settled. */
  waiting: Set<string>
  state: HeldState
}

export class HeldMessages {
  readonly #held = new Map<string, Held>()
  readonly #byShard = new Map<string, Set<string>>()
  readonly #completed = new Set<string>()

  get size(): number {
    return this.#held.size
  }

  all(): Held[] {
    return [...this.#held.values()]
  }

  /** One that comes again is acknowledged by what came last. */
  hold(message: QueueMessage, shards: readonly string[], nowMs: number): void {
    this.drop(message.id)
    const { visibleAtMs } = message
    const granted = { receivedAtMs: nowMs, grantedAtMs: nowMs, visibleAtMs }
    this.#held.set(message.id, { ...granted, message, waiting: new Set(shards), state: 'ready' })
    for (const shard of shards) {
      const of = this.#byShard.get(shard) ?? new Set()
      this.#byShard.set(shard, of.add(message.id))
    }
  }

  /** The shards of which it matters what became. */
  waiting(): string[] {
    return [...this.#byShard.keys()]
  }

  completed(): Held[] {
    return [...this.#completed].map((id) => this.#held.get(id)!)
  }

  /**
   * A shard that is known no more may have gone with its pipeline, unread: that proves nothing. Its messages are let go of,
   * and whoever gets them next decides.
   */
  learn(shard: string, standing: ShardStanding | undefined): void {
    const of = this.#byShard.get(shard)
    if (!of) return
    if (standing === undefined) {
      for (const id of [...of]) this.drop(id)
      return
    }
    const isOver = isSettled(standing.state)
    for (const id of of) {
      const held = this.#held.get(id)!
      if (isOver) held.waiting.delete(shard)
      if (held.waiting.size === 0) {
        held.state = 'completed'
        this.#completed.add(id)
      } else if (isOver || standing.token !== null) held.state = 'reading'
    }
    if (isOver) this.#byShard.delete(shard)
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
    for (const shard of held.waiting) {
      const of = this.#byShard.get(shard)
      of?.delete(id)
      if (of?.size === 0) this.#byShard.delete(shard)
    }
  }
}
