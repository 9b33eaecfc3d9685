/**
 * The controller that finds what a service can bear, for a rate (units a second) and a number of
 * workers. A pure function of (state, event, time) over plain JSON, so that its state lives in the
 * ledger and all processes steer one budget together.
 *
 * Phases of the rate:
 *
 *   probe ──refused──▶ recover ──back below the ceiling──▶ hold ──held long enough──▶ probe
 *     │                   ▲  └──refused again──┐            │
 *     └─ a step up per    └────────────────────┴──refused───┘
 *        evidence time
 *
 * - probe: additive increase, a small step at a time, taken only while the budget is really used and
 *   only after the step before stood for `evidenceMs`. Steps double while nothing is refused: that is
 *   how the memory of an old ceiling fades and a service that grew is found within a minute.
 * - refused (a throttle, or p95 latency beyond its bound): rate and workers are halved and the ceiling
 *   is remembered. What was sent before that, or within the cool-down, is the same moment and counts once.
 * - recover: quickly back to just below the ceiling, once the service accepts again.
 * - hold: stay there. A ceiling that is confirmed is probed less and less often.
 *
 * A service that refuses everything although the rate collapsed counts by a window (a minute, mostly).
 * Its ceiling is what it accepted over the last minute, and evidence then takes a minute, too.
 *
 * Weather passes: what is refused while little is used, or again and again before anything is accepted, says nothing
 * about what the service bears. `knownRate` remembers that, and a rate below it returns in large steps, with time
 * alone where there is too little to do for evidence (drift).
 *
 * Invariants: rateMin <= rate <= rateMax, workersMin <= workers <= workersMax, no increase beyond
 * what is known while idle, at most one decrease per cool-down, a pause is never cut short.
 */
import type { AimdEvent, AimdPhase, AimdSpec, AimdState } from './aimd-state.ts'

/** Long enough for a rate to show; while recovering, lost time is lost throughput. */
const TICK_MS = 1000
const RECOVER_TICK_MS = 125
export const COOL_DOWN_MS = 250
/** A service may ask for a long pause (a daily quota), but a mistaken header must not stop work for weeks. */
export const RETRY_AFTER_MS_MAX = 24 * 3_600_000

const CUT_SHARE = 0.5
const BELOW_CEILING_SHARE = 0.99
const STEP_SHARE_MIN = 0.02
const STEP_SHARE_START = 0.1
const STEP_SHARE_MAX = 0.5
/** Back to what is known to stand. */
const STEP_SHARE_LOST = 0.5
const DRIFT_DOUBLING_MS = 30_000
const EASE_SHARE_MIN = 0.01
/** Answers get slow late: by then the rate was too high for a while. */
const EASE_SHARE_SLOW = 0.03
const EASE_SHARE_MAX = 0.24
/** The ceiling falls at most to this share of itself at a time. */
const LOWER_SHARE = 0.6
const LOWER_SHARE_WINDOWED = 0.9
/** Refused again within this after a cut: the ceiling is wrong by more, lower it by twice as much. */
const EASE_AGAIN_MS = 5_000
/** A ceiling that stood for this long is right, even though it is refused at times. */
const TOLERATED_MS = 10_000
const HOLD_MS_MIN = 15_000
const HOLD_MS_MAX = 60_000
const EVIDENCE_MS_MIN = 2_000
const LATENCY_MS = 10_000
/** Everything refused for this long and so often, however slowly it was asked: the service counts by a window. */
const WINDOWED_MS = 4_000
const WINDOWED_CUTS = 3
/** Even while everything is refused, a call about so often asks whether it is over. */
const TRICKLE_MS = 2_000
const TRICKLE_SHARE_MIN = 1 / 64
const TRICKLE_SHARE_MAX = 1 / 8
const CALL_UNITS_WEIGHT = 0.1
/** So many calls accepted in a row: the service accepts again. */
const ACCEPTED_RUN = 3
const CLOCK_BACK_MS = 60_000
/** The budget counts as used from this share of its rate. */
const USED_SHARE = 0.75
const USE_AVERAGE_MS = 5_000
const USE_CALLS_MIN = 5
const RATE_BOUND_SHARE = 0.9

