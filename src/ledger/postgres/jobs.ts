/** The hot statements on PostgreSQL: one round trip for a batch, whatever its size. */
import { systemClock } from '../../clock.ts'
import type { ClaimedJob, ClaimShare, InsertRow, Lane, ReadyQueue, Tx } from '../contract.ts'
import { claimedJob, TAKEN_COLUMNS, type TakenRow } from '../taken-row.ts'
import type { Head } from './ready-heads.ts'
import type { PostgresTx } from './tx.ts'

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

export const DONE = `UPDATE jobs SET state = 'done', settled_at = $1
  WHERE ctid = ANY(ARRAY(SELECT j.tid FROM unnest($2::bigint[], $3::bigint[]) AS s(id, attempt) CROSS JOIN LATERAL (
      SELECT ctid AS tid FROM jobs WHERE id = s.id AND attempt = s.attempt LIMIT 1) AS j))
    AND owner + 0 = $4 AND state || '' = 'claimed' AND cancel_requested = 0
  RETURNING id`

export async function settleDone(
  tx: Tx,
  owner: number,
  jobs: readonly ClaimedJob[],
  now: number,
): Promise<Set<number>> {
  const { rows } = await (tx as PostgresTx).query<[number]>({
    name: 'settle_done',
    text: DONE,
    rowMode: 'array',
    values: [now, numbers(jobs.map((job) => job.id)), numbers(jobs.map((job) => job.attempt)), owner],
  })
  return new Set(rows.map((row) => row[0]))
}

/** Beyond any priority and any stream. */
const HIGH = Number.MAX_SAFE_INTEGER

const IS_READY = `state = 'pending' AND wait IS NULL AND lane = $1`

/**
 * From one (stream, kind) to the next with one seek each, in the stretches between the queues whose heads we
 * know ($3 … $6); and for these the first job at, above or below the remembered place.
 */
export const READY = `WITH RECURSIVE queue AS (
    SELECT first.*, g.to_stream, g.to_kind, 1 AS n
    FROM unnest($3::bigint[], $4::text[], $5::bigint[], $6::text[]) AS g(stream_id, kind, to_stream, to_kind) CROSS JOIN LATERAL (
      SELECT stream_id, kind, priority FROM jobs WHERE ${IS_READY}
        AND (stream_id, kind) > (g.stream_id, g.kind) AND (stream_id, kind) < (g.to_stream, g.to_kind)
      ORDER BY stream_id, kind, priority DESC LIMIT 1) AS first
    UNION ALL
    SELECT next.*, queue.to_stream, queue.to_kind, queue.n + 1 FROM queue CROSS JOIN LATERAL (
      SELECT stream_id, kind, priority FROM jobs WHERE ${IS_READY}
        AND (stream_id, kind) > (queue.stream_id, queue.kind) AND (stream_id, kind) < (queue.to_stream, queue.to_kind)
      ORDER BY stream_id, kind, priority DESC LIMIT 1) AS next
    WHERE queue.n < $2
  ) SELECT stream_id, kind, priority FROM queue
  UNION ALL
  SELECT h.stream_id, h.kind, top.priority
  FROM unnest($7::bigint[], $8::text[], $9::bigint[], $10::bigint[]) AS h(stream_id, kind, at, floor) CROSS JOIN LATERAL (
    SELECT job.priority FROM (VALUES (h.at + 1, ${HIGH}, 0), (h.at, h.at, h.floor), (-${HIGH}, h.at - 1, 0)) AS r(low, high, floor)
    CROSS JOIN LATERAL (
      SELECT priority FROM jobs WHERE ${IS_READY} AND stream_id = h.stream_id AND kind = h.kind
        AND priority <= r.high AND priority >= r.low AND id >= r.floor
      ORDER BY priority DESC, id LIMIT 1) AS job
    LIMIT 1) AS top
  ORDER BY 1, 2 LIMIT $2`

type Page = { fromStream: number; max: number }

export async function readyQueues(tx: Tx, lane: Lane, page: Page): Promise<ReadyQueue[]> {
  const { heads } = tx as PostgresTx
  const known = heads.known(lane, page.fromStream)
  if (known.length > 0) {
    const queues = await look(tx, lane, page, known)
    if (heads.confirm(lane, known, queues)) return queues
  }
  const sinceMs = systemClock.monotonicMs()
  const queues = await look(tx, lane, page, [])
  heads.fullLookTook(lane, systemClock.monotonicMs() - sinceMs, queues.length)
  return queues
}

