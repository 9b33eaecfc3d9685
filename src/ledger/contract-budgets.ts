/**
 * What the ledger keeps of a budget, so that all processes on one ledger share it: tokens that flow in
 * at a rate, who draws from them, until when everyone pauses, and the state of the controller that
 * tunes the rate (JSON that only the engine understands).
 *
 * A store is small: each call is one transaction on one row of the table `budgets`. It reads the row
 * (locked: BEGIN IMMEDIATE on SQLite, FOR UPDATE on PostgreSQL), applies `drawFromRow` or `tuneRow` of
 * budget-row.ts, and writes the row back with its version one higher. A missing row is inserted; two
 * that insert at once must end with one row. Everything passed is plain data, so that a store may live
 * in another thread.
 *
 * Invariants (budgets.suite.ts tests them on every store):
 * - what all members drew, less what they gave back, is at most burst + the integral of the rate over time
 * - members that want more than their share get the same; what one leaves unused is lent to the others
 * - nothing is granted during a pause
 * - all members together have at most as many workers as there may be, and take turns where they want more
 * - a tuning under an old version changes nothing
 *
 * Time is the caller's `nowMs`. A store that several machines reach should use the database's clock
 * instead (their own may differ) and say so in `nowMs` of its answer: all times of a view are in it.
 */
export interface BudgetStore {
  draw(draw: Draw, nowMs: number): Promise<Drawn>
  tune(tuning: Tuning, nowMs: number): Promise<Tuned>
  /** All budgets, by name. */
  list(): Promise<BudgetRow[]>
}

/** Units a second flow in; at most `burst` units stay. */
export type Flow = { rate: number; burst: number }

/** What a budget starts with when the ledger does not know it yet. */
export type BudgetStart = Flow & { controller: string }

export type Draw = {
  name: string
  /** Who draws: one name per process and budget. */
  member: string
  /** Its lease, by which it holds its slots; 0 without one. */
  owner: number
  /** The most that is taken; less may be granted. Zero reports and gives back only. */
  want: number
  /** Units of an earlier draw that were not needed. */
  giveBack: number
  /** Workers that this member has running, and would have if there were enough. */
  running: number
  workersWanted: number
  /** Of the slots granted before, those that it keeps: beyond them it starts no worker until it hears of more. */
  slots: number
  /** Workers that all members together may have. */
  workersMax: number
  /** The member needs nothing more for now; its share goes to the others. */
  leave: boolean
  start: BudgetStart
}

export type BudgetView = Flow & {
  nowMs: number
  pausedUntilMs: number
  /** Counts tunings. */
  version: number
  controller: string
  /** How many share the budget now. */
  members: number
  /** Units that could be drawn now, by all together. */
  tokens: number
}

/**
 * `waitMs`: how long until drawing again is worth it; 0 when all that was wanted was granted.
 * `slots`: how many workers the member may have running from now on; those beyond it end by themselves.
 */
export type Drawn = BudgetView & { granted: number; waitMs: number; slots: number }

/** Takes effect only if `version` is still the current one. */
export type Tuning = Flow & { name: string; version: number; pausedUntilMs: number; controller: string }
export type Tuned = BudgetView & { tuned: boolean }

export type BudgetMember = {
  id: string
  tokens: number
  seenMs: number
  running: number
  /** From here on not known to earlier versions. */
  owner?: number
  slots?: number
  wanted?: number
  workersMax?: number
  /** Since when it has had more slots than the least share; 0 while it has not. */
  turnMs?: number
}

/** A row of the table `budgets`; `budgetColumns` and `budgetRow` convert. */
export type BudgetRow = Flow & {
  name: string
  /** Units that belong to no member. */
  spare: number
  /** Up to when tokens have flowed in. */
  updatedMs: number
  /** Counts writes. */
  version: number
  /** Counts tunings. */
  tunings: number
  pausedUntilMs: number
  members: BudgetMember[]
  controller: string
}
