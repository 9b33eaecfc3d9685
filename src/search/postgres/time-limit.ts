/**
 * The time that a search may take on PostgreSQL, all its statements together. The server ends a statement, and knows
 * nothing of those before it: each is given the time that is left.
 */
import type { Clock } from '../../base/clock.ts'
import type { Row, Tx, Value } from '../../ledger/contract.ts'
import { tookTooLong } from '../sqlite/reader-threads.ts'

/** PostgreSQL's for a statement that took longer than it may. */
const CANCELED = '57014'

/** By this share of its time a search may end late: the server is told anew only where more of it has passed. */
const LATE_SHARE = 0.01

/**
 * Compiling a statement takes longer than running it: those of a search are short, whatever the planner thinks. And it
 * takes looking into a row's words for as cheap as looking at a number, though they lie elsewhere and packed: going
 * through 19,200 such rows takes 85 ms, where their index has the answer in 20.
 */
const PLANNED = `set_config('jit', 'off', true) AS jit, set_config('enable_seqscan', 'off', true) AS seqscan`

export async function withinTime<T>(
  tx: Tx,
  { msMax, clock }: { msMax: number; clock: Clock },
  read: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await read(new TimedTx(tx, msMax, clock))
  } catch (thrown) {
    const { cause } = thrown as { cause?: { code?: unknown } }
    throw cause?.code === CANCELED ? tookTooLong(thrown) : thrown
  }
}

class TimedTx implements Tx {
  readonly dialect = 'postgres'
  readonly isRemote = true
  readonly #tx: Tx
  readonly #msMax: number
  readonly #clock: Clock
  readonly #fromMs: number
  /** What the server was told last. */
  #toldMs = Number.POSITIVE_INFINITY

  constructor(tx: Tx, msMax: number, clock: Clock) {
    this.#tx = tx
    this.#msMax = msMax
    this.#clock = clock
    this.#fromMs = clock.monotonicMs()
  }

  async all<T extends object = Row>(sql: string, params?: readonly Value[]): Promise<T[]> {
    await this.#tell()
    return this.#tx.all<T>(sql, params)
  }

  async get<T extends object = Row>(sql: string, params?: readonly Value[]): Promise<T | undefined> {
    await this.#tell()
    return this.#tx.get<T>(sql, params)
  }

  async run(sql: string, params?: readonly Value[]): Promise<number> {
    await this.#tell()
    return this.#tx.run(sql, params)
  }

  async #tell(): Promise<void> {
    const leftMs = Math.ceil(this.#fromMs + this.#msMax - this.#clock.monotonicMs())
    // Of the server's own, 0 is no limit at all.
    if (leftMs <= 0) throw tookTooLong()
    if (this.#toldMs - leftMs <= this.#msMax * LATE_SHARE) return
    this.#toldMs = leftMs
    await this.#tx.get(`SELECT set_config('statement_timeout', ?, true) AS told, ${PLANNED}`, [
      String(leftMs),
    ])
  }
}
