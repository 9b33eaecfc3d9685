/** What the jobs of the clean-up are given: what they share, their payloads, and their kinds, which jobs.ts makes. */
import { z } from 'zod'
import type { Clock } from '../../../base/clock.ts'
import type { JobKind } from '../../../engine/job-kind.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { MailAccounts } from '../account.ts'
import type { Obstacles } from '../obstacles.ts'
import type { ArchiveJournal } from '../store/journal.ts'
import type { MailTables } from '../store/tables.ts'

/** Where a test may end the world. */
export type CleanUpPoint =
  | 'examined'
  | 'intended'
  | 'called'
  | 'told'
  | 'finished'
  | 'restored'
  | 'inserting'
  | 'inserted'
  | 'reinserted'

export type CleanUpDeps = {
  accounts: MailAccounts
  ledger: Ledger
  clock: Clock
  /** What is in the way of an account's work, as the sync knows it; then batches wait, and an outage costs no try. */
  obstacles?: Obstacles
  point?: (name: CleanUpPoint) => void | Promise<void>
}

export const Plan = z.object({ run: z.number() })
export const Batch = z.object({
  run: z.number(),
  batch: z.number(),
  do: z.enum(['act', 'undo']),
  /** Of an undo: what is inserted again keeps the time of its arrival, and gets a Date header that says so. */
  keepDates: z.boolean().optional(),
})

export type PlanPayload = z.output<typeof Plan>
export type BatchPayload = z.output<typeof Batch>

export const ProofPayload = z.object({
  /** As it was asked for, by which it is recognised. */
  wish: z.object({
    account: z.string(),
    olderThan: z.string(),
    query: z.string(),
    action: z.enum(['unlabel', 'trash', 'delete']),
  }),
  run: z.object({
    account: z.string(),
    action: z.enum(['unlabel', 'trash', 'delete']),
    label: z.string().nullable(),
    query: z.string(),
    cutoffMs: z.number(),
    messagesMax: z.number().nullable(),
  }),
})
export type ProofPayload = z.output<typeof ProofPayload>

export type CleanUpKinds = {
  accounts: MailAccounts
  ledger: Ledger
  clock: Clock
  journal: () => Promise<ArchiveJournal>
  tables: () => Promise<MailTables>
  point: (name: CleanUpPoint) => void | Promise<void>
  plan: JobKind<PlanPayload>
  proof: JobKind<ProofPayload>
  batch: JobKind<BatchPayload>
  /** The same job, taking the place of one that is under way: an undo does not wait for what it undoes. */
  instead: JobKind<BatchPayload>
}
