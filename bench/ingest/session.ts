/** How much the cases of the ingest bench measure. */
import type { BenchOptions } from '../bench.ts'
import { Session as BenchSession } from '../session.ts'

export type Sizes = {
  /** Objects of a run at full speed, and records in each. */
  objects: number
  records: number
  rounds: number
  /** Of one record each. */
  tiny: number
  /**
   * Bytes of one object each, and of one of its records. The first is as long as heap and malloc take to grow to what they
   * keep: some ten seconds.
   */
  hugeBytes: readonly number[]
  hugeRecordBytes: number
  shards: readonly number[]
  /** Records of a version that takes the place of another with as many. */
  swap: number
}

export const FULL: Sizes = {
  objects: 20,
  records: 5_000,
  rounds: 2,
  tiny: 100_000,
  hugeBytes: [1_500_000_000, 5_000_000_000, 15_000_000_000],
  hugeRecordBytes: 900_000,
  shards: [1_000, 10_000, 100_000, 1_000_000],
  swap: 1_000_000,
}

export const QUICK: Sizes = {
  objects: 10,
  records: 1_000,
  rounds: 1,
  tiny: 10_000,
  hugeBytes: [50_000_000, 500_000_000],
  hugeRecordBytes: 900_000,
  shards: [1_000, 10_000],
  swap: 50_000,
}

export class Session extends BenchSession<Sizes> {
  constructor(options: BenchOptions) {
    super(options, { name: 'ingest', full: FULL, quick: QUICK })
  }
}

export const DATABASES = ['sqlite', 'postgres'] as const
export type Database = (typeof DATABASES)[number]
