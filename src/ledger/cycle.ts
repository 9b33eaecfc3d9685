/**
 * One cycle is one transaction: outcomes that are ready together commit together, with the work they
 * bring, the marks they move, and the claim of what comes next.
 *
 * Order inside: fence and settle → effects and work → dependents → segments and marks → claim → tallies.
 * If anything in a cycle of several fails, everything is rolled back and each outcome is committed
 * alone, so a bad one harms nobody else. Effects may therefore run again; they only ever touch the transaction.
 */
import { asTidemarkError, UsageError } from '../errors.ts'
import { Changes } from './changes.ts'
import { type Claim, claimJobs, type Pauses } from './claim.ts'
import type {
  ClaimedJob,
  Cycle,
  CycleResult,
  Driver,
  EnqueueResult,
  Lane,
  Settlement,
  SettleResult,
  Tx,
  Work,
} from './contract.ts'
import { endDependencies } from './dependencies.ts'
import { enqueueJobs } from './enqueue.ts'
import { addSegments, applySegments, countSegments, splitSegments } from './frontier.ts'
import { settleOne } from './settle.ts'

export type CycleContext = {
  driver: Driver
  slot: number
  pauses: Pauses
  /** For each lane the stream with which the next claim begins. */
  turns: Record<Lane, number>
  point: (name: CommitPoint) => void
}

/** Places where a crash harness may kill the process. */
export const COMMIT_POINTS = [
  'begin',
  'settled',
  'effects-done',
  'work-written',
  'segments-written',
  'claimed',
  'before-commit',
  'after-commit',
] as const
export type CommitPoint = (typeof COMMIT_POINTS)[number]

export type CycleOutput = { result: CycleResult; changes: Changes }

export async function runCycle(ctx: CycleContext, cycle: Cycle): Promise<CycleOutput> {
  try {
    return await inOneTransaction(ctx, cycle)
  } catch (thrown) {
    const parts = (cycle.settle?.length ?? 0) + (cycle.work?.length ?? 0) + (cycle.claim ? 1 : 0)
    if (parts <= 1 || isOutage(thrown)) throw thrown
    return eachAlone(ctx, cycle)
  }
}

/** The database itself is unavailable: no outcome is to blame, and trying each alone would not help. */
function isOutage(thrown: unknown): boolean {
  return asTidemarkError(thrown).code?.startsWith('ledger-') ?? false
}

async function inOneTransaction(ctx: CycleContext, cycle: Cycle): Promise<CycleOutput> {
  const { driver } = ctx
  let changes = new Changes()
  const result = await driver.transaction(async (tx) => {
    changes = new Changes() // the transaction may be run again
    const now = driver.now()
    ctx.point('begin')
    const settled = await settleAll({ ...ctx, tx, changes, now }, cycle)
    const work: CycleResult['work'] = []
    for (const jobs of await writePlain(ctx, tx, changes, now, cycle.work ?? []))
      work.push({ status: 'held', jobs })
    ctx.point('work-written')
    await endDependencies({ tx, changes, now }, changes.ended)
    await applySegments({ tx, changes, now })
    ctx.point('segments-written')
    let claim: Claim = { jobs: [], backlog: { interactive: false, bulk: false } }
    if (cycle.claim) claim = await claimJobs({ ...ctx, tx, changes, now }, cycle.claim)
    ctx.point('claimed')
    await changes.flush(tx, ctx.slot, now)
    if (changes.control) await driver.announce(tx, 'control')
    // What we claimed ourselves needs nobody else; the rest may.
    else if (changes.becameReady > claim.jobs.length) await driver.announce(tx, 'work')
    ctx.point('before-commit')
    return {
      settled,
      work,
      claimed: claim.jobs,
      backlog: claim.backlog,
      becameReady: changes.becameReady,
      nextDueAt: changes.nextDueAt,
      marks: changes.marks,
      toStop: changes.toStop,
    }
  })
  ctx.point('after-commit')
  return { result, changes }
}

/** Enqueues that carry nothing but jobs without keys or dependencies are inserted in one statement. */
async function writePlain(
  ctx: CycleContext,
  tx: Tx,
  changes: Changes,
  now: number,
  work: readonly Work[],
): Promise<EnqueueResult[][]> {
  const plain = work.every(
    (w) =>
      !w.effects &&
      !w.segments &&
      !w.splits &&
      !w.counts &&
      !w.cursors &&
      !w.followUp &&
      // Refs are private to the work that gives them.
      !w.jobs?.some((job) => job.ref !== undefined || job.after?.length),
  )
  if (!plain || work.length < 2) {
    const results: EnqueueResult[][] = []
    for (const w of work) results.push(await writeWork({ ...ctx, tx, changes, now }, w, null))
    return results
  }
  const all = work.flatMap((w) => w.jobs ?? [])
  const jobs = await enqueueJobs({ tx, driver: ctx.driver, changes, now, segmentRefs: new Map() }, all)
  let at = 0
  return work.map((w) => {
    const from = at
    at += w.jobs?.length ?? 0
    return jobs.slice(from, at)
  })
}

type SettleContext = CycleContext & { tx: Tx; changes: Changes; now: number }