async function look(
  tx: Tx,
  lane: Lane,
  { fromStream, max }: Page,
  known: readonly Head[],
): Promise<ReadyQueue[]> {
  // No kind sorts before the empty text, and all of the stream before it are out.
  const from = [{ streamId: fromStream, kind: '' }, ...known]
  const to = [...known, { streamId: HIGH, kind: '' }]
  const { rows } = await (tx as PostgresTx).query<[number, string, number]>({
    name: 'ready_queues',
    text: READY,
    rowMode: 'array',
    values: [
      lane,
      max,
      numbers(from.map((at) => at.streamId)),
      texts(from.map((at) => at.kind)),
      numbers(to.map((at) => at.streamId)),
      texts(to.map((at) => at.kind)),
      numbers(known.map((head) => head.streamId)),
      texts(known.map((head) => head.kind)),
      numbers(known.map((head) => head.priority)),
      numbers(known.map((head) => head.floor)),
    ],
  })
  return rows.map(([streamId, kind, priority]) => ({ streamId, kind, priority }))
}

/**
 * By ctid, because the rows are locked by then: no second way through an index. For each share three stretches
 * of the ready index: above the remembered place, from there on, and below; without one, all is below.
 */
export const TAKE = `UPDATE jobs SET state = 'claimed', owner = $8, attempt = attempt + 1, claimed_at = $9
  WHERE ctid = ANY(ARRAY(
    SELECT picked.tid FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
      AS s(stream_id, kind, n, priority_min, at, floor)
    CROSS JOIN LATERAL (
      SELECT job.tid FROM (VALUES (greatest(s.at + 1, s.priority_min), ${HIGH}, 0), (greatest(s.at, s.priority_min), s.at, s.floor),
        (s.priority_min, s.at - 1, 0)) AS r(low, high, floor)
      CROSS JOIN LATERAL (
        SELECT ctid AS tid FROM jobs WHERE ${IS_READY} AND stream_id = s.stream_id AND kind = s.kind
          AND priority <= r.high AND priority >= r.low AND id >= r.floor
        ORDER BY priority DESC, id LIMIT s.n FOR UPDATE SKIP LOCKED) AS job
      LIMIT s.n) AS picked))
  RETURNING ${TAKEN_COLUMNS}, stream_id, kind`

/** One statement serves several queues, so each row says whose it is. */
type OwnedRow = [...TakenRow, streamId: number, kind: string]

export async function take(
  tx: Tx,
  lane: Lane,
  shares: readonly ClaimShare[],
  owner: number,
  now: number,
): Promise<ClaimedJob[]> {
  const { heads } = tx as PostgresTx
  const known = shares.map((share) => heads.headOf(lane, share))
  const { rows } = await (tx as PostgresTx).query<OwnedRow>({
    name: 'take',
    text: TAKE,
    rowMode: 'array',
    values: [
      lane,
      numbers(shares.map((s) => s.streamId)),
      texts(shares.map((s) => s.kind)),
      numbers(shares.map((s) => s.n)),
      numbers(shares.map((s) => s.priorityMin)),
      numbers(known.map((head) => head?.priority ?? HIGH)),
      numbers(known.map((head) => head?.floor ?? 0)),
      owner,
      now,
    ],
  })
  const jobs = rows
    .map((row) => claimedJob(row as unknown as TakenRow, lane, row[13], row[14]))
    .sort((a, b) => b.priority - a.priority || a.id - b.id)
  for (const share of shares) {
    heads.claimed(
      lane,
      share,
      shares.length === 1
        ? jobs
        : jobs.filter((job) => job.streamId === share.streamId && job.kind === share.kind),
    )
  }
  return jobs
}

/** Array literals by hand: pg's own quote every number. */
function numbers(list: readonly (number | null)[]): string {
  return `{${list.map((n) => n ?? 'NULL').join(',')}}`
}

function texts(list: readonly (string | null)[]): string {
  return `{${list.map(quoted).join(',')}}`
}

function quoted(text: string | null): string {
  if (text === null) return 'NULL'
  return `"${/[\\"]/.test(text) ? text.replaceAll(/[\\"]/g, '\\$&') : text}"`
}
