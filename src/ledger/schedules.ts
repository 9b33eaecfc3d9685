/**
 * Schedules live in the database. Firing is one transaction: the entry moves on to its next time and the job
 * is enqueued; whoever comes second finds the time moved and does nothing. Runs missed while nobody
 * was there are made up for once.
 */
import type { Lane, Tx } from './contract.ts'
import { checkIndexed } from './input-check.ts'

export type ScheduleRow = {
  name: string
  kind: string
  payload: string
  spec: string
  stream_id: number
  lane: Lane
  priority: number
  next_at: number
  last_at: number | null
  last_job: number | null
}

export type NewSchedule = Omit<ScheduleRow, 'last_at' | 'last_job'>

/** Keeps `next_at` if the entry is the same as before, so that a restart does not skip or repeat a run. */
export async function putSchedule(tx: Tx, s: NewSchedule): Promise<void> {
  checkIndexed('The name of a schedule', s.name)
  await tx.run(
    `INSERT INTO schedules(name, kind, payload, spec, stream_id, lane, priority, next_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, payload = excluded.payload, stream_id = excluded.stream_id,
       lane = excluded.lane, priority = excluded.priority,
       next_at = CASE WHEN schedules.spec = excluded.spec THEN schedules.next_at ELSE excluded.next_at END,
       spec = excluded.spec`,
    [s.name, s.kind, s.payload, s.spec, s.stream_id, s.lane, s.priority, s.next_at],
  )
}

export async function dropSchedule(tx: Tx, name: string): Promise<boolean> {
  return (await tx.run(`DELETE FROM schedules WHERE name = ?`, [name])) > 0
}

export function listSchedules(tx: Tx): Promise<ScheduleRow[]> {
  return tx.all<ScheduleRow>(`SELECT * FROM schedules ORDER BY name`)
}

/** True for exactly one caller per due time. */
export async function advanceSchedule(
  tx: Tx,
  entry: ScheduleRow,
  nextAt: number,
  now: number,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE schedules SET next_at = ?, last_at = ? WHERE name = ? AND next_at = ? AND spec = ?`,
    [nextAt, now, entry.name, entry.next_at, entry.spec],
  )
  return changed === 1
}

export async function noteScheduledJob(tx: Tx, name: string, jobId: number): Promise<void> {
  await tx.run(`UPDATE schedules SET last_job = ? WHERE name = ?`, [jobId, name])
}
