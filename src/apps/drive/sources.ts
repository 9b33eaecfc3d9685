/** Drives as sources: how one is brought up to date, how far it is, and what a sync shows on its way. */
import { Rates, rateText, waitingLine } from '../../app/cli/progress.ts'
import type { AppPlace } from '../../app/runtime.ts'
import type { ProgressLine, Source, SourceStatus, Sources, Wait } from '../../app/sources.ts'
import { SERVICE, streamOf } from './account.ts'
import type { OpenDrive } from './runtime.ts'
import { balanceText, type DriveStatus, driveStatus, syncStateOf } from './status.ts'

/** Rates are over this time, so that a few small documents do not look like a burst. */
const RATE_MS = 60_000

type Drive = Pick<OpenDrive, 'accounts' | 'tables' | 'kinds'>

export function driveSource(name: string): Source {
  return { name, stream: streamOf(name), account: { service: SERVICE, name } }
}

export function driveSources(place: AppPlace, drive: Drive): Sources {
  const { kinds, accounts, tables } = drive
  const { ledger, config } = place
  const enqueue = async ({ name, stream }: Source): Promise<void> => {
    await place.engine()!.enqueue(kinds.sync, { account: name }, { stream })
  }
  const read = async (name: string): Promise<DriveStatus> => (await driveStatus(ledger, tables, [name]))[0]!
  return {
    list: async () => accounts.names().map(driveSource),
    begin: enqueue,
    follow: enqueue,
    kinds: new Set([kinds.sync, kinds.list, kinds.file, kinds.settle].map(({ kind }) => kind)),
    obstacle: ({ name }) => kinds.obstacles.of(name),
    patienceMs: () => config.drive.patience_minutes * 60_000,
    pollMs: () => config.drive.poll_minutes * 60_000,
    async heardAtMs({ name }) {
      const at = (await tables.account(name))?.checked_at
      return at == null ? null : Number(at)
    },
    status: async ({ name }) => sourceStatus(await read(name)),
    syncState: async ({ name }) => syncStateOf(await read(name)),
    progress() {
      const rates = new Rates(RATE_MS)
      return { line: async (source, wait) => progressLine(source, await read(source.name), { wait, rates }) }
    },
  }
}

function sourceStatus(status: DriveStatus): SourceStatus {
  const { feeds, onTheirWay, failed, lastSyncAtMs } = status
  const isListed =
    feeds.length > 0 && feeds.every(({ state }) => state === 'following' || state === 'unreachable')
  const unreachable = feeds.filter(({ state }) => state === 'unreachable').map(({ name }) => name)
  const problem = unreachable.length === 0 ? '' : `; not reached: ${unreachable.join(', ')}`
  return {
    text: `${balanceText(status)}${problem}`,
    isOpen: lastSyncAtMs === null || !isListed || onTheirWay > 0,
    isWrong: false,
    bad: failed,
    json: status,
  }
}

function progressLine(
  source: Source,
  status: DriveStatus,
  { wait, rates }: { wait: Wait | undefined; rates: Rates },
): ProgressLine {
  const done = status.indexed + status.skipped + status.failed
  const [rate = 0] = rates.perSecond(source.name, done)
  const json = { type: 'progress', ...status, documentsPerSecond: rate, waiting: wait ?? null }
  const text = balanceText(status)
  if (wait) return waitingLine(source, { wait, text, json })
  const what = status.status === 'discovering' ? 'scanning; ' : ''
  return { text: `${source.name}: ${what}${text}, ${rateText(rate)}`, json }
}
