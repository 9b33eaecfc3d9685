/**
 * What the ledger's suites share: a fixture that gives one test a ledger of its own.
 *
 * Every test that goes through `withLedger` ends with two checks: the tallies equal the counted rows, and
 * every segment's `open_jobs` equals the number of its unsettled jobs.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../base/random.ts'
import type {
  ClaimedJob,
  ClaimRequest,
  Cycle,
  EnqueueResult,
  JobRow,
  NewJob,
  Row,
  SegmentRow,
  Settlement,
  SettleResult,
  StreamRow,
  Value,
  Work,
} from './contract.ts'
import type { CommitPoint } from './cycle.ts'
import type { Home, Site, StillClock } from './home.suite.ts'
import type { Ledger } from './ledger.ts'
import { openLedger } from './open.ts'
import type { Settling } from './states.ts'

export const HOUR_MS = 3_600_000
export const LEASE_MS = 30_000

export type ClaimOptions = {
  owner?: number
  n?: number
  room?: ClaimRequest['room']
  bytes?: number
  kinds?: readonly string[]
  closedKinds?: readonly string[]
}

/** The kinds that a fixture's worker knows unless told otherwise. */
export const KINDS = ['job', 'other', 'list', 'fetch', 'last', 'alpha', 'beta', 'gamma'] as const

export class LedgerFixture {
  readonly ledger: Ledger
  readonly clock: StillClock
  /** A registered worker with a live lease. */
  readonly owner: number
  readonly site: Site
  /** The named commit points that were passed, in order. */
  readonly points: CommitPoint[]
  readonly #others: Ledger[] = []

  private constructor(parts: { owner: number; site: Site; points: CommitPoint[] }) {
    this.ledger = parts.site.ledger
    this.clock = parts.site.clock
    this.owner = parts.owner
    this.site = parts.site
    this.points = parts.points
  }

  static async open(home: Home): Promise<LedgerFixture> {
    const points: CommitPoint[] = []
    const site = await home.fresh((name) => points.push(name))
    const owner = await site.ledger.register(
      { host: 'here', pid: 1, pidStart: 'then', name: 'first' },
      LEASE_MS,
    )
    return new LedgerFixture({ owner, site, points })
  }

