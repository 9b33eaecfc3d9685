/**
 * Queries for overviews and charts: answers whose size and cost do not grow with the number of rows, however many
 * segments, jobs and bad items there are.
 */
import type { Driver, JobRow, Tx, Value } from './contract.ts'
import { JOB_COLUMNS, stateCondition } from './queries.ts'

export const CELLS_MAX = 2_000
const STRETCH_SEGMENTS = 10_000
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
 * The segments of a stream in order, in at most so many cells. A cell is a stretch of the axis: those that begin in it are
 * one, and one that is longer than a cell has its own. So five years of months and a day of polling every few minutes
 * are drawn as long as they are, however many segments there are of each.
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
  const ends = await driver.read((tx) => readEnds(tx, [streamId, from, to]))
  if (!ends) return { segments: 0, cells: [] }
  const grid = gridOf(ends, { from, to, wanted })
  const cells: ReadCell[] = []
  let after = Number.MIN_SAFE_INTEGER
  for (let read = STRETCH_SEGMENTS; read === STRETCH_SEGMENTS; ) {
    if (cells.length > 0) await new Promise((resolve) => setImmediate(resolve))
    const found = await driver.read((tx) => readStretch(tx, grid, [streamId, from, to, after]))
    read = 0
    for (const cell of found) {
      read += cell.segments
      const last = cells.at(-1)
      if (last?.cell === cell.cell) addTo(last, cell)
      else cells.push(cell)
    }
    after = cells.at(-1)?.last_from ?? after
  }
  const segments = cells.reduce((sum, cell) => sum + cell.segments, 0)
  return { segments, cells: cells.map(({ last_from: _, cell: __, ...one }) => one) }
}

type Ends = { first_from: number; first_to: number; last_to: number }

async function readEnds(tx: Tx, params: readonly Value[]): Promise<Ends | undefined> {
  const reaching = `FROM segments WHERE stream_id = ? AND to_at > ? AND from_at < ? ORDER BY from_at`
  const first = await tx.get<{ from_at: number; to_at: number }>(
    `SELECT from_at, to_at ${reaching} LIMIT 1`,
    params,
  )
  const last = await tx.get<{ to_at: number }>(`SELECT to_at ${reaching} DESC LIMIT 1`, params)
  if (!first || !last) return undefined
  return { first_from: Number(first.from_at), first_to: Number(first.to_at), last_to: Number(last.to_at) }
}

/** Cells of `step` from `origin` on. */
type Grid = { origin: number; step: number }

/**
 * The first segment may reach back without an end (mail before the oldest message): it has the first cell, and the axis
 * is that of the others.
 */
function gridOf(ends: Ends, { from, to, wanted }: { from: number; to: number; wanted: number }): Grid {
  const start = Math.max(ends.first_from, from)
  const [second, end] = [Math.min(ends.first_to, to), Math.min(ends.last_to, to)]
  const stepOf = (length: number, cells: number): number => Math.max(1, Math.ceil(length / cells))
  const isLong = wanted > 1 && second < end && second - start > 2 * stepOf(end - second, wanted)
  if (!isLong) return { origin: start, step: stepOf(end - start, wanted) }
  const step = stepOf(end - second, wanted - 1)
  return { origin: second - step, step }
}

type ReadCell = FrontierCell & { last_from: number; cell: number }

const SUMS = `min(from_at) AS from_at, max(to_at) AS to_at, max(from_at) AS last_from, count(*) AS segments,
  sum(CASE WHEN state = 'settled' THEN 1 ELSE 0 END) AS settled,
  sum(CASE WHEN state <> 'open' OR listed > 0 THEN 1 ELSE 0 END) AS begun,
  sum(listed) AS listed, sum(stored) AS stored, sum(gone) AS gone, sum(skipped) AS skipped, sum(bad) AS bad`

/** The next segments after the last one that was read, by cell. */
async function readStretch(tx: Tx, { origin, step }: Grid, params: readonly Value[]): Promise<ReadCell[]> {
  const rows = await tx.all<Record<keyof ReadCell, number>>(
    `SELECT cell, ${SUMS}
     FROM (SELECT CASE WHEN from_at < ? THEN 0 ELSE (from_at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) END AS cell,
             from_at, to_at, state, listed, stored, gone, skipped, bad FROM segments
           WHERE stream_id = ? AND to_at > ? AND from_at < ? AND from_at > ?
           ORDER BY from_at LIMIT ${STRETCH_SEGMENTS}) stretch
     GROUP BY cell ORDER BY cell`,
    [origin, origin, step, ...params],
  )
  return rows.map(numbers)
}

const SUMMED = ['segments', 'settled', 'begun', 'listed', 'stored', 'gone', 'skipped', 'bad'] as const

function addTo(cell: ReadCell, more: ReadCell): void {
  for (const name of SUMMED) cell[name] += more[name]
  cell.to_at = more.to_at
  cell.last_from = more.last_from
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
