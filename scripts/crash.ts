/**
 * `npm run crash -- [--rounds 300] [--seed N] [--db sqlite|postgres|libsql|both] [--only PART]`: the crash proof at length,
 * or one part of it: points, instants, turmoil, or many (on libSQL).
 *
 * Kills a real engine process with SIGKILL at `rounds` random instants and at every named commit point, on each
 * database; then several processes share a ledger while they are stopped, resumed and killed. After every
 * disturbance the oracle checks the ledger; every life ends in the state of an undisturbed run. The seed
 * decides when to kill; what the machine makes of it differs from run to run.
 */
import {
  DATABASES,
  type Database,
  freshPlace,
  type Kill,
  Life,
  type Place,
  type Reference,
  surviveKills,
  undisturbed,
} from '../e2e/crash/life.ts'
import { instantLives, pointLives } from '../e2e/crash/plan.ts'
import { SMALL, type SourceSize } from '../e2e/crash/source.ts'
import { CREW, runTurmoil, TURMOIL } from '../e2e/crash/turmoil.ts'
import { sleep, systemClock } from '../src/base/clock.ts'
import { type Random, seededRandom, systemRandom } from '../src/base/random.ts'
import { startPostgres } from './postgres.ts'
import { readUsage } from './usage.ts'

const KILLS_PER_LIFE = 3
const HITS_PER_POINT = 6
/** Nearly to the end; some of these come too late. */
const REACH = 0.9
const ROUNDS_MAX = 100_000
/** One turmoil for so many rounds, and what happens in each. */
const ROUNDS_PER_TURMOIL = 30
const DISTURBANCES = 10
/** The final state is the same at every pace; the instants that are hit are not. */
const PACES_MS = [0, 1, 3, 8]
/** Instants are drawn anew for each batch, because the machine's speed changes under way. */
const LIVES_PER_BATCH = 10
/**
 * A process that dies in a transaction on libSQL keeps the next one waiting for five seconds: a life is mostly that, and
 * each has a server of its own.
 */
const LIVES_AT_ONCE: Record<Database, number> = { sqlite: 1, postgres: 1, libsql: 3 }

/** Some 10,000 jobs, shared by two processes of which one or the other is killed again and again. */
const MANY: SourceSize = { ...SMALL, segments: 20, pages: 10, pageItems: 25, batchItems: 1, paceMs: 1 }
const MANY_KILLS = 20
/** After every so many kills the server goes, too. */
const KILLS_PER_RESTART = 7
const MANY_PAUSE_MS = 1_500

const PARTS = ['points', 'instants', 'turmoil', 'many'] as const
type PartName = (typeof PARTS)[number]
type Options = { rounds: number; seed: number; databases: readonly Database[]; parts: readonly PartName[] }

const USAGE =
  'npm run crash -- [--rounds N] [--seed S] [--db sqlite|postgres|libsql|both] [--only points|instants|turmoil|many]'

function readOptions(): Options {
  const { values } = readUsage(
    {
      options: {
        rounds: { type: 'string', default: '300' },
        seed: { type: 'string', default: String(Math.floor(systemRandom() * 2 ** 31)) },
        db: { type: 'string', default: 'both' },
        only: { type: 'string' },
      },
    },
    USAGE,
  )
  const rounds = Number(values.rounds)
  const seed = Number(values.seed)
  const all: readonly Database[] = [...DATABASES, 'libsql']
  const databases: readonly Database[] =
    values.db === 'both' ? DATABASES : all.filter((name) => name === values.db)
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > ROUNDS_MAX)
    fail(`--rounds takes a number from 1 to ${ROUNDS_MAX}.`)
  if (!Number.isInteger(seed) || seed < 0) fail('--seed takes a whole number.')
  if (databases.length === 0) fail('--db takes sqlite, postgres, libsql or both.')
  const parts = values.only === undefined ? PARTS : PARTS.filter((name) => name === values.only)
  if (parts.length === 0) fail(`--only takes ${PARTS.join(', ')}.`)
  if (values.only === 'many' && !databases.includes('libsql')) fail('--only many takes --db libsql.')
  return { rounds, seed, databases, parts }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}

