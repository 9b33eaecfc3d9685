/**
 * One action of a node: decided again on the rows as they are now, done, and written down with its end.
 *
 *   claimed ─▶ rows ─▶ decide ──another answer──▶ nothing is done; planned again
 *                        │ the same
 *                        ▼
 *                  the verb: looks at the real thing, changes it ──not as expected──▶ nothing is done; planned again
 *                        │                                        ──given up──▶ bad item; left alone with its reason
 *                        ▼
 *             commit: rows of the trees, the node closed or freed, the job done
 */
import { z } from 'zod'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { ATTEMPTS } from '../../engine/kinds.ts'
import { asTidemarkError, type TidemarkError } from '../../errors.ts'
import type { Effects, Tx } from '../../ledger/contract.ts'
import { type Case, type Decision, decide } from './decide.ts'
import type { FileDrive, FileDrives } from './drive.ts'
import { withHolds } from './holds.ts'
import type { ActionVerb } from './plan.ts'
import type { PlanBell } from './plan-bell.ts'
import { endLeft, endStale } from './store/ends.ts'
import type { FileStore } from './store/file-store.ts'
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
})
export type ActionPayload = z.infer<typeof actionPayload>

export type ActionContext = {
  drive: FileDrive
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
  | { end: 'done'; write: (tx: Tx) => Promise<boolean>; note?: string }
  /** What was expected is no longer so; `write` puts down what was seen instead. */
  | { end: 'stale'; because: string; write?: (tx: Tx) => Promise<unknown> }
  /** Not now, and it is nobody's fault. `isHeardFirst`: what OneDrive has to say is heard meanwhile. */
  | { end: 'wait'; because: string; afterMs: number; isHeardFirst?: true }
  /** Left alone with its reason, until something changes or the folder is looked through. */
  | { end: 'left'; because: string }
  /** It cannot be done, and trying again does not help. */
  | { end: 'stuck'; because: string }

/** How the note of an action begins that waits; the status reads it. */
export const WAITS = 'waits: '

export type VerbRun = (context: ActionContext) => Promise<Ended>

export type ActionDeps = { drives: FileDrives; store: FileStore; bell: PlanBell }

/** Verbs that the plan may choose although the rows alone say another one. */
const OF_THE_PLAN: ReadonlySet<ActionVerb> = new Set(['conflict', 'move-local'])

export async function runAction(
  { drives, store, bell }: ActionDeps,
  job: RunContext<ActionPayload>,
  run: VerbRun,
): Promise<Outcome> {
  const { drive: name, node, version, verb } = job.payload
  const drive = await drives.get(name)
  const { version: now, ...rows } = await store.nodeCase(name, node)
  if (now === undefined) return { skip: 'in step already', skipped: 1 }
  const known = withHolds(drive, rows, job.payload.path)
  const decision = decide(known, drive.settings.mode)
  const ending = (write: (tx: Tx) => Promise<unknown>): Effects => {
    return async (tx) => {
      if (await write(tx)) bell.ring(name)
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
    return stale(`not needed any more: ${decision.row}`)
  const ended = await tryVerb(job, () => run({ drive, store, job, node, version, case: known, decision }))
  if (ended.end === 'stale') return stale(ended.because, ended.write)
  if (ended.end === 'wait') {
    if (ended.isHeardFirst) bell.ring(name, 'delta')
    return { again: { afterMs: ended.afterMs }, note: WAITS + ended.because }
  }
  if (ended.end === 'left') {
    const { because } = ended
    const left = { node, version, because, until: node }
    return { skip: because, skipped: 1, effects: ending((tx) => endLeft(tx, name, left)) }
  }
  if (ended.end === 'done') {
    // Said, since a job with a checkpoint is not counted by itself.
    const { note } = ended
    return { effects: ending(ended.write), stored: 1, ...(note === undefined ? {} : { note }) }
  }
  return {
    bad: [{ item: node, reason: `${job.payload.path}: ${ended.because}` }],
    effects: ending((tx) => endLeft(tx, name, { node, version, because: ended.because })),
  }
}

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
    return { end: 'stuck', because: error.message }
  }
}

function isGivenUp(error: TidemarkError, failures: number): boolean {
  if (error.kind === 'throttled' || error.kind === 'auth') return false
  return error.kind === 'permanent' || error.kind === 'gone' || failures + 1 >= ATTEMPTS
}
