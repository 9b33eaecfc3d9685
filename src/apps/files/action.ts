/**
 * One action of a node: decided again on the rows as they are now, done, and written down with its end.
 *
 *   claimed ─▶ rows ─▶ decide ──another answer──▶ nothing is done; planned again
 *                        │ the same
 *                        ▼
 *                  the verb: looks at the real thing, changes it ──not as expected──▶ nothing is done; planned again
 *                        │                                        ──given up──▶ left alone with its reason, until the next whole look
 *                        ▼
 *             commit: rows of the trees, the node closed or freed, the job done
 */
import { z } from 'zod'
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { ATTEMPTS } from '../../engine/kinds.ts'
import type { Effects, Tx } from '../../ledger/contract.ts'
import { type Case, type Decision, decide, isOverwrite, replacesNewer } from './decide.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
import { withHolds } from './holds.ts'
import { IGNORE_FILE } from './names.ts'
import type { ActionVerb } from './plan-order.ts'
import type { PlanRequests } from './plan-requests.ts'
import { endLeft, endStale } from './store/ends.ts'
import type { FileStore } from './store/file-store.ts'
import { countOverwrite } from './store/guard.ts'
import type { NodeKey } from './trees.ts'

export const actionPayload = z.object({
  drive: z.string(),
  node: z.string().regex(/^[il]:/) as unknown as z.ZodType<NodeKey>,
  version: z.number(),
  verb: z.string() as unknown as z.ZodType<ActionVerb>,
  row: z.string(),
  /** When it was planned; for people. */
  path: z.string(),
  bytes: z.number(),
  isTemporary: z.literal(true).optional(),
  isWhole: z.literal(true).optional(),
})
export type ActionPayload = z.infer<typeof actionPayload>

export type ActionContext = {
  pair: FolderPair
  store: FileStore
  job: RunContext<ActionPayload>
  node: NodeKey
  version: number
  case: Case
  decision: Decision
}

/** How a verb ended. */
export type Ended =
  /** `write` returns whether something is to be planned. */
  /** `isLookedAfter`: it takes part again, and nobody has looked at it while it did not. */
  | { end: 'done'; write: (tx: Tx) => Promise<boolean>; note?: string; isLookedAfter?: boolean }
  /** What was expected is no longer so; `write` puts down what was seen instead. */
  | { end: 'stale'; because: string; write?: (tx: Tx) => Promise<unknown> }
  /**
   * Not now, and it is nobody's fault. `isHeardFirst`: what OneDrive has to say is heard meanwhile. `soughtIn`: that
   * folder is looked at meanwhile.
   */
  | ({ end: 'wait'; because: string; code?: WaitCode; afterMs: number } & {
      isHeardFirst?: true
      soughtIn?: readonly string[]
    })
  /**
   * Left alone with its reason, until something changes or the folder is looked through: what OneDrive refused once,
   * and what may not be touched here, may have been put right since.
   */
  | { end: 'left'; because: string }

/** How the note of an action begins that could not be done, and its code. */
export const LEFT_ALONE = 'left alone: '
export const LEFT_ALONE_CODE = 'left-alone'

/** How the note of an action begins that waits. */
export const WAITS = 'waits: '

/** The codes of such notes: `quota-full` where it waits for room in OneDrive. */
export const WAIT_CODES = ['waits', 'quota-full'] as const
export type WaitCode = (typeof WAIT_CODES)[number]

export type VerbRun = (context: ActionContext) => Promise<Ended>

export type ActionDeps = {
  pairs: FolderPairs
  store: FileStore
  planRequests: PlanRequests
  lookAfter: (pair: string) => Outcome['jobs']
}

/** Verbs that the plan may choose although the rows alone say another one. */
const OF_THE_PLAN: ReadonlySet<ActionVerb> = new Set(['conflict', 'move-local'])

