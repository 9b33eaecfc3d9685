/**
 * What `npm test` runs: lint, types, then every test with one real PostgreSQL beside them.
 * `npm test -- PATH…` runs only these files or folders, without lint and types.
 *
 * The run fails when a test fails, when one is skipped or marked todo, when a file holds no test,
 * and when a process that a test started is still there at the end. The last line is always
 * `N passed, N failed, N skipped`, in which lint and types count as one each.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { endLeftovers, markRun } from './leftovers.ts'
import { type PostgresServer, startPostgres } from './postgres.ts'
import { addTally, emptyTally, runFile, type Tally } from './test-file.ts'

const ROOT = join(import.meta.dirname, '..')
const TEST_GLOB = '{src,web,scripts,bench,e2e,examples}/**/*.test.ts'
const E2E_ENDING = '.e2e.test.ts'

/** End-to-end tests start processes of their own and measure them: one file at a time. */
const CONCURRENCY = { unit: 2, e2e: 1 }

/** Long enough for the slowest end-to-end file on a busy machine; a hang must still end the run. */
const FILE_MS_MAX = { unit: 120_000, e2e: 240_000 }

type Group = 'unit' | 'e2e'

const stop = new AbortController()

async function main(): Promise<number> {
  const paths = process.argv.slice(2)
  const missing = paths.filter((path) => locate(path) === undefined)
  const files = findTests(paths)
  if (missing.length > 0 || files.length === 0) {
    const what = missing.length > 0 ? 'There is no' : 'No test file (*.test.ts) in'
    process.stderr.write(`${what} ${(missing.length > 0 ? missing : paths).join(', ')}\n`)
    return 2
  }
  const total = emptyTally()
  if (paths.length === 0) {
    await step('lint', () => check(total, 'lint', ['node_modules/@biomejs/biome/bin/biome', 'check', '.']))
    await step('types', () => check(total, 'types', ['node_modules/typescript/bin/tsc', '--noEmit']))
    await step('types of the dashboard', () =>
      check(total, 'types of the dashboard', ['node_modules/typescript/bin/tsc', '--noEmit', '-p', 'web']),
    )
  }
  await withPostgres({ files, total }, async () => {
    for (const group of ['unit', 'e2e'] as const) {
      const members = files.filter((file) => groupOf(file) === group)
      if (members.length > 0) await step(group, () => runGroup({ group, files: members, total }))
    }
  })
  return report(total)
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

function groupOf(file: string): Group {
  return file.endsWith(E2E_ENDING) ? 'e2e' : 'unit'
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
  }
}

async function runGroup(input: { group: Group; files: string[]; total: Tally }): Promise<void> {
  const waiting = [...input.files]
  const worker = async (): Promise<void> => {
    for (let file = waiting.shift(); file && !stop.signal.aborted; file = waiting.shift()) {
      const tally = await runFile({ file, limitMs: FILE_MS_MAX[input.group], signal: stop.signal })
      printFile(file, tally)
      addTally(input.total, tally)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY[input.group] }, worker))
}

function printFile(file: string, tally: Tally): void {
  const bad = tally.failures.length > 0 || tally.skipped.length > 0
  const name = nameOf(file)
  const word = bad ? 'FAIL' : 'ok  '
  process.stdout.write(`${word} ${name}: ${tally.passed} passed, ${seconds(tally.durationMs)}\n`)
  if (bad) process.stdout.write(describe(tally, { withOutput: true }))
}

function describe(tally: Tally, options: { withOutput: boolean }): string {
  const parts: string[] = []
  for (const { file, title, detail } of tally.failures) {
    parts.push(`  failed: ${nameOf(file)} › ${title}`)
    if (detail && options.withOutput) parts.push(indent(detail))
  }
  for (const { file, title, detail } of tally.skipped) {
    parts.push(`  skipped: ${nameOf(file)} › ${title}${detail ? ` (${detail})` : ''}`)
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

function nameOf(file: string): string {
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
