/** What the cases of the server bench share: sizes, and servers in processes of their own. */
import type { BenchOptions } from '../bench.ts'
import { firstLine, type Running } from '../processes.ts'
import { Session as BenchSession } from '../session.ts'

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
  pages: 50,
  readsPerS: 200,
  phasePairs: 4,
  quotaPhaseMs: 12_000,
  quotaMessages: 4_000,
  unboundedPhaseMs: 5_000,
  unboundedMessages: 110_000,
  silentMs: 12_000,
  segments: 100_000,
  jobs: 1_000_000,
  readRounds: 50,
}

export const QUICK: Sizes = {
  pages: 5,
  readsPerS: 50,
  phasePairs: 1,
  quotaPhaseMs: 3_000,
  quotaMessages: 1_000,
  unboundedPhaseMs: 1_500,
  unboundedMessages: 12_000,
  silentMs: 4_000,
  segments: 2_000,
  jobs: 20_000,
  readRounds: 5,
}

/** Of every server that is measured. */
export const BENCH_TOKEN = 'a-token-for-the-benches'
export const BENCH_HEADERS = { authorization: `Bearer ${BENCH_TOKEN}` }

const SERVE_MS_MAX = 600_000

export class Session extends BenchSession<Sizes> {
  constructor(options: BenchOptions) {
    super(options, { name: 'server', full: FULL, quick: QUICK })
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
}

export type Served = { running: Running; url: string; pid: number }
