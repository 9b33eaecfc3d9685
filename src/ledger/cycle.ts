/**
 * One cycle is one transaction: outcomes that are ready together commit together, with the work they
 * bring, the marks they move, and the claim of what comes next.
 *
 * Order inside: locks (lock-order.ts) → fence and settle → effects and work → dependents → segments and marks → claim →
 * tallies.
 *
 * A part that fails harms nobody else. One that throws is undone behind its savepoint (parts.ts). What comes out only
 * later, or takes the whole transaction with it, rolls the cycle back; then its parts are committed without the
 * one that is to blame, or in halves until it is alone. Effects may therefore run again; they only ever
 * touch the transaction.
 *
 * A constraint that is looked at only with COMMIT (DEFERRABLE INITIALLY DEFERRED) is one of these. Looking at it behind
 * every savepoint would cost everybody a round trip on PostgreSQL, so that is done only where one was broken lately.
 *
 * A connection that is lost is nobody's fault, unless it is lost again and again, and only while effects are
 * written: then one of them does it (a query that ends the server's process, say), and is searched for in the same way.
 */
import { sleep } from '../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../base/errors.ts'
import { Changes } from './changes.ts'
import { type Claim, claimJobs, lookAhead, type Turns } from './claim.ts'
import {
  type ClaimRequest,
  type Cycle,
  type CycleResult,
  type Driver,
  LONG_CODE,
  type Locks,
  type SettleResult,
} from './contract.ts'
import type { Pauses } from './control.ts'
import { endDependencies } from './dependencies.ts'
import { applySegments } from './frontier.ts'
import { inTurn, lockInOrder } from './lock-order.ts'
import {
  type Answers,
  alsoWaits,
  type Enqueue,
  isLocked,
  isOutage,
  type Outcome,
  type Part,
  writeEnqueues,
  writeOutcomes,
} from './parts.ts'

export type CycleContext = {
  driver: Driver
  slot: number
  pauses: Pauses
  turns: Turns
  /** Connections lost while effects were written, since the last group that was committed. */
  losses: { n: number }
  /** So many groups with effects are still looked at for what COMMIT would refuse. */
  late: { groupsLeft: number }
  point: (name: CommitPoint) => void
}

/** So many times in a row may a server be restarted, or a process be suspended. */
const LOSSES_MAX = 4
const BACK_TRIES_MAX = 10
/** After so many groups in which COMMIT would have refused nothing, it is trusted again. */
const LATE_GROUPS = 1_000
const BACK_PAUSE_MS = 500
/** So many times is one that takes too long alone written, before that is its own fault. */
const LONG_TRIES_MAX = 4
/** Not of a database that is full, locked or cannot be written. */
const LOST_CODES: ReadonlySet<string | undefined> = new Set(['ledger-down', 'ledger-idle'])

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
  const settle: Part[] = (cycle.settle ?? []).map((settlement) => ({ settlement }))
  const work: Part[] = (cycle.work ?? []).map((one) => ({ work: one }))
  const locks = ctx.driver.dialect === 'postgres' ? (cycle.locks ?? 'patient') : 'patient'
  const group = { owner: cycle.owner, claim: cycle.claim, parts: [...settle, ...work], locks }
  const { result, changes, answers } = await together(ctx, group)
  const settled = settle.map((part) => answers.get(part)!)
  return {
    result: { ...result, settled, work: work.map((part) => answers.get(part)!) as CycleResult['work'] },
    changes,
  }
}

type Group = { owner: number; parts: readonly Part[]; claim?: ClaimRequest; locks: Locks }
type GroupOutput = { result: Omit<CycleResult, 'settled' | 'work'>; changes: Changes; answers: Answers }
/**
 * The part that was being written when the transaction was lost; whether any effects had begun by then; whether COMMIT
 * refused what nobody had looked at; and whether it was the claim that failed, or its look ahead.
 */
type Blame = { part?: Part; hadEffects?: boolean; refusedUnseen?: boolean; claimFailed?: boolean }

async function together(ctx: CycleContext, group: Group): Promise<GroupOutput> {
  const blame: Blame = {}
  const portions = portionsOf(group.parts, effectsMaxOf(ctx))
  if (portions.length > 1) return apart(ctx, group, portions, emptyOutput())
  try {
    const output = await withPatience(ctx, group, blame)
    if (blame.hadEffects) ctx.losses.n = 0
    return output
  } catch (thrown) {
    if (group.locks === 'brief' && isLocked(thrown)) return together(ctx, { ...group, locks: 'apart' })
    if (isLoss(thrown, blame)) {
      ctx.losses.n += 1
      if (ctx.losses.n > LOSSES_MAX && (await isBack(ctx.driver)))
        return search(ctx, group, {}, lossError(thrown))
    }
    if (group.parts.length + (group.claim ? 1 : 0) <= 1 || isOutage(thrown)) throw thrown
    // Nobody else is to blame for it: the parts are written without it, and what fails then is their own.
    if (blame.claimFailed && !isLong(thrown)) return apart(ctx, group, [[...group.parts]], emptyOutput())
    if (blame.hadEffects && blame.refusedUnseen && !isLong(thrown)) {
      ctx.late.groupsLeft = LATE_GROUPS
      return together(ctx, group)
    }
    return search(ctx, group, isLong(thrown) ? {} : blame, thrown)
  }
}

