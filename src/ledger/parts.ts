/**
 * The parts of a cycle: what one outcome or one enqueue writes, all of it or nothing.
 *
 * They are written a few dozen behind one savepoint, so that one that throws costs its neighbours little: it is
 * undone together with those before it, which are written again, and those after it follow. A savepoint for each
 * would be two more statements per job; one for all would make every failure cost the whole group.
 */
import { asTidemarkError, TidemarkError } from '../base/errors.ts'
import { Changes } from './changes.ts'
import {
  type ClaimedJob,
  type EnqueueResult,
  LOCKED_CODE,
  type Locks,
  type Settlement,
  type SettleResult,
  type Tx,
  type Work,
} from './contract.ts'
import { chunks } from './dependencies.ts'
import { enqueueJobs } from './enqueue.ts'
import { IDLE_CODE, isForeign } from './guard.ts'
import { settleAll } from './settle.ts'
import { type Brought, type WriteContext, writeWorks } from './work.ts'

export type Outcome = { settlement: Settlement; work?: undefined }
export type Enqueue = { settlement?: undefined; work: Work }
export type Part = Outcome | Enqueue
export type Answers = Map<Part, SettleResult>

export type PartsContext = WriteContext & {
  owner: number
  answers: Answers
  /** What fails is to be undone alone. */
  several: boolean
  locks: Locks
  /** What COMMIT would refuse was found in time. */
  onRefused: () => void
  /** Told which part is being written, and when none is. */
  onPart: (part: Part | undefined) => void
}

/** Each savepoint that writes is a transaction id on PostgreSQL, which keeps 64 of them at hand. */
const PARTS_PER_SAVEPOINT = 64
/** Where nobody knows which part it was, quarters tell with a third fewer parts written again than halves. */
const PIECES = 4
/** Most outcomes bring nothing, and there are thousands of them in a cycle. */
const HELD: SettleResult = { status: 'held', jobs: [] }
/** So that those who are set aside come back together, and others commit meanwhile. */
const ASIDE_MS = 60_000

export async function writeOutcomes(
  ctx: PartsContext & { point: (name: 'settled') => void },
  all: readonly Outcome[],
): Promise<void> {
  const { tx, driver, owner, now, changes, answers } = ctx
  const outcomes = ctx.locks === 'apart' ? await withoutLocked(ctx, all) : all
  const plain = plainDone(outcomes)
  const jobs = [...plain.values()].map((outcome) => outcome.settlement.job)
  const held = jobs.length > 0 ? await driver.settleDone(tx, owner, jobs, now) : new Set<number>()
  ctx.point('settled')
  const isDone = (outcome: Outcome): boolean => {
    const { id } = outcome.settlement.job
    return plain.get(id) === outcome && held.has(id)
  }
  const rest: Outcome[] = []
  for (const outcome of outcomes) {
    const { work } = outcome.settlement
    if (!isDone(outcome) || work) {
      rest.push(outcome)
      continue
    }
    noteDone(changes, outcome.settlement)
    answers.set(outcome, HELD)
  }
  const failed = await behindSavepoints(ctx, rest, async (within, group, turn) => {
    const open = group.filter((outcome) => !isDone(outcome))
    for (const outcome of group) if (isDone(outcome)) noteDone(within.changes, outcome.settlement)
    const settled = await settleAll(
      { ...within, owner },
      open.map(({ settlement }) => settlement),
      (place) => turn(place === undefined ? undefined : open[place]),
    )
    const statuses = new Map(open.map((outcome, place) => [outcome, settled[place]!]))
    return group.map((outcome) => {
      const status = statuses.get(outcome) ?? 'held'
      const { work = {}, job } = outcome.settlement
      return status === 'held' ? { work, job } : { status }
    })
  })
  for (const outcome of failed) if (isDone(outcome)) await holdAgain(tx, outcome.settlement.job)
}

