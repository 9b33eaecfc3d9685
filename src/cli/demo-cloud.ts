/**
 * The simulated cloud of the demo: a mailbox and a drive from a seed, weather as it is on a normal day, two messages
 * that can never be read, mail that arrives, and another device that changes files. Started again with the same world
 * and journals it is the same cloud: same ids, same history, same bytes.
 */
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { seededRandom } from '../random.ts'
import type { FaultRule } from '../sim/fault-rules.ts'
import { type Sim, type SimOptions, startSim } from '../sim/start.ts'
import { type DemoStep, deviceStep, furnish } from './demo-drive.ts'
import { keepDrive } from './demo-drive-journal.ts'
import { type DemoArrival, type DemoHome, noteArrival, replaceFile } from './demo-home.ts'
import { readIfThere } from './demo-lock.ts'

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
  /** Something changes in the drive; without a clash where one is to be decided already. */
  otherDevice(about: { hasConflict: boolean }): DemoStep
}

export async function startDemoCloud(
  home: Pick<DemoHome, 'path' | 'world' | 'arrivals'>,
  options: { unitsPerMinute: number | null },
): Promise<DemoCloud> {
  const { seed, messages, toMs } = home.world
  let replayedMs: number | undefined
  // Ids follow the clock: what arrives again does so at its own time.
  const clock = { ...systemClock, now: () => replayedMs ?? systemClock.now() }
  const at = (ms: number, run: () => void): void => {
    replayedMs = ms
    try {
      run()
    } finally {
      replayedMs = undefined
    }
  }
  const sim = await startWhereItWas(home.path, {
    ...{ seed, clock, quota: { unitsPerMinute: options.unitsPerMinute } },
    accounts: [{ address: DEMO_ADDRESS, messages, fromMs: toMs - YEARS * 365 * DAY_MS, toMs }],
    drives: [{ account: DEMO_ADDRESS }],
    faults: { rules: WEATHER },
  })
  const drive = sim.drive(DEMO_ADDRESS)
  at(toMs, () => furnish(drive.device, seed))
  const journal = keepDrive(drive.state, { folder: home.path, now: () => systemClock.now(), at })
  const ids = [...sim.mailbox(DEMO_ADDRESS).dump()].map(({ id }) => id)
  if (ids.length >= POISON_MESSAGES_MIN) {
    for (const share of POISON_SHARES)
      sim.faults.poison({ id: ids[Math.floor(ids.length * share)]!, mode: 'part' })
  }
  const happen = ({ n, atMs }: DemoArrival): void => {
    at(atMs, () => sim.mutations(DEMO_ADDRESS).arrive({}, seededRandom(seed * 1_000_003 + n)))
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
    otherDevice({ hasConflict }) {
      // Numbered by what has happened: the same step never comes twice.
      const n = journal.size()
      return deviceStep(drive, { seed, n, hasConflict })
    },
  }
}

const PORT_FILE = 'demo-port'

/** At the port that it had, so that addresses that were given out stay good; at another one where that is taken. */
async function startWhereItWas(folder: string, options: SimOptions): Promise<Sim> {
  const before = Number(readIfThere(join(folder, PORT_FILE)) ?? '0')
  const sim = await startSim({ ...options, port: before }).catch((thrown: unknown) => {
    if (before === 0) throw thrown
    return startSim({ ...options, port: 0 })
  })
  replaceFile(join(folder, PORT_FILE), String(sim.port))
  return sim
}