type Tally = { lives: number; kills: number; late: number; stops: number; leasesLost: number }

async function prove(database: Database, { rounds, seed, parts }: Options): Promise<Tally> {
  const random = seededRandom(seed)
  const total: Tally = { lives: 0, kills: 0, late: 0, stops: 0, leasesLost: 0 }
  if (parts.includes('points')) await killAtPoints(database, { random, total })
  if (parts.includes('instants')) await killAtInstants(database, { random, rounds, total })
  if (parts.includes('turmoil'))
    await shareInTurmoil(database, { random, times: Math.ceil(rounds / ROUNDS_PER_TURMOIL), total })
  if (parts.includes('many') && database === 'libsql') await shareManyJobs(database, { random, total })
  return total
}

async function killAtPoints(
  database: Database,
  { random, total }: { random: Random; total: Tally },
): Promise<void> {
  const reference = await measure(database, SMALL)
  print(
    `${database}: an undisturbed run takes ${Math.round(reference.ms)} ms and passes ${reference.hits.begin ?? 0} cycles`,
  )
  const lives = { random, hitsEach: HITS_PER_POINT, perLife: KILLS_PER_LIFE, reach: REACH }
  await live(database, SMALL, reference, pointLives(reference, lives), total)
  print(`${database}: every commit point ${HITS_PER_POINT} times: ${describe(total)}`)
}

async function killAtInstants(
  database: Database,
  { random, rounds, total }: { random: Random; rounds: number; total: Tally },
): Promise<void> {
  const before = total.kills
  let first: Reference | undefined
  while (total.kills - before < rounds) {
    const size = { ...SMALL, paceMs: pick(PACES_MS, random) }
    const reference = await measure(database, size)
    first ??= reference
    if (reference.state.join('\n') !== first.state.join('\n'))
      throw new Error('two undisturbed runs end differently')
    const wanted = Math.min(rounds - (total.kills - before), LIVES_PER_BATCH * KILLS_PER_LIFE)
    const lives = { random, kills: wanted, perLife: KILLS_PER_LIFE }
    await live(database, size, reference, instantLives(reference, lives), total)
    print(`${database}: ${total.kills - before} of ${rounds} random instants: ${describe(total)}`)
  }
}

async function shareInTurmoil(
  database: Database,
  { random, times, total }: { random: Random; times: number; total: Tally },
): Promise<void> {
  const reference = await measure(database, { ...TURMOIL, paceMs: 1 })
  const turmoils = Array.from({ length: times }, () => seededRandom(Math.floor(random() * 2 ** 31)))
  let ended = 0
  await severalAtOnce(LIVES_AT_ONCE[database], turmoils, async (own, n) => {
    const place = await freshPlace(database)
    try {
      const life = new Life(place.url, TURMOIL)
      const { stops, kills, leasesLost } = await runTurmoil({
        life,
        crew: CREW[database],
        random: own,
        rounds: DISTURBANCES,
      })
      await life.judge('after the turmoil', reference)
      total.lives += 1
      total.kills += kills
      total.stops += stops
      total.leasesLost += leasesLost
    } catch (thrown) {
      tellFailure(database, place, `in turmoil ${n + 1}`)
      throw thrown
    }
    await place.remove()
    ended += 1
    print(
      `${database}: ${ended} of ${times} times in turmoil with ${CREW[database]} processes: ${describe(total)}`,
    )
  })
}

