/**
 * Queries for overviews and charts: answers whose size and cost do not grow with the number of rows, however many
 * segments, jobs and bad items there are.
 */
import type { Driver, JobRow, Tx, Value } from './contract.ts'
import { JOB_COLUMNS, stateCondition } from './queries.ts'

export const CELLS_MAX = 2_000
const STRETCH_SEGMENTS = 10_000
/** Cells of fewer segments than this are read together: a query for each would cost more than it saves. */
const EACH_SEGMENTS_MIN = 50
/** Beyond this many, how many failed is told well enough. */
const FAILED_SEEN_MAX = 10_000
const HELD_MAX = 500

export type FrontierCell = {
  from_at: number
  to_at: number
  segments: number
  settled: number
  /** In which something was listed, or everything. */
  begun: number
  listed: number
  stored: number
  gone: number
  skipped: number
  bad: number
}

export type FrontierOptions = {
  cells: number
  /** Only segments that reach into [from, to). */
  from?: number | undefined
  to?: number | undefined
}

/**
 * The segments of a stream in order, in at most so many cells of neighbours: as many segments in each, give or take
 * one. By their number and not by their length, for those of one stream may be seconds and years long.
 *
 * Read stretch by stretch, with room for others in between: on SQLite, 100,000 segments at once would keep this
 * thread busy for too long.
 */
export async function readFrontier(
  driver: Pick<Driver, 'read'>,
  streamId: number,
  options: FrontierOptions,
): Promise<{ segments: number; cells: FrontierCell[] }> {
  const wanted = Math.max(1, Math.min(Math.floor(options.cells), CELLS_MAX))
  const from = options.from ?? Number.MIN_SAFE_INTEGER
  const to = options.to ?? Number.MAX_SAFE_INTEGER
  const segments = await driver.read((tx) => countReaching(tx, [streamId, from, to]))
  const cells: FrontierCell[] = []
  const count = Math.min(wanted, segments)
  const perStretch = Math.max(1, Math.floor((count * STRETCH_SEGMENTS) / Math.max(1, segments)))
  let after = Number.MIN_SAFE_INTEGER
  for (let cell = 0; cell < count; cell += perStretch) {
    if (cell > 0) await new Promise((resolve) => setImmediate(resolve))
    const end = Math.min(count, cell + perStretch)
    const stretch = { streamId, from, to, after, cell, end, count, segments }
    const found = await driver.read((tx) =>
      tx.dialect === 'sqlite' && segments >= count * EACH_SEGMENTS_MIN
        ? readEach(tx, stretch)
        : readTogether(tx, stretch),
    )
    if (found.length === 0) break
    cells.push(...found.map(({ last_from: _, ...one }) => one))
    after = found.at(-1)!.last_from
  }
  return { segments, cells }
}

async function countReaching(tx: Tx, params: readonly Value[]): Promise<number> {
  const row = await tx.get<{ n: number }>(
    `SELECT count(*) AS n FROM segments WHERE stream_id = ? AND to_at > ? AND from_at < ?`,
    params,
  )
  return Number(row?.n ?? 0)
}

type Stretch = {
  streamId: number
  from: number
  to: number
  /** Where the last segment of the stretch before begins. */
  after: number
  /** Its cells: from this one up to, but not including, `end`. */
  cell: number
  end: number
  /** Cells and segments in all. */
  count: number
  segments: number
}

/** The number of the first segment of a cell, among all. */
function cellStart(cell: number, { segments, count }: Stretch): number {
  return Math.ceil((cell * segments) / count)
}

const IN_STRETCH = `SELECT from_at, to_at, state, listed, stored, gone, skipped, bad FROM segments
  WHERE stream_id = ? AND to_at > ? AND from_at < ? AND from_at > ? ORDER BY from_at LIMIT ?`
const SUMS = `min(from_at) AS from_at, max(to_at) AS to_at, max(from_at) AS last_from, count(*) AS segments,
  sum(CASE WHEN state = 'settled' THEN 1 ELSE 0 END) AS settled,
  sum(CASE WHEN state <> 'open' OR listed > 0 THEN 1 ELSE 0 END) AS begun,
  sum(listed) AS listed, sum(stored) AS stored, sum(gone) AS gone, sum(skipped) AS skipped, sum(bad) AS bad`

type ReadCell = FrontierCell & { last_from: number }

/** A query for each cell: for large ones on SQLite half of the time that numbering and grouping them takes. */
async function readEach(tx: Tx, s: Stretch): Promise<ReadCell[]> {
  const cells: ReadCell[] = []
  for (let cell = s.cell; cell < s.end; cell++) {
    const rows = cellStart(cell + 1, s) - cellStart(cell, s)
    const after = cells.at(-1)?.last_from ?? s.after
    const found = await tx.get<Record<keyof ReadCell, number>>(`SELECT ${SUMS} FROM (${IN_STRETCH}) cell`, [
      ...[s.streamId, s.from, s.to, after, rows],
    ])
    // Segments may go while they are looked at.
    if (!found || Number(found.segments) === 0) break
    cells.push(numbers(found))
  }
  return cells
}

/** One query: on PostgreSQL each takes a way there and back. */
async function readTogether(tx: Tx, s: Stretch): Promise<ReadCell[]> {
  const first = cellStart(s.cell, s)
  const rows = await tx.all<Record<keyof ReadCell, number>>(
    `SELECT ${SUMS}
     FROM (SELECT *, (CAST(? AS BIGINT) + row_number() OVER (ORDER BY from_at) - 1) * CAST(? AS BIGINT)
             / CAST(? AS BIGINT) AS cell FROM (${IN_STRETCH}) stretch) numbered
     GROUP BY cell ORDER BY cell`,
    [first, s.count, s.segments, s.streamId, s.from, s.to, s.after, cellStart(s.end, s) - first],
  )
  return rows.map(numbers)
}

/** Sums of big integers come as text from PostgreSQL. */
function numbers<T extends Record<string, unknown>>(row: T): Record<keyof T, number> {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value)])) as Record<
    keyof T,
    number
  >
}

/** Bad items by stream. */
export async function countBadItems(tx: Tx): Promise<{ streamId: number; n: number }[]> {
  const rows = await tx.all<{ stream_id: number; n: number }>(
    `SELECT stream_id, count(*) AS n FROM bad_items GROUP BY stream_id`,
  )
  return rows.map((row) => ({ streamId: Number(row.stream_id), n: Number(row.n) }))
}

/** Failed jobs by stream; of very many, only the first are looked at. */
export async function countFailed(tx: Tx): Promise<{ streamId: number; n: number }[]> {
  const rows = await tx.all<{ stream_id: number; n: number }>(
    `SELECT stream_id, count(*) AS n
     FROM (SELECT stream_id FROM jobs WHERE ${stateCondition('failed')} ORDER BY id LIMIT ${FAILED_SEEN_MAX}) failed
     GROUP BY stream_id`,
  )
  return rows.map((row) => ({ streamId: Number(row.stream_id), n: Number(row.n) }))
}

/** What processes hold and have said something about, the longest held first. By owner: that has an index. */
export function listHeldJobs(tx: Tx, limit = HELD_MAX): Promise<JobRow[]> {
  return tx.all<JobRow>(
    `SELECT ${JOB_COLUMNS} FROM workers w JOIN jobs j ON j.owner = w.id AND j.state = 'claimed'
       LEFT JOIN streams s ON s.id = j.stream_id
     WHERE w.state = 'live' AND j.progress IS NOT NULL ORDER BY j.claimed_at, j.id LIMIT ${Math.min(limit, HELD_MAX)}`,
  )
}
