/** How far a server's clock is ahead of ours; all processes on one ledger go by the server's. */
import { systemClock } from '../base/clock.ts'

/** `ask` tells the server's time in milliseconds. The answer of the fastest of a few questions: it was the least on its way. */
export async function measureOffset(ask: () => Promise<number>, samples: number): Promise<number> {
  let best = { tripMs: Number.POSITIVE_INFINITY, offsetMs: 0 }
  for (let n = 0; n < samples; n++) {
    const sentMs = systemClock.monotonicMs()
    const serverMs = await ask()
    const tripMs = systemClock.monotonicMs() - sentMs
    const offsetMs = Math.round(serverMs - (systemClock.now() - tripMs / 2))
    if (tripMs < best.tripMs) best = { tripMs, offsetMs }
  }
  // Neither clock is finer than this, and a machine that keeps time needs no correction.
  return Math.abs(best.offsetMs) <= best.tripMs + 1 ? 0 : best.offsetMs
}
