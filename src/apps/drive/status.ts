/**
 * How far an account is, in the words of its own: `Drive lists 1,000 = 900 indexed + 90 skipped + 2 failed + 8 on their
 * way`. All of it is counted from rows: each file has exactly one state, so the sides of the sum cannot differ.
 */
import type { AppLook } from '../../app/runtime.ts'
import type { SyncState } from '../../app/sources.ts'
import { formatCount } from '../../base/format.ts'
import { type ListedEngine, listEngines } from '../../engine/observe/engines.ts'
import type { JobRow } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { accountOf, SERVICE, streamOf } from './account.ts'
import { DOMAIN } from './store/schema.ts'
import { type AccountRow, DriveTables, type FeedRow, type FileCount } from './store/tables.ts'

export type Reason = { code: string; count: number }

/** `listed` = indexed + skipped + failed + onTheirWay */
export type Balance = {
  listed: number
  indexed: number
  skipped: number
  failed: number
  onTheirWay: number
  skippedBy: readonly Reason[]
}

export type FeedStatus = Balance & {
  /** '' for what the account owns and what is shared with it. */
  drive: string
  name: string
  state: FeedRow['state']
  listedAtMs: number | null
  /** Google did not look everywhere the last time: nothing was pruned. */
  isIncomplete: boolean
  problem: string | null
}

/** As the seed of this system calls them. */
export type SyncStatus = 'idle' | 'discovering' | 'processing' | 'completed' | 'failed'

export type DriveStatus = Balance & {
  account: string
  /** What its drives list together beyond `listed`: a file that is in two of them is one. */
  listedAgain: number
  status: SyncStatus
  paused: boolean
  worker: { id: number; name: string; heartbeatAtMs: number; isAlive: boolean } | null
  discoveryStartedAtMs: number | null
  processingStartedAtMs: number | null
  /** When all that Drive listed was last settled. */
  lastSyncAtMs: number | null
  checkedAtMs: number | null
  foldersCheckedAtMs: number | null
  changeToken: string | null
  /** From a revocation in Drive to its effect here, where Drive told the time. */
  revocations: {
    count: number
    timed: number
    meanMs: number | null
    maxMs: number | null
    lastMs: number | null
  }
  failedJobs: number
  feeds: readonly FeedStatus[]
}

/** A worker that was not heard of for longer does not count as at work. */
const ALIVE_MS = 120_000
const FAILED_MAX = 100

export async function driveStatus(
  ledger: Ledger,
  tables: DriveTables,
  accounts: readonly string[],
): Promise<DriveStatus[]> {
  if (accounts.length === 0) return []
  const streams = new Map((await ledger.streams()).map((stream) => [stream.name, stream]))
  const engines = await listEngines(ledger)
  return Promise.all(
    accounts.map(async (account) => {
      const stream = streamOf(account)
      const [row, feeds, totals, counts] = await Promise.all([
        tables.account(account),
        tables.feeds(account),
        tables.totals(account),
        tables.counts(account),
      ])
      const claimed = await ledger.jobs({ state: 'claimed', stream, limit: 50 })
      const pending = await ledger.jobs({ state: 'pending', stream, limit: 50 })
      const failed = await ledger.jobs({ state: 'failed', stream, limit: FAILED_MAX })
      const balance = balanceOf(totals)
      return {
        account,
        ...balance,
        listedAgain: counts.reduce((sum, { n }) => sum + n, 0) - balance.listed,
        ...timesOf(row),
        status: statusWord({
          row,
          feeds,
          waiting: balance.onTheirWay,
          failed,
          open: [...claimed, ...pending],
        }),
        paused: Boolean(streams.get(stream)?.paused),
        worker: workerOf(claimed, engines, ledger.now()),
        changeToken: feeds.find(({ drive }) => drive === '')?.token ?? null,
        failedJobs: failed.length,
        feeds: feeds.map((feed) => feedStatus(feed, counts)).filter(isTold),
      }
    }),
  )
}

function balanceOf(counts: readonly Pick<FileCount, 'state' | 'code' | 'n'>[]): Balance {
  const sum = (state: FileCount['state']): number =>
    counts.filter((one) => one.state === state).reduce((all, { n }) => all + n, 0)
  const by = new Map<string, number>()
  for (const { state, code, n } of counts) {
    if (state === 'skipped') by.set(code ?? 'unknown', (by.get(code ?? 'unknown') ?? 0) + n)
  }
  return {
    listed: counts.reduce((all, { n }) => all + n, 0),
    indexed: sum('indexed'),
    skipped: sum('skipped'),
    failed: sum('failed'),
    onTheirWay: sum('waiting'),
    skippedBy: [...by].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count),
  }
}

