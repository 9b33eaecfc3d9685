/** How much the cases of the mail bench measure. */
import type { BenchOptions } from '../bench.ts'
import { Session as BenchSession } from '../session.ts'

export type QuotaWorld = {
  name: string
  unitsPerMinute: number
  messages: number
  /** From the middle of the measurement on, another client of the same user eats this share. */
  otherShare: number
}

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

export class Session extends BenchSession<Sizes> {
  constructor(options: BenchOptions) {
    super(options, { name: 'mail', full: FULL, quick: QUICK })
  }
}
