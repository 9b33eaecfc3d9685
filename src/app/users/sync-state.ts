/**
 * How far the sources of a user are, in words that say what goes on: being scanned, being worked off, stalled, up to
 * date, failed. An app may know better (`Sources.syncState`); what is here follows from what the ledger has counted.
 */
import { formatCount } from '../../base/format.ts'
import { minuteText } from '../../base/moment.ts'
import { services as cloudServices } from '../../cloud/registry.ts'
import { listEngines, liveCount } from '../../engine/observe/engines.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { OpenApp, Runtime } from '../runtime.ts'
import { countedStatus, type Source, type SyncPhase, type SyncState } from '../sources.ts'

export type SourceSync = SyncState & { app: string; source: string; account: string; text: string }

/** The sources that work with accounts of a user, with how far each is. */
export async function syncOf(
  { apps, ledger }: Pick<Runtime, 'apps' | 'ledger'>,
  accounts: readonly Account[],
): Promise<SourceSync[]> {
  const isAttended = liveCount(await listEngines(ledger)) > 0
  const found: SourceSync[] = []
  for (const { app, open, source } of await sourcesOf(apps, accounts)) {
    const { syncState } = open.sources
    const state = syncState ? await syncState(source) : await countedSync(ledger, open, source)
    const isWaiting = state.phase === 'discovering' || state.phase === 'processing'
    const phase = isWaiting && !isAttended ? 'stalled' : state.phase
    const seen = { title: sourceTitle(source), ...state, phase }
    found.push({ ...seen, app, source: source.name, account: source.account!.name, text: syncText(seen) })
  }
  return found
}

export async function sourcesOf(
  apps: Runtime['apps'],
  accounts: readonly Account[],
): Promise<{ app: string; open: OpenApp; source: Source }[]> {
  const isTheirs = ({ account }: Source): boolean =>
    accounts.some(({ service, name }) => service === account?.service && name === account.name)
  const all = await Promise.all(
    [...apps].map(async ([app, open]) =>
      (await open.sources.list()).filter(isTheirs).map((source) => ({ app, open, source })),
    ),
  )
  return all.flat()
}

async function countedSync(ledger: Ledger, { sources }: OpenApp, source: Source): Promise<SyncState> {
  const row = (await ledger.streams()).find(({ name }) => name === source.stream)
  const count = (n: number | undefined): number => Number(n ?? 0)
  const status = await (sources.status?.(source) ?? countedStatus(ledger, source))
  const total = count(row?.listed)
  const processed = count(row?.stored) + count(row?.gone) + count(row?.skipped) + count(row?.bad)
  const failed = (await ledger.jobs({ state: 'failed', stream: source.stream, limit: FAILED_MAX })).length
  const counts = { processed, total, failed, lastSyncAtMs: row?.moved_at ?? null }
  if (!status.isOpen) return { ...counts, phase: failed > 0 ? 'failed' : 'idle' }
  return { ...counts, phase: processed < total ? 'processing' : 'discovering' }
}

/** More than these are told as so many. */
const FAILED_MAX = 1_000

function sourceTitle({ account }: Source): string {
  return cloudServices.find(({ name }) => name === account?.service)?.title ?? account?.service ?? ''
}

export function syncText(state: SyncState): string {
  const { phase, processed, total, failed, lastSyncAtMs, title = '' } = state
  switch (phase) {
    case 'discovering':
      return `Scanning ${title}…`
    case 'processing':
      return `Indexing ${formatCount(processed)}/${formatCount(total)} (${percent(processed, total)} %)`
    case 'stalled':
      return 'Sync stalled, will recover by itself'
    case 'failed':
      return `Sync failed (${formatCount(failed)} errors), will be tried again`
    case 'idle':
      return lastSyncAtMs === null ? 'Up to date' : `Up to date (last sync ${minuteText(lastSyncAtMs)})`
  }
}

/** Never 100 before all is done. */
function percent(processed: number, total: number): number {
  return total === 0 ? 0 : Math.floor((processed / total) * 100)
}

const BY_URGENCY: readonly SyncPhase[] = ['stalled', 'failed', 'discovering', 'processing', 'idle']

/** All sources of a user as one: what goes on in any of them goes on. */
export function joinedSync(all: readonly SourceSync[]): SyncState & { text: string } {
  const phase = BY_URGENCY.find((one) => all.some((state) => state.phase === one)) ?? 'idle'
  const sum = (key: 'processed' | 'total' | 'failed'): number => all.reduce((n, state) => n + state[key], 0)
  const times = all.flatMap(({ lastSyncAtMs }) => lastSyncAtMs ?? [])
  const titles = all.filter((state) => state.phase === phase).map(({ title = '' }) => title)
  const state: SyncState = {
    phase,
    processed: sum('processed'),
    total: sum('total'),
    failed: sum('failed'),
    // What is up to date as a whole is so as of the oldest.
    lastSyncAtMs: times.length < all.length || times.length === 0 ? null : Math.min(...times),
    title: [...new Set(titles)].join(', '),
  }
  return { ...state, text: all.length === 0 ? 'No account is connected' : syncText(state) }
}
