/**
 * Claiming: a fair share of ready jobs for each stream of a lane, a batch at a time.
 *
 * The ready index is ordered by (lane, stream, kind, priority, id). Skipping along it finds the pairs that
 * have work without looking at the work itself, so paused, blocked and future jobs cost nothing, and
 * a stream with a million ready jobs costs as much as one with ten.
 *
 * Where there is room for fewer streams than have work, the next claim begins where this one ended.
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

/** Pairs served per round; the streams behind them have their turn with the next. */
const QUEUES_MAX = 512
/** Pages of pairs looked at, most of which may not start now, before the claim gives up. */
const PAGES_MAX = 200
/** A stream that had fewer jobs than its share leaves room; this often it is offered to the others. */
const ROUNDS_MAX = 4

const PRIORITY_MIN = Number.MIN_SAFE_INTEGER

export type Pauses = { all: boolean; streams: ReadonlySet<number>; kinds: ReadonlySet<string> }

export type LookContext = {
  tx: Tx
  driver: Driver
  pauses: Pauses
  /** For each lane the stream with which the next claim begins. */
  turns: Record<Lane, number>
}
export type ClaimContext = LookContext & { changes: Changes; now: number }
export type Claim = { jobs: ClaimedJob[]; backlog: Record<Lane, boolean> }

export async function claimJobs(ctx: ClaimContext, request: ClaimRequest): Promise<Claim> {
  const claim: Claim = { jobs: [], backlog: { interactive: false, bulk: false } }
  if (ctx.pauses.all || !(await isLive(ctx.tx, request.owner))) return claim
  const { roomFor } = request
  for (const lane of LANES) {
    // What earlier rounds took is no longer room.
    const taken = new Map<string, number>()
    const limited = roomFor
      ? {
          ...request,
          roomFor: (queue: { kind: string; streamId: number }) =>
            roomFor({ kind: queue.kind, streamId: queue.streamId, lane }) - (taken.get(queue.kind) ?? 0),
        }
      : request
    let room = request.room[lane]
    let drained = room <= 0
    for (let round = 0; room > 0 && !drained && round < ROUNDS_MAX; round++) {
      const { jobs, drained: emptied } = await claimRound(ctx, limited, lane, room)
      for (const job of jobs) ctx.changes.moved(job.kind, 'ready', 'claimed')
      for (const job of jobs) taken.set(job.kind, (taken.get(job.kind) ?? 0) + 1)
      for (const job of jobs) claim.jobs.push(job)
      room -= jobs.length
      drained = emptied
    }
    claim.backlog[lane] = !drained
  }
  return claim
}

/** What an owner claimed after it was declared gone would be nobody's to take back. */
async function isLive(tx: Tx, owner: number): Promise<boolean> {
  const lock = tx.dialect === 'postgres' ? ' FOR SHARE' : ''
  return (
    (await tx.get(`SELECT id FROM workers WHERE id = ? AND state = 'live'${lock}`, [owner])) !== undefined
  )
}

async function claimRound(
  ctx: ClaimContext,
  request: ClaimRequest,
  lane: Lane,
  room: number,
): Promise<Round> {
  const queues = await openQueues(ctx, request, lane, QUEUES_MAX)
  if (queues.length === 0) return { jobs: [], drained: true }
  const shares = fairShares(queues, room)
  const served = new Set(shares.map((share) => share.streamId))
  const unserved = queues.find((queue) => !served.has(queue.streamId))
  if (unserved) ctx.turns[lane] = unserved.streamId
  else ctx.turns[lane] = queues.length < QUEUES_MAX ? 0 : queues.at(-1)!.streamId + 1
  const within = withinRoom(shares, request)
  const jobs = await ctx.driver.take(ctx.tx, lane, within, request.owner, ctx.now)
  return { jobs, drained: jobs.length === 0 || isEmptied({ queues, shares, within, jobs }) }
}

type Taken = { queues: ReadyQueue[]; shares: ClaimShare[]; within: ClaimShare[]; jobs: ClaimedJob[] }

/** Every queue was asked for all it has, and each had less: looking again would find nothing. */
function isEmptied({ queues, shares, within, jobs }: Taken): boolean {
  if (queues.length === QUEUES_MAX || shares.length < queues.length || within.length < shares.length)
    return false
  const got = new Map<string, number>()
  for (const { streamId, kind } of jobs) {
    const queue = `${streamId} ${kind}`
    got.set(queue, (got.get(queue) ?? 0) + 1)
  }
  return within.every(
    (share, at) =>
      share.n === shares[at]!.n &&
      share.priorityMin === PRIORITY_MIN &&
      (got.get(`${share.streamId} ${share.kind}`) ?? 0) < share.n,
  )
}

type Round = { jobs: ClaimedJob[]; drained: boolean }

/** Several streams may have jobs of a kind that is limited as a whole. */
function withinRoom(shares: readonly ClaimShare[], request: ClaimRequest): ClaimShare[] {
  const { roomFor } = request
  if (!roomFor) return [...shares]
  const left = new Map<string, number>()
  return shares.flatMap((share) => {
    const room = left.get(share.kind) ?? roomFor(share)
    const n = Math.min(share.n, room)
    left.set(share.kind, room - n)
    return n > 0 ? [{ ...share, n }] : []
  })
}

/** Pairs with jobs that may start now, at least `enough` if there are, from the stream whose turn it is. */
export async function openQueues(
  { tx, driver, pauses, turns }: LookContext,
  request: Pick<ClaimRequest, 'kinds' | 'roomFor'>,
  lane: Lane,
  enough: number,
): Promise<ReadyQueue[]> {
  const open: ReadyQueue[] = []
  const isOpen = (queue: ReadyQueue): boolean =>
    request.kinds.has(queue.kind) &&
    (request.roomFor?.(queue) ?? 1) > 0 &&
    !pauses.kinds.has(queue.kind) &&
    !pauses.streams.has(queue.streamId)
  const turn = turns[lane]
  let from = turn
  let wrapped = turn === 0
  for (let page = 0; page < PAGES_MAX && open.length < enough; page++) {
    const queues = await driver.readyQueues(tx, lane, { fromStream: from, max: QUEUES_MAX })
    const wanted = wrapped && turn > 0 ? queues.filter((queue) => queue.streamId < turn) : queues
    for (const queue of wanted) if (isOpen(queue)) open.push(queue)
    if (queues.length === QUEUES_MAX && wanted.length === QUEUES_MAX) from = queues.at(-1)!.streamId + 1
    else if (wrapped) break
    else {
      wrapped = true
      from = 0
    }
  }
  return open
}

/**
 * Each stream the same share of the room; within a stream, the kinds whose first job ranks highest, down to
 * the rank at which another kind comes in.
 */
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
    const rest = list.filter((queue) => queue.priority < top)
    const priorityMin =
      first.length > 1 ? top : Math.max(PRIORITY_MIN, ...rest.map((queue) => queue.priority))
    let shareLeft = Math.min(share, left)
    for (const [index, queue] of first.entries()) {
      const n = Math.ceil(shareLeft / (first.length - index))
      if (n > 0) shares.push({ streamId, kind: queue.kind, n, priorityMin })
      shareLeft -= n
      left -= n
    }
  }
  return shares
}
