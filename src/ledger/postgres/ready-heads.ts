/**
 * Where the live part of a busy queue begins in the ready index.
 *
 * A claimed job's entry stays in the index, dead, until a vacuum comes by; and a vacuum cannot remove it while
 * anybody's old snapshot is open. Every look at a queue starts with those dead entries: 1.6 ms per
 * 150,000 of them (measured), twice per claim. So we remember up to where we have claimed, and begin there.
 *
 * It is only a hint. Jobs can become ready behind it (a retry, a slow enqueuer that got its ids early, a
 * claim that was rolled back), so every so often a claim looks from the very beginning: the longer such a
 * full look takes the rarer, but never less than every FULL_LOOK_MS_MAX. Nothing is called empty without one.
 */
import { systemClock } from '../../base/clock.ts'
import type { ClaimedJob, ClaimShare, Lane, ReadyQueue } from '../contract.ts'

/** A full look may cost this part of the time. */
const FULL_LOOK_SHARE = 1 / 50
const FULL_LOOK_MS_MAX = 2_000
/** With more queues than this, walking from one to the next is the work, and hints would only add to it. */
const QUEUES_MAX = 64
const HEADS_MAX = 8

/** Among the jobs of this priority, those with a smaller id are claimed. */
export type Head = { streamId: number; kind: string; priority: number; floor: number }

type LaneState = { heads: Map<string, Head>; fullLookAtMs: number; full: boolean }

export class ReadyHeads {
  readonly #lanes: Record<Lane, LaneState> = { interactive: newLane(), bulk: newLane() }

  /** In index order; none when it is time to look from the beginning. */
  known(lane: Lane, fromStream: number): Head[] {
    const state = this.#lanes[lane]
    state.full = state.heads.size === 0 || systemClock.monotonicMs() >= state.fullLookAtMs
    if (state.full) return []
    const heads = [...state.heads.values()].filter((head) => head.streamId >= fromStream)
    return heads.sort(
      (a, b) => a.streamId - b.streamId || Buffer.compare(Buffer.from(a.kind), Buffer.from(b.kind)),
    )
  }

  /** False if a queue that we thought alive showed nothing: then only a full look can tell. */
  confirm(lane: Lane, heads: readonly Head[], queues: readonly ReadyQueue[]): boolean {
    const alive = new Set(queues.map(queueKey))
    if (heads.every((head) => alive.has(queueKey(head)))) return true
    this.forget()
    this.#lanes[lane].full = true
    return false
  }

  fullLookTook(lane: Lane, ms: number, queues: number): void {
    const state = this.#lanes[lane]
    const waitMs = queues > QUEUES_MAX ? 0 : Math.min(ms / FULL_LOOK_SHARE, FULL_LOOK_MS_MAX)
    state.fullLookAtMs = systemClock.monotonicMs() + waitMs
  }

  /** What a claim that follows a full look must not skip either. */
  headOf(lane: Lane, share: ClaimShare): Head | undefined {
    const state = this.#lanes[lane]
    return state.full ? undefined : state.heads.get(queueKey(share))
  }

  claimed(lane: Lane, share: ClaimShare, jobs: readonly ClaimedJob[]): void {
    const { heads } = this.#lanes[lane]
    const key = queueKey(share)
    const last = jobs.at(-1)
    const isCut = jobs.length === share.n || jobs.reduce((sum, job) => sum + job.bytes, 0) >= share.bytesMax
    if (!last || !isCut) {
      heads.delete(key)
      return
    }
    const before = heads.get(key)
    // Only higher ranks came in: where we were below them has not changed.
    if (before && last.priority > before.priority) return
    if (!before && heads.size >= HEADS_MAX) return
    // A full look may have brought up stragglers from far behind.
    const floor = Math.max(last.id + 1, before?.priority === last.priority ? before.floor : 0)
    heads.set(key, { streamId: share.streamId, kind: share.kind, priority: last.priority, floor })
  }

  /** After a rollback what we claimed is ready again. */
  forget(): void {
    for (const state of Object.values(this.#lanes)) state.heads.clear()
  }
}

function newLane(): LaneState {
  return { heads: new Map(), fullLookAtMs: 0, full: true }
}

function queueKey({ streamId, kind }: { streamId: number; kind: string }): string {
  return `${streamId} ${kind}`
}