export function startAimd(spec: AimdSpec, nowMs: number): AimdState {
  return {
    v: 1,
    phase: 'probe',
    phaseMs: nowMs,
    rate: clamp(spec.rateStart, spec.rateMin, spec.rateMax),
    ceiling: null,
    provenRate: clamp(spec.rateStart, spec.rateMin, spec.rateMax),
    knownRate: clamp(spec.rateStart, spec.rateMin, spec.rateMax),
    stepShare: STEP_SHARE_START,
    stepMs: nowMs,
    easeShare: EASE_SHARE_MIN,
    holdMs: HOLD_MS_MIN,
    evidenceMs: EVIDENCE_MS_MIN,
    recovering: false,
    cutRate: 0,
    cutMs: 0,
    coolUntilMs: 0,
    refusedSinceMs: null,
    refusedCuts: 0,
    windowRate: 0,
    acceptedRun: 0,
    answeredMs: 0,
    p95Ms: null,
    pausedUntilMs: 0,
    tickMs: nowMs,
    usedUnits: 0,
    callUnits: 0,
    useShare: 0,
    useSeenMs: 0,
    slots: [0],
    slotMs: nowMs,
    workers: clamp(spec.workersStart, spec.workersMin, spec.workersMax),
    workersCeiling: null,
    workersMs: nowMs,
    throttledCalls: 0,
    cuts: 0,
  }
}

/** The state after the event; the state passed in is not changed. */
export function stepAimd(before: AimdState, event: AimdEvent, spec: AimdSpec, nowMs: number): AimdState {
  const state = { ...before, slots: [...before.slots] }
  if (state.tickMs - nowMs > CLOCK_BACK_MS) rebase(state, nowMs)
  turnSlots(state, nowMs)
  switch (event.type) {
    case 'used':
      state.usedUnits += event.units
      if (event.calls > 0)
        state.callUnits += (event.units / event.calls - state.callUnits) * CALL_UNITS_WEIGHT
      addToSlot(state, event.units)
      break
    case 'accepted':
      if (event.startedMs < state.cutMs) break
      state.acceptedRun += event.calls
      state.answeredMs = Math.max(state.answeredMs, event.startedMs)
      break
    case 'throttled':
      state.throttledCalls += event.calls
      addToSlot(state, -event.units)
      pause(state, event.retryAfterMs, nowMs)
      if (event.startedMs >= state.cutMs) state.acceptedRun = 0
      if (event.startedMs >= state.coolUntilMs) cut(state, spec, nowMs, { slow: false, coolMs: COOL_DOWN_MS })
      if (!state.recovering) state.windowRate = acceptedRate(state, nowMs)
      break
    case 'latency':
      if (event.startedMs < state.coolUntilMs) break
      state.p95Ms = event.p95Ms
      if (isSlow(state, spec)) cut(state, spec, nowMs, { slow: true, coolMs: drainMs(event.p95Ms) })
      break
    case 'tick':
      if (nowMs >= nextTickMs(state)) tick(state, event.workersLimited, spec, nowMs)
      break
  }
  return state
}

/** When the next tick is due. */
export function nextTickMs(state: AimdState): number {
  return state.tickMs + (state.phase === 'recover' ? RECOVER_TICK_MS : TICK_MS)
}

/** Brings a state from the ledger within a spec that may have changed since it was written. */
export function fitAimd(state: AimdState, spec: AimdSpec): AimdState {
  return {
    ...state,
    rate: clamp(state.rate, spec.rateMin, spec.rateMax),
    // A state that was written before there was such a thing.
    knownRate: clamp(state.knownRate ?? spec.rateStart, spec.rateMin, spec.rateMax),
    workers: clamp(state.workers, spec.workersMin, spec.workersMax),
  }
}

/** The clock was set back: what lies in the future now would hold everything up until then. */
function rebase(state: AimdState, nowMs: number): void {
  for (const key of [
    'phaseMs',
    'stepMs',
    'cutMs',
    'coolUntilMs',
    'answeredMs',
    'tickMs',
    'slotMs',
    'workersMs',
  ] as const) {
    state[key] = Math.min(state[key], nowMs)
  }
  state.pausedUntilMs = Math.min(state.pausedUntilMs, nowMs)
  state.refusedSinceMs = null
}