async function shareManyJobs(
  database: Database,
  { random, total }: { random: Random; total: Tally },
): Promise<void> {
  const reference = await measure(database, MANY)
  const place = await freshPlace(database)
  const life = new Life(place.url, MANY)
  const startedMs = systemClock.monotonicMs()
  const pair = [life.start(), life.start()]
  try {
    let kills = 0
    let restarts = 0
    while (kills < MANY_KILLS) {
      await Promise.all(pair.map((child) => child.said('ready')))
      if (kills % KILLS_PER_RESTART === KILLS_PER_RESTART - 1) {
        await place.restart?.()
        restarts += 1
      }
      await sleep(systemClock, random() * MANY_PAUSE_MS)
      const at = Math.floor(random() * pair.length)
      if (pair.some((child) => child.process.exitCode !== null)) break // the work is done
      await pair[at]!.destroy()
      kills += 1
      await life.look(`after kill ${kills} of two processes`)
      pair[at] = life.start()
    }
    for (const child of pair) await life.finished(child)
    const state = await life.judge('after kills of two processes', reference)
    total.lives += 1
    total.kills += kills
    const seconds = Math.round((systemClock.monotonicMs() - startedMs) / 1_000)
    print(
      `${database}: two processes, ${kills} kills and ${restarts} restarts of the server in ${seconds} s: all ${state.length} facts at the end are those of an undisturbed run`,
    )
  } catch (thrown) {
    tellFailure(database, place, 'with two processes')
    throw thrown
  } finally {
    for (const child of pair) await child.destroy()
  }
  await place.remove()
}

async function measure(database: Database, size: SourceSize): Promise<Reference> {
  const place = await freshPlace(database)
  const reference = await undisturbed(place.url, size)
  await place.remove()
  return reference
}

async function live(
  database: Database,
  size: SourceSize,
  reference: Reference,
  lives: readonly Kill[][],
  total: Tally,
): Promise<void> {
  await severalAtOnce(LIVES_AT_ONCE[database], lives, async (kills) => {
    const place = await freshPlace(database)
    try {
      const landed = await surviveKills({ url: place.url, size, kills, reference })
      total.lives += 1
      total.kills += landed.length
      total.late += kills.length - landed.length
    } catch (thrown) {
      tellFailure(database, place, `with a pace of ${size.paceMs} ms`)
      throw thrown
    }
    await place.remove()
  })
}

/** After one that fails no other is begun; those under way are waited for. */
async function severalAtOnce<T>(
  atOnce: number,
  list: readonly T[],
  run: (item: T, at: number) => Promise<void>,
): Promise<void> {
  const left = [...list.entries()]
  const lane = async (): Promise<void> => {
    try {
      for (let next = left.shift(); next; next = left.shift()) await run(next[1], next[0])
    } finally {
      left.length = 0
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, lane))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** A server of our own ends with us; a file can be looked at. */
function tellFailure(database: Database, place: Place, when: string): void {
  print(`${database}: FAILED ${when}${database === 'sqlite' ? `; the ledger is left at ${place.url}` : ''}`)
}

function describe({ lives, kills, late, stops, leasesLost }: Tally): string {
  const shared = stops > 0 ? ` and ${stops} stops (${leasesLost} leases lost)` : ''
  return `${kills} kills${shared} in ${lives} lives, ${late} came too late, all ended like an undisturbed run`
}

function pick<T>(list: readonly T[], random: Random): T {
  return list[Math.floor(random() * list.length)]!
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function main(): Promise<number> {
  const options = readOptions()
  const startedMs = systemClock.monotonicMs()
  print(`crash proof: ${options.rounds} random instants per database, seed ${options.seed}`)
  const server = options.databases.includes('postgres') ? await startPostgres() : undefined
  if (server) process.env.TIDEMARK_TEST_PG = server.url
  const summary: string[] = []
  try {
    for (const database of options.databases)
      summary.push(`${database}: ${describe(await prove(database, options))}`)
  } catch (thrown) {
    print(thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown))
    print(`FAILED with --seed ${options.seed}`)
    return 1
  } finally {
    await server?.stop()
  }
  const seconds = Math.round((systemClock.monotonicMs() - startedMs) / 1_000)
  print(`\n${summary.join('\n')}\npassed in ${seconds} s with seed ${options.seed}`)
  return 0
}

process.exitCode = await main()