  async close(): Promise<void> {
    for (const ledger of this.#others) await ledger.close()
    await this.site.leave()
  }

  /** The same database as another process sees it. */
  async neighbour(): Promise<Ledger> {
    const ledger = await openLedger(this.site.url, {
      clock: this.clock,
      random: seededRandom(2 + this.#others.length),
    })
    this.#others.push(ledger)
    return ledger
  }

  worker(name: string, leaseMs = LEASE_MS): Promise<number> {
    return this.ledger.register({ host: 'here', pid: 2, pidStart: 'then', name }, leaseMs)
  }

  write(work: Work): Promise<EnqueueResult[]> {
    return this.ledger.write(work)
  }

  /** Enqueues one job of kind `job` unless told otherwise; returns its id. */
  async add(job: Partial<NewJob> = {}): Promise<number> {
    const [added] = await this.write({ jobs: [{ kind: 'job', payload: '{}', ...job }] })
    return added!.id
  }

  async claim(options: ClaimOptions = {}): Promise<ClaimedJob[]> {
    return (await this.cycle({ claim: this.claimRequest(options) })).claimed
  }

  claimRequest(options: ClaimOptions = {}): ClaimRequest {
    const n = options.n ?? 1_000
    return {
      owner: options.owner ?? this.owner,
      room: options.room ?? { interactive: n, bulk: n },
      bytes: options.bytes === undefined ? undefined : { interactive: options.bytes, bulk: options.bytes },
      kinds: new Set(options.kinds ?? KINDS),
      roomFor: ({ kind }) => (options.closedKinds?.includes(kind) ? 0 : Number.POSITIVE_INFINITY),
    }
  }

  cycle(cycle: Omit<Cycle, 'owner'> & { owner?: number }): ReturnType<Ledger['cycle']> {
    return this.ledger.cycle({ owner: this.owner, ...cycle })
  }

  /** Enqueues a job and claims it, alone. */
  async claimed(job: Partial<NewJob> = {}, options: ClaimOptions = {}): Promise<ClaimedJob> {
    const id = await this.add(job)
    const claimed = await this.claim(options)
    const mine = claimed.find((one) => one.id === id)
    assert.ok(mine, `job #${id} was not claimed`)
    assert.equal(claimed.length, 1, 'other jobs were claimed too')
    return mine
  }

  async settle(
    job: ClaimedJob,
    event: Settling,
    more: Omit<Settlement, 'job' | 'event'> = {},
    owner = this.owner,
  ): Promise<SettleResult> {
    const { settled } = await this.ledger.cycle({ owner, settle: [{ job, event, ...more }] })
    return settled[0]!
  }

  async row(id: number): Promise<JobRow> {
    const detail = await this.ledger.job(id)
    assert.ok(detail, `there is no job #${id}`)
    return detail.job
  }

  /** `pending` is told apart: `ready`, `deps` or `time`. */
  async stage(id: number): Promise<string> {
    const row = await this.row(id)
    return row.state === 'pending' ? (row.wait ?? 'ready') : row.state
  }

  stages(...ids: number[]): Promise<string[]> {
    return Promise.all(ids.map((id) => this.stage(id)))
  }

  sql<T extends object = Row>(sql: string, params: readonly Value[] = []): Promise<T[]> {
    return this.ledger.driver.read((tx) => tx.all<T>(sql, params))
  }

  /** Writes behind the ledger's back: app tables, or a state that only a fault could bring about. */
  async force(sql: string, params: readonly Value[] = []): Promise<void> {
    await this.ledger.driver.transaction((tx) => tx.run(sql, params))
  }

  async count(table: string): Promise<number> {
    const [row] = await this.sql<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)
    return Number(row!.n)
  }

  async stream(name = 'mail', origin = 0): Promise<number> {
    return (await this.ledger.stream(name, origin)).id
  }

  async mark(streamId: number): Promise<Pick<StreamRow, 'mark' | 'mark_at'>> {
    const stream = (await this.ledger.streams()).find(({ id }) => id === streamId)!
    return { mark: stream.mark, mark_at: stream.mark_at }
  }

  /** Appends a segment; returns its id. */
  async segment(streamId: number, from: number, to: number, mark?: string): Promise<number> {
    await this.write({ segments: [{ streamId, from, to, mark }] })
    const segments = await this.ledger.segments(streamId, { fromAt: from })
    return segments[0]!.id
  }

  async segmentRow(id: number): Promise<SegmentRow & { settled_at: number | null }> {
    const [row] = await this.sql<SegmentRow & { settled_at: number | null }>(
      `SELECT * FROM segments WHERE id = ?`,
      [id],
    )
    assert.ok(row, `there is no segment #${id}`)
    return row
  }

  async checkBooks(): Promise<void> {
    assert.deepEqual(
      await this.ledger.tallies(),
      await this.ledger.countedTallies(),
      'tallies and rows differ',
    )
    const wrong = await this.sql(`SELECT id, open_jobs, n FROM (
      SELECT g.id, g.open_jobs, (SELECT count(*) FROM jobs j WHERE j.segment_id = g.id AND j.state IN ('pending', 'claimed', 'failed')) AS n
      FROM segments g) AS counted WHERE open_jobs <> n`)
    assert.deepEqual(wrong, [], 'segments count their jobs wrongly')
    const stuck = await this.sql(`SELECT id, deps_left, n FROM (
      SELECT j.id, j.deps_left, (SELECT count(*) FROM job_deps d WHERE d.job_id = j.id AND d.met = 0) AS n
      FROM jobs j WHERE j.state = 'pending') AS counted WHERE deps_left <> n`)
    assert.deepEqual(stuck, [], 'jobs wait for more or fewer jobs than they have edges')
  }
}

export type LedgerTest = (title: string, fn: (fixture: LedgerFixture) => Promise<void>) => void

/** `node:test`'s test, with a fixture on an empty ledger for each, and its books checked at the end. */
export function withLedger(home: Home): LedgerTest {
  return (title, fn) => {
    test(title, async () => {
      const fixture = await LedgerFixture.open(home)
      try {
        await fn(fixture)
        await fixture.checkBooks()
      } finally {
        await fixture.close()
      }
    })
  }
}

/** Takes away `undefined` and the prototype that node:sqlite's rows lack, for comparing. */
export function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}
