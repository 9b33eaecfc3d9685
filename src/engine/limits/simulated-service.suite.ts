/**
 * For tests: services with a hidden capacity, and a client that pushes as hard as the controller lets
 * it, in simulated time. Calls cost from 1 to 100 units and take time to arrive and to return.
 */
import type { Random } from '../../base/random.ts'
import { nextTickMs, startAimd, stepAimd } from './aimd.ts'
import type { AimdEvent, AimdSpec, AimdState } from './aimd-state.ts'
import { type BucketState, fullBucket, take } from './token-bucket.ts'

/** Units a second as a function of time. */
export type Capacity = (nowMs: number) => number
export type Verdict = { accepted: boolean; retryAfterMs?: number; servedMs?: number }
export type Service = (cost: number, nowMs: number) => Verdict

export function bucketService(capacity: Capacity): Service {
  let bucket: BucketState | undefined
  return (cost, nowMs) => {
    const flow = { rate: capacity(nowMs), burst: capacity(nowMs) }
    bucket ??= fullBucket(flow, nowMs)
    const taking = take(bucket, flow, cost, nowMs)
    bucket = taking.state
    return { accepted: taking.taken }
  }
}

/** No more than a second's capacity in any stretch of one second. */
export function slidingSecondService(capacity: Capacity): Service {
  const sent: { cost: number; atMs: number }[] = []
  let first = 0
  let inWindow = 0
  return (cost, nowMs) => {
    while (first < sent.length && sent[first]!.atMs <= nowMs - 1000) inWindow -= sent[first++]!.cost
    if (first > 10_000) {
      sent.splice(0, first)
      first = 0
    }
    if (inWindow + cost > capacity(nowMs)) return { accepted: false }
    inWindow += cost
    sent.push({ cost, atMs: nowMs })
    return { accepted: true }
  }
}

/** A minute's capacity per minute of the clock; once it is spent, everything is refused until the next. */
export function minuteService(capacity: Capacity, options: { tellsWhen: boolean }): Service {
  let minute = -1
  let spent = 0
  return (cost, nowMs) => {
    if (Math.floor(nowMs / 60_000) !== minute) {
      minute = Math.floor(nowMs / 60_000)
      spent = 0
    }
    if (spent + cost > capacity(nowMs) * 60) {
      return options.tellsWhen
        ? { accepted: false, retryAfterMs: (minute + 1) * 60_000 - nowMs }
        : { accepted: false }
    }
    spent += cost
    return { accepted: true }
  }
}

/** Never refuses, but works one call after another, so that answers get slower. */
export function queueService(capacity: Capacity): Service {
  let freeMs = 0
  return (cost, nowMs) => {
    freeMs = Math.max(freeMs, nowMs) + (cost * 1000) / capacity(nowMs)
    return { accepted: true, servedMs: freeMs - nowMs }
  }
}

export type ClientOptions = {
  service: Service
  spec: AimdSpec
  random: Random
  startMs: number
  costOf: (random: Random) => number
  /** The share of time in which there is something to send; 1 unless told otherwise. */
  demand?: (nowMs: number) => number
}

/** What happened in one second. */
export type SecondRecord = {
  atMs: number
  calls: number
  throttled: number
  acceptedUnits: number
  rate: number
}

type Arrival = { atMs: number; cost: number; startedMs: number; verdict: Verdict | null }

/** One client of one service. `run` lets simulated time pass and returns a record per second. */
export class SimulatedClient {
  readonly #options: ClientOptions
  readonly #queue = new TimeQueue<Arrival>()
  #nowMs: number
  #bucket: BucketState
  #nextSendMs: number
  #nextRecordMs: number
  #nextCost: number
  #used = { calls: 0, units: 0 }
  #acceptedCalls = 0
  #answeredMs = 0
  #latencies: number[] = []
  state: AimdState

  constructor(options: ClientOptions) {
    this.#options = options
    this.#nowMs = options.startMs
    this.state = startAimd(options.spec, options.startMs)
    this.#bucket = { tokens: 0, updatedMs: options.startMs }
    this.#nextSendMs = options.startMs
    this.#nextRecordMs = options.startMs + 1000
    this.#nextCost = options.costOf(options.random)
  }

