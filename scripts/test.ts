/**
 * What `npm test` runs: lint, types, then every test with one real PostgreSQL beside them.
 * `npm test -- PATH…` runs only these files or folders, without lint and types.
 * `npm test -- --changed [REF]` runs lint, types and the tests that reach what differs from REF, or from main.
 *
 * A few files run at a time, the longest first, each in a process of its own. None has a limit of time: a file that
 * gets on may take what a busy machine needs, and one of which nothing is heard any more is ended.
 *
 * The run fails when a test fails, when one is skipped or marked todo, when a file holds no test,
 * and when a process that a test started is still there at the end. The last line is always
 * `N passed, N failed, N skipped`, in which lint and types count as one each.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { endLeftovers, markRun } from './leftovers.ts'
import { type PostgresServer, startPostgres } from './postgres.ts'
import { addTally, emptyTally, runFile, type Tally } from './test-file.ts'
import { memoryFolder, needsDisk } from './test-folder.ts'
import { longestFirst, readTimes, writeTimes } from './test-order.ts'
import { changedFiles, repositoryFiles, testsConcerned } from './test-selection.ts'

const ROOT = join(import.meta.dirname, '..')
const TEST_GLOB = '{src,web,scripts,bench,e2e,examples}/**/*.test.ts'

/**
 * A file waits for about a third of its time: for disks, timers and processes. With one more than there are cores, two
 * cores were busy for four fifths of a run: 25 minutes of processor time in 15.8.
 */
const WORKERS = availableParallelism() + 2

/** Of a quiet machine: ten times the slowest single test. A hang must still end the run. */
const SILENCE_MS_MAX = 300_000

const TIMES_FILE = join(ROOT, 'node_modules', '.cache', 'test-times.json')
const REF_DEFAULT = 'main'

type Wanted = { files: string[]; withChecks: boolean }

/** Test files and the threads and processes they start load hundreds of modules each: compiled once for all of them. */
process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'node_modules', '.cache', 'tests')

/** For the files that need a disk. */
const DISK_TMPDIR = tmpdir()

const stop = new AbortController()

