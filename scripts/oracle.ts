/**
 * `npm run oracle -- files [--histories 1000] [--seed N] [--acts 20] [--crashes 5] [--db sqlite|postgres] [--kills]
 * [--shrink]`: the proof of the file sync at length. Random histories of both sides, under faults and quirks, with
 * crashes between any two steps; each is compared with what people did (e2e/files/oracle.ts). Those that fail print a
 * replay, which `--shrink` makes short. With `--kills` the sync is a process of its own, and is killed.
 */
import { parseArgs } from 'node:util'
import { makeHistory, pasted } from '../e2e/files/history.ts'
import { runHistory } from '../e2e/files/run.ts'
import { shrink } from '../e2e/files/shrink.ts'
import { systemClock } from '../src/clock.ts'
import { seededRandom, systemRandom } from '../src/random.ts'
import { startPostgres } from './postgres.ts'

const DATABASES = ['sqlite', 'postgres'] as const

const OPTIONS = {
  allowPositionals: true,
  options: {
    histories: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Math.floor(systemRandom() * 2 ** 31)) },
    acts: { type: 'string', default: '20' },
    crashes: { type: 'string', default: '5' },
    db: { type: 'string', default: 'sqlite' },
    kills: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
  },
} as const

function wrongUse(): never {
  process.stderr.write(
    'npm run oracle -- files [--histories N] [--seed S] [--acts N] [--crashes N] [--db sqlite|postgres] [--kills] [--shrink]\n',
  )
  process.exit(2)
}

function readOptions(): ReturnType<typeof parseArgs<typeof OPTIONS>> {
  try {
    return parseArgs(OPTIONS)
  } catch {
    return wrongUse()
  }
}

const { values, positionals } = readOptions()
const numbers = [values.histories, values.seed, values.acts, values.crashes].map(Number)
const [histories, first, acts, crashes] = numbers as [number, number, number, number]
const database = DATABASES.find((name) => name === values.db)
if (positionals.join() !== 'files' || !numbers.every((n) => Number.isInteger(n) && n >= 0)) wrongUse()
if (!database) wrongUse()

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const sync = values.kills ? 'process' : 'here'
const server = database === 'postgres' ? await startPostgres() : undefined
if (server) process.env.TIDEMARK_TEST_PG = server.url
const startedMs = systemClock.monotonicMs()
const totals = { histories: 0, acts: 0, actions: 0, crashes: 0, failed: 0 }
const SAID_EVERY = 100
say(`${histories} histories from seed ${first}`)
for (let seed = first; seed < first + histories; seed++) {
  const lines = makeHistory(seededRandom(seed), { acts, crashes })
  const ran = await runHistory(lines, { seed, sync, database })
  totals.histories += 1
  totals.acts += ran.acts
  totals.actions += ran.actions
  totals.crashes += ran.crashes
  if (ran.failure !== undefined) {
    totals.failed += 1
    say(`seed ${seed} failed: ${ran.failure}`)
    const found = values.shrink
      ? await shrink(lines, ran.failure, { seed, sync, database })
      : { lines, failure: '' }
    say(`${found.failure}\n${pasted(found.lines)}`)
  }
  if (totals.histories % SAID_EVERY === 0) say(JSON.stringify(totals))
}
const seconds = Math.round((systemClock.monotonicMs() - startedMs) / 1000)
say(JSON.stringify({ ...totals, seconds }))
await server?.stop()
process.exitCode = totals.failed > 0 ? 1 : 0
