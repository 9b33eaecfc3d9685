/**
 * How long things are in the trash, by time that Tidemark saw pass, and not by dates: a clock that is wrong for a while
 * must not empty it. Each look adds the time since the last one, at most `STEP_MS_MAX` of it; a clock that was set back
 * takes away as much, so that one which is wrong at every start of the machine, and right after, adds nothing. What is in
 * the trash of a day is as old as the time since anything last came there or left.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { TrashDay } from '../local/trash-bin.ts'

/** Looks come once a day, and a little late. A clock that was set ahead by a year counts as this. */
const STEP_MS_MAX = 26 * 3_600_000

export async function trashAges(
  tx: Tx,
  pair: string,
  { nowMs, days }: { nowMs: number; days: readonly TrashDay[] },
): Promise<(TrashDay & { ageMs: number })[]> {
  const livedMs = await passTime(tx, pair, nowMs)
  const known = await tx.all<{ day: string; digest: string; since_ms: number }>(
    `SELECT day, digest, since_ms FROM file_trash WHERE drive = ?`,
    [pair],
  )
  const byDay = new Map(known.map((row) => [row.day, row]))
  const there = new Set(days.map(({ day }) => day))
  for (const { day } of known)
    if (!there.has(day)) await tx.run(`DELETE FROM file_trash WHERE drive = ? AND day = ?`, [pair, day])
  const aged: (TrashDay & { ageMs: number })[] = []
  for (const one of days) {
    const before = byDay.get(one.day)
    const isSame = before?.digest === one.digest
    if (!isSame) {
      await tx.run(
        `INSERT INTO file_trash(drive, day, digest, since_ms) VALUES (?, ?, ?, ?)
         ON CONFLICT (day, drive) DO UPDATE SET digest = excluded.digest, since_ms = excluded.since_ms`,
        [pair, one.day, one.digest, livedMs],
      )
    }
    aged.push({ ...one, ageMs: isSame ? livedMs - Number(before.since_ms) : 0 })
  }
  return aged
}

/** Returns how much time was seen to pass in all. */
async function passTime(tx: Tx, pair: string, nowMs: number): Promise<number> {
  const row = await tx.get<{ lived_ms: number; lived_at: number | null }>(
    `SELECT lived_ms, lived_at FROM file_drives WHERE name = ?`,
    [pair],
  )
  const sinceMs = nowMs - Number(row?.lived_at ?? nowMs)
  const stepMs = Math.max(-STEP_MS_MAX, Math.min(sinceMs, STEP_MS_MAX))
  const livedMs = Number(row?.lived_ms ?? 0) + stepMs
  await tx.run(`UPDATE file_drives SET lived_ms = ?, lived_at = ? WHERE name = ?`, [livedMs, nowMs, pair])
  return livedMs
}
