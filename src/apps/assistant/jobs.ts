/**
 * The assistant, as jobs. What is written when:
 *
 *   assist.sync          a mailbox: what happened since its cursor, or, where that is due, wanted or the history is
 *                        gone, all of its inbox, labels and drafts
 *                        → commit: messages on their way, jobs, the cursor
 *   assist.classify      a conversation with news: rules, model or local classifier
 *                        → commit: the record with its category and the label that it is to have, the event
 *                        → the label in Gmail → commit: that it has it; a draft, where an answer is needed
 *   assist.draft         a conversation that waits for a draft: context, model, guard
 *                        → commit: the draft with its key, its text, the label → the draft in Gmail, the label
 *                        → commit: that it is there
 *   assist.cleanup       what the user did in Gmail (Done, another label, sent, discarded, edited) becomes the record's
 *   assist.rework        the Rework label: the instruction above the mark becomes an order for a draft
 *   assist.manual-draft  the Needs Response label by hand: notes become an order for a draft
 *   assist.agent         a conversation that a routing rule gives to an agent
 *   assist.follow-up     a mailbox: sent mail that asked for something and got no answer
 *   assist.watch         a mailbox: has Gmail push for another week
 *   assist.briefing      a mailbox: what came, what waits, what was done, put into it
 *
 * Payloads only name what a job is about. What is to be done stands in the tables and in Gmail, because a job that is
 * enqueued while another of its key runs is not added: instead, news raise the version of the record, and a job that
 * read an older one looks again (`staleLook`).
 */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { defineJob, type JobKind } from '../../engine/index.ts'
import type { AnyJobKind } from '../../engine/kinds.ts'
import { Obstacles } from '../../engine/obstacles.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type AssistAccounts, accountOf } from './account.ts'
import { type AgentParts, runAgentJob } from './agent-job.ts'
import { runBriefing } from './briefing.ts'
import { runClassify } from './classify.ts'
import { runCleanup } from './cleanup.ts'
import type { ContextSearch } from './context.ts'
import type { Category, Classification, Purpose, VisibleMessage } from './contract.ts'
import { runDraft } from './draft.ts'
import { runFollowUp } from './follow-ups.ts'
import { runManualDraft } from './manual-draft.ts'
import { pastObstacles } from './obstacles.ts'
import { runRework } from './rework.ts'
import type { AssistSettings } from './settings.ts'
import type { AssistTables } from './store/tables.ts'
import { runSync } from './sync.ts'
import { runWatch } from './watch.ts'

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

/** The classifier without a model: local/. */
export type LocalClassifier = {
  classify(
    message: VisibleMessage,
    examples: readonly { text: string; category: Category }[],
    signal: AbortSignal,
  ): Promise<Omit<Classification, 'isAutomated'>>
}

export type AssistDeps = {
  ledger: Ledger
  accounts: AssistAccounts
  tables: AssistTables
  clock: Clock
  settings: AssistSettings
  models: AskModels
  local: LocalClassifier
  search: ContextSearch
  agents: AgentParts
  /** Where what is refused or odd is told to people. */
  note: (code: string, text: string) => void
}

const Account = z.object({ account: z.string() })
const Sync = Account.extend({ historyId: z.string().default(''), forceFull: z.boolean().default(false) })
const Thread = Account.extend({ thread: z.string() })

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

/** What the user waits for goes first; then what keeps the mailbox in step. */
const SYNC_PRIORITY = 3
const USER_PRIORITY = 2
const CLASSIFY_PRIORITY = 1

export function assistKinds(deps: AssistDeps): AssistKinds {
  const budget = (stream: string | null): string => deps.accounts.budget(accountOf(stream ?? ''))
  const { attempts } = deps.settings
  const account = ({ account: name }: AccountPayload): string => name
  const thread = (payload: ThreadPayload): string => `${payload.account}/${payload.thread}`
  const of = { payload: Thread, key: thread, budget, attempts }
  const each = { payload: Account, key: account, budget, attempts, lane: 'bulk' as const }
  const conversation = { noun: 'conversation' }
  const kinds: AssistKinds = {
    ...deps,
    obstacles: new Obstacles<'cloud'>(deps.clock),
    sync: defineJob({
      kind: 'assist.sync',
      payload: Sync,
      key: account,
      attempts,
      lane: 'interactive',
      priority: SYNC_PRIORITY,
      describe: { verb: 'looking at', noun: 'mailbox' },
      run: (job) => pastObstacles(kinds, job, () => runSync(kinds, job)),
    }),
    classify: defineJob({
      ...of,
      kind: 'assist.classify',
      priority: CLASSIFY_PRIORITY,
      describe: { verb: 'sorting', ...conversation },
      run: (job) => pastObstacles(kinds, job, () => runClassify(kinds, job)),
    }),
    draft: defineJob({
      ...of,
      kind: 'assist.draft',
      describe: { verb: 'drafting answers to', ...conversation },
      run: (job) => pastObstacles(kinds, job, () => runDraft(kinds, job)),
    }),
    cleanup: defineJob({
      ...of,
      kind: 'assist.cleanup',
      lane: 'interactive',
      priority: USER_PRIORITY,
      describe: { verb: 'following what you did with', ...conversation },
      run: (job) => pastObstacles(kinds, job, () => runCleanup(kinds, job)),
    }),
    rework: defineJob({
      ...of,
      kind: 'assist.rework',
      lane: 'interactive',
      priority: USER_PRIORITY,
      describe: { verb: 'reworking', ...conversation },
      run: (job) => pastObstacles(kinds, job, () => runRework(kinds, job)),
    }),
    manualDraft: defineJob({
      ...of,
      kind: 'assist.manual-draft',
      lane: 'interactive',
      priority: USER_PRIORITY,
      describe: { verb: 'reading your notes on', ...conversation },
      run: (job) => pastObstacles(kinds, job, () => runManualDraft(kinds, job)),
    }),
    agent: defineJob({
      ...of,
      kind: 'assist.agent',
      describe: { verb: 'letting an agent see to', ...conversation },
      run: (job) => pastObstacles(kinds, job, () => runAgentJob(kinds, job)),
    }),
    followUp: defineJob({
      ...each,
      kind: 'assist.follow-up',
      describe: { verb: 'looking for unanswered mail of', noun: 'mailbox' },
      run: (job) => pastObstacles(kinds, job, () => runFollowUp(kinds, job)),
    }),
    watch: defineJob({
      ...each,
      kind: 'assist.watch',
      describe: { verb: 'asking for pushes of', noun: 'mailbox' },
      run: (job) => pastObstacles(kinds, job, () => runWatch(kinds, job)),
    }),
    briefing: defineJob({
      ...each,
      kind: 'assist.briefing',
      describe: { verb: 'writing the briefing of', noun: 'mailbox' },
      run: (job) => pastObstacles(kinds, job, () => runBriefing(kinds, job)),
    }),
  }
  return kinds
}

export function jobsOf(kinds: AssistKinds): AnyJobKind[] {
  const { sync, classify, draft, cleanup, rework, manualDraft, agent, followUp, watch, briefing } = kinds
  return [sync, classify, draft, cleanup, rework, manualDraft, agent, followUp, watch, briefing]
}
