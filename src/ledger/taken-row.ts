/**
 * A claimed row as an array, in the order in which both databases return it. Arrays that become objects of one shape
 * here measure faster than the objects that the database clients make.
 */
import type { ClaimedJob, Lane } from './contract.ts'

/** What a claimed job takes of the window; neither database reads the texts for that. */
export const TAKEN_BYTES = `octet_length(payload) + coalesce(octet_length(checkpoint), 0)`

/** NULL for what nearly all jobs have: on PostgreSQL every value is a text that has to be read. */
export function takenColumns(payload: string, checkpoint: string): string {
  return `id, key, segment_id, parent_id, nullif(priority, 0), ${payload}, size, nullif(items, 1), attempt,
  nullif(failures, 0), ${checkpoint}, bad_id, created_at`
}

export const TAKEN_COLUMNS = takenColumns('payload', 'checkpoint')

export type TakenRow = [
  id: number,
  key: string | null,
  segmentId: number | null,
  parentId: number | null,
  priority: number | null,
  payload: string,
  size: number | null,
  items: number | null,
  attempt: number,
  failures: number | null,
  checkpoint: string | null,
  badId: number | null,
  createdAt: number,
]

export function claimedJob(row: TakenRow, lane: Lane, streamId: number, kind: string): ClaimedJob {
  return {
    id: row[0],
    kind,
    key: row[1],
    streamId,
    segmentId: row[2],
    parentId: row[3],
    lane,
    priority: row[4] ?? 0,
    payload: row[5],
    bytes: Buffer.byteLength(row[5]) + (row[10] === null ? 0 : Buffer.byteLength(row[10])),
    size: row[6],
    items: row[7] ?? 1,
    attempt: row[8],
    failures: row[9] ?? 0,
    checkpoint: row[10],
    badId: row[11],
    createdAt: row[12],
  }
}
