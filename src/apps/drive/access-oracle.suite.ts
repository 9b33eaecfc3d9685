/** Runs a random history of sharing against the index, and compares what each person finds with what Drive lets them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { sleep, systemClock } from '../../base/clock.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import { BIN } from '../../cli/jobs/jobs.suite.ts'
import { openLedger } from '../../ledger/open.ts'
import type { FaultsInput } from '../../sim/fault-rules.ts'
import { ANN, BOB, CAT, type DriveTestWorld, startDriveWorld } from './drive-world.suite.ts'
import { type Act, actOnce } from './sharing-history.suite.ts'

export type HistoryOptions = {
  acts: number
  syncEvery: number
  ledgerUrl?: string
  faults?: boolean
  /** Before each sync so many processes are begun on the same ledger, and killed. */
  kills?: number
}

const GROUPS = ['sales@example.com', 'board@example.com']
const PEOPLE = [ANN, BOB, CAT]

const WEATHER: FaultsInput = {
  rules: [
    { do: 'error', status: 503, probability: 0.03 },
    { do: 'reset', when: 'before', probability: 0.01 },
    { do: 'truncate', probability: 0.01 },
    { do: 'throttle', status: 403, reason: 'userRateLimitExceeded', everyNth: 61 },
  ],
}

/** By what a killed process was at: jobs of it were claimed, only others waited, nothing was to be done, or it had ended. */
export type KillCounts = { working: number; waiting: number; idle: number; ended: number }

export type HistoryResult = {
  /** What was found wrong, with the acts that led to it; undefined where nothing was. */
  wrong: string | undefined
  kills: KillCounts
}

export async function runSharingHistory(seed: number, options: HistoryOptions): Promise<HistoryResult> {
  const { acts, syncEvery, ledgerUrl, faults, kills = 0 } = options
  const random = seededRandom(seed)
  const weather = faults ? WEATHER : { rules: [] }
  const world = await startDriveWorld({
    users: PEOPLE,
    drive: {
      groups: GROUPS.map((address, at) => ({ address, members: PEOPLE.slice(at, at + 2) })),
      drives: [{ name: 'Legal', members: [{ email: ANN, role: 'organizer' }] }],
      tellsBelow: seed % 2 === 0,
    },
    sim: { seed, faults: weather },
    ...(ledgerUrl !== undefined && { ledgerUrl }),
  })
  const place = {
    world: world.world,
    random,
    people: PEOPLE,
    groups: GROUPS,
    nowMs: () => world.clock.now(),
  }
  const told: string[] = []
  const killed: KillCounts = { working: 0, waiting: 0, idle: 0, ended: 0 }
  try {
    let isUntold = false
    for (let n = 1; n <= acts; n++) {
      const act: Act = actOnce(place, n)
      told.push(act.text)
      isUntold ||= act.untold ?? false
      // Processes of their own have the clock of the machine.
      if (kills === 0) world.clock.aheadMs += act.aheadMs ?? 0
      if (n % syncEvery !== 0 && n !== acts) continue
      if (kills > 0) await killSyncs(world, random, { kills, killed, weather })
      await world.wantDomain()
      await (isUntold ? world.relist() : world.sync())
      told.push(isUntold ? '-- everything is listed anew' : '-- sync')
      const wrong = await differences(world)
      if (wrong) {
        const history = told.map((line) => `  ${line}`).join('\n')
        return { wrong: `seed ${seed}, after ${n} acts: ${wrong}\n${history}`, kills: killed }
      }
      isUntold = false
    }
    return { wrong: undefined, kills: killed }
  } finally {
    await world.close()
  }
}

/** A process is killed when it has been answered so many calls, and at most so much later. */
const KILL_CALLS_MAX = 40
/** Every other one waits for an answer when it is killed, behind so many calls: fewer than any first sync has. */
const HELD_CALLS_MAX = 8
const KILL_MS_MAX = 40
const LOOK_MS = 3
/** What of the syncs lists everything anew, so that processes are killed in listings, too. */
const RELIST_SHARE = 0.3