/** A job that an app's transaction is to wait for, or replaces, is locked until that ends. */
async function withoutLocked(
  { tx, driver, answers }: PartsContext,
  all: readonly Outcome[],
): Promise<Outcome[]> {
  if (all.length === 0) return []
  const locked = await driver.lockedJobs(tx, [...new Set(all.map(({ settlement }) => settlement.job.id))])
  return all.filter((outcome) => {
    const { id } = outcome.settlement.job
    if (!locked.has(id)) return true
    const error = new TidemarkError(`Job #${id} is locked by another transaction.`, {
      kind: 'transient',
      code: LOCKED_CODE,
    })
    answers.set(outcome, { status: 'error', error })
    return false
  })
}

export async function writeEnqueues(ctx: PartsContext, enqueues: readonly Enqueue[]): Promise<void> {
  // If one of them is refused, the others are written without it.
  if (enqueues.length > 1 && enqueues.every(isPlain) && (await writeTogether(ctx, enqueues))) return
  await behindSavepoints(ctx, enqueues, async (_, group) => group.map(({ work }) => ({ work, job: null })))
}

/**
 * Settles the parts of a group, and returns what each brings, or why it may bring nothing. What it throws is the fault of
 * the one whose turn it was.
 */
type Begin<P> = (
  within: WriteContext,
  group: readonly P[],
  turn: (part: P | undefined) => void,
) => Promise<(Brought | SettleResult)[]>

/** Returns those that failed: nothing of them is written, and their error is their answer. */
async function behindSavepoints<P extends Part>(
  ctx: PartsContext,
  parts: readonly P[],
  begin: Begin<P>,
): Promise<P[]> {
  const { driver, tx, now, answers, locks, onPart } = ctx
  const failed: P[] = []
  const setAside = (part: P, error: TidemarkError | undefined): boolean => {
    if (!error) return false
    answers.set(part, { status: 'error', error })
    failed.push(part)
    return true
  }
  let groups = [...chunks(parts, PARTS_PER_SAVEPOINT)]
  for (let group = groups.shift(); group; group = groups.shift()) {
    const changes = new Changes()
    let writing: P | undefined
    const turn = (part: P | undefined): void => {
      writing = part
      onPart(part)
    }
    const writeGroup = async (): Promise<void> => {
      const within = { tx, driver, now, changes, locks, looksAhead: ctx.looksAhead }
      const held: { part: P; brought: Brought }[] = []
      for (const [at, begun] of (await begin(within, group, turn)).entries()) {
        const part = group[at]!
        if ('status' in begun) answers.set(part, begun)
        else held.push({ part, brought: begun })
      }
      const list = held.map(({ brought }) => brought)
      const jobs = await writeWorks(within, list, (place) =>
        turn(place === undefined ? undefined : held[place]!.part),
      )
      for (const [at, { part }] of held.entries()) answers.set(part, { status: 'held', jobs: jobs[at]! })
      turn(undefined)
    }
    const undone = ctx.several ? await driver.savepoint(tx, writeGroup) : await writeGroup()
    if (undone && isWhole(ctx, undone.error)) throw undone.error
    onPart(undefined)
    if (!undone) {
      ctx.changes.add(changes)
      continue
    }
    if (ctx.looksAhead && !writing) ctx.onRefused()
    const culprit = group.length === 1 ? group[0] : writing
    if (culprit) {
      answers.set(culprit, { status: 'error', error: undone.error })
      failed.push(culprit)
    }
    if (!culprit) {
      groups.unshift(...chunks(group, Math.ceil(group.length / PIECES)))
      continue
    }
    // Those before it were fine a moment ago.
    const at = group.indexOf(culprit)
    const behind = [group.slice(at + 1), ...groups]
    const wait = alsoWaits(culprit, undone.error)
    groups = [group.slice(0, at), ...behind.map((list) => list.filter((part) => !setAside(part, wait(part))))]
    groups = groups.filter(({ length }) => length > 0)
  }
  return failed
}

/** Why a part behind `culprit` is not tried in this cycle, if it is not. */
export function alsoWaits(culprit: Part, error: unknown): (part: Part) => TidemarkError | undefined {
  return isLocked(error) ? alsoLocked(culprit, error) : alsoIdle(culprit, error)
}

