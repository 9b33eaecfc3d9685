/** The hot statements on PostgreSQL: one round trip for a batch, whatever its size. */
import { systemClock } from '../../base/clock.ts'
import type {
  ClaimedJob,
  ClaimShare,
  Edge,
  EdgesOf,
  InsertRow,
  Lane,
  ReadyQueue,
  Taking,
  Tx,
} from '../contract.ts'
import { claimedJob, TAKEN_BYTES, TAKEN_COLUMNS, type TakenRow } from '../taken-row.ts'
import type { Head } from './ready-heads.ts'
import type { PostgresTx } from './tx.ts'

const COLUMNS: readonly { name: string; type: 'text' | 'bigint'; of: keyof InsertRow }[] = [
  // Always an array: it says how many rows there are.
  { name: 'payload', type: 'text', of: 'payload' },
  { name: 'kind', type: 'text', of: 'kind' },
  { name: 'key', type: 'text', of: 'key' },
  { name: 'stream_id', type: 'bigint', of: 'streamId' },
  { name: 'segment_id', type: 'bigint', of: 'segmentId' },
  { name: 'parent_id', type: 'bigint', of: 'parentId' },
  { name: 'lane', type: 'text', of: 'lane' },
  { name: 'priority', type: 'bigint', of: 'priority' },
  { name: 'wait', type: 'text', of: 'wait' },
  { name: 'run_at', type: 'bigint', of: 'runAt' },
  { name: 'deps_left', type: 'bigint', of: 'depsLeft' },
  { name: 'size', type: 'bigint', of: 'size' },
  { name: 'items', type: 'bigint', of: 'items' },
  { name: 'bad_id', type: 'bigint', of: 'badId' },
  { name: 'created_at', type: 'bigint', of: 'createdAt' },
]
const NAMES = COLUMNS.map(({ name }) => name).join(', ')

/**
 * A column in which all rows agree is sent as one value beside an empty array, which unnest fills up with NULL. Most
 * batches agree in nearly all of them, and then the server needs a sixth less time for them; without keys, where
 * nothing can be in the way, another sixth.
 */
const INSERT = `INSERT INTO jobs(${NAMES})
  SELECT ${COLUMNS.map(({ name, type }, at) => `coalesce(u.${name}, $${at + 1 + COLUMNS.length}::${type})`).join(', ')}
  FROM unnest(${COLUMNS.map(({ type }, at) => `$${at + 1}::${type}[]`).join(', ')}) AS u(${NAMES})`

const INSERT_KEYED = `${INSERT}
  ON CONFLICT (kind, key) WHERE key IS NOT NULL AND state IN ('pending', 'claimed', 'failed') AND cancel_requested = 0 DO NOTHING
  RETURNING id, kind, key`

/**
 * Rows are inserted, and their ids returned, in the order of the arrays: an INSERT is never parallel, and a
 * function scan keeps its order. Where a key is taken a row is left out; the rest match up by kind and key.
 */