  run(durationMs: number): SecondRecord[] {
    const records: SecondRecord[] = []
    const untilMs = this.#nowMs + durationMs
    let record: SecondRecord = { atMs: this.#nowMs, calls: 0, throttled: 0, acceptedUnits: 0, rate: 0 }
    for (;;) {
      const tickMs = nextTickMs(this.state)
      const atMs = Math.min(this.#nextSendMs, tickMs, this.#nextRecordMs, this.#queue.nextMs)
      if (atMs >= untilMs) break
      this.#nowMs = atMs
      if (atMs === tickMs) {
        this.#flush([])
        this.#step({ type: 'tick', workersLimited: false })
      } else if (atMs === this.#nextRecordMs) {
        records.push({ ...record, rate: this.state.rate })
        record = { atMs, calls: 0, throttled: 0, acceptedUnits: 0, rate: 0 }
        this.#nextRecordMs += 1000
      } else if (atMs === this.#queue.nextMs) {
        this.#deliver(this.#queue.pop(), record)
      } else {
        this.#send()
      }
    }
    this.#nowMs = untilMs
    return records
  }

  #send(): void {
    const { random, costOf, demand } = this.#options
    if (this.#nowMs < this.state.pausedUntilMs) {
      this.#nextSendMs = this.state.pausedUntilMs
      return
    }
    const flow = { rate: this.state.rate, burst: this.state.rate * 0.1 }
    const taking = take(this.#bucket, flow, this.#nextCost, this.#nowMs)
    this.#bucket = taking.state
    if (!taking.taken) {
      this.#nextSendMs = this.#nowMs + taking.waitMs
      return
    }
    this.#used.calls += 1
    this.#used.units += this.#nextCost
    this.#queue.push({
      atMs: this.#nowMs + delayMs(random),
      cost: this.#nextCost,
      startedMs: this.#nowMs,
      verdict: null,
    })
    const share = demand?.(this.#nowMs) ?? 1
    if (share < 1) this.#nextSendMs = this.#nowMs + (this.#nextCost * 1000) / (this.state.rate * share)
    this.#nextCost = costOf(random)
  }

  #deliver(arrival: Arrival, record: SecondRecord): void {
    const { random, service } = this.#options
    if (arrival.verdict === null) {
      const verdict = service(arrival.cost, this.#nowMs)
      record.calls += 1
      if (verdict.accepted) record.acceptedUnits += arrival.cost
      else record.throttled += 1
      this.#queue.push({ ...arrival, atMs: this.#nowMs + (verdict.servedMs ?? 0) + delayMs(random), verdict })
      return
    }
    if (arrival.verdict.accepted) {
      if (arrival.startedMs >= this.state.cutMs) {
        this.#acceptedCalls += 1
        this.#answeredMs = Math.max(this.#answeredMs, arrival.startedMs)
        if (arrival.startedMs >= this.state.coolUntilMs) this.#latencies.push(this.#nowMs - arrival.startedMs)
      }
      return
    }
    const { retryAfterMs } = arrival.verdict
    this.#flush([
      { type: 'throttled', calls: 1, units: arrival.cost, startedMs: arrival.startedMs, retryAfterMs },
    ])
  }

  #flush(events: AimdEvent[]): void {
    this.#step({ type: 'used', ...this.#used })
    this.#used = { calls: 0, units: 0 }
    this.#step({ type: 'accepted', calls: this.#acceptedCalls, startedMs: this.#answeredMs })
    this.#acceptedCalls = 0
    for (const event of events) this.#step(event)
    if (this.#options.spec.latencyP95MaxMs !== undefined && this.#latencies.length >= 20) {
      const sorted = this.#latencies.toSorted((a, b) => a - b)
      this.#step({
        type: 'latency',
        p95Ms: sorted[Math.floor(sorted.length * 0.95)]!,
        startedMs: this.state.coolUntilMs,
      })
      if (this.#latencies.length > 200) this.#latencies = this.#latencies.slice(-100)
    }
  }

  #step(event: AimdEvent): void {
    const { cuts } = this.state
    this.state = stepAimd(this.state, event, this.#options.spec, this.#nowMs)
    if (this.state.cuts === cuts) return
    this.#latencies = []
    this.#acceptedCalls = 0
  }
}

function delayMs(random: Random): number {
  return 15 + 25 * random()
}

/** A binary heap by time. */
class TimeQueue<T extends { atMs: number }> {
  readonly #heap: T[] = []

  get nextMs(): number {
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  push(item: T): void {
    const heap = this.#heap
    let at = heap.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.atMs <= item.atMs) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = item
  }

  pop(): T {
    const heap = this.#heap
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.atMs < heap[child]!.atMs) child += 1
      if (heap[child]!.atMs >= last.atMs) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}
