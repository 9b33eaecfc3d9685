/** What the cases of a run share: sizes, processes, a folder that is removed at the end, and what went wrong. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchOptions } from '../bench.ts'
import { benchFolder } from '../machine.ts'
import { Processes } from './processes.ts'
import type { QuotaWorld } from './quota-case.ts'

export type Sizes = {
  quotaWarmUpMs: number
  quotaMs: number
  quotaWorlds: readonly QuotaWorld[]
  speedMessages: number
  speedRuns: number
  memoryMessages: readonly [number, number]
  searchRounds: number
  unchangedMessages: number
}

const MINUTE_MS = 60_000
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export const FULL: Sizes = {
  quotaWarmUpMs: 30_000,
  quotaMs: 2.5 * MINUTE_MS,
  quotaWorlds: worlds({ small: 2_500, large: 5_000 }),
  speedMessages: 20_000,
  speedRuns: 2,
  memoryMessages: [10_000, 200_000],
  searchRounds: 5,
  unchangedMessages: 2_000,
}

export const QUICK: Sizes = {
  quotaWarmUpMs: 5_000,
  quotaMs: 12_000,
  quotaWorlds: worlds({ small: 500, large: 800 }),
  speedMessages: 2_000,
  speedRuns: 1,
  memoryMessages: [500, 2_000],
  searchRounds: 2,
  unchangedMessages: 300,
}

/** More messages than can be fetched in the time. */
function worlds({ small, large }: { small: number; large: number }): QuotaWorld[] {
  return [
    { name: '6,000 units/min', unitsPerMinute: 6_000, messages: small, otherShare: 0 },
    { name: '15,000 units/min', unitsPerMinute: 15_000, messages: large, otherShare: 0 },
    { name: '6,000 units/min, half eaten midway', unitsPerMinute: 6_000, messages: small, otherShare: 0.5 },
  ]
}

export class Session {
  readonly processes = new Processes()
  readonly folder = mkdtempSync(join(benchFolder(), 'tidemark-bench-mail-'))
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

  async close(): Promise<void> {
    for (const signal of SIGNALS) process.off(signal, this.#onSignal)
    await this.processes.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
