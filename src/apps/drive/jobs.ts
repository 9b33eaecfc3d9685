/**
 * The index of Drives, as jobs. What is written when:
 *
 *   drive.sync    an account: which shared drives it is in; changes of every feed since its token; folders whose
 *                 permissions changed; what is to be listed anew
 *                 → commit per page of changes: who may see what, jobs for files, the token
 *                 → commit per listing to be made: its token, taken before; its segment; its drive.list
 *   drive.list    one listing, page by page
 *                 → commit per page: who may see what, jobs for files, where to go on
 *                 → at the end, if it was complete: what it did not show is taken away; the token
 *   drive.file    one version of one file, whoever found it: fetched, read, cut into chunks
 *                 → commit: the document with all who may see it
 *   drive.settle  an account: where documents lie, and that all of them are read
 *                 → commit: that the sync is done
 *   drive.forget  an account that is connected no more: what only it could see goes
 *
 * A crash between any two of these repeats at most one page, or the fetch of one file.
 */
import { defineJob } from '../../engine/index.ts'
import type { AnyJobKind } from '../../engine/job-kind.ts'
import { Obstacles } from '../../engine/obstacles.ts'
import { accountOf } from './account.ts'
import { runFile } from './file.ts'
import { runForget } from './forget.ts'
import { Account, type AccountPayload, type DriveDeps, type DriveKinds, File, Listing } from './kinds.ts'
import { runListing } from './listing.ts'
import { pastObstacles } from './obstacles.ts'
import { runSettle } from './settle.ts'
import { runSync } from './sync.ts'

/** Changes before listings: a revocation must not wait for them. Files after what finds them would find them twice. */
const SYNC_PRIORITY = 2
const LIST_PRIORITY = 1
const SETTLE_PRIORITY = -1

export function driveKinds(deps: DriveDeps): DriveKinds {
  const budget = (stream: string | null): string => deps.accounts.budget(accountOf(stream ?? ''))
  const key = ({ account }: AccountPayload): string => account
  const kinds: DriveKinds = {
    ...deps,
    obstacles: new Obstacles<'cloud'>(deps.clock),
    sync: defineJob({
      kind: 'drive.sync',
      payload: Account,
      key,
      lane: 'interactive',
      priority: SYNC_PRIORITY,
      describe: { verb: 'checking', noun: 'Drive' },
      run: (job) => pastObstacles(kinds, job, job.payload.account, () => runSync(kinds, job)),
    }),
    list: defineJob({
      kind: 'drive.list',
      payload: Listing,
      key: ({ account, drive }) => `${account} ${drive}`,
      lane: 'bulk',
      priority: LIST_PRIORITY,
      describe: { verb: 'scanning', noun: 'Drive' },
      run: (job) => pastObstacles(kinds, job, job.payload.account, () => runListing(kinds, job)),
    }),
    file: defineJob({
      kind: 'drive.file',
      payload: File,
      // Not by who found it: a document is read once, however many see it.
      key: ({ file, version }) => `${file} ${version}`,
      lane: 'bulk',
      budget,
      items: { of: ({ file }) => [file], only: (payload) => payload },
      describe: { verb: 'indexing', noun: 'document' },
      run: (job) => runFile(kinds, job),
    }),
    settle: defineJob({
      kind: 'drive.settle',
      payload: Account,
      key,
      lane: 'bulk',
      priority: SETTLE_PRIORITY,
      describe: { verb: 'waiting for the documents of', noun: 'Drive' },
      run: (job) => runSettle(kinds, job),
    }),
    forget: defineJob({
      kind: 'drive.forget',
      payload: Account,
      key,
      lane: 'bulk',
      describe: { verb: 'forgetting', noun: 'Drive' },
      run: (job) => runForget(kinds, job),
    }),
  }
  return kinds
}

export function jobsOf({ sync, list, file, settle, forget }: DriveKinds): AnyJobKind[] {
  return [sync, list, file, settle, forget]
}