async function settleAll(ctx: SettleContext, cycle: Cycle): Promise<SettleResult[]> {
  const { tx, driver, changes, now } = ctx
  const settlements = cycle.settle ?? []
  const plain = plainDone(settlements)
  const done = [...plain.values()].map((s) => s.job)
  const heldDone = done.length > 0 ? await driver.settleDone(tx, cycle.owner, done, now) : new Set<number>()
  ctx.point('settled')
  const results: SettleResult[] = []
  for (const settlement of settlements) {
    const { job } = settlement
    if (plain.get(job.id) === settlement && heldDone.has(job.id)) {
      noteDone(changes, job)
    } else {
      const status = await settleOne({ tx, driver, changes, now, owner: cycle.owner }, settlement)
      if (status !== 'held') {
        results.push({ status })
        continue
      }
    }
    const jobs = settlement.work ? await writeWork(ctx, settlement.work, job) : []
    results.push({ status: 'held', jobs })
  }
  ctx.point('effects-done')
  return results
}

/**
 * The common end of a job, written for many at once; everything else goes one by one. One per job: an earlier
 * attempt that reports along with the present one must meet the fence by itself.
 */
function plainDone(settlements: readonly Settlement[]): Map<number, Settlement> {
  const plain = new Map<number, Settlement>()
  for (const s of settlements) {
    if (s.event !== 'succeed' || s.job.badId !== null || s.bad?.length || s.note !== undefined) continue
    const other = plain.get(s.job.id)
    if (!other || other.job.attempt < s.job.attempt) plain.set(s.job.id, s)
  }
  return plain
}

function noteDone(changes: Changes, job: ClaimedJob): void {
  changes.moved(job.kind, 'claimed', 'done')
  changes.count('processed', job.streamId, job.items)
  if (job.segmentId !== null) changes.segment(job.segmentId).jobs -= 1
  changes.ended.push({ id: job.id, state: 'done' })
}

export async function writeWork(
  ctx: SettleContext,
  work: Work,
  parent: ClaimedJob | null,
): Promise<EnqueueResult[]> {
  const { tx, driver, changes, now } = ctx
  const refs = new Map<string, number>()
  if (work.effects) await work.effects(tx)
  if (work.segments) await addSegments(ctx, work.segments, refs)
  if (work.splits) await splitSegments(ctx, work.splits, refs)
  let jobs = work.jobs ?? []
  if (work.followUp) {
    const named = jobs.map((job, index) => ({ ...job, ref: job.ref ?? `child ${index}` }))
    jobs = [
      ...named,
      { ...work.followUp, after: [...(work.followUp.after ?? []), ...named.map((job) => job.ref)] },
    ]
  }
  const results =
    jobs.length > 0
      ? await enqueueJobs(
          { tx, driver, changes, now, segmentRefs: refs },
          parent ? jobs.map((job) => ({ ...job, parentId: job.parentId ?? parent.id })) : jobs,
        )
      : []
  if (work.counts) countSegments(changes, work.counts, refs)
  for (const cursor of work.cursors ?? []) {
    const moved = await tx.run(`UPDATE streams SET cursor = ? WHERE id = ?`, [cursor.value, cursor.streamId])
    if (moved === 0) throw new UsageError(`There is no stream with the id ${cursor.streamId}.`)
  }
  return results
}

async function eachAlone(ctx: CycleContext, cycle: Cycle): Promise<CycleOutput> {
  const changes = new Changes()
  const result: CycleResult = {
    settled: [],
    work: [],
    claimed: [],
    backlog: { interactive: true, bulk: true },
    becameReady: 0,
    nextDueAt: null,
    marks: [],
    toStop: [],
  }
  const parts: Cycle[] = [
    ...(cycle.settle ?? []).map((settlement) => ({ owner: cycle.owner, settle: [settlement] })),
    ...(cycle.work ?? []).map((work) => ({ owner: cycle.owner, work: [work] })),
  ]
  let outage: unknown
  for (const part of parts) {
    try {
      if (outage !== undefined) throw outage
      merge(result, changes, await inOneTransaction(ctx, part))
    } catch (error) {
      // What is committed by now must not be tried again with the rest, so an outage is each one's own answer.
      if (isOutage(error)) outage = error
      if (part.settle) result.settled.push({ status: 'error', error })
      else result.work.push({ status: 'error', error })
    }
  }
  if (cycle.claim && outage === undefined) {
    try {
      merge(result, changes, await inOneTransaction(ctx, { owner: cycle.owner, claim: cycle.claim }))
    } catch (error) {
      // Nothing was claimed, and `backlog` says so: the next cycle claims.
      result.claimError = error
    }
  }
  return { result, changes }
}

function merge(into: CycleResult, changes: Changes, from: CycleOutput): void {
  into.settled.push(...from.result.settled)
  into.work.push(...from.result.work)
  into.claimed.push(...from.result.claimed)
  into.becameReady += from.result.becameReady
  into.marks.push(...from.result.marks)
  into.toStop.push(...from.result.toStop)
  changes.due(from.result.nextDueAt)
  into.nextDueAt = changes.nextDueAt
  changes.unbalanced.push(...from.changes.unbalanced)
}
