/**
 * The simulated cloud of the demo: a mailbox from a seed, weather as it is on a normal day, two messages that can
 * never be read, and mail that arrives. Started again with the same world and journal it is the same cloud: same ids,
 * same history, same bytes.
 */
import { systemClock } from '../clock.ts'
import { seededRandom } from '../random.ts'
import type { FaultRule } from '../sim/fault-rules.ts'
import { type Sim, startSim } from '../sim/start.ts'
import { type DemoArrival, type DemoHome, noteArrival } from './demo-home.ts'

export const DEMO_ADDRESS = 'you@example.com'
/** So that a demo that is left alone for days does not grow without end. */
const ARRIVALS_MAX = 20_000
const YEARS = 5
const POISON_SHARES = [0.31, 0.74]
/** Telling for certain that a message cannot be read takes half a minute: not for a small mailbox. */
const POISON_MESSAGES_MIN = 1_000
const DAY_MS = 86_400_000

const WEATHER: FaultRule[] = [
  { do: 'latency', latency: { kind: 'lognormal', medianMs: 25, sigma: 0.6, maxMs: 400 } },
  { do: 'error', status: 503, probability: 0.01 },
  { do: 'reset', when: 'before', probability: 0.004 },
  { do: 'truncate', probability: 0.004 },
  { do: 'throttle', status: 429, everyNth: 220, retryAfterSeconds: 1 },
  { do: 'error', status: 500, on: 'part', probability: 0.002 },
  { do: 'shuffle-parts', methods: ['batch'] },
]

export type DemoCloud = {
  sim: Sim
  /** One more message; false when there were enough. */
  arrive(): boolean
}

export async function startDemoCloud(
  home: Pick<DemoHome, 'path' | 'world' | 'arrivals'>,
  options: { unitsPerMinute: number | null },
): Promise<DemoCloud> {
  const { seed, messages, toMs } = home.world
  let replayedMs: number | undefined
  // Ids follow the clock: what arrives again does so at its own time.
  const clock = { ...systemClock, now: () => replayedMs ?? systemClock.now() }
  const sim = await startSim({
    ...{ seed, clock, quota: { unitsPerMinute: options.unitsPerMinute } },
    accounts: [{ address: DEMO_ADDRESS, messages, fromMs: toMs - YEARS * 365 * DAY_MS, toMs }],
    faults: { rules: WEATHER },
  })
  const ids = [...sim.mailbox(DEMO_ADDRESS).dump()].map(({ id }) => id)
  if (ids.length >= POISON_MESSAGES_MIN) {
    for (const share of POISON_SHARES)
      sim.faults.poison({ id: ids[Math.floor(ids.length * share)]!, mode: 'part' })
  }
  const happen = ({ n, atMs }: DemoArrival): void => {
    replayedMs = atMs
    try {
      sim.mutations(DEMO_ADDRESS).arrive({}, seededRandom(seed * 1_000_003 + n))
    } finally {
      replayedMs = undefined
    }
  }
  for (const arrival of home.arrivals) happen(arrival)
  let count = home.arrivals.length
  return {
    sim,
    arrive() {
      if (count >= ARRIVALS_MAX) return false
      const arrival = { n: count, atMs: systemClock.now() }
      noteArrival(home.path, arrival)
      count += 1
      happen(arrival)
      return true
    },
  }
}
