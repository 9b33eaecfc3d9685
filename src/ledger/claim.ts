/**
 * Claiming: a fair share of ready jobs for each stream of a lane, a batch at a time.
 *
 * The ready index is ordered by (lane, stream, kind, priority, id). Skipping along it finds the pairs that
 * have work without looking at the work itself, so paused, blocked and future jobs cost nothing, and
 * a stream with a million ready jobs costs as much as one with ten.
 *
 * Where there is room for fewer streams than have work, the next claim begins where this one ended. The same where
 * large payloads used up the bytes that may be claimed: whoever went away empty-handed comes first the next time.
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
import { type Pauses, readPauses } from './control.ts'

/** Pairs served per round; the streams behind them have their turn with the next. */
const QUEUES_MAX = 512
/** Pages of pairs looked at, most of which may not start now, before the claim gives up. */
const PAGES_MAX = 200
/** A stream that had fewer jobs than its share leaves room; this often it is offered to the others. */
const ROUNDS_MAX = 4

const PRIORITY_MIN = Number.MIN_SAFE_INTEGER

/** For each lane the stream with which the next claim begins, and the kind if that stream's turn is not over. */
export type Turns = Record<Lane, { streamId: number; kind: string | null }>

export const firstTurns = (): Turns => ({
  interactive: { streamId: 0, kind: null },
  bulk: { streamId: 0, kind: null },
})

export type LookContext = {
  tx: Tx
  driver: Driver
  pauses: Pauses
  turns: Turns
}
export type ClaimContext = LookContext & { changes: Changes; now: number }
export type Claim = { jobs: ClaimedJob[]; backlog: Record<Lane, boolean> }

/** What a claim has to know first; of a lane nothing, where the look failed or there is no room. */
export type Ahead = { live: Promise<boolean>; queues: Record<Lane, Promise<ReadyQueue[] | undefined>> }

/**
 * Looks at what there is to claim before anything else is done in the transaction: with one writer at a time that holds
 * until this transaction itself makes jobs ready, and the look costs no round trip of its own.
 */
export function lookAhead(ctx: LookContext, request: ClaimRequest, onFailed: () => void): Ahead | undefined {
  if (!ctx.tx.isRemote || ctx.tx.dialect !== 'sqlite' || ctx.pauses.all) return undefined
  const look = async (lane: Lane): Promise<ReadyQueue[] | undefined> => {
    if (request.room[lane] <= 0) return undefined
    try {
      return await openQueues(ctx, request, lane, QUEUES_MAX)
    } catch {
      onFailed()
      return undefined
    }
  }
  const live = isLive(ctx.tx, request.owner)
  live.catch(onFailed)
  return { live, queues: { interactive: look('interactive'), bulk: look('bulk') } }
}