/** What comes of one job is written in its order: what is behind a part that met a lock meets it as well. */
function alsoLocked(culprit: Part, error: unknown): (part: Part) => TidemarkError | undefined {
  const id = culprit.settlement?.job.id
  return ({ settlement }) =>
    id !== undefined && settlement?.job.id === id ? asTidemarkError(error) : undefined
}

/**
 * Effects that stand still cost everybody the whole limit, and others of their kind likely do so too: those that come
 * behind `culprit` are not tried in this cycle. It costs them no attempt.
 */
function alsoIdle(culprit: Part, error: unknown): (part: Part) => TidemarkError | undefined {
  const kind = culprit.settlement?.job.kind
  if (kind === undefined || asTidemarkError(error).code !== IDLE_CODE) return () => undefined
  return ({ settlement }) => {
    if (settlement?.job.kind !== kind || !settlement.work?.effects) return undefined
    return new TidemarkError(`Not written, because effects of another ${kind} before it stood still.`, {
      kind: 'throttled',
      retryAfterMs: ASIDE_MS,
      cause: error,
    })
  }
}

/** The database itself is unavailable: no part is to blame, and trying each alone would not help. */
export function isOutage(thrown: unknown): boolean {
  return !isForeign(thrown) && (asTidemarkError(thrown).code?.startsWith('ledger-') ?? false)
}

export function isLocked(thrown: unknown): boolean {
  return asTidemarkError(thrown).code === LOCKED_CODE
}

/** All of the transaction ends with it. */
function isWhole({ locks }: PartsContext, thrown: unknown): boolean {
  return isOutage(thrown) || (locks === 'brief' && isLocked(thrown))
}

/**
 * The common end of a job, written for many at once; everything else goes one by one. One per job: an earlier
 * attempt that reports along with the present one must meet the fence by itself.
 */
function plainDone(outcomes: readonly Outcome[]): Map<number, Outcome> {
  const plain = new Map<number, Outcome>()
  for (const outcome of outcomes) {
    const { job, event, bad, note } = outcome.settlement
    if (event !== 'succeed' || job.badId !== null || bad?.length || note !== undefined) continue
    const other = plain.get(job.id)
    if (!other || other.settlement.job.attempt < job.attempt) plain.set(job.id, outcome)
  }
  return plain
}

function noteDone(changes: Changes, { job, items = job.items }: Settlement): void {
  changes.moved(job.kind, 'claimed', 'done')
  changes.count('processed', job.streamId, items)
  if (job.segmentId !== null) changes.segment(job.segmentId).jobs -= 1
  changes.ended.push({ id: job.id, state: 'done' })
}

/** Takes back what `settleDone` wrote in this very transaction: what came with it failed. */
async function holdAgain(tx: Tx, job: ClaimedJob): Promise<void> {
  await tx.run(`UPDATE jobs SET state = 'claimed', settled_at = NULL WHERE id = ? AND attempt = ?`, [
    job.id,
    job.attempt,
  ])
}

/** Nothing but jobs without keys or dependencies; refs are private to the work that gives them. */
function isPlain({ work: w }: Enqueue): boolean {
  const more = w.effects ?? w.segments ?? w.splits ?? w.counts ?? w.cursors ?? w.followUp
  return !more && !w.jobs?.some((job) => job.ref !== undefined || job.after?.length)
}

/** All of them in one statement, or none. */
async function writeTogether(ctx: PartsContext, enqueues: readonly Enqueue[]): Promise<boolean> {
  const { tx, driver, now, answers, locks } = ctx
  const changes = new Changes()
  let jobs: EnqueueResult[] = []
  const undone = await driver.savepoint(tx, async () => {
    const all = enqueues.flatMap(({ work }) => work.jobs ?? [])
    jobs = await enqueueJobs({ tx, driver, changes, now, locks }, all)
  })
  if (undone && isWhole(ctx, undone.error)) throw undone.error
  if (undone) return false
  ctx.changes.add(changes)
  let at = 0
  for (const enqueue of enqueues) {
    const from = at
    at += enqueue.work.jobs?.length ?? 0
    answers.set(enqueue, { status: 'held', jobs: jobs.slice(from, at) })
  }
  return true
}