function feedStatus(feed: FeedRow, counts: readonly FileCount[]): FeedStatus {
  return {
    drive: feed.drive,
    name: feed.name,
    state: feed.state,
    listedAtMs: numberOf(feed.listed_at),
    isIncomplete: Boolean(feed.incomplete),
    problem: feed.problem,
    ...balanceOf(counts.filter(({ drive }) => drive === feed.drive)),
  }
}

/** Accounts without a domain have no such listing: nothing is wrong with that. */
function isTold({ drive, listed, state }: FeedStatus): boolean {
  return drive !== DOMAIN || listed > 0 || state === 'listing' || state === 'new'
}

function timesOf(
  row: AccountRow | undefined,
): Pick<
  DriveStatus,
  | 'discoveryStartedAtMs'
  | 'processingStartedAtMs'
  | 'lastSyncAtMs'
  | 'checkedAtMs'
  | 'foldersCheckedAtMs'
  | 'revocations'
> {
  const timed = Number(row?.revoked_timed ?? 0)
  return {
    discoveryStartedAtMs: numberOf(row?.discovery_at),
    processingStartedAtMs: numberOf(row?.processing_at),
    lastSyncAtMs: numberOf(row?.completed_at),
    checkedAtMs: numberOf(row?.checked_at),
    foldersCheckedAtMs: numberOf(row?.folders_at),
    revocations: {
      count: Number(row?.revoked ?? 0),
      timed,
      meanMs: timed === 0 ? null : Math.round(Number(row!.revoke_ms_sum) / timed),
      maxMs: timed === 0 ? null : Number(row!.revoke_ms_max),
      lastMs: numberOf(row?.revoke_ms_last),
    },
  }
}

function numberOf(value: number | null | undefined): number | null {
  return value == null ? null : Number(value)
}

function statusWord(about: {
  row: AccountRow | undefined
  feeds: readonly FeedRow[]
  waiting: number
  failed: readonly JobRow[]
  open: readonly JobRow[]
}): SyncStatus {
  const { row, feeds, waiting, failed, open } = about
  const isFinding = open.some(({ kind }) => kind === 'drive.sync' || kind === 'drive.list')
  if (isFinding && (feeds.length === 0 || feeds.some(({ state }) => state === 'listing' || state === 'new')))
    return 'discovering'
  if (waiting > 0) return 'processing'
  if (failed.length > 0) return 'failed'
  return row?.completed_at == null ? 'idle' : 'completed'
}

function workerOf(
  claimed: readonly JobRow[],
  engines: readonly ListedEngine[],
  nowMs: number,
): DriveStatus['worker'] {
  const owner = claimed.find((job) => job.owner !== null)?.owner
  const engine = engines.find(({ id }) => id === owner)
  if (!engine) return null
  const heartbeatAtMs = Number(engine.heartbeat_at)
  const isAlive = engine.liveness === 'live' && nowMs - heartbeatAtMs <= ALIVE_MS
  return { id: engine.id, name: engine.name, heartbeatAtMs, isAlive }
}

export function balanceText(balance: Balance): string {
  const { listed, indexed, skipped, failed, onTheirWay } = balance
  const parts = [`${formatCount(indexed)} indexed`, `${formatCount(skipped)} skipped`]
  parts.push(`${formatCount(failed)} failed`)
  if (onTheirWay > 0) parts.push(`${formatCount(onTheirWay)} on their way`)
  return `Drive lists ${formatCount(listed)} = ${parts.join(' + ')}`
}

/** The same for whoever shows all sources of a user. */
export function syncStateOf(status: DriveStatus): SyncState {
  const { listed, onTheirWay, failed, lastSyncAtMs, failedJobs } = status
  const counts = { processed: listed - onTheirWay, total: listed, failed: failed + failedJobs, lastSyncAtMs }
  const phase = status.status === 'completed' ? 'idle' : status.status
  return { ...counts, phase, title: 'Google Drive' }
}

/** What the ledger alone tells of Drives. */
export async function lookAtDrive(ledger: Ledger): Promise<AppLook> {
  const tables = await DriveTables.open(ledger)
  return {
    /** Segments count what was looked at, again with every listing; people want to know how many files there are. */
    async shownStreams(rows) {
      const shown = []
      for (const row of rows) {
        if (!row.name.startsWith(`${SERVICE}:`)) continue
        const { listed, indexed, skipped, failed } = balanceOf(await tables.totals(accountOf(row.name)))
        shown.push({ ...row, listed, stored: indexed, skipped, bad: failed, gone: 0, whole: listed })
      }
      return shown
    },
  }
}
