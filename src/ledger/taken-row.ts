/**
 * A claimed row as an array, in the order in which both databases return it. Arrays that become objects of one shape
 * here measure faster than the objects that the database clients make.
 */
import type { ClaimedJob, Lane } from './contract.ts'

export const TAKEN_COLUMNS = `id, key, segment_id, parent_id, priority, payload, size, items, attempt, failures, checkpoint,
  bad_id, created_at`

export type TakenRow = [
  id: number,
  key: string | null,
  segmentId: number | null,
  parentId: number | null,
  priority: number,
  payload: string,
  size: number | null,
  items: number,
  attempt: number,
  failures: number,
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
    priority: row[4],
    payload: row[5],
    size: row[6],
    items: row[7],
    attempt: row[8],
    failures: row[9],
    checkpoint: row[10],
    badId: row[11],
    createdAt: row[12],
  }
}
