/** What a child process is told (in CRASH_CHILD, as JSON) and what it says (on its output, a JSON object per line). */
import type { CommitPoint } from '../../src/ledger/cycle.ts'
import type { SourceSize } from './source.ts'

export type ChildOptions = {
  ledger: string
  size: SourceSize
  leaseMs: number
  workers: number
  kill?: { point: CommitPoint; hit: number }
}

export type Saying =
  | { say: 'ready'; owner: number }
  | { say: 'done'; hits: Partial<Record<CommitPoint, number>> }
  | { say: 'tick'; n: number }
  | { say: 'stopped' }
  | { say: 'event'; what: string }

/** A child says `tick` each time it has begun so many cycles. */
export const CYCLES_PER_TICK = 5
