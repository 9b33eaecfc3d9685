/** How much of a stream is accounted for, as a share of the whole and not only of what was listed so far. */
import type { StreamView } from '../../../src/app/schemas.ts'

export type Counts = Pick<StreamView, 'listed' | 'onTheirWay' | 'whole'>

export function wholeOf(streams: readonly Counts[]): number {
  return streams.reduce((sum, { whole }) => sum + whole, 0)
}

/** Null where nothing is known yet. */
export function shareOf(streams: readonly Counts[]): number | null {
  const whole = wholeOf(streams)
  const settled = streams.reduce((sum, { listed, onTheirWay }) => sum + listed - onTheirWay, 0)
  return whole > 0 ? settled / whole : null
}

/** What is listed later makes the whole larger: until all was done once, a share that was shown is not taken back. */
export function heldShare(before: number | null, now: number | null): number | null {
  return before === null || now === null || before >= 1 ? now : Math.max(before, now)
}
