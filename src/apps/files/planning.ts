/**
 * Plans what is open: rows are read, the pure plan decides, and one transaction writes a segment with its actions and
 * marks their nodes. The segment's mark is the delta link that stood when it was planned, so the stream's mark is the
 * link up to which everything is settled, in order, whichever actions end first.
 */
import { z } from 'zod'
import { formatCount } from '../../base/format.ts'
import { plural } from '../../base/wording.ts'
import { type JobRequest, type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { JobKind } from '../../engine/job-kind.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { ActionPayload } from './action.ts'
import { type Decision, decide } from './decide.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
import { judgedPath, withHolds } from './holds.ts'
import { IGNORE_FILE } from './names.ts'
import { type NodeState, type Plan, type PlanNode, plan } from './plan.ts'
import type { Action, ActionVerb } from './plan-order.ts'
import type { FolderPairRow } from './store/contract.ts'
import { writePlan } from './store/ends.ts'
import type { FileStore } from './store/file-store.ts'
import { freeHeldNames, hasHeldNames } from './store/guard.ts'
import { freeStranded, hasStranded, releaseSettled } from './store/open-nodes.ts'
import type { PlanView } from './store/plan-view.ts'
import { type RulesAhead, rulesAhead, viewOfRules } from './store/plan-view.ts'
import { waitForWhole } from './store/whole-deletes.ts'
import type { NodeKey } from './trees.ts'
import { planWholeDeletes } from './whole-deletes.ts'

export const planPayload = z.object({ drive: z.string() })
export type PlanPayload = z.infer<typeof planPayload>

const BATCH_NODES = 2_000
/** Bookkeeping may leave a node open once or twice; more is a circle, which the next plan may look at. */
const PASSES_MAX = 10_000

export type PlanningDeps = {
  pairs: FolderPairs
  store: FileStore
  ledger: Ledger
  kindOf: (verb: ActionVerb) => JobKind<ActionPayload>
}

export async function runPlan(deps: PlanningDeps, job: RunContext<PlanPayload>): Promise<Outcome> {
  const { store } = deps
  // The rules may have come since the last look.
  await deps.pairs.reload()
  const pair = await deps.pairs.get(job.payload.drive)
  const totals = { actions: 0, nodes: 0 }
  await releaseOld(deps, job, pair)
  const first = await planRules(deps, job, pair)
  if (first) return first
  totals.actions += await planWholes(deps, job, pair)
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    job.signal.throwIfAborted()
    const row = await store.folderPair(pair.name)
    if (!isKnown(row)) return { skip: 'both sides have to be known first' }
    const planned = await planOnce(store, pair, row, job.clock.now())
    if (!planned && (await wakeStranded(deps, job, pair))) continue
    if (!planned) break
    const { tail_at: tail } = await deps.ledger.stream(pair.stream)
    const outcome = toOutcome(deps, job, { pair, row, cycle: tail + 1, plan: planned })
    totals.actions += planned.actions.length
    totals.nodes += 1
    if (pass === 0 && isLast(planned) && !(await isAnyStranded(deps, pair)))
      return { ...outcome, note: `${totals.actions} actions` }
    await job.commit(outcome)
    job.progress({ done: totals.actions, unit: 'items' })
  }
  if (totals.nodes + totals.actions === 0) return { skip: 'nothing is open' }
  return { note: `${totals.actions} actions` }
}

/** What changes the rules here, and what finds out whether it does. */
const CHANGES_RULES: ReadonlySet<Decision['do']> = new Set([
  'check',
  'download',
  'move-local',
  'delete-local',
  'conflict',
])
const RULES_FIRST = 'what takes part is on its way here, and comes first'

/**
 * Other rules are on their way from OneDrive: nothing else is planned before they are here, or it would be by the old
 * ones, and a new machine would upload what they leave out. Their action, however it ends, asks for the next plan.
 */
async function planRules(
  { store, ledger, ...deps }: PlanningDeps,
  job: RunContext<PlanPayload>,
  pair: FolderPair,
): Promise<Outcome | undefined> {
  const row = await store.folderPair(pair.name)
  const ahead = isKnown(row) ? await ledger.driver.read((tx) => rulesAhead(tx, row)) : []
  if (ahead.length === 0) return undefined
  const isComing = async ({ node }: RulesAhead): Promise<boolean> => {
    const { version: _, ...rows } = await store.nodeCase(pair.name, node)
    return CHANGES_RULES.has(decide(withHolds(pair, rows, IGNORE_FILE), pair.settings.mode).do)
  }
  const coming: RulesAhead[] = []
  for (const one of ahead) if (await isComing(one)) coming.push(one)
  if (coming.length === 0) return undefined
  if (coming.some(({ isPlanned }) => isPlanned)) return { skip: RULES_FIRST }
  const view = await ledger.driver.read((tx) => viewOfRules(tx, pair.name, coming))
  const planned = await planView(store, pair, { row, view, nowMs: job.clock.now() })
  const areMoving = planned.actions.some(({ node }) => coming.some((one) => one.node === node))
  if (!areMoving) return undefined
  const { tail_at: tail } = await ledger.stream(pair.stream)
  const outcome = toOutcome({ store, ledger, ...deps }, job, { pair, row, cycle: tail + 1, plan: planned })
  return { ...outcome, note: RULES_FIRST }
}

