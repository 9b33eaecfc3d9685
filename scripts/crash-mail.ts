/**
 * `npm run crash:mail -- [--messages 50000] [--kills 20] [--seed N] [--db sqlite|postgres|libsql]`: the mail archive's
 * proof at length. A simulated mailbox under mixed faults is synced by a process that is killed again and again; see
 * e2e/mail/life.ts.
 */
import { type Database, freshPlace } from '../e2e/crash/life.ts'
import { liveAndArchive } from '../e2e/mail/life.ts'
import { systemClock } from '../src/base/clock.ts'
import { systemRandom } from '../src/base/random.ts'
import { startPostgres } from './postgres.ts'
import { readUsage, wrongUse } from './usage.ts'

const DATABASES: readonly Database[] = ['sqlite', 'postgres', 'libsql']
const USAGE =
  'npm run crash:mail -- [--messages N, 100 or more] [--kills N] [--seed S] [--db sqlite|postgres|libsql]'

const { values } = readUsage(
  {
    options: {
      messages: { type: 'string', default: '50000' },
      kills: { type: 'string', default: '20' },
      seed: { type: 'string', default: String(Math.floor(systemRandom() * 2 ** 31)) },
      db: { type: 'string', default: 'sqlite' },
    },
  },
  USAGE,
)
const [messages, kills, seed] = [Number(values.messages), Number(values.kills), Number(values.seed)]
if (![messages, kills, seed].every((n) => Number.isInteger(n) && n >= 0) || messages < 100) {
  wrongUse(USAGE)
}
const database = DATABASES.find((name) => name === values.db)
if (!database) wrongUse(USAGE)

const startedMs = systemClock.monotonicMs()
process.stdout.write(`${messages} messages, ${kills} kills, seed ${seed}, on ${database}\n`)
const server = database === 'postgres' ? await startPostgres() : undefined
if (server) process.env.TIDEMARK_TEST_PG = server.url
const place = await freshPlace(database)
const report = await liveAndArchive({
  messages,
  kills,
  seed,
  poison: 8,
  faults: { profile: 'mixed' },
  ledgerUrl: place.url,
  say: (line) => process.stdout.write(`${line}\n`),
})
await place.remove()
await server?.stop()
const seconds = Math.round((systemClock.monotonicMs() - startedMs) / 1000)
process.stdout.write(`${JSON.stringify({ ...report, seconds })}\n`)
