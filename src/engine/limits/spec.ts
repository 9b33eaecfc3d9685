/** What is said about a budget in configuration and code. */
import { UsageError } from '../../base/errors.ts'
import type { AimdSpec } from './aimd-state.ts'

export type BudgetSpec = {
  /** Units a second to start with: what the service's documentation allows. */
  rate: number
  /** The controller stays within; by default between a fiftieth of `rate` and `rate` itself. */
  rateMin?: number
  rateMax?: number
  /** How much may be spent at once after quiet, as time at the current rate. */
  burstMs?: number
  /** Jobs at work under this budget, over all processes. */
  workers?: { start?: number; min?: number; max?: number }
  /** Answers slower than this slow everyone down, as a throttle does. */
  latencyP95MaxMs?: number
}

/** More than two draws apart, so that a late draw loses nothing; little enough for services that count by the second. */
const BURST_MS = 250
const RATE_MIN_SHARE = 1 / 50
const WORKERS = { start: 8, min: 1, max: 64 }

export function aimdSpecOf(spec: BudgetSpec): AimdSpec {
  const rateMax = spec.rateMax ?? spec.rate
  const rateMin = spec.rateMin ?? Math.min(rateMax, spec.rate * RATE_MIN_SHARE)
  const min = spec.workers?.min ?? Math.min(WORKERS.min, spec.workers?.max ?? WORKERS.min)
  const max = spec.workers?.max ?? Math.max(WORKERS.max, min, spec.workers?.start ?? 0)
  return {
    rateStart: spec.rate,
    rateMin,
    rateMax,
    workersStart: spec.workers?.start ?? Math.min(max, Math.max(min, WORKERS.start)),
    workersMin: min,
    workersMax: max,
    latencyP95MaxMs: spec.latencyP95MaxMs,
  }
}

export function burstOf(spec: BudgetSpec, rate: number): number {
  return (rate * (spec.burstMs ?? BURST_MS)) / 1000
}

/** Nothing to tune: such a budget costs no controller writes. */
export function isFixed(spec: BudgetSpec): boolean {
  const { rateMin, rateMax, workersMin, workersMax } = aimdSpecOf(spec)
  return rateMin === rateMax && workersMin === workersMax
}

export function checkSpec(name: string, spec: BudgetSpec): void {
  const { rateStart, rateMin, rateMax, workersMin, workersMax } = aimdSpecOf(spec)
  const wrong = (what: string): never => {
    throw new UsageError(`The budget ${name} is not possible: ${what}.`, { code: 'budget-spec' })
  }
  if (!(rateStart > 0 && Number.isFinite(rateStart))) wrong(`rate is ${spec.rate}; it must be above 0`)
  if (!(rateMin > 0 && rateMin <= rateMax && Number.isFinite(rateMax))) {
    wrong(`rateMin is ${rateMin} and rateMax ${rateMax}; both must be above 0, and rateMin the smaller`)
  }
  if (!(Number.isInteger(workersMin) && workersMin >= 1 && workersMin <= workersMax)) {
    wrong(`it allows from ${workersMin} to ${workersMax} workers; at least 1 is needed`)
  }
  if (spec.burstMs !== undefined && !(spec.burstMs >= 1))
    wrong(`burstMs is ${spec.burstMs}; it must be at least 1`)
  if (spec.latencyP95MaxMs !== undefined && !(spec.latencyP95MaxMs > 0)) {
    wrong(`latencyP95MaxMs is ${spec.latencyP95MaxMs}; it must be above 0`)
  }
}
