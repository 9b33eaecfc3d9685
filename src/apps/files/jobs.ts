/**
 * Actions as jobs. Checks and transfers have kinds of their own, so that each has its own number of workers; all that
 * is quick is one kind.
 */
import { availableParallelism } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import { defineJob, type JobKind, type RunContext } from '../../engine/index.ts'
import type { AnyJobKind } from '../../engine/job-kind.ts'
import type { Disk } from './act/content.ts'
import { FileObstacles, pastObstacles } from './act/obstacles.ts'
import type { Transfers } from './act/transfers.ts'
import { verbRuns } from './act/verbs.ts'
import { type ActionDeps, type ActionPayload, actionPayload, runAction } from './action.ts'
import { ROW_TEXTS } from './decide.ts'
import type { FilesSettings } from './folder-pair.ts'
import { runOnOwnMachine } from './folder-pair.ts'
import { DiskThreads } from './local/threads.ts'
import type { ActionVerb } from './plan-order.ts'

export type FileKindDeps = ActionDeps & {
  transfers: Transfers
  settings: FilesSettings
  clock: Clock
  /** Threads that read files; some of its own where they are left out. */
  disk?: Disk
}

export type FileKinds = {
  check: JobKind<ActionPayload>
  download: JobKind<ActionPayload>
  upload: JobKind<ActionPayload>
  change: JobKind<ActionPayload>
  all: readonly AnyJobKind[]
  /** The kind whose jobs do this. */
  kindOf(verb: ActionVerb): JobKind<ActionPayload>
  /** What is in the way of the work of a folder pair. */
  obstacles: FileObstacles
  close(): Promise<void>
}

const STREAM = /^files:/
const ATTEMPTS = 5
/** A thread reads faster than most disks. */
const THREADS_MAX = 4
const STALL_MS = 10 * 60_000
/** A huge file is hashed in a thread, which says nothing before it is done. */
const CHECK_STALL_MS = 12 * 3_600_000
/** Renames and deletions of folders make room for others. */
const CHANGE_PRIORITY = 1

/** The row of the decision table in words. */
const input = ({ row, ...rest }: ActionPayload): object => ({ ...rest, because: ROW_TEXTS[row] ?? row })

export function fileKinds(deps: FileKindDeps): FileKinds {
  const { settings, pairs } = deps
  const count = Math.min(settings.parallelCheckers, THREADS_MAX, Math.max(2, availableParallelism()))
  const threads = new DiskThreads({ threads: count })
  const obstacles = new FileObstacles(deps.clock)
  const runs = verbRuns({ ...deps, disk: deps.disk ?? threads })
  const run = (job: RunContext<ActionPayload>) =>
    runOnOwnMachine(() => runAction(deps, job, pastObstacles(obstacles, runs[job.payload.verb])), {
      skipped: 1,
    })
  const shared = {
    payload: actionPayload,
    key: ({ drive: pair, node }: ActionPayload) => `${pair}:${node}`,
    size: ({ bytes }: ActionPayload) => bytes,
    items: { of: ({ node }: ActionPayload) => [node], only: (payload: ActionPayload) => payload },
    budget: (stream: string | null) => pairs.budget((stream ?? '').replace(STREAM, '')),
    // What it waited for may have failed for reasons that do not concern it: it looks for itself.
    onDepFailure: 'run' as const,
    attempts: ATTEMPTS,
    stallMs: STALL_MS,
    run,
  }
  const kinds = {
    check: defineJob({
      ...shared,
      kind: 'files.check',
      stallMs: CHECK_STALL_MS,
      concurrency: settings.parallelCheckers,
      describe: { verb: 'checking', noun: 'file', input },
    }),
    download: defineJob({
      ...shared,
      kind: 'files.download',
      concurrency: settings.parallelDownloads,
      describe: { verb: 'downloading', noun: 'file', input },
    }),
    upload: defineJob({
      ...shared,
      kind: 'files.upload',
      concurrency: settings.parallelUploads,
      describe: { verb: 'uploading', noun: 'file', input },
    }),
    change: defineJob({
      ...shared,
      kind: 'files.change',
      priority: CHANGE_PRIORITY,
      describe: { verb: 'changing', noun: 'item', input },
    }),
  }
  return {
    ...kinds,
    all: Object.values(kinds),
    kindOf: (verb) =>
      verb === 'check' || verb === 'download' || verb === 'upload' ? kinds[verb] : kinds.change,
    obstacles,
    close: () => threads.stop(),
  }
}