export async function runAction(
  { pairs, store, planRequests, lookAfter }: ActionDeps,
  job: RunContext<ActionPayload>,
  run: VerbRun,
): Promise<Outcome> {
  const { drive: name, node, version, verb } = job.payload
  const pair = await pairs.get(name)
  const { version: now, ...rows } = await store.nodeCase(name, node)
  if (now === undefined) return { skip: 'in step already', skipped: 1 }
  if (job.payload.isWhole) rows.hasSurvivors = !(await store.wholeDelete(name, node.slice(2)))
  const known = withHolds(pair, rows, job.payload.path)
  const decision = decide(known, pair.settings.mode)
  const ending = (write: (tx: Tx) => Promise<unknown>): Effects => {
    return async (tx) => {
      // While the rules were on their way, nothing else was planned.
      if ((await write(tx)) || isRules(pair, known)) planRequests.soon(name)
    }
  }
  const stale = (because: string, write?: (tx: Tx) => Promise<unknown>): Outcome => ({
    skip: because,
    skipped: 1,
    effects: ending(async (tx) => {
      await write?.(tx)
      return endStale(tx, name, { node })
    }),
  })
  if (decision.do !== verb && !isOfThePlan(decision, verb))
    return stale('not needed any more: it has changed since it was planned')
  const ended = await tryVerb(job, () => run({ pair, store, job, node, version, case: known, decision }))
  if (ended.end === 'stale') return stale(ended.because, ended.write)
  if (ended.end === 'wait') {
    if (ended.isHeardFirst) planRequests.soon(name, 'delta')
    if (ended.soughtIn) planRequests.lookSoon(name, ended.soughtIn, `${node} ${version}`)
    const { because, code = 'waits', afterMs } = ended
    return { again: { afterMs }, note: WAITS + because, code }
  }
  if (ended.end === 'left') {
    const { because } = ended
    const left = { node, version, because, until: node }
    return {
      skip: LEFT_ALONE + because,
      code: LEFT_ALONE_CODE,
      skipped: 1,
      effects: ending((tx) => endLeft(tx, name, left)),
    }
  }
  // Said, since a job with a checkpoint is not counted by itself.
  const { note } = ended
  const counted = (write: (tx: Tx) => Promise<boolean>) => async (tx: Tx) => {
    if (isOverwrite(decision)) {
      const isOlder = replacesNewer(known, decision)
      await countOverwrite(tx, name, { itemId: node.slice(2), isOlder, nowMs: job.clock.now() })
    }
    return write(tx)
  }
  const jobs = ended.isLookedAfter || isRulesHere(pair, known, verb) ? lookAfter(name) : undefined
  return {
    effects: ending(counted(ended.write)),
    stored: 1,
    ...(note === undefined ? {} : { note }),
    ...(jobs ? { jobs } : {}),
  }
}

/** The file that says what takes part is another one here now: what that leaves out or takes in is looked at. */
function isRulesHere(pair: FolderPair, known: Case, verb: ActionVerb): boolean {
  return LOCAL_CHANGES.has(verb) && isRules(pair, known)
}

function isRules({ rootItemId }: FolderPair, { base, remote }: Case): boolean {
  return [base, remote].some((one) => one?.name === IGNORE_FILE && one.parentId === rootItemId)
}

const LOCAL_CHANGES: ReadonlySet<ActionVerb> = new Set(['download', 'move-local', 'delete-local', 'conflict'])

function isOfThePlan(decision: Decision, verb: ActionVerb): boolean {
  const isMovable =
    decision.do === 'upload' || decision.do === 'mkdir-remote' || decision.do === 'move-remote'
  return OF_THE_PLAN.has(verb) && isMovable
}

/** The engine tries again; what it would give up is given up here, so that the node is left with its reason. */
async function tryVerb(job: RunContext<unknown>, run: () => Promise<Ended>): Promise<Ended> {
  try {
    return await run()
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted || !isGivenUp(error, job.job.failures)) throw thrown
    return { end: 'left', because: error.message }
  }
}

function isGivenUp(error: TidemarkError, failures: number): boolean {
  if (error.kind === 'throttled' || error.kind === 'auth') return false
  return error.kind === 'permanent' || error.kind === 'gone' || failures + 1 >= ATTEMPTS
}