function pause(state: AimdState, retryAfterMs: number | undefined, nowMs: number): void {
  if (retryAfterMs === undefined || !(retryAfterMs > 0)) return
  state.pausedUntilMs = Math.max(state.pausedUntilMs, nowMs + Math.min(retryAfterMs, RETRY_AFTER_MS_MAX))
}

/** Slow answers come from a queue; at half the rate it takes twice its length to drain, and as much again for luck. */
function drainMs(p95Ms: number): number {
  return clamp(4 * p95Ms, COOL_DOWN_MS, WINDOW_MS)
}

function isSlow(state: AimdState, spec: AimdSpec): boolean {
  return (state.p95Ms ?? 0) > (spec.latencyP95MaxMs ?? Number.POSITIVE_INFINITY)
}

/** After a cut for slowness, answers are awaited until their latency is known, or long enough if they are few. */
function awaitsLatency(state: AimdState, spec: AimdSpec): boolean {
  if (spec.latencyP95MaxMs === undefined || state.p95Ms !== null) return false
  if (state.coolUntilMs - state.cutMs <= COOL_DOWN_MS) return false
  return state.answeredMs - state.coolUntilMs < LATENCY_MS
}

type Refusal = { slow: boolean; coolMs: number }

function cut(state: AimdState, spec: AimdSpec, nowMs: number, why: Refusal): void {
  // Refused again before anything was accepted says no more than the first time, however long it lasts.
  if (state.phase !== 'recover' || state.recovering) {
    rememberCeiling(state, nowMs, why)
    state.refusedSinceMs = why.slow ? null : nowMs
    state.refusedCuts = 0
    state.workersCeiling = state.workers
    state.workersMs = nowMs
  }
  const ceiling = state.ceiling ?? state.rate
  const trickle = clamp(
    (state.callUnits * 1000) / TRICKLE_MS,
    ceiling * TRICKLE_SHARE_MIN,
    ceiling * TRICKLE_SHARE_MAX,
  )
  state.rate = clamp(Math.max(state.rate * CUT_SHARE, trickle), spec.rateMin, spec.rateMax)
  state.workers = clamp(Math.floor(state.workers * CUT_SHARE), spec.workersMin, spec.workersMax)
  enter(state, 'recover', nowMs)
  state.recovering = false
  state.cutRate = state.rate
  state.cutMs = nowMs
  state.coolUntilMs = nowMs + why.coolMs
  state.acceptedRun = 0
  state.p95Ms = null
  state.refusedCuts += 1
  state.cuts += 1
}

/** The service accepts again after having refused nearly everything for a while. */
function leaveWindow(state: AimdState, nowMs: number): void {
  if (state.refusedSinceMs === null) return
  const refusedMs = nowMs - state.refusedSinceMs
  state.refusedSinceMs = null
  // Half the rate was accepted at once: no window, or one that fits into a second.
  if (state.refusedCuts === 1) state.evidenceMs = Math.max(EVIDENCE_MS_MIN, state.evidenceMs / 2)
  if (state.refusedCuts < WINDOWED_CUTS || refusedMs < WINDOWED_MS || refusedMs > WINDOW_MS + WINDOWED_MS)
    return
  if (state.ceiling === null) return
  state.ceiling = clamp(state.windowRate, state.ceiling / 4, state.ceiling)
  lowerKnown(state)
  state.evidenceMs = WINDOW_MS
}

function rememberCeiling(state: AimdState, nowMs: number, why: Refusal): void {
  const isNear = state.rate >= state.knownRate / 2
  lowerCeiling(state, nowMs, why)
  // What is refused although little is used, or far below what is known, says nothing about how much would be.
  if (isNear) lowerKnown(state)
}

function lowerKnown(state: AimdState): void {
  if (state.useShare >= USED_SHARE) state.knownRate = Math.min(state.knownRate, state.ceiling ?? state.rate)
}

