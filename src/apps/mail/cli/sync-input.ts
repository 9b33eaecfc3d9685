/** What `mail sync` is told: checked before anything is asked of Gmail. */

import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { type MailStatus, mailStatus } from '../status.ts'
import type { MailEngine } from './context.ts'

export type SyncOptions = {
  account?: string
  watch?: boolean
  slice?: string
  since?: string
  every?: number
}

/** Each look costs a call: more often than this helps nobody. */
const EVERY_MS_MIN = 1_000

export function checkSyncOptions({ watch, every }: SyncOptions): void {
  if (every === undefined) return
  if (!watch) throw new UsageError('--every belongs to --watch: without it, a sync looks once and ends.')
  if (every >= EVERY_MS_MIN) return
  throw new UsageError('--every is too short: a second is the least.', {
    hint: 'A few minutes are enough for most; leave it out for what mail.poll_minutes says.',
  })
}

export function parseSince(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  // 2021-02-30 would quietly become a day in March.
  const isDay = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
  if (isDay && ms > 0 && ms < systemClock.now()) return ms
  throw new UsageError(`--since is "${text}", which is not a day between 1970 and today.`, {
    hint: 'Write it as YYYY-MM-DD: --since 2020-01-31',
  })
}

/** Where an archive begins, and how it is cut, is decided once: its completeness is proven from there on. */
export async function checkPlanned(
  { output }: CliContext,
  opened: MailEngine,
  { names, sinceMs, slice }: { names: readonly string[]; sinceMs: number | undefined; slice?: string },
): Promise<void> {
  if (sinceMs === undefined && slice === undefined) return
  for (const status of await mailStatus(opened.ledger, opened.tables, names)) {
    if (status.plannedAtMs === null) continue
    if (sinceMs !== undefined && status.sinceMs !== sinceMs) throw begunElsewhere(status)
    if (slice !== undefined && slice !== 'auto' && slice !== status.granularity) {
      const { account, granularity } = status
      output.note(`${account}: --slice changes nothing: its first sync cut it by the ${granularity}.`)
    }
  }
}

function begunElsewhere({ account, sinceMs }: MailStatus): UsageError {
  const begins =
    sinceMs === null ? 'with the oldest mail' : `on ${new Date(sinceMs).toISOString().slice(0, 10)}`
  return new UsageError(`The archive of ${account} begins ${begins}; that was decided by its first sync.`, {
    hint: 'Leave out --since to go on with it.',
  })
}
