/**
 * What `npm run example` runs: three made-up mailboxes of letters, copied by the engine into a
 * SQLite file. Worth trying: press Ctrl-C, or kill -9 it, and start it again with the same --home.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createEngine, type Engine, handleSignals, systemClock, TidemarkError } from 'tidemark/engine'
import { systemRandom } from '../src/base/random.ts'
import { letterJobs, planMailboxes, TABLES } from './letter-jobs.ts'
import { balanceOf, eventLine, isolatedLines, progressLine } from './letter-report.ts'
import { MAILBOXES, PostOffice } from './post-office.ts'

const HELP = `npm run example -- [--home FOLDER] [--mend] [--speed N]

  --home FOLDER  keep the ledger there; the next start with it goes on where this one ended
  --mend         the post office mends its damaged letters; those isolated as bad are tried again
  --speed N      everything takes an Nth of its time (1)
`
const WORKERS = 8
const LOOK_MS = 400

const print = (line = ''): void => void process.stdout.write(`${line}\n`)

type Options = { home: string; temporary: boolean; mend: boolean; speed: number }

async function main(options: Options): Promise<number> {
  const office = new PostOffice({ speed: options.speed, mended: options.mend, random: systemRandom })
  const waits: number[] = []
  const jobs = letterJobs(office, (waitedMs) => waits.push(waitedMs))
  const engine = await createEngine({
    ledger: `sqlite:${join(options.home, 'ledger.db')}`,
    jobs: Object.values(jobs),
    workers: WORKERS,
    name: 'example',
  })
  await engine.ledger.migrateApp('example', TABLES)
  const isNew = await planMailboxes(engine, jobs)
  print(`${isNew ? 'A new ledger' : 'Going on with the ledger'} in ${options.home}. Ctrl-C stops.`)
  print('Three made-up mailboxes are copied; long calls are cut off at times, and two letters are damaged.')
  if (options.mend) print(`Trying again what was isolated as bad: ${await engine.ledger.retryBad()} letters`)

  const stopSignal = new AbortController()
  handleSignals({
    process,
    clock: systemClock,
    onStop: () => stopSignal.abort(),
    onReload: () => print('There is no configuration here to be read again.'),
    exit: (code) => process.exit(code),
    onError: (error) => print(String(error)),
  })
  engine.events.on((event) => {
    const line = eventLine(event)
    if (line) print(line)
  })
  await engine.start()
  await watch(engine, jobs, { stop: stopSignal.signal, speed: options.speed })
  const interrupted = stopSignal.signal.aborted
  if (interrupted) print('Stopping: calls under way are aborted, and their letters are fetched next time.')
  else await summarize(engine, waits)
  const { balanced } = await balanceOf(engine)
  await engine.stop()
  return end(options, { interrupted, balanced })
}

/** Looks regularly, and opens a letter each time, until all mailboxes are copied or someone stops it. */
async function watch(
  engine: Engine,
  { open }: ReturnType<typeof letterJobs>,
  { stop, speed }: { stop: AbortSignal; speed: number },
): Promise<void> {
  const startedMs = systemClock.monotonicMs()
  const ids = Object.keys(MAILBOXES).map((mailbox) => `${mailbox}/2026-01/01`)
  for (let looks = 0; ; looks++) {
    try {
      await pass(LOOK_MS / speed, undefined, { signal: stop })
    } catch {
      return // someone pressed Ctrl-C
    }
    const streams = await engine.ledger.streams()
    print(progressLine(streams, systemClock.monotonicMs() - startedMs))
    if (!(await hasBulkWork(engine))) break
    await engine.enqueue(open, { id: ids[looks % ids.length]! })
  }
  await Promise.race([engine.drained(), new Promise((resolve) => stop.addEventListener('abort', resolve))])
}

async function hasBulkWork(engine: Engine): Promise<boolean> {
  const tallies = await engine.ledger.tallies()
  return tallies.some(
    ({ kind, stage }) =>
      kind.startsWith('letters.') &&
      kind !== 'letters.open' &&
      ['ready', 'deps', 'time', 'claimed'].includes(stage),
  )
}

async function summarize(engine: Engine, waits: readonly number[]): Promise<void> {
  print()
  for (const line of (await balanceOf(engine)).lines) print(line)
  const isolated = await isolatedLines(engine)
  print(`isolated as bad: ${isolated.length === 0 ? 'none' : ''}`.trimEnd())
  for (const line of isolated) print(line)
  const longest = waits.length === 0 ? '' : `; the longest waited ${Math.max(...waits)} ms for a worker`
  print(`letters opened meanwhile, in the interactive lane: ${waits.length}${longest}`)
}

function end(
  options: Options,
  { interrupted, balanced }: { interrupted: boolean; balanced: boolean },
): number {
  const again = `npm run example -- --home ${options.home}`
  if (interrupted) {
    print(`Stopped; nothing is lost. To go on: ${again}`)
    return 0
  }
  if (!balanced) {
    print(`The books do not balance, which must never happen. The ledger is kept in ${options.home}`)
    return 1
  }
  if (options.temporary) {
    rmSync(options.home, { recursive: true, force: true })
    print('To keep the ledger and look into it: npm run example -- --home FOLDER')
  } else print(`To look closer: bin/tidemark --home ${options.home} status`)
  return 0
}

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      home: { type: 'string' },
      mend: { type: 'boolean', default: false },
      speed: { type: 'string', default: '1' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  const speed = Number(values.speed)
  if (!(speed > 0)) throw new Error(`--speed must be a number above 0, not ${values.speed}.`)
  // npm runs scripts in the project's folder, whichever folder it was called in.
  const home = values.home && resolve(process.env.INIT_CWD ?? '', values.home)
  if (home) mkdirSync(home, { recursive: true })
  return {
    home: home ?? mkdtempSync(join(tmpdir(), 'tidemark-start-')),
    temporary: !home,
    mend: values.mend,
    speed,
  }
}

// A reader that has seen enough (`| head`) is no error; leaving at once is safe at any moment.
process.stdout.on('error', () => process.exit(0))

try {
  const options = readOptions()
  if (options) process.exitCode = await main(options)
  else process.stdout.write(HELP)
} catch (thrown) {
  process.stderr.write(`${thrown instanceof Error ? thrown.message : String(thrown)}\n`)
  if (thrown instanceof TidemarkError && thrown.hint) process.stderr.write(`${thrown.hint}\n`)
  process.exitCode = 1
}