function lowerCeiling(state: AimdState, nowMs: number, why: Refusal): void {
  if (state.phase === 'probe') {
    // The truth lies between the last rate that stood and the first that did not.
    const sure = state.rate <= state.provenRate * (1 + 2 * STEP_SHARE_MIN)
    state.ceiling = (state.provenRate + state.rate) / 2
    state.holdMs = sure ? Math.min(HOLD_MS_MAX, state.holdMs * 2) : HOLD_MS_MIN
    state.easeShare = EASE_SHARE_MIN
    return
  }
  // A refusal now and then is the price of staying close to the ceiling; lowering it would cost more.
  if (state.phase === 'hold' && !why.slow && nowMs - state.phaseMs >= TOLERATED_MS) return
  const coolMs = state.coolUntilMs - state.cutMs
  const again = nowMs - state.coolUntilMs < EASE_AGAIN_MS + 2 * coolMs
  const ease = why.slow ? EASE_SHARE_SLOW : EASE_SHARE_MIN
  state.easeShare = again ? clamp(state.easeShare * 2, ease, EASE_SHARE_MAX) : ease
  // Of a service that counts by a window, what it accepted says more (leaveWindow).
  const windowed = state.evidenceMs > EVIDENCE_MS_MIN
  const least = (state.ceiling ?? 0) * (windowed ? LOWER_SHARE_WINDOWED : LOWER_SHARE)
  const lowered = Math.max(least, state.rate * (1 - state.easeShare))
  // A large stride may have gone too far down: look soon whether there is room above.
  if (state.ceiling === null || lowered < state.ceiling * 0.9) state.holdMs = HOLD_MS_MIN
  state.ceiling = Math.min(state.ceiling ?? lowered, lowered)
}

function tick(state: AimdState, workersLimited: boolean, spec: AimdSpec, nowMs: number): void {
  const elapsedMs = nowMs - state.tickMs
  const share = (state.usedUnits * 1000) / (state.rate * elapsedMs)
  // At a low rate calls come one by one, seconds apart: fewer than a handful say nothing about how much is used.
  const averageMs = Math.max(USE_AVERAGE_MS, (USE_CALLS_MIN * state.callUnits * 1000) / state.rate)
  // At first, what was seen so far is all there is: an average that began with nothing would hold the first steps back.
  if (state.useSeenMs !== undefined) state.useSeenMs += elapsedMs
  const weight = Math.max(
    1 - Math.exp(-elapsedMs / averageMs),
    elapsedMs / (state.useSeenMs ?? Number.POSITIVE_INFINITY),
  )
  state.useShare += (share - state.useShare) * weight
  state.usedUnits = 0
  state.tickMs = nowMs
  if (nowMs < state.pausedUntilMs) return
  tuneRate(state, elapsedMs, spec, nowMs)
  if (workersLimited) tuneWorkers(state, spec, nowMs)
}

function tuneRate(state: AimdState, elapsedMs: number, spec: AimdSpec, nowMs: number): void {
  const used = state.useShare >= USED_SHARE
  if (state.phase === 'recover') {
    recover(state, spec, nowMs)
    return
  }
  if (!used) {
    drift(state, elapsedMs, nowMs)
    return
  }
  if (state.phase === 'hold') {
    const lost = state.rate < state.knownRate * BELOW_CEILING_SHARE
    const holdMs = lost ? HOLD_MS_MIN : state.holdMs
    if (nowMs - state.phaseMs < Math.max(holdMs, state.evidenceMs)) return
    state.stepShare = lost ? STEP_SHARE_LOST : STEP_SHARE_MIN
    enter(state, 'probe', nowMs)
  } else {
    // Evidence is what came back, not what was sent.
    if (state.answeredMs - state.stepMs < state.evidenceMs) return
    state.stepShare = Math.min(STEP_SHARE_MAX, state.stepShare * 2)
    // The higher it climbs, the less there is of a window that would show only after a minute.
    state.evidenceMs = Math.max(EVIDENCE_MS_MIN, state.evidenceMs / 2)
  }
  state.provenRate = state.rate
  state.knownRate = Math.max(state.knownRate, state.rate)
  stepUp(state, spec, nowMs)
}

