/**
 * Hears what other processes announce by looking at two counters in `meta`, which whoever announces raises in its
 * transaction: often while there is news, seldom while there is none. A look costs two rows.
 */
import { type CancelTimer, systemClock } from '../../base/clock.ts'
import type { Announcement, Tx } from '../contract.ts'

/** Right after news, and the longest pause while there is none; each look without news waits half as long again. */
const LOOK_MS_MIN = 20
const LOOK_MS_MAX = 500
const SLOWER = 1.5
/** While the server is away. */
const AWAY_MS = 2_000

/** The row of `control` is there in every ledger; that of `work` is made by the first who has some. */
export const ANNOUNCE = `INSERT INTO meta(name, value) VALUES (?, '1')
  ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1 RETURNING value`
/** As one statement with IN the server counts five rows, as two with UNION two. */
const COUNTERS = ['control', 'work']
  .map((name) => `SELECT name, value FROM meta WHERE name = '${name}'`)
  .join(' UNION ALL ')

export class Listener {
  readonly #read: <T>(fn: (tx: Tx) => Promise<T>) => Promise<T>
  readonly #tell: (what: Announcement | 'anything') => void
  readonly #seen = new Map<string, number>()
  #waitMs = LOOK_MS_MIN
  #isAway = false
  #isStopped = false
  #cancel: CancelTimer = () => {}

  constructor(
    read: <T>(fn: (tx: Tx) => Promise<T>) => Promise<T>,
    tell: (what: Announcement | 'anything') => void,
  ) {
    this.#read = read
    this.#tell = tell
  }

  /** Returns once it has looked, or once the first look has failed: then it keeps trying. */
  async start(): Promise<void> {
    await this.#look()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel()
  }

  /** What this process has announced is no news to it; its own `control` is, to the rest of it. */
  own(what: Announcement, value: number): void {
    if (what === 'work' && this.#seen.get(what) === value - 1) this.#seen.set(what, value)
    this.#soon()
  }

  /** Where one announces, others likely do. */
  #soon(): void {
    if (this.#waitMs === LOOK_MS_MIN) return
    this.#waitMs = LOOK_MS_MIN
    this.#wait()
  }

  #wait(): void {
    this.#cancel()
    if (this.#isStopped) return
    this.#cancel = systemClock.timer(this.#isAway ? AWAY_MS : this.#waitMs, () => {
      this.#look().catch((thrown: unknown) => {
        throw thrown // only those who are told can throw
      })
    })
  }

  async #look(): Promise<void> {
    let rows: { name: string; value: string }[]
    try {
      rows = await this.#read((tx) => tx.all<{ name: string; value: string }>(COUNTERS))
    } catch {
      this.#isAway = true // whoever works with the ledger hears of the outage; here it is only waited out
      this.#wait()
      return
    }
    if (this.#isStopped) return
    const isBack = this.#isAway
    this.#isAway = false
    const news = rows.filter(({ name, value }) => {
      const before = this.#seen.get(name)
      this.#seen.set(name, Number(value))
      return before !== undefined ? before !== Number(value) : name === 'work' && this.#seen.has('control')
    })
    this.#waitMs = news.length > 0 ? LOOK_MS_MIN : Math.min(LOOK_MS_MAX, this.#waitMs * SLOWER)
    this.#wait()
    if (isBack) this.#tell('anything')
    else if (news.some(({ name }) => name === 'control')) this.#tell('control')
    else if (news.length > 0) this.#tell('work')
  }
}
