/**
 * The proof that the controller settles: services with a hidden capacity that changes, in simulated
 * time. After each change there is a stated time to settle; from then on at least 90 % of the capacity
 * must be used and fewer than 2 % of the calls refused.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Random, seededRandom } from '../../base/random.ts'
import {
  bucketService,
  type Capacity,
  minuteService,
  queueService,
  type SecondRecord,
  type Service,
  SimulatedClient,
  slidingSecondService,
} from './simulated-service.suite.ts'

const SEEDS = 50
const START_MS = 1_800_000_000_000
const MINUTE_MS = 60_000

type Case = {
  service: (capacity: Capacity) => Service
  /** Units a second, at the least; calls cost from 1 to 100. */
  least: number
  /** How far the capacity is off its mean at any time, and for how long at a time. */
  noise: number
  noiseMs: number
  settleMs: number
  steadyMs: number
  latencyP95MaxMs?: number
}

const second = { noiseMs: 1_000, settleMs: 1.5 * MINUTE_MS, steadyMs: 3 * MINUTE_MS }
const minute = { noiseMs: MINUTE_MS, settleMs: 6 * MINUTE_MS, steadyMs: 10 * MINUTE_MS }

const CASES: Record<string, Case> = {
  'a token bucket with noise of 5 %': { ...second, service: bucketService, least: 500, noise: 0.05 },
  'a sliding window of one second': { ...second, service: slidingSecondService, least: 2_000, noise: 0 },
  'a sliding window of one second with noise of 2 %': {
    ...second,
    service: slidingSecondService,
    least: 3_000,
    noise: 0.02,
  },
  'a quota per minute': {
    ...minute,
    service: (capacity) => minuteService(capacity, { tellsWhen: false }),
    least: 500,
    noise: 0.02,
  },
  'a quota per minute with Retry-After': {
    ...minute,
    service: (capacity) => minuteService(capacity, { tellsWhen: true }),
    least: 500,
    noise: 0.02,
  },
  'a service that only gets slow': {
    ...second,
    service: queueService,
    least: 1_000,
    noise: 0,
    latencyP95MaxMs: 500,
  },
}

/** Half of the seeds see the capacity double and fall back, the others see it halve and come back. */
function capacityOf(of: Case, seed: number): Capacity {
  const random = seededRandom(seed + 1_000_000)
  const factors = seed % 2 === 0 ? [1, 2, 1] : [2, 1, 2]
  const base = of.least * (1 + random())
  const noise: number[] = []
  return (nowMs) => {
    const stretch = Math.floor((nowMs - START_MS) / (of.settleMs + of.steadyMs))
    const at = Math.max(0, Math.floor((nowMs - START_MS) / of.noiseMs))
    while (noise.length <= at) noise.push(1 + of.noise * (2 * random() - 1))
    return base * factors[Math.min(Math.max(stretch, 0), 2)]! * noise[at]!
  }
}

function clientOf(of: Case, capacity: Capacity, random: Random): SimulatedClient {
  return new SimulatedClient({
    service: of.service(capacity),
    random,
    startMs: START_MS,
    costOf: (chance) => 1 + Math.floor(100 * chance()),
    spec: {
      rateStart: 100,
      rateMin: 1,
      rateMax: 1_000_000,
      workersStart: 8,
      workersMin: 1,
      workersMax: 64,
      latencyP95MaxMs: of.latencyP95MaxMs,
    },
  })
}

function shares(records: readonly SecondRecord[], capacity: Capacity): { used: number; throttled: number } {
  const total = { units: 0, capacity: 0, calls: 0, throttled: 0 }
  for (const record of records) {
    total.units += record.acceptedUnits
    total.capacity += capacity(record.atMs)
    total.calls += record.calls
    total.throttled += record.throttled
  }
  return { used: total.units / total.capacity, throttled: total.throttled / total.calls }
}

describe('the controller against a hidden capacity', () => {
  for (const [name, of] of Object.entries(CASES)) {
    test(`settles at 90 % of ${name} with under 2 % throttled, also after it changes`, (t) => {
      const worst = { used: 1, throttled: 0 }
      for (let seed = 1; seed <= SEEDS; seed++) {
        const capacity = capacityOf(of, seed)
        const client = clientOf(of, capacity, seededRandom(seed))
        for (const stretch of ['at first', 'after a change', 'after a change back']) {
          client.run(of.settleMs)
          const { used, throttled } = shares(client.run(of.steadyMs), capacity)
          const found = `seed ${seed}, ${stretch}: ${used.toFixed(3)} used, ${throttled.toFixed(4)} throttled`
          assert.ok(used >= 0.9 && throttled < 0.02, found)
          worst.used = Math.min(worst.used, used)
          worst.throttled = Math.max(worst.throttled, throttled)
        }
      }
      t.diagnostic(
        `worst of ${SEEDS} seeds: ${worst.used.toFixed(3)} used, ${worst.throttled.toFixed(4)} throttled`,
      )
    })
  }
})
