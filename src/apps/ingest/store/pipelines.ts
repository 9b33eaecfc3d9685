/** What is counted and noted of a pipeline, inside transactions of the ledger. */
import type { Tx, Value } from '../../../ledger/contract.ts'
import type { QuarantineRow, UnparsedRow } from './rows.ts'

/** So that its row is there: everything else only changes it. */
export async function putPipeline(tx: Tx, name: string): Promise<void> {
  await tx.run(`INSERT INTO ingest_pipelines(name) VALUES (?) ON CONFLICT (name) DO NOTHING`, [name])
}

const COUNTERS = [
  'messages',
  'duplicates',
  'dropped',
  'unparsed',
  'acknowledged',
  'extensions',
  'released',
] as const

export type Counter = (typeof COUNTERS)[number]
export type Counts = Partial<Record<Counter, number>>

export async function count(tx: Tx, pipeline: string, counts: Counts): Promise<void> {
  const some = Object.entries(counts).filter(([, n]) => n > 0)
  if (some.length === 0) return
  const set = some.map(([name]) => `${name} = ${name} + ?`).join(', ')
  await tx.run(`UPDATE ingest_pipelines SET ${set} WHERE name = ?`, [...some.map(([, n]) => n), pipeline])
}

/** Its row is there afterwards. By one statement, the same each time: it comes with every few messages. */
export async function noteReceived(
  tx: Tx,
  pipeline: string,
  { counts, nowMs }: { counts: Counts; nowMs: number },
): Promise<void> {
  await tx.run(
    `INSERT INTO ingest_pipelines(name, received_at, ${COUNTERS.join(', ')})
     VALUES (?, ?, ${COUNTERS.map(() => '?').join(', ')})
     ON CONFLICT (name) DO UPDATE SET received_at = excluded.received_at, problem = NULL, problem_at = NULL,
       ${COUNTERS.map((name) => `${name} = ingest_pipelines.${name} + excluded.${name}`).join(', ')}`,
    [pipeline, nowMs, ...COUNTERS.map((name) => counts[name] ?? 0)],
  )
}

export async function noteProblem(
  tx: Tx,
  pipeline: string,
  { problem, nowMs }: { problem: string; nowMs: number },
): Promise<void> {
  await tx.run(`UPDATE ingest_pipelines SET problem = ?, problem_at = ? WHERE name = ?`, [
    problem,
    nowMs,
    pipeline,
  ])
}

export async function endProblem(tx: Tx, pipeline: string): Promise<void> {
  await tx.run(
    `UPDATE ingest_pipelines SET problem = NULL, problem_at = NULL WHERE name = ? AND problem IS NOT NULL`,
    [pipeline],
  )
}

export type NotedDepth = {
  waiting: number | null
  inFlight: number | null
  oldestAtMs: number | null
  nowMs: number
}

export async function noteDepth(tx: Tx, pipeline: string, depth: NotedDepth): Promise<void> {
  await tx.run(
    `UPDATE ingest_pipelines SET queue_waiting = ?, queue_in_flight = ?, queue_oldest_at = ?, queue_noted_at = ?
     WHERE name = ?`,
    [depth.waiting, depth.inFlight, depth.oldestAtMs, depth.nowMs, pipeline],
  )
}

// --- Listings ------------------------------------------------------------------------------------------------------

export async function beginListing(
  tx: Tx,
  pipeline: string,
  { location, nowMs }: { location: string; nowMs: number },
): Promise<void> {
  await tx.run(
    `UPDATE ingest_pipelines SET generation = generation + 1, cursor = NULL, listing_of = ?, listing_at = ?,
       listing_n = 0, listing_before = 0, listing_left_out = 0 WHERE name = ?`,
    [location, nowMs, pipeline],
  )
}

/** In the transaction that has what the page showed. `generation`: a page of an older listing moves nothing. */
export function moveListing(
  tx: Tx,
  { pipeline, generation }: { pipeline: string; generation: number },
  page: { cursor: string | null; n: number; before: number; leftOut: number },
): Promise<number> {
  return tx.run(
    `UPDATE ingest_pipelines SET cursor = ?, listing_n = listing_n + ?, listing_before = listing_before + ?,
       listing_left_out = listing_left_out + ? WHERE name = ? AND generation = ? AND listing_at IS NOT NULL`,
    [page.cursor, page.n, page.before, page.leftOut, pipeline, generation],
  )
}

