/**
 * What calls to OneDrive may cost. Microsoft publishes no numbers for persons: the start is what other clients ask
 * without being refused, and from there the controller finds out what it bears.
 */
import type { BudgetSpec } from '../../engine/index.ts'
import { type FilesSettings, requestBudget } from './folder-pair.ts'

/** Changes, checks and looks run beside the transfers. */
const WORKERS_BESIDES = 8

export function fileBudgets(
  accounts: readonly string[],
  settings: FilesSettings,
): Record<string, BudgetSpec> {
  const { requestsPerSecondStart: start, requestsPerSecondMax: max } = settings
  const workers = settings.parallelDownloads + settings.parallelUploads + settings.parallelCheckers
  const spec: BudgetSpec = {
    rate: start,
    rateMax: Math.max(start, max),
    rateMin: Math.min(start, 1),
    workers: { start: workers + WORKERS_BESIDES, max: workers + WORKERS_BESIDES },
  }
  return Object.fromEntries(accounts.map((account) => [requestBudget(account), spec]))
}
