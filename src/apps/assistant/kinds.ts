/** What the assistant's jobs are given: what they share, their payloads, and each other's kinds, which jobs.ts makes. */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { JobKind } from '../../engine/index.ts'
import type { Obstacles } from '../../engine/obstacles.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Search } from '../../search/search.ts'
import type { AssistAccounts } from './account.ts'
import type { Agents } from './agent/open.ts'
import type { Purpose } from './contract.ts'
import type { LocalClassifier } from './local/classifier.ts'
import type { AssistSettings } from './settings.ts'
import type { AssistTables } from './store/tables.ts'

/** What is asked of models/. */
export type AskModels = {
  ask<T>(question: {
    account: string
    purpose: Purpose
    threadId?: string | undefined
    system: string
    messages: readonly { role: 'user' | 'assistant'; content: string }[]
    schema?: z.ZodType<T>
    signal: AbortSignal
  }): Promise<{ value: T | undefined; text: string; model: string; costMicros: number; callId: number }>
  /** Whether sorting and drafting may cost money. */
  mayCost(agentModels: readonly string[]): boolean
  /** Names the settings and the cap with which it is asked: what was refused for good may be taken with others. */
  fingerprint(account: string): Promise<string>
}

export type AssistDeps = {
  ledger: Ledger
  accounts: AssistAccounts
  tables: AssistTables
  clock: Clock
  settings: AssistSettings
  models: AskModels
  local: LocalClassifier
  /** Where a draft looks for what it may lean on. */
  search: () => Promise<Pick<Search, 'search' | 'read'>>
  agents: Pick<Agents, 'run'>
  /** Where what is refused or odd is told to people. */
  note: (code: string, text: string) => void
}

export const Account = z.object({ account: z.string() })
export const Sync = Account.extend({
  historyId: z.string().default(''),
  forceFull: z.boolean().default(false),
})
/** `tries`: of a draft, how often the model's answer was of no use before. */
export const Thread = Account.extend({ thread: z.string(), tries: z.int().optional() })

export type AccountPayload = z.output<typeof Account>
export type SyncPayload = z.output<typeof Sync>
export type ThreadPayload = z.output<typeof Thread>

export type AssistKinds = AssistDeps & {
  sync: JobKind<SyncPayload>
  classify: JobKind<ThreadPayload>
  draft: JobKind<ThreadPayload>
  cleanup: JobKind<ThreadPayload>
  rework: JobKind<ThreadPayload>
  manualDraft: JobKind<ThreadPayload>
  agent: JobKind<ThreadPayload>
  followUp: JobKind<AccountPayload>
  watch: JobKind<AccountPayload>
  briefing: JobKind<AccountPayload>
  obstacles: Obstacles<'cloud'>
}