/**
 * `tidemark drive sync` as a process that is killed while it works, or ends before. It is killed by what it has asked of
 * Drive, and not by the time that it has had: how long a process takes to begin depends on the machine. Of two, the first
 * is not answered any more from some call on: so it is at work when it is killed, however slow the machine is. The other
 * may be anywhere, also in a transaction.
 */
async function killSyncs(
  world: DriveTestWorld,
  random: Random,
  { kills, killed, weather }: { kills: number; killed: KillCounts; weather: FaultsInput },
): Promise<void> {
  await world.stop()
  const env = {
    ...process.env,
    TIDEMARK_HOME: world.home,
    TIDEMARK_LEDGER_URL: world.ledgerUrl,
    TIDEMARK_SEARCH_EMBEDDING: 'off',
    TIDEMARK_GOOGLE_DRIVE_API_URL: world.settings.apiUrl,
    TIDEMARK_GOOGLE_DRIVE_TOKEN_URL: world.settings.tokenUrl,
    TIDEMARK_GOOGLE_DRIVE_CLIENT_ID: world.drive.clientId,
  }
  for (let n = 0; n < kills; n++) {
    const args = ['drive', 'sync', '--json', ...(random() < RELIST_SHARE ? ['--relist'] : [])]
    const isHeld = n % 2 === 0
    const skip = Math.floor(random() * (isHeld ? HELD_CALLS_MAX : KILL_CALLS_MAX))
    const calls = world.sim.log.served + 1 + skip
    const laterMs = isHeld ? 0 : random() * KILL_MS_MAX
    world.sim.faults.set({ rules: isHeld ? [{ do: 'stall', skip }] : [] })
    const child = spawn(BIN, args, { env, stdio: 'ignore' })
    let isOver = false
    const ended = once(child, 'close').then(() => {
      isOver = true
    })
    const isDue = (): boolean =>
      isHeld ? world.sim.faults.counts()[0]!.struck > 0 : world.sim.log.served >= calls
    while (!isOver && !isDue()) await sleep(systemClock, LOOK_MS)
    await Promise.race([ended, sleep(systemClock, laterMs)])
    const hadEnded = isOver
    child.kill('SIGKILL')
    await ended
    killed[hadEnded ? 'ended' : await leftBy(world, child.pid!)] += 1
  }
  world.sim.faults.set(weather)
  await world.open()
}

/** What a process that was killed left behind. Nobody has looked at the ledger since. */
async function leftBy(world: DriveTestWorld, pid: number): Promise<Exclude<keyof KillCounts, 'ended'>> {
  const ledger = await openLedger(world.ledgerUrl, { clock: world.clock })
  try {
    const owners = (await ledger.workers()).filter((worker) => worker.pid === pid).map(({ id }) => id)
    const claimed = await ledger.jobs({ state: 'claimed' })
    if (claimed.some(({ owner }) => owner !== null && owners.includes(owner))) return 'working'
    return (await ledger.jobs({ state: 'pending', limit: 1 })).length > 0 ? 'waiting' : 'idle'
  } finally {
    await ledger.close()
  }
}

export async function differences(world: DriveTestWorld): Promise<string | undefined> {
  for (const person of world.names) {
    const [seen, truth] = [new Set(await world.seen(person)), new Set(world.truth(person))]
    const nameOf = (id: string): string => `${world.world.items.get(id)?.name ?? 'something gone'} (${id})`
    const more = [...seen.difference(truth)].map(nameOf)
    const less = [...truth.difference(seen)].map(nameOf)
    if (more.length > 0) return `${person} finds ${more.join(', ')}, and must not`
    if (less.length > 0) return `${person} does not find ${less.join(', ')}`
    const { listed, indexed, skipped, failed, onTheirWay } = await world.status(person)
    if (listed !== truth.size || listed !== indexed + skipped + failed + onTheirWay) {
      return `the status of ${person} says ${listed} = ${indexed} + ${skipped} + ${failed} + ${onTheirWay}, and Drive ${truth.size}`
    }
  }
  return undefined
}
