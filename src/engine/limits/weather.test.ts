/**
 * A day of mixed weather: storms of every kind, and after each an hour of clear sky. Whatever the storm taught the
 * controller, in that hour at least 90 % of what the service bears must be used.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Random, seededRandom } from '../../base/random.ts'
import type { AimdSpec } from './aimd-state.ts'
import {
  bucketService,
  minuteService,
  type Service,
  SimulatedClient,
  type Verdict,
} from './simulated-service.suite.ts'

const START_MS = 1_800_000_000_000
const HOUR_MS = 3_600_000
/** Units a second. */
const CAPACITY = 300
const LATENCY_MAX_MS = 5_000

type Storm = {
  /** In place of the service's own answer. */
  verdict?: (random: Random) => Verdict | undefined
  /** The share of the capacity that is left. */
  capacity?: (random: Random) => number
  /** Units a second that there are to spend; without end where nothing is said. */
  demand?: number
}

const STORMS: Record<string, Storm> = {
  'one in ten calls refused': { verdict: (random) => (random() < 0.1 ? { accepted: false } : undefined) },
  'one in ten calls refused while there is little to do': {
    verdict: (random) => (random() < 0.1 ? { accepted: false } : undefined),
    demand: 15,
  },
  'now and then a second to wait': {
    verdict: (random) => (random() < 0.02 ? { accepted: false, retryAfterMs: 1_000 } : undefined),
    demand: 90,
  },
  'everything refused': { verdict: () => ({ accepted: false }) },
  'everything refused, and minutes to wait': { verdict: () => ({ accepted: false, retryAfterMs: 120_000 }) },
  'others take nearly all': { capacity: () => 0.03 },
  'others take half': { capacity: () => 0.5 },
  'every answer slow': { verdict: () => ({ accepted: true, servedMs: 2 * LATENCY_MAX_MS }) },
  'every answer slow while there is little to do': {
    verdict: () => ({ accepted: true, servedMs: 2 * LATENCY_MAX_MS }),
    demand: 15,
  },
  'half of the calls refused, the others slow': {
    verdict: (random) =>
      random() < 0.5 ? { accepted: false } : { accepted: true, servedMs: 2 * LATENCY_MAX_MS },
  },
  'nothing to do': { demand: 3 },
}

const workers = { workersStart: 8, workersMin: 1, workersMax: 64 }
/** What the service bears is known, as Gmail's units are. */
const KNOWN: AimdSpec = {
  ...workers,
  latencyP95MaxMs: LATENCY_MAX_MS,
  rateStart: CAPACITY * 0.96,
  rateMin: CAPACITY / 50,
  rateMax: CAPACITY * 0.96,
}
/** Nobody says what it bears, as with OneDrive. */
const UNKNOWN: AimdSpec = {
  ...workers,
  rateStart: CAPACITY / 4,
  rateMin: CAPACITY / 50,
  rateMax: CAPACITY * 10,
}

const CASES: Record<string, { service: (capacity: (nowMs: number) => number) => Service; spec: AimdSpec }> = {
  'a token bucket whose capacity is known': { service: bucketService, spec: KNOWN },
  'a token bucket whose capacity is not known': { service: bucketService, spec: UNKNOWN },
  'a quota per minute that is known': {
    service: (of) => minuteService(of, { tellsWhen: true }),
    spec: KNOWN,
  },
  'a quota per minute that is not known': {
    service: (of) => minuteService(of, { tellsWhen: false }),
    spec: UNKNOWN,
  },
}

function dayOf(of: (typeof CASES)[string], seed: number): { name: string; used: number }[] {
  const random = seededRandom(seed)
  let storm: Storm = {}
  const service = of.service(() => CAPACITY * (storm.capacity?.(random) ?? 1))
  const client: SimulatedClient = new SimulatedClient({
    spec: of.spec,
    random,
    startMs: START_MS,
    service: (cost, nowMs) => storm.verdict?.(random) ?? service(cost, nowMs),
    costOf: () => 5 + Math.floor(15 * random()),
    demand: () => Math.min(1, (storm.demand ?? Number.POSITIVE_INFINITY) / client.state.rate),
  })
  const clear: { name: string; used: number }[] = []
  const names = Object.keys(STORMS)
  for (let n = 0; n < 10; n++) {
    const name = names[Math.floor(random() * names.length)]!
    storm = STORMS[name]!
    client.run(HOUR_MS * (0.1 + 0.8 * random()))
    storm = {}
    const units = client.run(HOUR_MS).reduce((sum, record) => sum + record.acceptedUnits, 0)
    clear.push({ name, used: units / (CAPACITY * 3_600) })
  }
  return clear
}

describe('a day of mixed weather', () => {
  for (const [name, of] of Object.entries(CASES)) {
    test(`leaves 90 % of ${name} in every hour after it clears`, (t) => {
      const worst = { name: '', used: 1 }
      for (const hour of dayOf(of, 7)) if (hour.used < worst.used) Object.assign(worst, hour)
      t.diagnostic(`worst hour: ${worst.used.toFixed(3)} used, after ${worst.name}`)
      assert.ok(worst.used >= 0.9, `${worst.used.toFixed(3)} used in the hour after ${worst.name}`)
    })
  }
})
