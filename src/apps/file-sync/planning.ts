/**
 * Plans what is open: rows are read, the pure plan decides, and one transaction writes a segment with its actions and
 * marks their nodes. The segment's mark is the delta link that stood when it was planned, so the stream's mark is the
 * link up to which everything is settled, in order, whichever actions end first.
 */
import { z } from 'zod'
import { type JobRequest, type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { JobKind } from '../../engine/kinds.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { ActionPayload } from './action.ts'
import type { FileDrive, FileDrives } from './drive.ts'
import { withHolds } from './holds.ts'
import { type Action, type ActionVerb, type Plan, type PlanNode, plan, RECENT_MS } from './plan.ts'
import type { DriveRow } from './store/contract.ts'
import { writePlan } from './store/ends.ts'
import type { FileStore } from './store/file-store.ts'
import { releaseSettled } from './store/open-nodes.ts'
import type { NodeKey } from './trees.ts'

export const planPayload = z.object({ drive: z.string() })
export type PlanPayload = z.infer<typeof planPayload>

const BATCH_NODES = 2_000
/** Bookkeeping may leave a node open once or twice; more is a circle, which the next plan may look at. */
const PASSES_MAX = 10_000

export type PlanningDeps = {
  drives: FileDrives
  store: FileStore
  ledger: Ledger
  kindOf: (verb: ActionVerb) => JobKind<ActionPayload>
}

export async function runPlan(deps: PlanningDeps, job: RunContext<PlanPayload>): Promise<Outcome> {
  const { store } = deps
  const drive = await deps.drives.get(job.payload.drive)
  const totals = { actions: 0, nodes: 0 }
  await releaseOld(deps, job, drive)
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    job.signal.throwIfAborted()
    const row = await store.drive(drive.name)
    if (row.scannedAt === null || row.heardAt === null || row.isEnumerating || row.isReading) {
      return { skip: 'both sides have to be known first' }
    }
    const planned = await planOnce(store, drive, row, job.clock.now())
    if (!planned) break
    const { tail_at: tail } = await deps.ledger.stream(drive.stream)
    const outcome = toOutcome(deps, job, { drive, row, cycle: tail + 1, plan: planned })
    totals.actions += planned.actions.length
    totals.nodes += 1
    if (isLast(planned)) return { ...outcome, note: `${totals.actions} actions` }
    await job.commit(outcome)
    job.progress({ done: totals.actions, unit: 'items' })
  }
  if (totals.nodes === 0) return { skip: 'nothing is open' }
  return { note: `${totals.actions} actions` }
}

/** All that was open has an action: then there is nothing more to look for, and this commit is the end of the job. */
function isLast({ actions, waiting, reported, bookkeeping }: Plan): boolean {
  return actions.length < BATCH_NODES && waiting.length + reported.length + bookkeeping.length === 0
}

/** The plan of the next open nodes; undefined where there are none. */
export async function planOnce(
  store: FileStore,
  drive: FileDrive,
  row: DriveRow,
  nowMs?: number,
): Promise<Plan | undefined> {
  const view = await store.unplanned(drive.name, BATCH_NODES)
  if (view.nodes.length === 0) return undefined
  const { baseItems, ...deletes } = await store.deletesAhead(drive.name)
  const nodes: PlanNode[] = view.nodes.map((node) => {
    const path = view.pathOf(node.node)
    return { ...withHolds(drive, node, path), node: node.node, version: node.version, path }
  })
  const guard = { baseItems, deletes, forced: row.forcedDeletes, recent: recentOf(row, nowMs) }
  const planned = plan(nodes, view.around, { mode: drive.settings.mode, guard })
  const isOpen = (other: NodeKey): boolean => view.around.stateOf(other) !== 'in step'
  for (const one of planned.waiting) one.wasOpen = isOpen(one.waitsFor)
  for (const one of planned.reported) one.wasOpen = one.until !== undefined && isOpen(one.until)
  return planned
}

function recentOf({ recentDeletes, recentSince }: DriveRow, nowMs = recentSince): number {
  const agoMs = nowMs - recentSince
  return agoMs >= 0 && agoMs < RECENT_MS ? recentDeletes : 0
}

async function releaseOld(deps: PlanningDeps, job: RunContext<PlanPayload>, drive: FileDrive): Promise<void> {
  const { mark_at: settledTo } = await deps.ledger.stream(drive.stream)
  if (!(await deps.store.hasPlanned(drive.name, settledTo))) return
  await job.commit({ effects: async (tx) => void (await releaseSettled(tx, drive.name, settledTo)) })
}

function toOutcome(
  { kindOf }: PlanningDeps,
  job: RunContext<PlanPayload>,
  { drive, row, cycle, plan: planned }: { drive: FileDrive; row: DriveRow; cycle: number; plan: Plan },
): Outcome {
  const segment = `plan ${cycle}`
  return {
    effects: (tx) => writePlan(tx, drive.name, { cycle, plan: planned, atMs: job.clock.now() }),
    segments: [
      {
        streamId: job.job.streamId,
        from: cycle - 1,
        to: cycle,
        mark: row.link,
        label: segment,
        ref: segment,
      },
    ],
    counts: [{ segment, listed: planned.actions.length, seal: true }],
    jobs: planned.actions.map((action) => toJob(kindOf(action.verb), action, { drive, segment })),
  }
}

function toJob(
  kind: JobKind<ActionPayload>,
  { after, ...action }: Action,
  { drive, segment }: { drive: FileDrive; segment: string },
): JobRequest {
  return request(
    kind,
    { drive: drive.name, ...action },
    {
      ...{ stream: drive.stream, segment, ref: action.node },
      ...(after.length > 0 ? { after } : {}),
    },
  )
}
