/**
 * A ledger as a busy household of years would have it, made in seconds: many segments, most of them settled, and many
 * jobs in every state. Written past the ledger's own methods, but so that its books agree: tallies, open jobs of
 * segments, items listed and stored. Works on both databases.
 */
import type { Tx } from '../../src/ledger/contract.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'

export type LargeLedger = {
  segments: number
  /** More than four times as many as segments. */
  jobs: number
}

export const LARGE_STREAM = 'mail:large@example.com'
const SEGMENT_MS = 3_600_000
const AGE_MS_MAX = 86_400_000
/** Of the segments, in percent: settled; then begun; the rest waits. */
const SETTLED_PERCENT = 70
const BEGUN_PERCENT = 2
/** Items of a job. */
const ITEMS = 10

/** Kinds of which nobody here knows how to run any, so that an engine leaves them alone. */
const KINDS = ['large.list', 'large.fetch', 'large.index']

export async function fillLargeLedger(ledger: Ledger, size: LargeLedger): Promise<void> {
  const { id } = await ledger.stream(LARGE_STREAM)
  const now = Math.floor(ledger.now())
  const fill = { ...size, streamId: id, now, settled: Math.floor((size.segments * SETTLED_PERCENT) / 100) }
  await ledger.driver.transaction(async (tx) => {
    await addSegments(tx, fill)
    await addJobs(tx, fill)
    await addTroubles(tx, fill)
    await tx.run(`INSERT INTO tallies(slot, kind, stage, n)
      SELECT 0, kind, CASE WHEN state = 'pending' THEN coalesce(wait, 'ready') ELSE state END, count(*)
      FROM jobs WHERE kind LIKE 'large.%' GROUP BY 2, 3`)
  })
  // PostgreSQL does that by itself, but not at once; nobody does it for SQLite.
  if (ledger.driver.dialect === 'postgres') await ledger.driver.transaction((tx) => tx.run('ANALYZE'))
}

type Fill = LargeLedger & { streamId: number; now: number; settled: number }

/** 1 … n as a table, on both databases. */
function numbers(n: number): string {
  return `WITH RECURSIVE c(n) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM c WHERE n < ${n}) `
}

async function addSegments(tx: Tx, { segments, streamId, now, settled }: Fill): Promise<void> {
  const start = now - segments * SEGMENT_MS
  const begun = settled + Math.floor((segments * BEGUN_PERCENT) / 100)
  const perSegment = ITEMS * 10
  await tx.run(
    `INSERT INTO segments(stream_id, from_at, to_at, label, state, open_jobs, listed, stored, gone, created_at, settled_at)
     ${numbers(segments)}
     SELECT ${streamId}, ${start} + (n - 1) * ${SEGMENT_MS}, ${start} + n * ${SEGMENT_MS}, 'hour ' || n,
       CASE WHEN n <= ${settled} THEN 'settled' WHEN n <= ${begun} THEN 'sealed' ELSE 'open' END,
       CASE WHEN n <= ${settled} THEN 0 WHEN n <= ${begun} THEN 4 ELSE 1 END,
       CASE WHEN n <= ${begun} THEN ${perSegment} ELSE 0 END,
       CASE WHEN n <= ${settled} THEN ${perSegment} - n % 3 WHEN n <= ${begun} THEN 60 ELSE 0 END,
       CASE WHEN n <= ${settled} THEN n % 3 ELSE 0 END,
       ${now} - ${AGE_MS_MAX}, CASE WHEN n <= ${settled} THEN ${now} END FROM c`,
  )
  await tx.run(`UPDATE streams SET mark_at = ?, mark = ?, tail_at = ?, moved_at = ? WHERE id = ?`, [
    start + settled * SEGMENT_MS,
    String(start + settled * SEGMENT_MS),
    now,
    now,
    streamId,
  ])
}

/** Done but for a lister of each segment that waits, four fetches of each that is begun, and what failed. */
async function addJobs(tx: Tx, fill: Fill): Promise<void> {
  const { jobs, segments, streamId, now, settled } = fill
  const begun = Math.floor((segments * BEGUN_PERCENT) / 100)
  const open = segments - settled - begun
  const waiting = open + begun * 4
  const done = jobs - waiting
  const base = (await tx.get<{ id: number }>('SELECT min(id) AS id FROM segments WHERE stream_id = ?', [
    streamId,
  ]))!.id
  const columns = `kind, stream_id, segment_id, lane, state, wait, payload, items, attempt, note, error, created_at, claimed_at, settled_at`
  const payload = `'{"ids":["18c2f0a1b2c3d4e5","18c2f0a1b2c3d4e6","18c2f0a1b2c3d4e7"],"part":' || n || '}'`
  const age = `${now} - CAST((${jobs} - n) AS BIGINT) * ${AGE_MS_MAX} / ${jobs}`
  const kind = `CASE n % 3 WHEN 0 THEN '${KINDS[0]}' WHEN 1 THEN '${KINDS[1]}' ELSE '${KINDS[2]}' END`
  const state = `CASE WHEN n % 997 = 0 THEN 'failed' WHEN n % 1999 = 0 THEN 'canceled' ELSE 'done' END`
  const error = `CASE WHEN n % 997 = 0 THEN '{"kind":"permanent","message":"The message cannot be read."}' END`
  await tx.run(
    `INSERT INTO jobs(${columns}) ${numbers(done)}
     SELECT ${kind}, ${streamId}, ${base} + n % ${settled}, 'bulk', ${state}, NULL, ${payload}, ${ITEMS}, 1, NULL,
       ${error}, ${age}, ${age}, ${age} FROM c`,
  )
  await tx.run(
    `INSERT INTO jobs(${columns}) ${numbers(begun * 4)}
     SELECT '${KINDS[1]}', ${streamId}, ${base} + ${settled} + (n - 1) / 4, 'bulk', 'pending',
       CASE WHEN n % 4 = 0 THEN 'deps' END, ${payload}, ${ITEMS}, 0, NULL, NULL, ${now}, NULL, NULL FROM c`,
  )
  await tx.run(
    `INSERT INTO jobs(${columns}) ${numbers(open)}
     SELECT '${KINDS[0]}', ${streamId}, ${base} + ${settled + begun} + n - 1, 'bulk', 'pending',
       NULL, ${payload}, 0, 0, NULL, NULL, ${now}, NULL, NULL FROM c`,
  )
}

/** A bad item for each hundredth segment, and what happened in each of the last minutes. */
async function addTroubles(tx: Tx, { segments, streamId, now }: Fill): Promise<void> {
  await tx.run(
    `INSERT INTO bad_items(stream_id, segment_id, kind, item, reason, error_kind, payload, first_seen, last_tried)
     ${numbers(Math.ceil(segments / 100))}
     SELECT ${streamId}, NULL, '${KINDS[1]}', 'message ' || n, 'Its header cannot be read.', 'permanent', '{}', ${now}, ${now} FROM c`,
  )
  await tx.run(
    `INSERT INTO counters(slot, minute, stream_id, name, n)
     ${numbers(1440)} SELECT 0, ${Math.floor(now / 60_000)} - n, ${streamId}, 'processed', 600 FROM c`,
  )
}
