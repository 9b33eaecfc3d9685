/**
 * Claiming: a fair share of ready jobs for each stream of a lane, a batch at a time.
 *
 * The ready index is ordered by (lane, stream, kind, priority, id). Skipping along it finds the pairs that
 * have work without looking at the work itself, so paused, blocked and future jobs cost nothing, and
 * a stream with a million ready jobs costs as much as one with ten.
 */
import type { Changes } from './changes.ts'
import {
  type ClaimedJob,
  type ClaimRequest,
  type ClaimShare,
  type Driver,
  LANES,
  type Lane,
  type ReadyQueue,
  type Tx,
} from './contract.ts'

/** Pairs looked at per claim; the rest have their turn when these are drained or claimed. */
const QUEUES_MAX = 512
/** A stream that had fewer jobs than its share leaves room; this often it is offered to the others. */
const ROUNDS_MAX = 4

export type Pauses = { all: boolean; streams: ReadonlySet<number>; kinds: ReadonlySet<string> }

export type ClaimContext = { tx: Tx; driver: Driver; changes: Changes; now: number; pauses: Pauses }
export type Claim = { jobs: ClaimedJob[]; backlog: Record<Lane, boolean> }

export async function claimJobs(ctx: ClaimContext, request: ClaimRequest): Promise<Claim> {
  const claim: Claim = { jobs: [], backlog: { interactive: false, bulk: false } }
  if (ctx.pauses.all) return claim
  for (const lane of LANES) {
    let room = request.room[lane]
    for (let round = 0; room > 0 && round < ROUNDS_MAX; round++) {
      const queues = await openQueues(ctx, request, lane)
      if (queues.length === 0) break
      const jobs = await ctx.driver.take(ctx.tx, lane, fairShares(queues, room), request.owner, ctx.now)
      for (const job of jobs) ctx.changes.moved(job.kind, 'ready', 'claimed')
      for (const job of jobs) claim.jobs.push(job)
      room -= jobs.length
      if (jobs.length === 0) break
    }
    claim.backlog[lane] = room <= 0 && request.room[lane] > 0
  }
  return claim
}

export async function openQueues(
  { tx, driver, pauses }: Pick<ClaimContext, 'tx' | 'driver' | 'pauses'>,
  request: Pick<ClaimRequest, 'kinds' | 'closedKinds'>,
  lane: Lane,
): Promise<ReadyQueue[]> {
  const queues = await driver.readyQueues(tx, lane, QUEUES_MAX)
  return queues.filter(
    (queue) =>
      request.kinds.has(queue.kind) &&
      !request.closedKinds?.has(queue.kind) &&
      !pauses.kinds.has(queue.kind) &&
      !pauses.streams.has(queue.streamId),
  )
}

/** Each stream the same share of the room; within a stream, the kinds whose first job ranks highest. */
export function fairShares(queues: readonly ReadyQueue[], room: number): ClaimShare[] {
  const byStream = new Map<number, ReadyQueue[]>()
  for (const queue of queues) {
    const list = byStream.get(queue.streamId)
    if (list) list.push(queue)
    else byStream.set(queue.streamId, [queue])
  }
  const shares: ClaimShare[] = []
  let left = room
  let streamsLeft = byStream.size
  for (const [streamId, list] of byStream) {
    const share = Math.ceil(left / streamsLeft)
    streamsLeft -= 1
    const top = Math.max(...list.map((queue) => queue.priority))
    const first = list.filter((queue) => queue.priority === top)
    let shareLeft = Math.min(share, left)
    for (const [index, queue] of first.entries()) {
      const n = Math.ceil(shareLeft / (first.length - index))
      if (n > 0) shares.push({ streamId, kind: queue.kind, n })
      shareLeft -= n
      left -= n
    }
  }
  return shares
}
