/** How much the cases of the search bench measure. */
import type { BenchOptions } from '../bench.ts'
import { Session as BenchSession } from '../session.ts'

export type Sizes = {
  /** Of indexes on each database. */
  chunks: { sqlite: readonly number[]; postgres: readonly number[] }
  /** Chunks that a reader sees; those that are at most a fifth of all. */
  visible: readonly number[]
  /** Documents of a round of indexing. */
  indexed: number
  rounds: number
  /** How often each query is asked. */
  asks: number
}

export const FULL: Sizes = {
  chunks: { sqlite: [10_000, 100_000, 1_000_000], postgres: [10_000, 100_000, 1_000_000] },
  visible: [1_000, 20_000, 200_000],
  indexed: 20,
  rounds: 2,
  asks: 5,
}
export const QUICK: Sizes = {
  chunks: { sqlite: [10_000], postgres: [10_000] },
  visible: [1_000],
  indexed: 10,
  rounds: 1,
  asks: 1,
}

export class Session extends BenchSession<Sizes> {
  constructor(options: BenchOptions) {
    super(options, { name: 'search', full: FULL, quick: QUICK })
  }
}
