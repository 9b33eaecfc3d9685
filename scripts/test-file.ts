/** Runs one test file in a process of its own and says what came out of it. */
import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { run } from 'node:test'
import { inspect } from 'node:util'

export type Finding = { file: string; title: string; detail?: string }

export type Tally = {
  passed: number
  failures: Finding[]
  /** Skipped and todo alike: neither proves anything. */
  skipped: Finding[]
  durationMs: number
  /** Of the file's process and of those that it started, up to a moment before its end; 0 where Linux does not tell. */
  processorMs: number
  /** What the file printed, its end only. */
  output: string
}

const OUTPUT_CHARS_MAX = 20_000

export function emptyTally(): Tally {
  return { passed: 0, failures: [], skipped: [], durationMs: 0, processorMs: 0, output: '' }
}

export function addTally(total: Tally, part: Tally): void {
  total.passed += part.passed
  total.failures.push(...part.failures)
  total.skipped.push(...part.skipped)
  total.durationMs += part.durationMs
  total.processorMs += part.processorMs
}

/**
 * A file that gets on may take as long as a slow machine needs; one of which nothing is heard hangs, be it in a test or
 * because its process does not end after them, for which the runner itself waits for ever.
 */
export async function runFile(input: {
  file: string
  env?: NodeJS.ProcessEnv
  /** Of a machine that has nothing else to do. */
  silenceMs: number
  signal: AbortSignal
}): Promise<Tally> {
  const { file, env = process.env, silenceMs } = input
  const startedMs = performance.now()
  const hangs = new AbortController()
  const silence = new Silence()
  let processorMs = 0
  const watch = setInterval(() => {
    processorMs = processorMsOfChild(file) ?? processorMs
    if (silence.pass(LOOK_MS, busyness()) > silenceMs) hangs.abort(new Error('nothing was heard of it'))
  }, LOOK_MS)
  const signal = AbortSignal.any([hangs.signal, input.signal])
  const collector = new Collector(file)
  const options = { files: [file], env, isolation: 'process', concurrency: false, signal } as const
  for await (const event of run(options)) {
    silence.end()
    collector.take(event as TestEvent)
  }
  clearInterval(watch)
  const tally = collector.finish()
  if (hangs.signal.aborted) {
    tally.failures.push({ file, title: `nothing was heard of the file for ${silenceMs / 1000} s` })
  }
  tally.durationMs = performance.now() - startedMs
  tally.processorMs = processorMs
  return tally
}

const LOOK_MS = 250

/** Linux counts in hundredths of a second. */
const TICK_MS = 10

/** Of the process that runs the file, with the processes that it has waited for. */
function processorMsOfChild(file: string): number | undefined {
  try {
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
    const pid = children.find((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').endsWith(`${file}\0`))
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // After the name, which may hold anything: user, system, and both of the children, from the 12th field on.
    const ticks = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15)
    return ticks.reduce((sum, text) => sum + Number(text), 0) * TICK_MS
  } catch {
    // Another system, or the process has ended.
    return undefined
  }
}

/** How many want a core for each core that there is; one, if nobody has to wait. */
function busyness(): number {
  const [minute = 0] = loadavg()
  return Math.max(1, minute / availableParallelism())
}

/** How long nothing was heard, in the time of a quiet machine: on one that is five times too busy, a fifth. */
export class Silence {
  #ms = 0

  pass(ms: number, timesTooBusy: number): number {
    this.#ms += ms / timesTooBusy
    return this.#ms
  }

  end(): void {
    this.#ms = 0
  }
}

/** The part of node:test's events that is used here; its own types are a union without tags. */
type TestEvent = {
  type: string
  data: {
    name: string
    nesting: number
    file?: string
    skip?: string | boolean
    todo?: string | boolean
    message?: string
    details?: { type?: 'suite' | 'test'; error?: Error & { cause?: unknown; failureType?: string } }
  }
}

class Collector {
  readonly #tally = emptyTally()
  readonly #file: string
  readonly #path: string[] = []
  #ended = false

  constructor(file: string) {
    this.#file = file
  }

  take({ type, data }: TestEvent): void {
    if (type === 'test:start') this.#path.splice(data.nesting, Number.POSITIVE_INFINITY, data.name)
    else if (type === 'test:pass' || type === 'test:fail') this.#takeResult(type, data)
    else if (type === 'test:stdout' || type === 'test:stderr') this.#print(data.message ?? '')
    else if (type === 'test:summary' && data.file) this.#ended = true
  }

  finish(): Tally {
    const failed = this.#tally.failures.length > 0
    if (!this.#ended && !failed) {
      this.#fail('the file ended before its tests did, or holds none', undefined)
    } else if (this.#tally.passed === 0 && this.#tally.skipped.length === 0 && !failed) {
      this.#fail('no test ran', undefined)
    }
    return this.#tally
  }

  #takeResult(type: 'test:pass' | 'test:fail', data: TestEvent['data']): void {
    const title = [...this.#path.slice(0, data.nesting), data.name].join(' › ')
    const error = data.details?.error
    // The file as a whole is reported as a test when it holds none, or when its process failed.
    const isFile = data.nesting === 0 && data.name === this.#file
    if (data.skip !== undefined || data.todo !== undefined) {
      const reason = data.skip ?? data.todo
      const detail = typeof reason === 'string' && reason ? reason : undefined
      this.#tally.skipped.push({ file: this.#file, title, detail })
    } else if (type === 'test:fail') {
      if (isFile) this.#fail(`the process failed: ${error?.message}`, undefined)
      else if (error?.failureType !== 'subtestsFailed') this.#fail(title, error)
    } else if (data.details?.type !== 'suite' && !isFile) {
      this.#tally.passed++
    }
  }

  #fail(title: string, error: (Error & { cause?: unknown }) | undefined): void {
    const detail = error && describeError(error)
    this.#tally.failures.push({ file: this.#file, title, ...(detail ? { detail } : {}) })
  }

  #print(text: string): void {
    this.#tally.output = (this.#tally.output + text).slice(-OUTPUT_CHARS_MAX)
  }
}

/** node:test wraps what the test threw; the cause is what a person wants to read. */
function describeError(error: Error & { cause?: unknown }): string {
  return describeThrown(error.cause ?? error)
}

function describeThrown(thrown: unknown): string {
  if (!(thrown instanceof Error)) return typeof thrown === 'string' ? thrown : inspect(thrown)
  const { stack, message, cause, ...rest } = thrown as Error & Record<string, unknown>
  // Frames of the runner say nothing about the test.
  const lines = (typeof stack === 'string' ? stack : message)
    .split('\n')
    .filter((line) => !/^\s+at .*node:(internal\/|async_hooks)/.test(line))
  const facts = Object.entries(rest).filter(([name]) => !ASSERTION_FIELDS.has(name))
  for (const [name, value] of facts) lines.push(`${name}: ${inspect(value)}`)
  if (cause !== undefined) lines.push(`caused by: ${describeThrown(cause)}`)
  return lines.join('\n')
}

/** Already in an assertion's message, as a difference. */
const ASSERTION_FIELDS = new Set(['generatedMessage', 'code', 'actual', 'expected', 'operator', 'diff'])
