/**
 * The simulated cloud of the demo, with weather as it is on a normal day. What is in it comes from the apps; started
 * again with the same world and their journals it is the same cloud: same ids, same history, same bytes.
 */
import { join } from 'node:path'
import type { AppDemo, DemoPart, DemoPlace } from '../../app/demo.ts'
import { systemClock } from '../../base/clock.ts'
import { readIfThere, replaceFile } from '../../base/whole-file.ts'
import type { FaultRule } from '../../sim/fault-rules.ts'
import { type Sim, type SimOptions, startSim } from '../../sim/start.ts'

const WEATHER: FaultRule[] = [
  { do: 'latency', latency: { kind: 'lognormal', medianMs: 25, sigma: 0.6, maxMs: 400 } },
  { do: 'error', status: 503, probability: 0.01 },
  { do: 'reset', when: 'before', probability: 0.004 },
  { do: 'truncate', probability: 0.004 },
  { do: 'throttle', status: 429, everyNth: 220, retryAfterSeconds: 1 },
  { do: 'error', status: 500, on: 'part', probability: 0.002 },
  { do: 'shuffle-parts', methods: ['batch'] },
]

export async function startDemoCloud(
  demos: readonly AppDemo[],
  place: DemoPlace,
): Promise<{ sim: Sim; parts: readonly DemoPart[] }> {
  let replayedMs: number | undefined
  // Ids follow the clock: what happens again does so at its own time.
  const clock = { ...systemClock, now: () => replayedMs ?? systemClock.now() }
  const at = (ms: number, run: () => void): void => {
    replayedMs = ms
    try {
      run()
    } finally {
      replayedMs = undefined
    }
  }
  const worlds = demos.map((demo) => demo.world(place))
  const options: SimOptions = {
    ...worlds.reduce<object>(joined, {}),
    seed: place.seed,
    clock,
    faults: { rules: WEATHER },
  }
  const sim = await startWhereItWas(place.home, options)
  try {
    return { sim, parts: demos.map((demo) => demo.begin({ ...place, sim, at })) }
  } catch (thrown) {
    await sim.close()
    throw thrown
  }
}

/** Two apps may have their parts in one service: objects are joined, lists put one behind the other. */
function joined(one: object, other: object): object {
  const both: Record<string, unknown> = { ...one }
  for (const [name, value] of Object.entries(other)) {
    const own = both[name]
    if (Array.isArray(own) && Array.isArray(value)) both[name] = [...own, ...value]
    else if (isObject(own) && isObject(value)) both[name] = joined(own, value)
    else both[name] = value
  }
  return both
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
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
