/**
 * A token bucket as plain data and pure functions: `rate` tokens a second flow in, at most `burst`
 * stay. The caller says what time it is.
 *
 * Invariants (token-bucket.test.ts tests them as properties):
 * - whatever the order of calls, what was taken in t seconds is at most burst + rate * t, plus what a
 *   cost larger than the burst goes into debt for
 * - a cost larger than the burst waits for a full bucket and then goes into debt, so it passes some day
 * - time that runs backwards adds nothing and takes nothing away; a wait is never negative
 */
export type BucketState = { tokens: number; updatedMs: number }
export type BucketFlow = { rate: number; burst: number }
export type Taking = { state: BucketState; taken: boolean; waitMs: number }

export function fullBucket(flow: BucketFlow, nowMs: number): BucketState {
  return { tokens: flow.burst, updatedMs: nowMs }
}

export function refill(state: BucketState, flow: BucketFlow, nowMs: number): BucketState {
  const elapsedMs = nowMs - state.updatedMs
  if (!(elapsedMs > 0)) return { tokens: Math.min(state.tokens, flow.burst), updatedMs: state.updatedMs }
  return { tokens: Math.min(flow.burst, state.tokens + (flow.rate * elapsedMs) / 1000), updatedMs: nowMs }
}

/** Takes all of `cost` or nothing; then `waitMs` says when trying again is worth it. */
export function take(state: BucketState, flow: BucketFlow, cost: number, nowMs: number): Taking {
  const filled = refill(state, flow, nowMs)
  const waitMs = waitFor(filled, flow, cost)
  if (waitMs > 0) return { state: filled, taken: false, waitMs }
  return { state: { tokens: filled.tokens - cost, updatedMs: filled.updatedMs }, taken: true, waitMs: 0 }
}

/** Whole ms until `cost` can be taken, for a state that was just refilled. Infinity where nothing flows in. */
function waitFor(filled: BucketState, flow: BucketFlow, cost: number): number {
  const missing = Math.min(cost, flow.burst) - filled.tokens
  // Refilling in many small steps leaves rounding errors; without the slack a wait of 1e-13 ms would repeat.
  if (missing <= ROUNDING * Math.max(1, flow.burst)) return 0
  return flow.rate > 0 ? Math.ceil((missing * 1000) / flow.rate) : Number.POSITIVE_INFINITY
}

const ROUNDING = 1e-9