/**
 * Little is used, so that nothing can be proven. A rate that bad weather took down returns to what is known all the
 * same, or it would stay down for as long as there is little to do, and beyond.
 */
function drift(state: AimdState, elapsedMs: number, nowMs: number): void {
  if (state.rate >= state.knownRate || nowMs - state.coolUntilMs < HOLD_MS_MIN) return
  state.rate = Math.min(state.knownRate, state.rate * 2 ** (elapsedMs / DRIFT_DOUBLING_MS))
  state.stepMs = nowMs
  if (state.ceiling !== null) state.ceiling = Math.max(state.ceiling, state.rate)
}

function recover(state: AimdState, spec: AimdSpec, nowMs: number): void {
  if (state.acceptedRun === 0 || state.answeredMs < state.coolUntilMs) return
  const ceiling = state.ceiling ?? state.rate
  if (state.acceptedRun < ACCEPTED_RUN) {
    // A small call fits into the rest of a spent window. Asking faster shows whether it was only that.
    const faster = Math.min(state.cutRate * 4 ** state.acceptedRun, ceiling / 4)
    state.rate = clamp(Math.max(state.rate, faster), spec.rateMin, spec.rateMax)
    return
  }
  leaveWindow(state, nowMs)
  if (awaitsLatency(state, spec)) return
  state.recovering = true
  const target = clamp((state.ceiling ?? state.rate) * BELOW_CEILING_SHARE, spec.rateMin, spec.rateMax)
  state.rate += (target - state.rate) / 2
  if (state.rate < target * 0.98) return
  state.rate = target
  enter(state, 'hold', nowMs)
}

function stepUp(state: AimdState, spec: AimdSpec, nowMs: number): void {
  state.rate = Math.min(spec.rateMax, state.rate * (1 + state.stepShare))
  state.stepMs = nowMs
  if (state.ceiling !== null && state.rate > state.ceiling * 1.1) {
    state.ceiling = null
    state.holdMs = HOLD_MS_MIN
  }
}

function tuneWorkers(state: AimdState, spec: AimdSpec, nowMs: number): void {
  // Workers that all wait for units would only wait in greater number.
  if (state.useShare >= RATE_BOUND_SHARE || nowMs < state.coolUntilMs) return
  if (state.phase === 'recover' && !state.recovering) return
  const ceiling = state.workersCeiling
  if (ceiling !== null && state.workers < ceiling - 1) {
    state.workers += Math.ceil((ceiling - 1 - state.workers) / 2)
  } else if (ceiling === null || nowMs - state.workersMs >= state.holdMs) {
    state.workers += 1
    state.workersMs = nowMs
    if (ceiling !== null && state.workers > ceiling + 1) state.workersCeiling = null
  }
  state.workers = clamp(state.workers, spec.workersMin, spec.workersMax)
}

function enter(state: AimdState, phase: AimdPhase, nowMs: number): void {
  state.phase = phase
  state.phaseMs = nowMs
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value))
}

/** What a service accepted over the last minute, in slots that live within the controller's state. */
type Slots = { slots: number[]; slotMs: number }

const WINDOW_MS = 60_000
const SLOTS = 30
const SLOT_MS = WINDOW_MS / SLOTS

/** Units a second over the last minute; the oldest slot counts as far as it lies within. */
function acceptedRate(state: Slots, nowMs: number): number {
  const oldest = state.slots.length > SLOTS ? state.slots[0]! : 0
  const beyond = Math.min(1, Math.max(0, (nowMs - state.slotMs) / SLOT_MS))
  const total = state.slots.reduce((units, slot) => units + slot, 0) - oldest * beyond
  return (total * 1000) / WINDOW_MS
}

function turnSlots(state: Slots, nowMs: number): void {
  const turns = Math.floor((nowMs - state.slotMs) / SLOT_MS)
  if (turns <= 0) return
  for (let i = 0; i < Math.min(turns, SLOTS + 1); i++) state.slots.push(0)
  state.slots = state.slots.slice(-SLOTS - 1)
  state.slotMs += turns * SLOT_MS
}

function addToSlot(state: Slots, units: number): void {
  state.slots[state.slots.length - 1] = (state.slots.at(-1) ?? 0) + units
}