/** Whose turn it was when the time was up is not to blame for it: those before it took most of that. */
function isLong(thrown: unknown): boolean {
  return asTidemarkError(thrown).code === LONG_CODE
}

/**
 * One that is too long although it is alone is written again before it costs a try: where the server or this machine has
 * too much to do, each is too long now and then, and that is nobody's fault.
 */
async function withPatience(ctx: CycleContext, group: Group, blame: Blame): Promise<GroupOutput> {
  const isAlone = group.parts.length === 1 && !group.claim
  for (let tries = 1; ; tries++) {
    try {
      return await inOneTransaction(ctx, group, blame)
    } catch (thrown) {
      if (!isAlone || !isLong(thrown) || tries === LONG_TRIES_MAX) throw thrown
    }
  }
}

function effectsMaxOf({ driver }: CycleContext): number {
  return driver.effectsMax ?? Number.POSITIVE_INFINITY
}

/** As many with effects in each as one transaction may have; one portion where that is no matter. */
function portionsOf(parts: readonly Part[], effectsMax: number): Part[][] {
  const portions: Part[][] = [[]]
  let effects = 0
  for (const part of parts) {
    const hasEffects = (part.settlement?.work ?? part.work)?.effects !== undefined
    if (hasEffects && effects >= effectsMax) {
      portions.push([])
      effects = 0
    }
    if (hasEffects) effects += 1
    portions.at(-1)!.push(part)
  }
  return portions
}

function isLoss(thrown: unknown, { hadEffects }: Blame): boolean {
  return hadEffects === true && isOutage(thrown) && LOST_CODES.has(asTidemarkError(thrown).code)
}

/** Without effects it works, so that they are to blame. */
async function isBack(driver: Driver): Promise<boolean> {
  for (let tries = 0; tries < BACK_TRIES_MAX; tries++) {
    try {
      await driver.transaction((tx) => tx.get(`SELECT 1 AS n`))
      return true
    } catch {
      // Not yet: a server whose process has died needs a moment.
      await sleep(driver.clock, BACK_PAUSE_MS)
    }
  }
  return false
}

/** For the one whose effects do it; it costs an attempt, and others go on meanwhile. */
function lossError(thrown: unknown): TidemarkError {
  const { message } = asTidemarkError(thrown)
  return new TidemarkError(`Each time its effects were written, the connection was lost: ${message}`, {
    kind: 'transient',
    cause: thrown,
  })
}

async function inOneTransaction(ctx: CycleContext, group: Group, blame: Blame): Promise<GroupOutput> {
  const { driver } = ctx
  let changes = new Changes()
  let answers: Answers = new Map()
  const result = await driver.transaction(async (tx) => {
    // The transaction may be run again.
    changes = new Changes()
    answers = new Map()
    const now = driver.now()
    ctx.point('begin')
    const onPart = (part: Part | undefined): void => {
      blame.part = part
      if ((part?.settlement?.work ?? part?.work)?.effects) blame.hadEffects = true
    }
    onPart(undefined)
    blame.claimFailed = false
    const onClaimFailed = (): void => {
      blame.claimFailed = true
    }
    const ahead = group.claim && lookAhead({ ...ctx, tx }, group.claim, onClaimFailed)
    blame.refusedUnseen = false
    const { locks, owner } = group
    const several = group.parts.length > 1 || locks === 'apart'
    const looksAhead = ctx.late.groupsLeft > 0
    const onRefused = (): void => {
      ctx.late.groupsLeft = LATE_GROUPS
    }
    const parts = { ...ctx, tx, changes, now, owner, answers, several, locks, looksAhead, onRefused, onPart }
    await lockInOrder(tx, group.parts, locks)
    await writeOutcomes(parts, group.parts.filter(isOutcome))
    ctx.point('effects-done')
    await writeEnqueues(parts, inTurn(group.parts.filter(isEnqueue)))
    ctx.point('work-written')
    await endDependencies({ tx, changes, now }, changes.ended)
    await applySegments({ tx, changes, now })
    ctx.point('segments-written')
    let claim: Claim = { jobs: [], backlog: { interactive: false, bulk: false } }
    if (group.claim) {
      blame.claimFailed = true
      claim = await claimJobs({ ...ctx, tx, changes, now }, group.claim, ahead)
      blame.claimFailed = false
    }
    ctx.point('claimed')
    await driver.withCommit(tx, changes.flush(tx, ctx.slot, now))
    if (changes.control) await driver.announce(tx, 'control')
    // What we claimed ourselves needs nobody else; the rest may.
    else if (changes.becameReady > claim.jobs.length) await driver.announce(tx, 'work')
    ctx.point('before-commit')
    blame.refusedUnseen = !looksAhead
    if (looksAhead && blame.hadEffects) ctx.late.groupsLeft = Math.max(0, ctx.late.groupsLeft - 1)
    return {
      claimed: claim.jobs,
      backlog: claim.backlog,
      becameReady: changes.becameReady,
      nextDueAt: changes.nextDueAt,
      marks: changes.marks,
      toStop: changes.toStop,
    }
  }, lockOptions(group))
  ctx.point('after-commit')
  return { result, changes, answers }
}

