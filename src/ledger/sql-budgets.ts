/** Budgets in the ledger, shared by all its processes; each call is one short transaction on one row. */
import { TidemarkError } from '../base/errors.ts'
import { type BudgetColumns, budgetColumns, budgetRow, drawFromRow, suspects, tuneRow } from './budget-row.ts'
import { forUpdate, marks } from './changes.ts'
import type { Driver, Tx } from './contract.ts'
import type { BudgetRow, BudgetStore, Draw, Drawn, Tuned, Tuning } from './contract-budgets.ts'

/** Two processes may create a row at once: the second finds it on its next try. */
const TRIES_MAX = 3

export class SqlBudgetStore implements BudgetStore {
  readonly #driver: Driver

  constructor(driver: Driver) {
    this.#driver = driver
  }

  /** The database's clock counts, not the caller's: processes on several machines must agree. */
  draw(draw: Draw): Promise<Drawn> {
    return this.#change(draw.name, async (before, now, tx) => {
      const gone = await goneOwners(tx, before ? suspects(before, draw, now) : [])
      const { row, drawn } = drawFromRow(before, draw, now, gone)
      return { row, answer: drawn }
    })
  }

  tune(tuning: Tuning): Promise<Tuned> {
    return this.#change(tuning.name, async (before, now) => {
      const { row, tuned } = tuneRow(before, tuning, now)
      return { row, answer: tuned }
    })
  }

  async list(): Promise<BudgetRow[]> {
    const rows = await this.#driver.read((tx) => tx.all<BudgetColumns>(`SELECT * FROM budgets ORDER BY name`))
    return rows.map(budgetRow)
  }

  #change<T>(
    name: string,
    fn: (before: BudgetRow | undefined, now: number, tx: Tx) => Promise<{ row: BudgetRow; answer: T }>,
  ): Promise<T> {
    return this.#driver.transaction(async (tx) => {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const found = await tx.get<BudgetColumns>(`SELECT * FROM budgets WHERE name = ?${forUpdate(tx)}`, [
          name,
        ])
        const { row, answer } = await fn(found && budgetRow(found), Math.floor(this.#driver.now()), tx)
        if (await write(tx, row, found !== undefined)) return answer
      }
      throw new TidemarkError(`The budget ${name} could not be written.`, { kind: 'transient' })
    })
  }
}

/** Those of the owners whose lease has ended. */
async function goneOwners(tx: Tx, owners: readonly number[]): Promise<Set<number>> {
  if (owners.length === 0) return new Set()
  const live = await tx.all<{ id: number }>(
    `SELECT id FROM workers WHERE state = 'live' AND id IN (${marks(owners.length)})`,
    owners,
  )
  const isLive = new Set(live.map(({ id }) => id))
  return new Set(owners.filter((owner) => !isLive.has(owner)))
}

async function write(tx: Tx, row: BudgetRow, exists: boolean): Promise<boolean> {
  const c = budgetColumns(row)
  const values = [c.tokens, Math.floor(c.updated_at), c.controller, c.version, c.name]
  const changed = exists
    ? await tx.run(
        `UPDATE budgets SET tokens = ?, updated_at = ?, controller = ?, version = ? WHERE name = ?`,
        values,
      )
    : await tx.run(
        `INSERT INTO budgets(tokens, updated_at, controller, version, name) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        values,
      )
  return changed === 1
}
