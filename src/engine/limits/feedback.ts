/** What a process noticed since it last told the controller, summed up into a few events. */
import type { AimdEvent, AimdState } from './aimd-state.ts'
import { LatencyWindow } from './latency.ts'

/** A p95 of fewer answers says nothing. */
const SAMPLES_MIN = 20
const WINDOW_MS = 15_000

type Throttled = { calls: number; units: number; startedMs: number; retryAfterMs: number | undefined }

export class Feedback {
  /** Only of calls sent after the last cut and its cool-down, so that an old queue is not blamed twice. */
  readonly #latency = new LatencyWindow({ windowMs: WINDOW_MS, slices: 5 })
  #sinceMs = 0
  #used = { calls: 0, units: 0 }
  #accepted = { calls: 0, startedMs: 0 }
  #throttled: Throttled | undefined
  #workersLimited = false

  get isEmpty(): boolean {
    return this.#used.calls === 0 && this.#accepted.calls === 0 && this.#throttled === undefined
  }

  used(units: number): void {
    this.#used.calls += 1
    this.#used.units += units
  }

  answered(call: { startedMs: number; latencyMs: number }, state: AimdState, nowMs: number): void {
    if (call.startedMs < state.cutMs) return
    this.#accepted.calls += 1
    this.#accepted.startedMs = Math.max(this.#accepted.startedMs, call.startedMs)
    if (call.startedMs < state.coolUntilMs) return
    this.#sinceMs = state.coolUntilMs
    this.#latency.record(call.latencyMs, nowMs)
  }

  throttled(call: { units: number; startedMs: number; retryAfterMs: number | undefined }): void {
    const before = this.#throttled
    this.#throttled = {
      calls: (before?.calls ?? 0) + 1,
      units: (before?.units ?? 0) + call.units,
      startedMs: Math.max(before?.startedMs ?? 0, call.startedMs),
      retryAfterMs: Math.max(before?.retryAfterMs ?? 0, call.retryAfterMs ?? 0) || undefined,
    }
  }

  /** More work was ready than workers were allowed. */
  wantedWorkers(): void {
    this.#workersLimited = true
  }

  /** The rate was cut: what came before says nothing about what is now. */
  forget(): void {
    this.#accepted = { calls: 0, startedMs: 0 }
    this.#latency.reset()
  }

  drain(nowMs: number): AimdEvent[] {
    const events: AimdEvent[] = []
    if (this.#used.calls > 0) events.push({ type: 'used', ...this.#used })
    if (this.#accepted.calls > 0) events.push({ type: 'accepted', ...this.#accepted })
    if (this.#throttled) events.push({ type: 'throttled', ...this.#throttled })
    if (this.#latency.count(nowMs) >= SAMPLES_MIN) {
      const p95Ms = this.#latency.quantile(0.95, nowMs) ?? 0
      events.push({ type: 'latency', p95Ms, startedMs: this.#sinceMs })
    }
    events.push({ type: 'tick', workersLimited: this.#workersLimited })
    this.#used = { calls: 0, units: 0 }
    this.#accepted = { calls: 0, startedMs: 0 }
    this.#throttled = undefined
    this.#workersLimited = false
    return events
  }

  /** The controller could not be told: it hears of it the next time. */
  putBack(events: readonly AimdEvent[]): void {
    for (const event of events) {
      if (event.type === 'used') {
        this.#used.calls += event.calls
        this.#used.units += event.units
      }
      if (event.type !== 'throttled') continue
      const calls = this.#throttled?.calls ?? 0
      this.throttled({ units: event.units, startedMs: event.startedMs, retryAfterMs: event.retryAfterMs })
      this.#throttled = { ...this.#throttled!, calls: calls + event.calls }
    }
  }
}
