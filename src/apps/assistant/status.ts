/**
 * How far a mailbox is, in words that add up: `inbox 120 = 110 classified + 4 skipped + 6 on their way`. All of it is
 * counted from rows, each of which has one state.
 */
import type { Need } from '../../app/need.ts'
import type { AppLook } from '../../app/runtime.ts'
import type { SyncState } from '../../app/sources.ts'
import { formatCount } from '../../base/format.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { APP, accountOf, streamOf } from './account.ts'
import type { Category, ThreadStatus } from './contract.ts'
import { AssistTables, type Balance } from './store/tables.ts'

export type AssistStatus = Balance & {
  account: string
  active: boolean
  paused: boolean
  counts: readonly { status: ThreadStatus; category: Category; count: number }[]
  /** Drafts to look at. */
  draftsWaiting: number
  /** Drafts that are wanted and not written, but for those that wait for a yes. */
  draftsToCome: number
  /** Drafts that are not written before the user agrees to their cost. */
  heldDrafts: number
  failedJobs: number
  openJobs: number
  lastMailAtMs: number | null
  lastPushAtMs: number | null
  lastSyncAtMs: number | null
  lastScanAtMs: number | null
  watchUntilMs: number | null
  watchProblem: string | null
  /** What keeps models from being asked. */
  problem: { code: string; text: string } | null
}

const JOBS_MAX = 100

export async function assistStatus(
  ledger: Ledger,
  tables: AssistTables,
  accounts: readonly string[],
): Promise<AssistStatus[]> {
  if (accounts.length === 0) return []
  const streams = new Map((await ledger.streams()).map((stream) => [stream.name, stream]))
  const all: AssistStatus[] = []
  for (const account of accounts) {
    const row = await tables.account(account)
    if (!row) continue
    const stream = streamOf(account)
    const counts = await tables.counts(account)
    const heldDrafts = await tables.heldDrafts(account)
    const wanted = counts.find((one) => one.status === 'pending' && one.category === 'needs_response')
    const failed = await ledger.jobs({ state: 'failed', stream, limit: JOBS_MAX })
    const [pending, claimed] = [
      await ledger.jobs({ state: 'pending', stream, limit: JOBS_MAX }),
      await ledger.jobs({ state: 'claimed', stream, limit: JOBS_MAX }),
    ]
    all.push({
      account,
      active: row.active,
      paused: Boolean(streams.get(stream)?.paused),
      ...(await tables.balance(account)),
      counts,
      draftsWaiting: counts
        .filter(({ status }) => status === 'drafted')
        .reduce((sum, { count }) => sum + count, 0),
      draftsToCome: Math.max(0, (wanted?.count ?? 0) - heldDrafts),
      heldDrafts,
      failedJobs: failed.length,
      openJobs: pending.length + claimed.length,
      lastMailAtMs: row.mailAtMs,
      lastPushAtMs: row.pushedAtMs,
      lastSyncAtMs: row.syncedAtMs,
      lastScanAtMs: row.fullAtMs,
      watchUntilMs: row.watchExpiresAtMs,
      watchProblem: row.watchProblem,
      // An answer that was paid for before the last refusal takes the mailbox's problem away: what drafts wait for stays.
      problem:
        row.problemCode === null
          ? await tables.draftProblem(account)
          : { code: row.problemCode, text: row.problem ?? '' },
    })
  }
  return all
}

export function balanceText({ inbox, classified, skipped, onTheirWay, held }: Balance): string {
  const parts = [`${formatCount(classified)} classified`, `${formatCount(skipped)} skipped`]
  const waits = held === 0 ? '' : `, ${formatCount(held)} of them when you agree to the cost`
  parts.push(`${formatCount(onTheirWay)} on their way${waits}`)
  return `inbox ${formatCount(inbox)} = ${parts.join(' + ')}`
}

/** What a model keeps from being written, though one is configured; '' where nothing is. */
export function undraftedText({ problem, draftsToCome }: AssistStatus): string {
  if (problem === null || problem.code === 'no-model' || draftsToCome === 0) return ''
  const what = draftsToCome === 1 ? '1 draft is' : `${formatCount(draftsToCome)} drafts are`
  // Of one thread it says first that its draft waits, which is said here of all of them.
  return `${what} not written: ${problem.text.replace(/^(?:The draft waits|No draft): /, '')}`
}

export function syncStateOf(status: AssistStatus): SyncState {
  const { inbox, onTheirWay, held, failedJobs, lastSyncAtMs } = status
  const isAtWork = onTheirWay > held
  const phase = lastSyncAtMs === null ? 'discovering' : isAtWork ? 'processing' : 'idle'
  return {
    processed: inbox - onTheirWay,
    total: inbox,
    failed: failedJobs,
    lastSyncAtMs,
    phase: failedJobs > 0 && isAtWork ? 'failed' : phase,
    title: 'Mail assistant',
  }
}

/** What the ledger alone tells of mailboxes. */
export async function lookAtAssist(ledger: Ledger): Promise<AppLook> {
  const tables = await AssistTables.open(ledger)
  return {
    async shownStreams(rows) {
      const shown = []
      for (const row of rows) {
        if (!row.name.startsWith(`${APP}:`)) continue
        const account = await tables.account(accountOf(row.name))
        if (!account?.active) continue
        const { inbox, classified, skipped } = await tables.balance(account.account)
        shown.push({ ...row, listed: inbox, stored: classified, skipped, bad: 0, gone: 0, whole: inbox })
      }
      return shown
    },
    async needs(): Promise<readonly Need[]> {
      const needs: Need[] = []
      for (const { account, active, problem, problemCode, watchProblem } of await tables.accounts()) {
        if (!active) continue
        const stream = streamOf(account)
        const { held } = await tables.balance(account)
        const drafts = await tables.heldDrafts(account)
        const how = 'tidemark assist costs --estimate says how much, tidemark assist run --yes agrees'
        const waits = (n: number, word: string, doing: string): void => {
          if (n === 0) return
          const what = `${formatCount(n)} ${word}${n === 1 ? '' : 's'} of ${account}`
          needs.push({ stream, text: `${what} wait, because ${doing} them costs money: ${how}.` })
        }
        waits(held, 'mail', 'sorting')
        waits(drafts, 'draft', 'writing')
        if (problemCode === 'model-refused') {
          needs.push({ stream, text: `The assistant of ${account} writes no drafts: ${problem}` })
        }
        if (watchProblem !== null) {
          needs.push({ stream, text: `Gmail does not push the mail of ${account}: ${watchProblem}` })
        }
      }
      return needs
    },
  }
}
