/** The mail archive: what it needs, and the jobs that it offers to an engine. */
import type { BudgetSpec } from '../../engine/index.ts'
import { requestsOf, unitsOf } from './account.ts'
import type { Granularity } from './plan.ts'
import type { ShardPeriod } from './store/contract.ts'

export { accountOf, type MailAccount, type MailAccounts, streamOf } from './account.ts'
export { jobsOf, type MailKinds, mailKinds } from './jobs.ts'
export { openMailAccounts } from './open-accounts.ts'
export { MailTables } from './store/tables.ts'

export type MailSettings = {
  /** Where archives are: a folder for each account. */
  folder: string
  apiUrl: string
  tokenUrl: string
  unitsPerMinute: number
  priceOfGet: number
  requestsPerSecond: { start: number; max: number }
  workers: { start: number; max: number }
  slice: Granularity | 'auto'
  sliceByLabel: string | undefined
  batch: number
  sinceMs: number | undefined
  shardBy: ShardPeriod
  shardBytesMax: number
  metadataBytesMax: number
}

/** A batch of 50 large messages may take a while; slower than this, everyone slows down. */
const LATENCY_P95_MAX_MS = 45_000
/**
 * Gmail counts over a minute. A batch comes in one piece, and a busy machine sends some late: at the full rate some
 * minutes hold one batch too many, and a refusal costs 5 % of the two minutes around it. Measured at 6,000 units a
 * minute: of the full rate 91 % are used, of this one all.
 */
const PACED_SHARE = 0.96

/** The budgets of these accounts: units are the price that the service puts on calls, requests go over the wire. */
export function mailBudgets(accounts: readonly string[], settings: MailSettings): Record<string, BudgetSpec> {
  const units: BudgetSpec = {
    rate: (settings.unitsPerMinute / 60) * PACED_SHARE,
    workers: settings.workers,
    latencyP95MaxMs: LATENCY_P95_MAX_MS,
  }
  const { start, max } = settings.requestsPerSecond
  const requests: BudgetSpec = { rate: start, rateMax: Math.max(start, max), rateMin: Math.min(start, 1) }
  return Object.fromEntries(
    accounts.flatMap((name) => [
      [unitsOf(name), units],
      [requestsOf(name), requests],
    ]),
  )
}
