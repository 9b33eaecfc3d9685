/**
 * `npm run crash -- [--rounds 300] [--seed N] [--db sqlite|postgres|libsql|both]`: the crash proof at length.
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

/** Some 10,000 jobs, shared by two processes of which one or the other is killed again and again. */
const MANY: SourceSize = { ...SMALL, segments: 20, pages: 10, pageItems: 25, batchItems: 1, paceMs: 1 }
const MANY_KILLS = 20
/** After every so many kills the server goes, too. */
const KILLS_PER_RESTART = 7
const MANY_PAUSE_MS = 1_500

type Options = { rounds: number; seed: number; databases: readonly Database[] }

const USAGE = 'npm run crash -- [--rounds N] [--seed S] [--db sqlite|postgres|libsql|both]'

function readOptions(): Options {
  const { values } = readUsage(
    {
      options: {
        rounds: { type: 'string', default: '300' },
        seed: { type: 'string', default: String(Math.floor(systemRandom() * 2 ** 31)) },
        db: { type: 'string', default: 'both' },
      },
    },
    USAGE,
  )
  const rounds = Number(values.rounds)
  const seed = Number(values.seed)
  const all: readonly Database[] = [...DATABASES, 'libsql']
  const databases = values.db === 'both' ? DATABASES : all.filter((name) => name === values.db)
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > ROUNDS_MAX)
    fail(`--rounds takes a number from 1 to ${ROUNDS_MAX}.`)
  if (!Number.isInteger(seed) || seed < 0) fail('--seed takes a whole number.')
  if (databases.length === 0) fail('--db takes sqlite, postgres, libsql or both.')
  return { rounds, seed, databases }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}

type Tally = { lives: number; kills: number; late: number; stops: number; leasesLost: number }

async function prove(database: Database, { rounds, seed }: Options): Promise<Tally> {
  const random = seededRandom(seed)
  const total: Tally = { lives: 0, kills: 0, late: 0, stops: 0, leasesLost: 0 }
  const first = await measure(database, SMALL)
  print(
    `${database}: an undisturbed run takes ${Math.round(first.ms)} ms and passes ${first.hits.begin ?? 0} cycles`,
  )
  await live(
    database,
    SMALL,
    first,
    pointLives(first, { random, hitsEach: HITS_PER_POINT, perLife: KILLS_PER_LIFE, reach: REACH }),
    total,
  )
  print(`${database}: every commit point ${HITS_PER_POINT} times: ${describe(total)}`)
  const byPoints = total.kills
  while (total.kills - byPoints < rounds) {
    const size = { ...SMALL, paceMs: pick(PACES_MS, random) }
    const reference = await measure(database, size)
    if (reference.state.join('\n') !== first.state.join('\n'))
      throw new Error('two undisturbed runs end differently')
    const wanted = Math.min(rounds - (total.kills - byPoints), LIVES_PER_BATCH * KILLS_PER_LIFE)
    await live(
      database,
      size,
      reference,
      instantLives(reference, { random, kills: wanted, perLife: KILLS_PER_LIFE }),
      total,
    )
    print(`${database}: ${total.kills - byPoints} of ${rounds} random instants: ${describe(total)}`)
  }
  await shareInTurmoil(database, { random, times: Math.ceil(rounds / ROUNDS_PER_TURMOIL), total })
  if (database === 'libsql') await shareManyJobs(database, { random, total })
  return total
}

async function shareInTurmoil(
  database: Database,
  { random, times, total }: { random: Random; times: number; total: Tally },
): Promise<void> {
  const reference = await measure(database, { ...TURMOIL, paceMs: 1 })
  for (let n = 1; n <= times; n++) {
    const place = await freshPlace(database)
    try {
      const life = new Life(place.url, TURMOIL)
      const { stops, kills, leasesLost } = await runTurmoil({
        life,
        crew: CREW[database],
        random,
        rounds: DISTURBANCES,
      })
      await life.judge('after the turmoil', reference)
      total.lives += 1
      total.kills += kills
      total.stops += stops
      total.leasesLost += leasesLost
    } catch (thrown) {
      tellFailure(database, place, `in turmoil ${n}`)
      throw thrown
    }
    await place.remove()
    print(
      `${database}: ${n} of ${times} times in turmoil with ${CREW[database]} processes: ${describe(total)}`,
    )
  }
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
  for (const kills of lives) {
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
  }
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
