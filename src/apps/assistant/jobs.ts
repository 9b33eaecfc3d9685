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
import { defineJob } from '../../engine/index.ts'
import type { AnyJobKind } from '../../engine/job-kind.ts'
import { Obstacles } from '../../engine/obstacles.ts'
import { accountOf } from './account.ts'
import { runAgentJob } from './agent-job.ts'
import { runBriefing } from './briefing.ts'
import { runClassify } from './classify.ts'
import { runCleanup } from './cleanup.ts'
import { runDraft } from './draft.ts'
import { runFollowUp } from './follow-ups.ts'
import {
  Account,
  type AccountPayload,
  type AssistDeps,
  type AssistKinds,
  Sync,
  Thread,
  type ThreadPayload,
} from './kinds.ts'
import { runManualDraft } from './manual-draft.ts'
import { pastObstacles } from './obstacles.ts'
import { runRework } from './rework.ts'
import { runSync } from './sync.ts'
import { runWatch } from './watch.ts'

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
