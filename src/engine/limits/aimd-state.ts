/** What the controller (aimd.ts) is told and what it remembers, as plain JSON. */
export type AimdSpec = {
  /** Units a second. */
  rateStart: number
  rateMin: number
  rateMax: number
  workersStart: number
  workersMin: number
  workersMax: number
  /** Slower answers than this count as a refusal. */
  latencyP95MaxMs?: number
}

export type AimdPhase = 'probe' | 'recover' | 'hold'

export type AimdState = {
  readonly v: 1
  phase: AimdPhase
  phaseMs: number
  rate: number
  /** The rate at which the service last refused; null before the first time and once it has faded. */
  ceiling: number | null
  /** The fastest rate of this probe that stood for the evidence time. */
  provenRate: number
  /** What the service is known to bear: what its spec says, or what stood or was refused since while it was really used. */
  knownRate: number
  stepShare: number
  stepMs: number
  /** How far the ceiling is lowered when even less than it is refused. */
  easeShare: number
  holdMs: number
  evidenceMs: number
  /** Whether the rate has risen since the last cut. */
  recovering: boolean
  /** The rate after the last cut. */
  cutRate: number
  cutMs: number
  /** What was sent before this is of the same moment as the last cut. */
  coolUntilMs: number
  /** Since when nearly everything has been refused; null once the service accepts again. */
  refusedSinceMs: number | null
  /** Cuts since then. */
  refusedCuts: number
  /** What was accepted in the minute before the last refusal, a second. */
  windowRate: number
  /** Calls sent after the last cut that were accepted in a row. */
  acceptedRun: number
  /** When the youngest call was sent that has been answered. */
  answeredMs: number
  /** Over calls sent after the last cool-down; null before there are enough. */
  p95Ms: number | null
  pausedUntilMs: number
  tickMs: number
  usedUnits: number
  /** What a call costs on average. */
  callUnits: number
  /** How much of the rate is used, averaged over a few seconds. */
  useShare: number
  /** For how long that was looked at, in all. Missing in a state that was written before there was such a thing. */
  useSeenMs?: number
  /** Units accepted per slot of the last minute, the current slot last. */
  slots: number[]
  slotMs: number
  workers: number
  workersCeiling: number | null
  workersMs: number
  throttledCalls: number
  cuts: number
}

export type AimdEvent =
  /** What was taken since the last event. */
  | { type: 'used'; calls: number; units: number }
  /** Calls sent after the last cut that the service accepted; `startedMs` is when the last of them was sent. */
  | { type: 'accepted'; calls: number; startedMs: number }
  | { type: 'throttled'; calls: number; units: number; startedMs: number; retryAfterMs?: number }
  /** p95 over calls of which the first was sent at `startedMs`. */
  | { type: 'latency'; p95Ms: number; startedMs: number }
  /** About once a second, from any of the processes that share the budget. */
  | { type: 'tick'; workersLimited: boolean }
