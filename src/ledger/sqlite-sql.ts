/** The hot statements in SQLite's words, for sqlite/ and libsql/: what differs is how many rows go into one of them. */
import type { InsertRow } from './contract.ts'
import { TAKEN_BYTES } from './taken-row.ts'

export const INSERT_JOBS = `INSERT INTO jobs(kind, key, stream_id, segment_id, parent_id, lane, priority, wait, run_at, deps_left,
  payload, size, items, bad_id, created_at)`

/** In the order of INSERT_JOBS. */
export function jobValues(r: InsertRow): (string | number | null)[] {
  const place = [r.kind, r.key, r.streamId, r.segmentId, r.parentId, r.lane, r.priority]
  return [...place, r.wait, r.runAt, r.depsLeft, r.payload, r.size, r.items, r.badId, r.createdAt]
}

export const UNLESS_KEY_TAKEN = `ON CONFLICT (kind, key)
  WHERE key IS NOT NULL AND state IN ('pending', 'claimed', 'failed') AND cancel_requested = 0 DO NOTHING`

export const INSERT_EDGES = `INSERT INTO job_deps(dep_id, job_id, on_failure, met)`

export const SET_DONE = `UPDATE jobs SET state = 'done', settled_at = ?`
/** The rest of the fence: which job, and which attempt, stands before it. */
export const IS_OWN = `owner = ? AND state = 'claimed' AND cancel_requested = 0`

export const IS_READY = `state = 'pending' AND wait IS NULL`
/** Within a stream, as the ready index has it. */
export const KIND_ORDER = `kind, priority DESC`

// Lane, stream and kind are known: reading them back for every row would be for nothing. Adding up the bytes costs
// about 1 µs a row (measured).
export const TAKE_ROWS = `UPDATE jobs SET state = 'claimed', owner = ?, attempt = attempt + 1, claimed_at = ?
  WHERE id IN (SELECT id FROM (
    SELECT id, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM (
      SELECT id, ${TAKEN_BYTES} AS bytes FROM jobs WHERE ${IS_READY} AND lane = ? AND stream_id = ?
        AND kind = ? AND priority >= ? ORDER BY priority DESC, id LIMIT ?))
    WHERE before < ?)`
