/** A clock that runs so many times as fast as the machine's: what waits for leases, receipts and retries waits briefly. */
import { type Clock, systemClock } from '../../src/base/clock.ts'

export function fastClock(pace: number): Clock {
  if (pace === 1) return systemClock
  const beganAtMs = systemClock.now()
  const beganMs = systemClock.monotonicMs()
  const passedMs = (): number => (systemClock.monotonicMs() - beganMs) * pace
  return {
    now: () => Math.floor(beganAtMs + passedMs()),
    monotonicMs: passedMs,
    watchLoop: () => systemClock.watchLoop(),
    timer: (ms, fn, options) => systemClock.timer(ms / pace, fn, options),
  }
}
