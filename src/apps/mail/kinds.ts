/** What the jobs of the sync are given: what they share, their payloads, and each other's kinds, which jobs.ts makes. */
import { z } from 'zod'
import type { Indexing } from '../../app/documents.ts'
import type { Clock } from '../../base/clock.ts'
import type { JobKind } from '../../engine/index.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { MailAccounts } from './account.ts'
import type { Obstacles } from './obstacles.ts'
import type { BatchSize, FailureRate, Granularity } from './plan.ts'
import type { MailTables } from './store/tables.ts'

export type SyncSettings = {
  slice: Granularity | 'auto'
  sliceByLabel: string | undefined
  batch: number
  /** Older mail is left out; fixed by the first sync. */
  sinceMs: number | undefined
  priceOfGet: number
}

export type MailDeps = {
  accounts: MailAccounts
  tables: MailTables
  ledger: Ledger
  clock: Clock
  settings: SyncSettings
  /** Undefined where mail is not to be found in the one search. */
  indexing?: Indexing | undefined
}

export const Account = z.object({ account: z.string() })
export const Slice = z.object({
  account: z.string(),
  fromS: z.number(),
  toS: z.number(),
  /** Asked for without a bound on that side. */
  isFirst: z.boolean(),
  isLast: z.boolean(),
})
export const Batch = z.object({
  account: z.string(),
  ids: z.array(z.string()),
  /** Fetched again although they are stored: something about them changed, or their bytes are damaged. */
  refresh: z.boolean().optional(),
  /** At most so many in one request: left of a batch of which some could not be had (fetch.ts). */
  perCall: z.number().optional(),
})

export type SlicePayload = z.output<typeof Slice>
export type BatchPayload = z.output<typeof Batch>

/** What the handlers share. */
export type MailKinds = MailDeps & {
  plan: JobKind<{ account: string }>
  list: JobKind<SlicePayload>
  fetch: JobKind<BatchPayload>
  history: JobKind<{ account: string }>
  reconcile: JobKind<{ account: string }>
  /** Held by whoever reads which ids of an account are known and writes new ones. */
  listingLock: KeyedMutex
  /** What is in the way of an account's work. */
  obstacles: Obstacles
  batchSize(account: string): BatchSize
  failureRate(account: string): FailureRate
}

/** One after another for each name, in the order in which they came. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(name: string, fn: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve()
    const result = before.then(fn, fn)
    this.#last.set(name, result)
    try {
      return await result
    } finally {
      if (this.#last.get(name) === result) this.#last.delete(name)
    }
  }
}