function lockOptions({ locks }: Group): { locks?: 'brief' } {
  return locks === 'brief' ? { locks } : {}
}

function isOutcome(part: Part): part is Outcome {
  return part.settlement !== undefined
}

function isEnqueue(part: Part): part is Enqueue {
  return part.work !== undefined
}

/** Nothing of `group` was committed. Commits what can be. */
function search(ctx: CycleContext, group: Group, blame: Blame, thrown: unknown): Promise<GroupOutput> {
  const output = emptyOutput()
  return apart(ctx, group, withoutBlamed(group.parts, blame, thrown, output.answers), output)
}

/** Commits what can be of these groups, one after another, and then claims. */
async function apart(
  ctx: CycleContext,
  { owner, claim, locks }: Group,
  groups: Part[][],
  output: GroupOutput,
): Promise<GroupOutput> {
  const { answers } = output
  let outage: unknown
  for (let next = groups.shift(); next; next = groups.shift()) {
    // How many a transaction may have is learned under way.
    const [parts = [], ...later] = portionsOf(withoutLocked(next, answers), effectsMaxOf(ctx))
    groups.unshift(...later)
    if (parts.length === 0) continue
    // On SQLite a transaction needs no turn of the event loop, and there may be many.
    await new Promise((resolve) => setImmediate(resolve))
    const blamed: Blame = {}
    try {
      if (outage !== undefined) throw outage
      merge(output, await withPatience(ctx, { owner, parts, locks }, blamed))
    } catch (thrown) {
      const isSearch = ctx.losses.n > LOSSES_MAX && isLoss(thrown, blamed)
      const error = isSearch && (await isBack(ctx.driver)) ? lossError(thrown) : thrown
      // The loss is noticed later than it happens.
      if (isSearch || isLong(error)) blamed.part = undefined
      // What is committed by now must not be tried again with the rest, so an outage is each one's own answer.
      if (isOutage(error)) outage = error
      if (outage === undefined) groups.unshift(...withoutBlamed(parts, blamed, error, answers))
      else for (const part of parts) answers.set(part, { status: 'error', error })
    }
  }
  if (claim && outage === undefined) {
    try {
      merge(output, await inOneTransaction(ctx, { owner, claim, parts: [], locks }, {}))
    } catch (error) {
      // Nothing was claimed, and `backlog` says so: the next cycle claims.
      output.result.claimError = error
    }
  }
  return output
}

/** What to try next: all but the one to blame, which has its answer; in halves where nobody knows. */
function withoutBlamed(parts: readonly Part[], blame: Blame, error: unknown, answers: Answers): Part[][] {
  const blamed = parts.length === 1 ? parts[0]! : blame.part
  if (blamed) {
    answers.set(blamed, { status: 'error', error })
    const wait = alsoWaits(blamed, error)
    const at = parts.indexOf(blamed)
    const behind = parts.slice(at + 1).filter((part) => {
      const waits = wait(part)
      if (waits) answers.set(part, { status: 'error', error: waits })
      return !waits
    })
    return [[...parts.slice(0, at), ...behind]].filter(({ length }) => length > 0)
  }
  const half = Math.ceil(parts.length / 2)
  return [parts.slice(0, half), parts.slice(half)].filter(({ length }) => length > 0)
}

/** What comes of one job is written in its order, also where its parts are in several groups. */
function withoutLocked(parts: readonly Part[], answers: Answers): readonly Part[] {
  const locked = new Map<number, SettleResult>()
  for (const [{ settlement }, answer] of answers)
    if (settlement && answer.status === 'error' && isLocked(answer.error))
      locked.set(settlement.job.id, answer)
  if (locked.size === 0) return parts
  return parts.filter((part) => {
    const answer = part.settlement && locked.get(part.settlement.job.id)
    if (answer) answers.set(part, answer)
    return !answer
  })
}

function emptyOutput(): GroupOutput {
  return {
    result: {
      claimed: [],
      backlog: { interactive: true, bulk: true },
      becameReady: 0,
      nextDueAt: null,
      marks: [],
      toStop: [],
    },
    changes: new Changes(),
    answers: new Map(),
  }
}

function merge(into: GroupOutput, from: GroupOutput): void {
  for (const [part, answer] of from.answers) into.answers.set(part, answer)
  into.result.claimed.push(...from.result.claimed)
  into.result.becameReady += from.result.becameReady
  into.result.marks.push(...from.result.marks)
  into.result.toStop.push(...from.result.toStop)
  into.changes.due(from.result.nextDueAt)
  into.result.nextDueAt = into.changes.nextDueAt
  into.changes.unbalanced.push(...from.changes.unbalanced)
}