async function main(): Promise<number> {
  const wanted = choose(process.argv.slice(2))
  if (typeof wanted === 'string') {
    process.stderr.write(`${wanted}\n`)
    return 2
  }
  const { files, withChecks } = wanted
  const total = emptyTally()
  if (withChecks) {
    await step('lint', () => check(total, 'lint', ['node_modules/@biomejs/biome/bin/biome', 'check', '.']))
    await step('types', () => check(total, 'types', ['node_modules/typescript/bin/tsc', '--noEmit']))
    await step('types of the dashboard', () =>
      check(total, 'types of the dashboard', ['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'web']),
    )
  }
  if (files.length > 0) {
    await withPostgres({ files, total }, () => step('tests', () => runFiles({ files, total })))
  }
  return report(total)
}

/** What the arguments ask for, or what is wrong with them. */
function choose(args: string[]): Wanted | string {
  const [first, ref = REF_DEFAULT] = args
  if (first === '--changed') return args.length > 2 ? '--changed takes one reference' : chooseChanged(ref)
  const missing = args.filter((path) => locate(path) === undefined)
  if (missing.length > 0) return `There is no ${missing.join(', ')}`
  const files = findTests(args)
  if (files.length === 0) return `No test file (*.test.ts) in ${args.join(', ')}`
  return { files, withChecks: args.length === 0 }
}

function chooseChanged(ref: string): Wanted | string {
  let changed: string[]
  try {
    changed = changedFiles(ROOT, ref)
  } catch (error) {
    return `What differs from ${ref} cannot be told: ${(error as Error).message}`
  }
  const concerned = testsConcerned(repositoryFiles(ROOT), changed).map((path) => join(ROOT, path))
  const files = findTests([]).filter((file) => concerned.includes(file))
  process.stdout.write(`${changed.length} files differ from ${ref}; ${files.length} test files reach them\n`)
  return { files, withChecks: true }
}

function findTests(paths: string[]): string[] {
  if (paths.length === 0) return globTests(ROOT, TEST_GLOB)
  const found = paths.flatMap((path) => {
    const full = locate(path)
    if (full === undefined) return []
    return statSync(full).isDirectory() ? globTests(full, '**/*.test.ts') : [full]
  })
  return [...new Set(found)]
}

function globTests(folder: string, pattern: string): string[] {
  const exclude = (name: string): boolean => name.endsWith('node_modules')
  const found = globSync(pattern, { cwd: folder, exclude })
  return found.map((path) => join(folder, path)).sort()
}

/** npm runs scripts in the project's folder, whichever folder it was called in. */
function locate(path: string): string | undefined {
  const candidates = [ROOT, process.env.INIT_CWD ?? ROOT].map((base) => resolve(base, path))
  return candidates.find((full) => statSync(full, { throwIfNoEntry: false }) !== undefined)
}

async function step(name: string, run: () => Promise<void>): Promise<void> {
  if (stop.signal.aborted) return
  process.stdout.write(`\n== ${name}\n`)
  const startedMs = performance.now()
  await run()
  process.stdout.write(`== ${name}: ${seconds(performance.now() - startedMs)}\n`)
}

async function check(total: Tally, name: string, args: string[]): Promise<void> {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit' })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code === 0) total.passed++
  else total.failures.push({ file: name, title: `${name} found problems, printed above` })
}

/** A single file starts a server of its own if it needs one (see test-database.ts). */
async function withPostgres(
  input: { files: string[]; total: Tally },
  run: () => Promise<void>,
): Promise<void> {
  let server: PostgresServer | undefined
  const memory = memoryFolder()
  if (memory) process.env.TMPDIR = memory.path
  try {
    if (input.files.length > 1) {
      await step('postgres', async () => {
        server = await startPostgres()
      })
      process.env.TIDEMARK_TEST_PG = server?.url
    }
    markRun()
    await run()
  } catch (error) {
    const detail = error instanceof Error ? error.stack : String(error)
    input.total.failures.push({ file: 'run', title: `the run broke off: ${detail}` })
  } finally {
    await server?.stop()
    memory?.remove()
  }
}

async function runFiles(input: { files: string[]; total: Tally }): Promise<void> {
  const waiting = longestFirst(input.files, { times: readTimes(TIMES_FILE), nameOf: relativeName })
  const times: Record<string, number> = {}
  const worker = async (): Promise<void> => {
    for (let file = waiting.shift(); file && !stop.signal.aborted; file = waiting.shift()) {
      const env = { ...process.env, ...(needsDisk(relativeName(file)) && { TMPDIR: DISK_TMPDIR }) }
      const tally = await runFile({ file, env, silenceMs: SILENCE_MS_MAX, signal: stop.signal })
      printFile(file, tally)
      addTally(input.total, tally)
      if (tally.failures.length === 0) times[relativeName(file)] = Math.round(tally.durationMs)
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, worker))
  process.stdout.write(`All files together: processor ${seconds(input.total.processorMs)}\n`)
  writeTimes(TIMES_FILE, { times, exists: (name) => existsSync(join(ROOT, name)) })
}

function printFile(file: string, tally: Tally): void {
  const bad = tally.failures.length > 0 || tally.skipped.length > 0
  const name = relativeName(file)
  const word = bad ? 'FAIL' : 'ok  '
  const took = `${seconds(tally.durationMs)}, processor ${seconds(tally.processorMs)}`
  process.stdout.write(`${word} ${name}: ${tally.passed} passed, ${took}\n`)
  if (bad) process.stdout.write(describe(tally, { withOutput: true }))
}

function describe(tally: Tally, options: { withOutput: boolean }): string {
  const parts: string[] = []
  for (const { file, title, detail } of tally.failures) {
    parts.push(`  failed: ${relativeName(file)} › ${title}`)
    if (detail && options.withOutput) parts.push(indent(detail))
  }
  for (const { file, title, detail } of tally.skipped) {
    parts.push(`  skipped: ${relativeName(file)} › ${title}${detail ? ` (${detail})` : ''}`)
  }
  if (options.withOutput && tally.output) parts.push('  what the file printed:', indent(tally.output))
  return parts.map((part) => `${part}\n`).join('')
}

async function report(total: Tally): Promise<number> {
  for (const leftover of await endLeftovers()) {
    total.failures.push({ file: 'run', title: `a test left a process behind, now ended: ${leftover}` })
  }
  if (stop.signal.aborted) total.failures.push({ file: 'run', title: 'interrupted' })
  const ok = total.failures.length === 0 && total.skipped.length === 0
  if (!ok) process.stdout.write(`\n== what went wrong\n${describe(total, { withOutput: false })}`)
  if (total.skipped.length > 0) process.stdout.write('  A skipped or todo test fails the run.\n')
  const counts = `${total.passed} passed, ${total.failures.length} failed, ${total.skipped.length} skipped`
  process.stdout.write(`\n${counts}\n`)
  return ok ? 0 : 1
}

function relativeName(file: string): string {
  const path = relative(ROOT, file)
  return path.startsWith('..') ? file : path
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, '    ')
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** npm passes on a Ctrl-C that the terminal has sent us already: that is not a second one. */
const SECOND_SIGNAL_MS_MIN = 500
let interruptedMs = 0

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (!stop.signal.aborted) {
      interruptedMs = performance.now()
      stop.abort(new Error(`interrupted by ${signal}`))
    } else if (performance.now() - interruptedMs > SECOND_SIGNAL_MS_MIN) {
      // At once: PostgreSQL is ended by its guard.
      process.exit(130)
    }
  })
}
process.exitCode = await main()
