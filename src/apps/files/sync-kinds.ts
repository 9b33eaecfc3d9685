/**
 * The jobs that look and plan. What is written when:
 *
 *   files.sync    a look at both sides, then a plan
 *   files.delta   changes in OneDrive, page by page → commit per page: the remote tree and the link to go on from
 *   files.look    the folder, or some folders of it → commit per batch: the local tree; at the end: that all was seen
 *   files.plan    what is open → commit per batch: a segment, its actions, and the nodes they are about
 *
 * Actions are in jobs.ts.
 */
import { z } from 'zod'
import { defineJob, type JobKind, type JobRequest, request } from '../../engine/index.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { ActionPayload } from './action.ts'
import { type DeltaDeps, type DeltaPayload, deltaPayload, runDelta } from './delta.ts'
import { type FolderPairs, runOnOwnMachine, streamOf } from './folder-pair.ts'
import { LOOK_KIND, type LookPayload, lookPayload, runLook, SYNC_KIND } from './look.ts'
import type { ActionVerb } from './plan-order.ts'
import { type PlanPayload, planPayload, runPlan } from './planning.ts'
import type { FileStore } from './store/file-store.ts'

export const syncPayload = z.object({ drive: z.string() })
export type SyncPayload = z.infer<typeof syncPayload>

export type SyncKinds = {
  sync: JobKind<SyncPayload>
  delta: JobKind<DeltaPayload>
  look: JobKind<LookPayload>
  plan: JobKind<PlanPayload>
  /** A look at everything that begins later than one that is under way. */
  lookAfter: (pair: string) => JobRequest[]
}

export type SyncKindsDeps = {
  pairs: FolderPairs
  store: FileStore
  ledger: Ledger
  kindOf: (verb: ActionVerb) => JobKind<ActionPayload>
  /** Where it is left out, a folder that nobody shares any more fails. */
  pauseShare?: DeltaDeps['pauseShare']
}

/** Looking and planning come before what was planned: the sooner both sides are known, the less is done in vain. */
const PRIORITY = 100
const LOOK_STALL_MS = 30 * 60_000

export function syncKinds(deps: SyncKindsDeps): SyncKinds {
  const plan = defineJob<PlanPayload>({
    kind: 'files.plan',
    payload: planPayload,
    lane: 'interactive',
    priority: PRIORITY,
    concurrency: 1,
    describe: { verb: 'planning', noun: 'folder' },
    run: (job) => runOnOwnMachine(() => runPlan(deps, job)),
  })
  const planAfter = (pair: string) => [request(plan, { drive: pair }, { stream: streamOf(pair) })]
  const pauseShare =
    deps.pauseShare ??
    ((_pair, error) => {
      throw error
    })
  const delta = defineJob<DeltaPayload>({
    kind: 'files.delta',
    payload: deltaPayload,
    key: ({ drive: pair }) => pair,
    // Without the budget's number of workers: news of the other side does not queue behind the work that they are at.
    lane: 'interactive',
    priority: PRIORITY,
    describe: { verb: 'listening to', noun: 'drive' },
    run: (job) => {
      const after = job.payload.isPlannedLater ? () => undefined : planAfter
      return runOnOwnMachine(() => runDelta({ ...deps, pauseShare, planAfter: after }, job))
    },
  })
  const look = defineJob<LookPayload>({
    kind: LOOK_KIND,
    payload: lookPayload,
    // Looks at some folders are each for themselves: what they were asked for came after the last one began.
    key: ({ drive: pair, folders }) => (folders ? undefined : pair),
    lane: 'interactive',
    priority: PRIORITY,
    stallMs: LOOK_STALL_MS,
    describe: { verb: 'looking through', noun: 'folder' },
    run: (job) =>
      runOnOwnMachine(() =>
        runLook({ ...deps, planAfter: job.payload.isPlannedLater ? () => undefined : planAfter }, job),
      ),
  })
  const sync = defineJob<SyncPayload>({
    kind: SYNC_KIND,
    payload: syncPayload,
    key: ({ drive: pair }) => pair,
    lane: 'interactive',
    priority: PRIORITY,
    run: ({ payload: { drive: pair } }) => ({
      jobs: [
        request(delta, { drive: pair, isPlannedLater: true }, { stream: streamOf(pair) }),
        request(look, { drive: pair, isPlannedLater: true }, { stream: streamOf(pair) }),
      ],
      followUp: request(plan, { drive: pair }, { stream: streamOf(pair) }),
    }),
  })
  const lookAfter = (pair: string): JobRequest[] => [
    request(look, { drive: pair }, { stream: streamOf(pair), key: `${pair}:again` }),
  ]
  return { sync, delta, look, plan, lookAfter }
}
