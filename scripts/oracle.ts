/**
 * `npm run oracle -- files [--histories 1000] [--seed N] [--acts 20] [--crashes 5] [--db sqlite|postgres|libsql] [--kills]
 * [--links] [--odd left-out|raw|backup|many] [--shrink]`: the proof of the file sync at length. Random histories of both sides, under faults and quirks, with
 * crashes between any two steps; each is compared with what people did (e2e/files/oracle.ts). Those that fail print a
 * replay, which `--shrink` makes short. With `--kills` the sync is a process of its own, and is killed. With `--links`
 * somebody works with links in each of them; with `--odd` with names that are left out or no text, with a copy of the
 * whole folder that is put back, or with many files that are overwritten at once.
 *
 * `npm run oracle -- drive [--histories 100] [--seed N] [--acts 40] [--db sqlite|postgres] [--kills]`: the proof of access
 * to Google Drives (src/apps/drive/access-oracle.suite.ts). Random histories of sharing under faults; after each sync
 * everybody finds exactly what Drive lets them find, and at no moment a text that Drive never let them find. With `--kills` processes that sync are killed before each; how many
 * of them were at work is told at the end, and where not one was, the run has shown nothing and fails.
 *
 * `npm run oracle -- ingest [--histories 100] [--minutes N] [--at-once 4] [--seed N] [--acts 20] [--db sqlite|postgres]
 * [--kills]`: the proof of object ingest (e2e/ingest/history.ts). Random histories of two buckets and their queues, with
 * processes that share a ledger and fail at any commit; in some, objects that are stored are moved or deleted. At the end
 * every record is found exactly once. With `--kills` processes are real, killed and stopped; without, time runs ten times
 * as fast. After `--minutes` no further history begins. Where `--kills` met nobody at work, the run fails.
 *
 * `npm run oracle -- assistant [--histories 50] [--seed N] [--acts 40] [--db sqlite|postgres] [--kills]`: the proof of the
 * mail assistant (e2e/assistant/history.ts). Random histories of a mailbox on which its user and the assistant work at
 * once; at the end every conversation is sorted once, has one draft at most, and nothing that the user wrote is lost.
 *
 * `npm run oracle -- watch [--histories 1] [--seed N] [--seconds 45]`: the same of a running `tidemark files watch`
 * (e2e/files/watch-history.ts): people at work on both sides for so long, and then both sides must become the same.
 */
import { CliWorld } from '../e2e/files/cli-world.ts'
import { makeHistory, ODDITIES, pasted } from '../e2e/files/history.ts'
import { runHistory } from '../e2e/files/run.ts'
import { shrink } from '../e2e/files/shrink.ts'
import { WATCH_ENV, watchHistory } from '../e2e/files/watch-history.ts'
import { systemClock } from '../src/base/clock.ts'
import { seededRandom, systemRandom } from '../src/base/random.ts'
import { startPostgres } from './postgres.ts'
import { readUsage, wrongUse } from './usage.ts'

/** Of a history of sharing. */
const SYNC_EVERY = 8
const KILLS = 2
const DRIVE_SAID_EVERY = 5
/** Of an ingest in which nothing changes any more. */
const SILENCE_MS_MAX = 180_000
/** How fast time runs in it, but for processes of their own: 15 s of waiting become 2 s of work. */
const INGEST_PACE = 10
/**
 * Processes die here, and no server or machine does: nothing need reach the disk. When each commit was is looked at. Three
 * processes at ten objects get in each other's way all the time, and what would wait a second for it is found at once.
 */
const INGEST_SERVER = {
  fsync: 'off',
  full_page_writes: 'off',
  track_commit_timestamp: 'on',
  deadlock_timeout: '20ms',
}
const DATABASES = ['sqlite', 'postgres'] as const

const OPTIONS = {
  allowPositionals: true,
  options: {
    histories: { type: 'string' },
    seconds: { type: 'string', default: '45' },
    minutes: { type: 'string', default: '1440' },
    'at-once': { type: 'string' },
    seed: { type: 'string', default: String(Math.floor(systemRandom() * 2 ** 31)) },
    acts: { type: 'string', default: '20' },
    crashes: { type: 'string', default: '5' },
    db: { type: 'string', default: 'sqlite' },
    kills: { type: 'boolean', default: false },
    links: { type: 'boolean' },
    odd: { type: 'string' },
    shrink: { type: 'boolean', default: false },
  },
} as const

