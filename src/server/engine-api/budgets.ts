/** Budgets as they are now, over all processes as far as this one knows. */

import type { BudgetView } from '../../app/schemas.ts'
import type { Services } from '../../app/services.ts'
import { budgetView } from '../../app/state-views.ts'
import { MEMBER_MS } from '../../ledger/budget-row.ts'
import type { BudgetRow } from '../../ledger/contract-budgets.ts'
import { SqlBudgetStore } from '../../ledger/sql-budgets.ts'
import { type Controller, controllerOf } from '../budget-controller.ts'

/** A process that only answers draws from no budget, so its own know nothing of the others' pace: the ledger does. */
export async function readBudgets({
  engine,
  ledger,
  role,
}: Pick<Services, 'engine' | 'ledger' | 'role'>): Promise<BudgetView[]> {
  const own = engine.limits.snapshot().budgets.map(budgetView)
  if (role !== 'web') return own
  const views = new Map(own.map((view) => [view.name, view]))
  for (const row of await new SqlBudgetStore(ledger.driver).list()) {
    const state = controllerOf(row)
    if (state) views.set(row.name, sharedView(row, state, ledger.now()))
  }
  return [...views.values()]
}

function sharedView(row: BudgetRow, state: Controller, nowMs: number): BudgetView {
  const pausedUntilMs = Math.max(row.pausedUntilMs, state.pausedUntilMs)
  const isHere = ({ seenMs }: BudgetRow['members'][number]): boolean => nowMs - seenMs <= MEMBER_MS
  return {
    name: row.name,
    rate: state.rate,
    ceiling: state.ceiling,
    workers: state.workers,
    pausedUntil: pausedUntilMs > nowMs ? Math.round(pausedUntilMs) : null,
    running: row.members.filter(isHere).reduce((sum, { running }) => sum + running, 0),
    // How many wait, and the median, each process knows of itself only.
    waiting: 0,
    throttles: state.throttledCalls,
    p50Ms: null,
    p95Ms: state.p95Ms,
  }
}
