/** What the ledger keeps of the controller that tunes a budget, as far as pages show it. */
import type { BudgetRow } from '../ledger/contract-budgets.ts'

export type Controller = {
  rate: number
  ceiling: number | null
  useShare: number
  tickMs: number
  throttledCalls: number
  workers: number
  p95Ms: number | null
  pausedUntilMs: number
}

/** Undefined for what no controller tunes, such as bandwidth. */
export function controllerOf(row: BudgetRow): Controller | undefined {
  try {
    const state = JSON.parse(row.controller) as (Partial<Controller> & { v?: number }) | null
    return state?.v === 1 ? (state as Controller) : undefined
  } catch {
    return undefined
  }
}