/** What it listed are the books from now on. */
export async function endListing(
  tx: Tx,
  { pipeline, generation }: { pipeline: string; generation: number },
): Promise<void> {
  await tx.run(
    `UPDATE ingest_pipelines SET listed_generation = generation, listed_at = listing_at, listed_n = listing_n,
       listed_before = listing_before, listed_left_out = listing_left_out, listing_at = NULL, cursor = NULL WHERE name = ? AND generation = ?`,
    [pipeline, generation],
  )
}

// --- Quarantine, and messages that nobody understood -----------------------------------------------------------------

const ROWS_MAX = 200

export async function putQuarantine(
  tx: Tx,
  rows: readonly Omit<QuarantineRow, 'uri' | 'tried_at'>[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_MAX) {
    const some = rows.slice(from, from + ROWS_MAX)
    const values: Value[] = some.flatMap((row) => [
      ...[row.pipeline, row.shard, row.at, row.from_byte, row.from_line, row.line, row.code, row.reason],
      ...[row.excerpt, row.created_at],
    ])
    await tx.run(
      `INSERT INTO ingest_quarantine(pipeline, shard, at, from_byte, from_line, line, code, reason, excerpt, created_at)
       VALUES ${some.map(() => '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').join(', ')}`,
      values,
    )
  }
}

type QuarantinedRecord = Pick<QuarantineRow, 'pipeline' | 'shard' | 'at'>

/** It reads now: it is in quarantine no more, and published in the same transaction. False where another did it. */
export async function leaveQuarantine(tx: Tx, { pipeline, shard, at }: QuarantinedRecord): Promise<boolean> {
  const left = await tx.run(`DELETE FROM ingest_quarantine WHERE pipeline = ? AND shard = ? AND at = ?`, [
    pipeline,
    shard,
    at,
  ])
  if (left !== 1) return false
  await tx.run(
    `UPDATE ingest_shards SET published = published + 1, quarantined = quarantined - 1 WHERE pipeline = ? AND id = ?`,
    [pipeline, shard],
  )
  return true
}

export async function stayInQuarantine(
  tx: Tx,
  { pipeline, shard, at }: QuarantinedRecord,
  { code, reason, nowMs }: { code: string; reason: string; nowMs: number },
): Promise<void> {
  await tx.run(
    `UPDATE ingest_quarantine SET code = ?, reason = ?, tried_at = ? WHERE pipeline = ? AND shard = ? AND at = ?`,
    [code, reason, nowMs, pipeline, shard, at],
  )
}

export async function putUnparsed(
  tx: Tx,
  row: Omit<UnparsedRow, 'first_at' | 'last_at'>,
  { nowMs, max }: { nowMs: number; max: number },
): Promise<void> {
  await tx.run(
    `INSERT INTO ingest_unparsed(pipeline, message, code, reason, excerpt, deliveries, first_at, last_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (pipeline, message) DO UPDATE SET deliveries = ingest_unparsed.deliveries + 1,
       last_at = excluded.last_at, code = excluded.code, reason = excluded.reason`,
    [row.pipeline, row.message, row.code, row.reason, row.excerpt, row.deliveries, nowMs, nowMs],
  )
  // Whoever may write to the queue must not fill this database.
  await tx.run(
    `DELETE FROM ingest_unparsed WHERE pipeline = ? AND message IN (SELECT message FROM ingest_unparsed
       WHERE pipeline = ? ORDER BY last_at DESC, message LIMIT 1000000 OFFSET ${Math.max(1, Math.floor(max))})`,
    [row.pipeline, row.pipeline],
  )
}

const TABLES = ['ingest_quarantine', 'ingest_unparsed', 'ingest_inbox', 'ingest_drops', 'ingest_shards']

/** All that is kept of a pipeline but its records, a part at a time. */
export async function dropPipeline(tx: Tx, name: string): Promise<void> {
  for (const table of TABLES) {
    await tx.run(`DELETE FROM ${table} WHERE pipeline = ?`, [name])
  }
  await tx.run(`DELETE FROM ingest_pipelines WHERE name = ?`, [name])
}