export async function claimJobs(ctx: ClaimContext, request: ClaimRequest, ahead?: Ahead): Promise<Claim> {
  const claim: Claim = { jobs: [], backlog: { interactive: false, bulk: false } }
  if (ctx.pauses.all) return claim
  // Sent along with the first look; known before the first job is taken.
  const live = ahead?.live ?? isLive(ctx.tx, request.owner)
  live.catch(() => {})
  const isStillSo = ctx.changes.becameReady === 0
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
    const { claimBytesMax = Number.MAX_SAFE_INTEGER } = ctx.driver
    let bytes = Math.min(request.bytes?.[lane] ?? claimBytesMax, claimBytesMax)
    let drained = room <= 0
    for (let round = 0; room > 0 && bytes > 0 && !drained && round < ROUNDS_MAX; round++) {
      const seen = round === 0 && isStillSo ? ahead?.queues[lane] : undefined
      const { jobs, drained: emptied } = await claimRound(ctx, limited, lane, { room, bytes, live, seen })
      const before = new Map(taken)
      for (const job of jobs) {
        taken.set(job.kind, (taken.get(job.kind) ?? 0) + 1)
        claim.jobs.push(job)
        bytes -= job.bytes
      }
      for (const [kind, n] of taken) ctx.changes.moved(kind, 'ready', 'claimed', n - (before.get(kind) ?? 0))
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

type RoundOptions = {
  room: number
  bytes: number
  live: Promise<boolean>
  seen: Promise<ReadyQueue[] | undefined> | undefined
}

async function claimRound(
  ctx: ClaimContext,
  request: ClaimRequest,
  lane: Lane,
  { room, bytes, live, seen }: RoundOptions,
): Promise<Round> {
  const look = async (): Promise<ReadyQueue[]> => (await seen) ?? openQueues(ctx, request, lane, QUEUES_MAX)
  const [queues, mayTake] = await Promise.all([look(), live])
  if (queues.length === 0 || !mayTake) return { jobs: [], drained: true }
  const shares = inTurn(fairShares(queues, room), ctx.turns[lane])
  const served = new Set(shares.map((share) => share.streamId))
  const unserved = queues.find((queue) => !served.has(queue.streamId))
  const next = unserved ? unserved.streamId : queues.length < QUEUES_MAX ? 0 : queues.at(-1)!.streamId + 1
  ctx.turns[lane] = { streamId: next, kind: null }
  const within = withinRoom(shares, request, bytes)
  const { owner } = request
  const jobs = await ctx.driver.take(ctx.tx, lane, within, { owner, now: ctx.now, bytesMax: bytes })
  const got = sumTaken(jobs)
  if (got.bytes >= bytes) {
    const emptyHanded = within.find((share) => !got.of(share))
    if (emptyHanded) ctx.turns[lane] = { streamId: emptyHanded.streamId, kind: emptyHanded.kind }
    return { jobs, drained: false }
  }
  return { jobs, drained: jobs.length === 0 || isEmptied({ queues, shares, within, got }) }
}

/** Kinds of one stream take turns too. */
function inTurn(shares: FairShare[], { streamId, kind }: Turns[Lane]): FairShare[] {
  const at = shares.findIndex((share) => share.streamId === streamId && share.kind === kind)
  return at <= 0 ? shares : [...shares.slice(at), ...shares.slice(0, at)]
}

type Got = { bytes: number; of(share: ClaimShare): { n: number; bytes: number } | undefined }

function sumTaken(jobs: readonly ClaimedJob[]): Got {
  const queues = new Map<string, { n: number; bytes: number }>()
  let all = 0
  let before: ClaimedJob | undefined
  let queue = { n: 0, bytes: 0 }
  for (const job of jobs) {
    if (job.kind !== before?.kind || job.streamId !== before.streamId) {
      const name = `${job.streamId} ${job.kind}`
      queue = queues.get(name) ?? { n: 0, bytes: 0 }
      queues.set(name, queue)
      before = job
    }
    queue.n += 1
    queue.bytes += job.bytes
    all += job.bytes
  }
  return { bytes: all, of: ({ streamId, kind }) => queues.get(`${streamId} ${kind}`) }
}

type Taken = { queues: ReadyQueue[]; shares: FairShare[]; within: ClaimShare[]; got: Got }

/** Every queue was asked for all it has, and each had less: looking again would find nothing. */
function isEmptied({ queues, shares, within, got }: Taken): boolean {
  if (queues.length === QUEUES_MAX || shares.length < queues.length || within.length < shares.length)
    return false
  return within.every((share, at) => {
    const { n, bytes } = got.of(share) ?? { n: 0, bytes: 0 }
    const isWhole = share.n === shares[at]!.n && share.priorityMin === PRIORITY_MIN
    return isWhole && n < share.n && bytes < share.bytesMax
  })
}

type FairShare = Omit<ClaimShare, 'bytesMax'>
type Round = { jobs: ClaimedJob[]; drained: boolean }

/** Several streams may have jobs of a kind that is limited as a whole; bytes are shared by all. */
function withinRoom(shares: readonly FairShare[], request: ClaimRequest, bytes: number): ClaimShare[] {
  const { roomFor = () => Number.POSITIVE_INFINITY } = request
  const left = new Map<string, number>()
  const within = shares.flatMap((share) => {
    const room = left.get(share.kind) ?? roomFor(share)
    const n = Math.min(share.n, room)
    left.set(share.kind, room - n)
    return n > 0 ? [{ ...share, n }] : []
  })
  const bytesMax = Math.ceil(bytes / within.length)
  return within.map((share) => ({ ...share, bytesMax }))
}

/** Pairs with jobs that may start now, at least `enough` if there are, from the stream whose turn it is. */
export async function openQueues(
  { tx, driver, pauses: known, turns }: LookContext,
  request: Pick<ClaimRequest, 'kinds' | 'roomFor'>,
  lane: Lane,
  enough: number,
): Promise<ReadyQueue[]> {
  const open: ReadyQueue[] = []
  const pauses = known.isAhead ? await readPauses(tx) : known
  const isOpen = (queue: ReadyQueue): boolean =>
    request.kinds.has(queue.kind) &&
    (request.roomFor?.(queue) ?? 1) > 0 &&
    !pauses.kinds.has(queue.kind) &&
    !pauses.streams.has(queue.streamId)
  const turn = turns[lane].streamId
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
export function fairShares(queues: readonly ReadyQueue[], room: number): FairShare[] {
  const byStream = new Map<number, ReadyQueue[]>()
  for (const queue of queues) {
    const list = byStream.get(queue.streamId)
    if (list) list.push(queue)
    else byStream.set(queue.streamId, [queue])
  }
  const shares: FairShare[] = []
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
