/**
 * What every bench with processes of its own shares: sizes, processes, a folder that is removed at the end, steps of
 * which one may fail without the others, and how numbers are set beside their aims.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Bench, BenchOptions, BenchRun, Row } from './bench.ts'
import { benchFolder } from './machine.ts'
import { Processes } from './processes.ts'
import { formatValue } from './table.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export class Session<Sizes> {
  readonly processes: Processes
  readonly folder: string
  readonly sizes: Sizes
  readonly rows: Row[] = []
  readonly failures: string[] = []
  /** What is worth saying besides the rows. */
  readonly notes: string[] = []
  readonly options: BenchOptions
  /** Who is told to stop leaves no process behind. */
  readonly #onSignal = (): void => {
    void this.close().finally(() => process.exit(1))
  }

  /** `name` is that of the bench's folder, whose child.ts takes the orders. */
  constructor(options: BenchOptions, bench: { name: string; full: Sizes; quick: Sizes }) {
    this.options = options
    this.sizes = options.quick ? bench.quick : bench.full
    this.processes = new Processes(fileURLToPath(new URL(`./${bench.name}/child.ts`, import.meta.url)))
    this.folder = mkdtempSync(join(benchFolder(), `tidemark-bench-${bench.name}-`))
    for (const signal of SIGNALS) process.once(signal, this.#onSignal)
  }

  say(line: string): void {
    this.options.say(line)
  }

  failed(what: string, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error)
    this.failures.push(`${what}: ${why}`)
    this.say(`${what} failed: ${why}`)
  }

  /** Whether a case is run: all are, unless some are named by parts of their names. */
  wants(name: string): boolean {
    return isWanted(this.options, name)
  }

  /** The rows of one case, if it is wanted; a failure is noted, and the next one begins. */
  async step(name: string, work: () => Promise<Row[]>): Promise<void> {
    if (!this.wants(name)) return
    await this.attempt(name, work)
  }

  /** The same, whatever was named. */
  async attempt(name: string, work: () => Promise<Row[]>): Promise<void> {
    try {
      this.rows.push(...(await work()))
    } catch (error) {
      this.failed(name, error)
    }
  }

  async close(): Promise<void> {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal)
    await this.processes.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export function isWanted({ only }: Pick<BenchOptions, 'only'>, name: string): boolean {
  return only.length === 0 || only.some((text) => name.includes(text))
}

/** A bench of steps in one session. */
export function benchOfSteps<Sizes, Own extends Session<Sizes>>(bench: {
  title: string
  open(options: BenchOptions): Own
  run(session: Own): Promise<void>
  /** Under which the numbers hold, one sentence each. */
  conditions(sizes: Sizes): string[]
  /** Each aim beside what was reached. */
  aims(rows: readonly Row[]): string[]
}): Bench {
  return {
    title: bench.title,
    async run(options): Promise<BenchRun> {
      const loadBefore = loadavg()[0]!
      const session = bench.open(options)
      try {
        await bench.run(session)
      } finally {
        await session.close()
      }
      const { rows, failures, notes, sizes } = session
      const load = [loadBefore, loadavg()[0]!].map(formatValue)
      return {
        rows,
        failures,
        conditions: [
          ...(options.quick ? ['**quick run: small sizes, one run each; not for quoting**'] : []),
          `what else ran on this machine: its load, over a minute, was ${load[0]} before and ${load[1]} after the run; what came from the run itself is in the second number only`,
          ...bench.conditions(sizes),
        ],
        explanation: [...section('Against the aims', bench.aims(rows)), ...section('Details', notes)],
      }
    },
  }
}

/** A chapter of Markdown, where there is something to say. */
export function section(title: string, lines: readonly string[]): string[] {
  return lines.length > 0 ? [[`### ${title}`, '', ...lines.map((line) => `- ${line}`)].join('\n')] : []
}

export function verdict(isMet: boolean): string {
  return isMet ? 'met' : '**missed**'
}

/** Of the rows of one pattern: what is reached is said as it is, beside the aim. */
export type Aim = { of: RegExp; isMet: (value: number) => boolean; text: string }

export function below(max: number, unit: string): Omit<Aim, 'of'> {
  return { isMet: (value) => value < max, text: `below ${formatValue(max)} ${unit}` }
}

export function atMost(max: number): Omit<Aim, 'of'> {
  return { isMet: (value) => value <= max, text: `at most ${max}` }
}

export function aimLines(rows: readonly Row[], aims: readonly Aim[]): string[] {
  return rows.flatMap((row) => {
    const aim = aims.find(({ of }) => row.subject === 'tidemark' && of.test(row.case))
    if (!aim) return []
    return [
      `${row.case}: ${formatValue(row.value)} ${row.unit} (${aim.text}: ${verdict(aim.isMet(row.value))})`,
    ]
  })
}

export function row(name: string, subject: string, value: number, unit: string): Row {
  const digits = value < 100 ? 100 : 1
  return { case: name, subject, value: Math.round(value * digits) / digits, unit }
}

const TICKS_PER_S = 100

/** Seconds of processor time so far, of all threads; from /proc. */
export function cpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S
}

export function residentMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kb) / 1024
}

/** Of sorted values. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
