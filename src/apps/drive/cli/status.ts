/** What `tidemark drive status` says of an account. */
import { pauseOf } from '../../../app/cli/ending.ts'
import type { Standing, StatusReporter } from '../../../app/cli/noun.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { formatCount, formatDuration } from '../../../base/format.ts'
import { distance } from '../../../base/moment.ts'
import { readAttendance } from '../../../engine/observe/engines.ts'
import { driveApp } from '../app.ts'
import { driveRuntime } from '../runtime.ts'
import { balanceText, type DriveStatus, driveStatus } from '../status.ts'

export const reportDrive: StatusReporter = async (runtime, source) => {
  const { ledger, drive } = driveRuntime(runtime)
  const status = (await driveStatus(ledger, drive.tables, [source.name]))[0]!
  const pause = await pauseOf(openedSources(driveApp, runtime), source)
  const { isAttended } = await readAttendance(ledger)
  const standing = standingOf(status, { isAttended, isPaused: pause !== undefined })
  const lines = [
    `${source.name}: ${STATUS_TEXTS[status.status]}`,
    ...(pause ? [`  paused    ${pause.reason}`] : []),
    `  files     ${balanceText(status)}`,
    ...reasonLines(status),
    ...feedLines(status),
    ...againLines(status),
    ...timeLines(status, ledger.now()),
  ]
  return { lines, json: { ...status, pauseReason: pause?.reason ?? null }, standing }
}

const STATUS_TEXTS: Record<DriveStatus['status'], string> = {
  idle: 'not synced yet',
  discovering: 'being scanned',
  processing: 'documents are being read',
  completed: 'up to date',
  failed: 'the last sync failed',
}

function standingOf(
  { status, failed, lastSyncAtMs }: DriveStatus,
  { isAttended, isPaused }: { isAttended: boolean; isPaused: boolean },
): Standing {
  if (isPaused) return 'wrong'
  if (lastSyncAtMs === null || status !== 'completed') return isAttended ? 'going' : 'stopped'
  return failed > 0 ? 'bad' : 'settled'
}

function reasonLines({ skippedBy }: DriveStatus): string[] {
  if (skippedBy.length === 0) return []
  const parts = skippedBy.map(({ code, count }) => `${formatCount(count)} ${code}`)
  return [`  skipped   ${parts.join(', ')}. See: tidemark drive skipped`]
}

function feedLines({ feeds }: DriveStatus): string[] {
  return feeds.map((feed) => {
    const problem = feed.problem === null ? '' : `; ${feed.problem}`
    const part = feed.isIncomplete ? '; Google did not look everywhere, so nothing was pruned' : ''
    return `  ${feed.drive === '' ? 'own' : 'shared'}${feed.drive === '' ? '   ' : ''}    ${feed.name}: ${balanceText(feed)}${part}${problem}`
  })
}

/** So that whoever adds the drives up comes to the sum above. */
function againLines({ listedAgain }: DriveStatus): string[] {
  if (listedAgain === 0) return []
  return [`  twice     ${formatCount(listedAgain)} of these are in two of its drives, and counted once above`]
}

function* timeLines(status: DriveStatus, nowMs: number): Generator<string> {
  const { lastSyncAtMs, checkedAtMs, revocations, worker } = status
  if (lastSyncAtMs !== null) yield `  synced    ${distance(lastSyncAtMs, nowMs)}`
  if (checkedAtMs !== null) yield `  checked   ${distance(checkedAtMs, nowMs)}`
  if (worker)
    yield `  worker    ${worker.name} #${worker.id}, heard of ${distance(worker.heartbeatAtMs, nowMs)}`
  const { count, timed, meanMs, maxMs } = revocations
  if (count === 0) return
  const times =
    timed === 0
      ? ''
      : `; from Drive to here ${formatDuration(meanMs ?? 0)} on average, ${formatDuration(maxMs ?? 0)} at most`
  yield `  revoked   ${formatCount(count)}${times}`
}