const USAGE = `npm run oracle -- files [--histories N] [--seed S] [--acts N] [--crashes N] [--db sqlite|postgres|libsql] [--kills] [--links] [--odd NAME] [--shrink]
npm run oracle -- drive [--histories N] [--seed S] [--acts N] [--db sqlite|postgres] [--kills]
npm run oracle -- ingest [--histories N] [--minutes N] [--at-once N] [--seed S] [--acts N] [--db sqlite|postgres] [--kills]
npm run oracle -- assistant [--histories N] [--seed S] [--acts N] [--db sqlite|postgres] [--kills]
npm run oracle -- watch [--histories N] [--seed S] [--seconds N]`

const { values, positionals } = readUsage(OPTIONS, USAGE)
const isWatch = positionals.join() === 'watch'
const isDrive = positionals.join() === 'drive'
const isIngest = positionals.join() === 'ingest'
const isAssistant = positionals.join() === 'assistant'
const numbers = [
  values.histories ?? (isWatch ? 1 : isAssistant ? 50 : isDrive || isIngest ? 100 : 1_000),
  ...[values.seed, values.acts, values.crashes, values.seconds, values.minutes],
  // Each process of a history has connections of its own, of which PostgreSQL has a hundred.
  values['at-once'] ?? (values.db === 'postgres' ? 2 : 4),
].map(Number)
const [histories = 0, first = 0, acts = 0, crashes = 0, workSeconds = 0, minutes = 0, atOnce = 1] = numbers
const database = DATABASES.find((name) => name === values.db)
const isFilesOnLibsql = positionals.join() === 'files' && values.db === 'libsql'
const isKnown = isWatch || isDrive || isIngest || isAssistant || positionals.join() === 'files'
if (!isKnown || !numbers.every((n) => Number.isInteger(n) && n >= 0)) wrongUse(USAGE)
if (!database && !isFilesOnLibsql) wrongUse(USAGE)
const oddity = ODDITIES.find((name) => name === values.odd)
if (values.odd !== undefined && !oddity) wrongUse(USAGE)

const say = (line: string): void => void process.stdout.write(`${line}\n`)
if (isWatch) process.exit((await watchAll()) > 0 ? 1 : 0)
if (isDrive) process.exit((await driveAll()) > 0 ? 1 : 0)
if (isIngest) process.exit((await ingestAll()) > 0 ? 1 : 0)
if (isAssistant) process.exit((await assistantAll()) > 0 ? 1 : 0)

const sync = values.kills ? 'process' : 'here'
const filesDatabase = isFilesOnLibsql ? 'libsql' : database
const server = database === 'postgres' ? await startPostgres() : undefined
if (server) process.env.TIDEMARK_TEST_PG = server.url
const startedMs = systemClock.monotonicMs()
const totals = { histories: 0, acts: 0, actions: 0, crashes: 0, failed: 0 }
const SAID_EVERY = 100
say(`${histories} histories from seed ${first}`)
for (let seed = first; seed < first + histories; seed++) {
  const lines = makeHistory(seededRandom(seed), { acts, crashes, hasLinks: values.links, oddity })
  const ran = await runHistory(lines, { seed, sync, database: filesDatabase })
  totals.histories += 1
  totals.acts += ran.acts
  totals.actions += ran.actions
  totals.crashes += ran.crashes
  if (ran.failure !== undefined) {
    totals.failed += 1
    say(`seed ${seed} failed: ${ran.failure}`)
    const found = values.shrink
      ? await shrink(lines, ran.failure, { seed, sync, database: filesDatabase })
      : { lines, failure: '' }
    say(`${found.failure}\n${pasted(found.lines)}`)
  }
  if (totals.histories % SAID_EVERY === 0) say(JSON.stringify(totals))
}
const seconds = Math.round((systemClock.monotonicMs() - startedMs) / 1000)
say(JSON.stringify({ ...totals, seconds }))
await server?.stop()
process.exitCode = totals.failed > 0 ? 1 : 0

