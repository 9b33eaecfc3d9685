/** Budgets of a single process, without a database; also what the engine's own tests run on. */
import { drawFromRow, tuneRow } from './budget-row.ts'
import type { BudgetRow, BudgetStore, Draw, Drawn, Tuned, Tuning } from './contract-budgets.ts'

export class MemoryBudgetStore implements BudgetStore {
  readonly #rows = new Map<string, BudgetRow>()

  async draw(draw: Draw, nowMs: number): Promise<Drawn> {
    const { row, drawn } = drawFromRow(this.#rows.get(draw.name), draw, nowMs)
    this.#rows.set(draw.name, row)
    return drawn
  }

  async tune(tuning: Tuning, nowMs: number): Promise<Tuned> {
    const { row, tuned } = tuneRow(this.#rows.get(tuning.name), tuning, nowMs)
    this.#rows.set(tuning.name, row)
    return tuned
  }

  async list(): Promise<BudgetRow[]> {
    return [...this.#rows.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }
}