/** Returns how many actions. */
async function planWholes(
  deps: PlanningDeps,
  job: RunContext<PlanPayload>,
  pair: FolderPair,
): Promise<number> {
  const row = await deps.store.folderPair(pair.name)
  if (!isKnown(row)) return 0
  const wholes = await planWholeDeletes(deps.store, pair, row, job.clock.now())
  if (!wholes) return 0
  const { tail_at: tail } = await deps.ledger.stream(pair.stream)
  const outcome = toOutcome(deps, job, { pair, row, cycle: tail + 1, plan: wholes.plan })
  await job.commit({
    ...outcome,
    effects: async (tx) => {
      await outcome.effects!(tx)
      for (const folder of wholes.folders) await waitForWhole(tx, pair.name, folder)
    },
  })
  return wholes.plan.actions.length
}

function isKnown({ scannedAt, heardAt, isEnumerating, isReading }: FolderPairRow): boolean {
  return scannedAt !== null && heardAt !== null && !isEnumerating && !isReading
}

/** All that was open has an action: then there is nothing more to look for, and this commit is the end of the job. */
function isLast({ actions, waiting, reported, bookkeeping }: Plan): boolean {
  return actions.length < BATCH_NODES && waiting.length + reported.length + bookkeeping.length === 0
}

/** The plan of the next open nodes; undefined where there are none. */
export async function planOnce(
  store: FileStore,
  pair: FolderPair,
  row: FolderPairRow,
  nowMs?: number,
): Promise<Plan | undefined> {
  const view = await store.unplanned(pair.name, BATCH_NODES)
  return view.nodes.length === 0 ? undefined : planView(store, pair, { row, view, nowMs })
}

async function planView(
  store: FileStore,
  pair: FolderPair,
  { row, view, nowMs }: { row: FolderPairRow; view: PlanView; nowMs: number | undefined },
): Promise<Plan> {
  const { mode } = pair.settings
  const ahead = await store.deletesAhead(pair.name, mode)
  const nodes: PlanNode[] = []
  for (const node of view.nodes) {
    if (nodes.length % pair.filter.turnPaths === 0) await new Promise((resolve) => setImmediate(resolve))
    const path = judgedPath(pair, node, {
      here: view.pathOf(node.node),
      there: view.remotePathOf(node.node),
    })
    nodes.push({ ...withHolds(pair, node, path), node: node.node, version: node.version, path })
  }
  const recent = nowMs === undefined ? {} : { recent: await store.recentDeletes(pair.name, nowMs) }
  const guard = { ...ahead, forced: row.forcedDeletes, ...recent }
  const overwrites = nowMs === undefined ? undefined : await store.overwriteGuard(row, { mode, nowMs })
  const planned = plan(nodes, view.around, { mode, guard, overwrites })
  const stateOf = (other: NodeKey): NodeState => {
    const state = view.around.stateOf(other)
    // One that is read may be of another batch, of which the view knows nothing.
    return state === 'in step' && other === overwrites?.reading ? 'open' : state
  }
  for (const one of planned.waiting) one.was = stateOf(one.waitsFor)
  for (const one of planned.reported) if (one.until !== undefined) one.was = stateOf(one.until)
  return planned
}

async function releaseOld(deps: PlanningDeps, job: RunContext<PlanPayload>, pair: FolderPair): Promise<void> {
  const { mark_at: settledTo } = await deps.ledger.stream(pair.stream)
  if (await deps.store.hasPlanned(pair.name, settledTo))
    await job.commit({ effects: async (tx) => void (await releaseSettled(tx, pair.name, settledTo)) })
  if (await deps.ledger.driver.read((tx) => hasHeldNames(tx, pair.name)))
    await job.commit({ effects: async (tx) => void (await freeHeldNames(tx, pair.name)) })
}

function isAnyStranded({ ledger }: PlanningDeps, pair: FolderPair): Promise<boolean> {
  return ledger.driver.read((tx) => hasStranded(tx, pair.name))
}

/** Nobody is left waiting for something that does not move. True where somebody was, and is to be planned. */
async function wakeStranded(
  deps: PlanningDeps,
  job: RunContext<PlanPayload>,
  pair: FolderPair,
): Promise<boolean> {
  if (!(await isAnyStranded(deps, pair))) return false
  await job.commit({ effects: async (tx) => void (await freeStranded(tx, pair.name)) })
  return true
}

function toOutcome(
  { kindOf }: PlanningDeps,
  job: RunContext<PlanPayload>,
  { pair, row, cycle, plan: planned }: { pair: FolderPair; row: FolderPairRow; cycle: number; plan: Plan },
): Outcome {
  const segment = `plan ${cycle}`
  return {
    effects: (tx) => writePlan(tx, pair.name, { cycle, plan: planned, atMs: job.clock.now() }),
    segments: [
      {
        streamId: job.job.streamId,
        from: cycle - 1,
        to: cycle,
        mark: row.link,
        label: roundText(planned.actions.length, job.clock.now()),
        ref: segment,
      },
    ],
    counts: [{ segment, listed: planned.actions.length, seal: true }],
    jobs: planned.actions.map((action) => toJob(kindOf(action.verb), action, { pair, segment })),
  }
}

/** What a round of changes is called where rounds are listed. */
function roundText(changes: number, atMs: number): string {
  const at = new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')
  return `${formatCount(changes)} ${plural(changes, 'change')} of ${at} UTC`
}

function toJob(
  kind: JobKind<ActionPayload>,
  { after, ...action }: Action,
  { pair, segment }: { pair: FolderPair; segment: string },
): JobRequest {
  return request(
    kind,
    { drive: pair.name, ...action },
    {
      stream: pair.stream,
      segment,
      ref: action.node,
      ...(after.length > 0 ? { after } : {}),
    },
  )
}