/** Returns how many failed. */
async function watchAll(): Promise<number> {
  let failed = 0
  for (let seed = first; seed < first + histories; seed++) {
    const world = await CliWorld.start({ env: WATCH_ENV })
    const work = { workMs: workSeconds * 1000, gapMsMax: 300, settleMsMax: 240_000 }
    try {
      say(
        `seed ${seed}: ${JSON.stringify(await watchHistory(world, { random: seededRandom(seed), ...work }))}`,
      )
    } catch (thrown) {
      failed += 1
      say(`seed ${seed} failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
    } finally {
      await world.close()
    }
  }
  return failed
}

/** Returns how many failed. */
async function driveAll(): Promise<number> {
  const { runSharingHistory } = await import('../src/apps/drive/access-oracle.suite.ts')
  const { freshDatabase } = await import('./test-database.ts')
  const beganMs = systemClock.monotonicMs()
  const killed = { working: 0, waiting: 0, idle: 0, ended: 0 }
  let failed = 0
  let moments = 0
  say(`${histories} histories of sharing from seed ${first} on ${database}`)
  for (let seed = first; seed < first + histories; seed++) {
    const own = database === 'postgres' ? await freshDatabase() : undefined
    const { wrong, kills, ...looked } = await runSharingHistory(seed, {
      acts: acts * 2,
      syncEvery: SYNC_EVERY,
      faults: seed % 2 === 1,
      ...(own && { ledgerUrl: own.url }),
      ...(values.kills && { kills: KILLS }),
    })
    await own?.drop()
    moments += looked.moments
    for (const what of ['working', 'waiting', 'idle', 'ended'] as const) killed[what] += kills[what]
    if ((seed - first + 1) % DRIVE_SAID_EVERY === 0) say(JSON.stringify({ seed, failed, moments, killed }))
    if (wrong === undefined) continue
    failed += 1
    say(wrong)
  }
  const tookSeconds = Math.round((systemClock.monotonicMs() - beganMs) / 1000)
  say(JSON.stringify({ histories, failed, moments, seconds: tookSeconds, ...(values.kills && { killed }) }))
  return values.kills && killed.working === 0 ? Math.max(failed, 1) : failed
}

/** Returns how many failed. Several at once: a part of each history is waiting for leases and receipts to end. */
async function ingestAll(): Promise<number> {
  const { runIngestHistory } = await import('../e2e/ingest/history.ts')
  const own = database === 'postgres' ? await startPostgres({ settings: INGEST_SERVER }) : undefined
  if (own) process.env.TIDEMARK_TEST_PG = own.url
  const beganMs = systemClock.monotonicMs()
  const endMs = beganMs + minutes * 60_000
  const sums: Record<string, number> = { histories: 0 }
  let failed = 0
  let next = first
  const runSome = async (): Promise<void> => {
    while (next < first + histories && systemClock.monotonicMs() < endMs) {
      const seed = next++
      const options = {
        database: database!,
        acts: acts * 2,
        kills: values.kills,
        pace: INGEST_PACE,
        silenceMsMax: SILENCE_MS_MAX,
      }
      const ran = await runIngestHistory(seed, options)
      sums.histories! += 1
      for (const [name, n] of Object.entries(ran.counts)) sums[name] = (sums[name] ?? 0) + n
      if (ran.failure !== undefined) {
        failed += 1
        say(ran.failure)
      }
      say(JSON.stringify({ seed, failed, ...sums }))
    }
  }
  say(`${histories} histories of ingest from seed ${first} on ${database}, ${atOnce} at once`)
  await Promise.all(Array.from({ length: atOnce }, runSome))
  const tookSeconds = Math.round((systemClock.monotonicMs() - beganMs) / 1000)
  say(JSON.stringify({ failed, ...sums, seconds: tookSeconds }))
  await own?.stop()
  // Where nobody was killed while he read something, nothing was shown.
  return values.kills && !sums.deathsReading ? Math.max(failed, 1) : failed
}

/** Returns how many failed. */
async function assistantAll(): Promise<number> {
  const { runAssistHistory } = await import('../e2e/assistant/history.ts')
  const beganMs = systemClock.monotonicMs()
  const sums: Record<string, number> = {}
  let failed = 0
  say(`${histories} histories of a mailbox from seed ${first} on ${database}`)
  for (let seed = first; seed < first + histories; seed++) {
    const ran = await runAssistHistory(seed, { database: database!, acts: acts * 2, kills: values.kills })
    for (const [name, n] of Object.entries(ran.counts)) sums[name] = (sums[name] ?? 0) + n
    if (ran.failure !== undefined) {
      failed += 1
      say(ran.failure)
    }
    say(JSON.stringify({ seed, failed, ...sums }))
  }
  const tookSeconds = Math.round((systemClock.monotonicMs() - beganMs) / 1000)
  say(JSON.stringify({ histories, failed, ...sums, seconds: tookSeconds }))
  return failed
}
