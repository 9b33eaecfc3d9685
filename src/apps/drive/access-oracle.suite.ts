/** Runs a random history of sharing against the index, and compares what each person finds with what Drive lets them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { sleep, systemClock } from '../../base/clock.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import { BIN } from '../../cli/jobs/jobs.suite.ts'
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

/** What was found wrong, with the acts that led to it; undefined where nothing was. */
export async function runSharingHistory(seed: number, options: HistoryOptions): Promise<string | undefined> {
  const { acts, syncEvery, ledgerUrl, faults, kills = 0 } = options
  const random = seededRandom(seed)
  const world = await startDriveWorld({
    users: PEOPLE,
    drive: {
      groups: GROUPS.map((address, at) => ({ address, members: PEOPLE.slice(at, at + 2) })),
      drives: [{ name: 'Legal', members: [{ email: ANN, role: 'organizer' }] }],
      tellsBelow: seed % 2 === 0,
    },
    sim: { seed, ...(faults && { faults: WEATHER }) },
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
  try {
    let isUntold = false
    for (let n = 1; n <= acts; n++) {
      const act: Act = actOnce(place, n)
      told.push(act.text)
      isUntold ||= act.untold ?? false
      // Processes of their own have the clock of the machine.
      if (kills === 0) world.clock.aheadMs += act.aheadMs ?? 0
      if (n % syncEvery !== 0 && n !== acts) continue
      if (kills > 0) await killSyncs(world, random, kills)
      await world.wantDomain()
      await (isUntold ? world.relist() : world.sync())
      told.push(isUntold ? '-- everything is listed anew' : '-- sync')
      const wrong = await differences(world)
      if (wrong)
        return `seed ${seed}, after ${n} acts: ${wrong}\n${told.map((line) => `  ${line}`).join('\n')}`
      isUntold = false
    }
    return undefined
  } finally {
    await world.close()
  }
}

const KILL_MS_MIN = 500
const KILL_MS_MAX = 6_000

/** `tidemark drive sync` as a process that is killed at some instant, or ends before. */
async function killSyncs(world: DriveTestWorld, random: Random, kills: number): Promise<void> {
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
    const child = spawn(BIN, ['drive', 'sync', '--json'], { env, stdio: 'ignore' })
    const ended = once(child, 'close')
    await Promise.race([ended, sleep(systemClock, KILL_MS_MIN + random() * (KILL_MS_MAX - KILL_MS_MIN))])
    child.kill('SIGKILL')
    await ended
  }
  await world.open()
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
