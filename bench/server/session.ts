/** What the cases of a run share: sizes, processes, a folder that is removed at the end, and what went wrong. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BenchOptions } from '../bench.ts'
import { benchFolder } from '../machine.ts'
import { firstLine, Processes, type Running } from '../mail/processes.ts'

export type Sizes = {
  pages: number
  readsPerS: number
  /** Phases without and with clients take turns; each is measured for so long. */
  phasePairs: number
  quotaPhaseMs: number
  quotaMessages: number
  unboundedPhaseMs: number
  unboundedMessages: number
  silentMs: number
  segments: number
  jobs: number
  readRounds: number
}

export const FULL: Sizes = {
  ...{ pages: 50, readsPerS: 200, phasePairs: 4 },
  ...{ quotaPhaseMs: 12_000, quotaMessages: 4_000, unboundedPhaseMs: 5_000, unboundedMessages: 110_000 },
  ...{ silentMs: 12_000, segments: 100_000, jobs: 1_000_000, readRounds: 50 },
}

export const QUICK: Sizes = {
  ...{ pages: 5, readsPerS: 50, phasePairs: 1 },
  ...{ quotaPhaseMs: 3_000, quotaMessages: 1_000, unboundedPhaseMs: 1_500, unboundedMessages: 12_000 },
  ...{ silentMs: 4_000, segments: 2_000, jobs: 20_000, readRounds: 5 },
}

/** Of every server that is measured. */
export const BENCH_TOKEN = 'a-token-for-the-benches'
export const BENCH_HEADERS = { authorization: `Bearer ${BENCH_TOKEN}` }

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
const SERVE_MS_MAX = 600_000
const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))

export class Session {
  readonly processes = new Processes(CHILD)
  readonly folder = mkdtempSync(join(benchFolder(), 'tidemark-bench-server-'))
  readonly sizes: Sizes
  readonly failures: string[] = []
  readonly #options: BenchOptions
  /** Who is told to stop leaves no process behind. */
  readonly #onSignal = (): void => {
    void this.close().finally(() => process.exit(1))
  }

  constructor(options: BenchOptions) {
    this.#options = options
    this.sizes = options.quick ? QUICK : FULL
    for (const signal of SIGNALS) process.once(signal, this.#onSignal)
  }

  say(line: string): void {
    this.#options.say(line)
  }

  failed(what: string, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error)
    this.failures.push(`${what}: ${why}`)
    this.say(`${what} failed: ${why}`)
  }

  /** `tidemark serve` in a home, on a free port. */
  async serve(env: NodeJS.ProcessEnv, args: readonly string[] = []): Promise<Served> {
    const running = this.processes.tidemark(['serve', '--port', '0', '--json', ...args], {
      env: { ...env, TIDEMARK_LOG_LEVEL: 'warn', TIDEMARK_SERVER_TOKEN: BENCH_TOKEN },
      msMax: SERVE_MS_MAX,
    })
    const { url, pid } = await firstLine<{ url: string; pid: number }>(running)
    return { running, url, pid }
  }

  async close(): Promise<void> {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal)
    await this.processes.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export type Served = { running: Running; url: string; pid: number }

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
