/** How far the server's clock is ahead of ours; all processes on one ledger go by the server's. */
import type pg from 'pg'
import { systemClock } from '../../base/clock.ts'

/** The answer of the fastest of a few questions: it was the least on its way. */
export async function measureOffset(client: pg.ClientBase, samples: number): Promise<number> {
  let best = { tripMs: Number.POSITIVE_INFINITY, offsetMs: 0 }
  for (let n = 0; n < samples; n++) {
    const sentMs = systemClock.monotonicMs()
    const { rows } = await client.query<{ ms: number }>(
      `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms`,
    )
    const tripMs = systemClock.monotonicMs() - sentMs
    const offsetMs = Math.round(Number(rows[0]!.ms) - (systemClock.now() - tripMs / 2))
    if (tripMs < best.tripMs) best = { tripMs, offsetMs }
  }
  // Neither clock is finer than this, and a machine that keeps time needs no correction.
  return Math.abs(best.offsetMs) <= best.tripMs + 1 ? 0 : best.offsetMs
}