export async function insertJobs(tx: Tx, rows: readonly InsertRow[]): Promise<(number | null)[]> {
  if (rows.every((row) => row.key === null)) {
    const text = `${INSERT} RETURNING id`
    const { rows: added } = await (tx as PostgresTx).query<[number]>({
      name: 'insert_jobs',
      text,
      rowMode: 'array',
      values: insertValues(rows),
    })
    return added.map(([id]) => id)
  }
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
    name: 'insert_keyed_jobs',
    text: INSERT_KEYED,
    rowMode: 'array',
    values: insertValues(sent),
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

/** The arrays, and then the values of the columns that need none. */
function insertValues(rows: readonly InsertRow[]): (string | number | null)[] {
  const [first] = rows
  const arrays: string[] = []
  const values: (string | number | null)[] = []
  for (const { type, of } of COLUMNS) {
    const value = first?.[of] ?? null
    const agree = of !== 'payload' && rows.every((row) => row[of] === value)
    const list = agree ? [] : rows.map((row) => row[of])
    arrays.push(type === 'text' ? texts(list as (string | null)[]) : numbers(list as (number | null)[]))
    values.push(agree ? value : null)
  }
  return [...arrays, ...values]
}

const EDGES = `INSERT INTO job_deps(dep_id, job_id, on_failure, met)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[])`
/** One job may wait for 100,000, and each of as many for several. */
const EDGES_PER_STATEMENT_MAX = 50_000

/** Where none can be there already, looking for them would take as long as writing them. */
export async function insertEdges(tx: Tx, edges: readonly Edge[], of: EdgesOf): Promise<void> {
  const isNew = of === 'new jobs'
  for (let at = 0; at < edges.length; at += EDGES_PER_STATEMENT_MAX) {
    const part = edges.slice(at, at + EDGES_PER_STATEMENT_MAX)
    await (tx as PostgresTx).query({
      name: isNew ? 'insert_new_edges' : 'insert_edges',
      text: isNew ? EDGES : `${EDGES} ON CONFLICT DO NOTHING`,
      values: [
        numbers(part.map((edge) => edge.depId)),
        numbers(part.map((edge) => edge.jobId)),
        texts(part.map((edge) => edge.onFailure)),
        numbers(part.map((edge) => edge.met)),
      ],
    })
  }
}

const UNLOCKED = `SELECT id FROM jobs WHERE id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED`
const THERE = `SELECT id FROM jobs WHERE id = ANY($1::bigint[])`

export async function lockedJobs(tx: Tx, ids: readonly number[]): Promise<Set<number>> {
  const among = async (name: string, text: string, values: readonly number[]): Promise<Set<number>> => {
    const query = { name, text, rowMode: 'array' as const, values: [numbers(values)] }
    const { rows } = await (tx as PostgresTx).query<[number]>(query)
    return new Set(rows.map((row) => row[0]))
  }
  const unlocked = await among('lock_jobs', UNLOCKED, ids)
  const rest = ids.filter((id) => !unlocked.has(id))
  // What was pruned is locked by nobody.
  return rest.length === 0 ? new Set() : among('see_jobs', THERE, rest)
}

const IS_OWN = `owner + 0 = $4 AND state || '' = 'claimed' AND cancel_requested = 0`

/**
 * The jobs of one attempt: their ids as one list are one walk along the primary key, which cost a fifth less than a
 * look-up for each pair of id and attempt. The other conditions are written so that no other index fits.
 */
export const DONE = `UPDATE jobs SET state = 'done', settled_at = $1
  WHERE id = ANY($2::bigint[]) AND attempt = $3 AND ${IS_OWN} RETURNING id`

/** Where attempts differ, as they do after a long outage, still one statement. */
export const DONE_MIXED = `UPDATE jobs SET state = 'done', settled_at = $1
  WHERE ctid = ANY(ARRAY(SELECT j.tid FROM unnest($2::bigint[], $3::bigint[]) AS s(id, attempt) CROSS JOIN LATERAL (
      SELECT ctid AS tid FROM jobs WHERE id = s.id AND attempt = s.attempt LIMIT 1) AS j))
    AND ${IS_OWN} RETURNING id`

export async function settleDone(
  tx: Tx,
  owner: number,
  jobs: readonly ClaimedJob[],
  now: number,
): Promise<Set<number>> {
  const ids = numbers(jobs.map(({ id }) => id))
  const attempts = jobs.map(({ attempt }) => attempt)
  const isMixed = attempts.some((attempt) => attempt !== attempts[0])
  const { rows } = await (tx as PostgresTx).query<[number]>({
    name: isMixed ? 'settle_done_mixed' : 'settle_done',
    text: isMixed ? DONE_MIXED : DONE,
    rowMode: 'array',
    values: [now, ids, isMixed ? numbers(attempts) : attempts[0], owner],
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
 * of the ready index: above the remembered place, from there on, and below; without one, all is below. Bytes are
 * added up in the order in which the rows come, first within the share, then over all.
 */
export const TAKE = `UPDATE jobs SET state = 'claimed', owner = $8, attempt = attempt + 1, claimed_at = $9
  WHERE ctid = ANY(ARRAY(SELECT tid FROM (
    SELECT picked.tid, sum(picked.bytes) OVER (ROWS UNBOUNDED PRECEDING) - picked.bytes AS before
    FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $10::bigint[])
      AS s(stream_id, kind, n, priority_min, at, floor, bytes_max)
    CROSS JOIN LATERAL (SELECT tid, bytes FROM (
      SELECT tid, bytes, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
        SELECT job.tid, job.bytes FROM (VALUES (greatest(s.at + 1, s.priority_min), ${HIGH}, 0),
          (greatest(s.at, s.priority_min), s.at, s.floor), (s.priority_min, s.at - 1, 0)) AS r(low, high, floor)
        CROSS JOIN LATERAL (
          SELECT ctid AS tid, ${TAKEN_BYTES} AS bytes FROM jobs WHERE ${IS_READY} AND stream_id = s.stream_id
            AND kind = s.kind AND priority <= r.high AND priority >= r.low AND id >= r.floor
          ORDER BY priority DESC, id LIMIT s.n FOR UPDATE SKIP LOCKED) AS job
        LIMIT s.n) AS first) AS share
      WHERE before < s.bytes_max) AS picked) AS taken
    WHERE before < $11))
  RETURNING ${TAKEN_COLUMNS}, nullif(stream_id, $12), nullif(kind, $13)`

/** One statement serves several queues, so each row says whose it is, if it is not of the first share. */
type OwnedRow = [...TakenRow, streamId: number | null, kind: string | null]

export async function take(
  tx: Tx,
  lane: Lane,
  shares: readonly ClaimShare[],
  { owner, now, bytesMax }: Taking,
): Promise<ClaimedJob[]> {
  const { heads } = tx as PostgresTx
  const [first] = shares
  if (!first) return []
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
      numbers(shares.map((s) => s.bytesMax)),
      bytesMax,
      first.streamId,
      first.kind,
    ],
  })
  const jobs = rows
    .map((row) =>
      claimedJob(row as unknown as TakenRow, lane, row[13] ?? first.streamId, row[14] ?? first.kind),
    )
    .sort((a, b) => b.priority - a.priority || a.id - b.id)
  const short: ClaimShare[] = []
  for (const [at, share] of shares.entries()) {
    const own =
      shares.length === 1
        ? jobs
        : jobs.filter((job) => job.streamId === share.streamId && job.kind === share.kind)
    heads.claimed(lane, share, own)
    const rest = { n: share.n - own.length, bytesMax: share.bytesMax - totalBytes(own) }
    if (known[at] && rest.n > 0 && rest.bytesMax > 0) short.push({ ...share, ...rest })
  }
  const bytesLeft = bytesMax - totalBytes(jobs)
  if (short.length === 0 || bytesLeft <= 0) return jobs
  // From the remembered place on there were too few: the rest may have become ready behind it.
  return [...jobs, ...(await take(tx, lane, short, { owner, now, bytesMax: bytesLeft }))]
}

function totalBytes(jobs: readonly ClaimedJob[]): number {
  return jobs.reduce((sum, { bytes }) => sum + bytes, 0)
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
