/** The hot statements on PostgreSQL: one round trip for a batch, whatever its size. */
import type { ClaimedJob, ClaimShare, InsertRow, Lane, ReadyQueue, Tx } from '../contract.ts'
import type { PostgresTx } from './driver.ts'

const INSERT = `INSERT INTO jobs(kind, key, stream_id, segment_id, parent_id, lane, priority, wait, run_at, deps_left,
    payload, size, items, bad_id, created_at)
  SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::text[],
    $9::bigint[], $10::bigint[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
  ON CONFLICT (kind, key) WHERE key IS NOT NULL AND state IN ('pending', 'claimed', 'failed') AND cancel_requested = 0 DO NOTHING
  RETURNING id, kind, key`

/**
 * Rows are inserted, and their ids returned, in the order of the arrays: an INSERT is never parallel, and a
 * function scan keeps its order. Where a key is taken a row is left out; the rest match up by kind and key.
 */
export async function insertJobs(tx: Tx, rows: readonly InsertRow[]): Promise<(number | null)[]> {
  // The second of two rows with one key would be refused, unless the first was and its rival settled just then.
  const seen = new Set<string>()
  const sent = rows.filter((row) => {
    if (row.key === null) return true
    const name = `${row.kind}\n${row.key}`
    if (seen.has(name)) return false
    seen.add(name)
    return true
  })
  const { rows: added } = await (tx as PostgresTx).query<[number, string, string | null]>({
    name: 'insert_jobs',
    text: INSERT,
    rowMode: 'array',
    values: [
      texts(sent.map((r) => r.kind)),
      texts(sent.map((r) => r.key)),
      numbers(sent.map((r) => r.streamId)),
      numbers(sent.map((r) => r.segmentId)),
      numbers(sent.map((r) => r.parentId)),
      texts(sent.map((r) => r.lane)),
      numbers(sent.map((r) => r.priority)),
      texts(sent.map((r) => r.wait)),
      numbers(sent.map((r) => r.runAt)),
      numbers(sent.map((r) => r.depsLeft)),
      texts(sent.map((r) => r.payload)),
      numbers(sent.map((r) => r.size)),
      numbers(sent.map((r) => r.items)),
      numbers(sent.map((r) => r.badId)),
      numbers(sent.map((r) => r.createdAt)),
    ],
  })
  const kept = new Set(sent)
  let at = 0
  return rows.map((row) => {
    const next = added[at]
    if (!next || next[1] !== row.kind || next[2] !== row.key || !kept.has(row)) return null
    at += 1
    return next[0]
  })
}

const DONE = `UPDATE jobs SET state = 'done', settled_at = $1
  WHERE ctid = ANY(ARRAY(SELECT j.tid FROM unnest($2::bigint[], $3::bigint[]) AS s(id, attempt) CROSS JOIN LATERAL (
      SELECT ctid AS tid FROM jobs WHERE id = s.id AND attempt = s.attempt LIMIT 1) AS j))
    AND owner = $4 AND state = 'claimed' AND cancel_requested = 0
  RETURNING id`

export async function settleDone(tx: Tx, owner: number, jobs: readonly ClaimedJob[], now: number): Promise<Set<number>> {
  const { rows } = await (tx as PostgresTx).query<[number]>({
    name: 'settle_done',
    text: DONE,
    rowMode: 'array',
    values: [now, numbers(jobs.map((job) => job.id)), numbers(jobs.map((job) => job.attempt)), owner],
  })
  return new Set(rows.map((row) => row[0]))
}

const READY = `WITH RECURSIVE queue AS (
    (SELECT stream_id, kind, priority FROM jobs WHERE state = 'pending' AND wait IS NULL AND lane = $1
     ORDER BY stream_id, kind, priority DESC LIMIT 1)
    UNION ALL
    SELECT next.* FROM queue CROSS JOIN LATERAL (
      SELECT stream_id, kind, priority FROM jobs WHERE state = 'pending' AND wait IS NULL AND lane = $1
        AND (stream_id, kind) > (queue.stream_id, queue.kind)
      ORDER BY stream_id, kind, priority DESC LIMIT 1) AS next
  ) SELECT * FROM queue LIMIT $2`

export async function readyQueues(tx: Tx, lane: Lane, max: number): Promise<ReadyQueue[]> {
  const { rows } = await (tx as PostgresTx).query<[number, string, number]>({
    name: 'ready_queues',
    text: READY,
    rowMode: 'array',
    values: [lane, max],
  })
  return rows.map(([streamId, kind, priority]) => ({ streamId, kind, priority }))
}

const TAKE = `UPDATE jobs SET state = 'claimed', owner = $5, attempt = attempt + 1, claimed_at = $6
  WHERE ctid = ANY(ARRAY(
    SELECT j.tid FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS s(stream_id, kind, n) CROSS JOIN LATERAL (
      SELECT ctid AS tid FROM jobs WHERE state = 'pending' AND wait IS NULL AND lane = $4 AND stream_id = s.stream_id AND kind = s.kind
      ORDER BY priority DESC, id LIMIT s.n FOR UPDATE SKIP LOCKED) AS j))
  RETURNING id, kind, key, stream_id, segment_id, parent_id, lane, priority, payload, size, items, attempt, failures,
    checkpoint, bad_id, created_at`

type TakenRow = [
  ...[number, string, string | null, number, number | null, number | null, Lane, number, string, number | null],
  ...[number, number, number, string | null, number | null, number],
]

export async function take(tx: Tx, lane: Lane, shares: readonly ClaimShare[], owner: number, now: number): Promise<ClaimedJob[]> {
  const { rows } = await (tx as PostgresTx).query<TakenRow>({
    name: 'take',
    text: TAKE,
    rowMode: 'array',
    values: [
      numbers(shares.map((s) => s.streamId)),
      texts(shares.map((s) => s.kind)),
      numbers(shares.map((s) => s.n)),
      lane,
      owner,
      now,
    ],
  })
  return rows.map(claimedJob).sort((a, b) => b.priority - a.priority || a.id - b.id)
}

function claimedJob(row: TakenRow): ClaimedJob {
  return {
    id: row[0],
    kind: row[1],
    key: row[2],
    streamId: row[3],
    segmentId: row[4],
    parentId: row[5],
    lane: row[6],
    priority: row[7],
    payload: row[8],
    size: row[9],
    items: row[10],
    attempt: row[11],
    failures: row[12],
    checkpoint: row[13],
    badId: row[14],
    createdAt: row[15],
  }
}

/** Array literals by hand: pg's own quote every number. */
function numbers(list: readonly (number | null)[]): string {
  return `{${list.map((n) => n ?? 'NULL').join(',')}}`
}

function texts(list: readonly (string | null)[]): string {
  return `{${list.map((text) => (text === null ? 'NULL' : `"${text.replaceAll(/[\\"]/g, '\\$&')}"`)).join(',')}}`
}
