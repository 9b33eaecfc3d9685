/**
 * The dry run: what a run would do and what it would refuse, by class. Changes nothing anywhere. One
 * that was interrupted goes on after the last page that it told of, and a hiccup of Gmail costs a moment only.
 */
import { z } from 'zod'
import { type Clock, sleep } from '../../../base/clock.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { MailAccount } from '../account.ts'
import { changesOfStored, type Stretch } from '../compare.ts'
import type { NewRun, Sum } from '../store/journal.ts'
import type { MailTables } from '../store/tables.ts'
import { addPassedOver, candidatePages, Place, type Selection, type Standing } from './candidates.ts'
import { type Examining, examine, messageStanding } from './examination.ts'
import { historySince } from './followed-state.ts'
import { selectionOf } from './selection.ts'
import { mayDecide } from './verdict.ts'

const SumSchema = z.object({ messages: z.number(), bytes: z.number(), example: z.string().optional() })

const SurveySchema = z.object({
  markS: z.number().nullable(),
  /** What would be done. `proven` only if the bytes were read and Gmail was asked. */
  proven: SumSchema,
  depth: z.enum(['full', 'index']),
  /** What would leave Gmail's quota: at once for a deletion, after 30 days for the trash. */
  freedBytes: z.number(),
  refused: z.record(z.string(), SumSchema),
  unsearched: z.array(z.string()),
})
export type Survey = z.output<typeof SurveySchema>

/** How far a survey got; as JSON, the checkpoint of a job. */
export const SurveyProgress = z.object({
  survey: SurveySchema,
  place: Place.nullable(),
  /** Candidates, whether they passed or not. */
  looked: z.number(),
})
export type SurveyProgress = z.output<typeof SurveyProgress>

export type SurveyInput = {
  run: Omit<NewRun, 'approved'>
  account: MailAccount
  ledger: Ledger
  tables: MailTables
  clock: Clock
  depth: 'full' | 'index'
  signal: AbortSignal
  onLook?: (messages: number) => void
  /** Where an earlier one was interrupted. */
  from?: SurveyProgress | null
  onPage?: (progress: SurveyProgress) => Promise<void>
}

/** Before another try when Gmail cannot be reached; afterwards it is no hiccup. */
const RETRY_AFTER_MS = [250, 500, 1_000, 2_000, 4_000]
/** Of all messages, and as many again for their labels: for a guess at what listing costs. */
const LISTINGS = 3
const LIST_PAGE_MESSAGES = 500
/** As many as a batch of a run: what is said of Gmail is as fresh as it is there. */
const GROUP_MESSAGES = 200

export async function surveyRun(input: SurveyInput): Promise<Survey> {
  return (await surveyFrom(input)).survey
}

export async function surveyFrom(input: SurveyInput): Promise<SurveyProgress> {
  const { run, account, ledger, clock, depth, signal } = input
  const tables = async (): Promise<MailTables> => input.tables
  const selection = await selectionOf({ tables }, { ...run, createdAtMs: clock.now() })
  const standing = await messageStanding({ ledger, clock, tables }, account)
  const progress = input.from ?? newProgress(depth)
  const { survey } = progress
  survey.markS = standing.markS
  let source: Source = 'each'
  let asked = 0
  let left = (run.messagesMax ?? Number.POSITIVE_INFINITY) - progress.looked
  for await (const page of candidatePages(account.archive, selection, standing, progress.place)) {
    survey.refused = addPassedOver(survey.refused, page.passedOver)
    survey.unsearched = [...new Set([...survey.unsearched, ...page.unsearched])]
    const taken = page.candidates.slice(0, left)
    left -= taken.length
    asked += taken.length
    if (depth === 'full' && source === 'each') {
      source = await patiently(input, () => sourceFor(input, { standing, selection, messages: asked }))
    }
    for (let at = 0; at < taken.length; at += GROUP_MESSAGES) {
      signal.throwIfAborted()
      const group = taken.slice(at, at + GROUP_MESSAGES)
      const options = {
        account,
        standing,
        purpose: selection,
        signal,
        depth,
        asking: 'history' as const,
        ...(typeof source === 'string' ? {} : source),
      }
      const { passed, refused } = await patiently(input, () => examine(group, options))
      for (const { candidate } of passed) addTo(survey.proven, candidate)
      const entries = refused.map((one) => ({ entry: one, class: one.class }))
      survey.refused = addPassedOver(survey.refused, entries)
      progress.looked += group.length
      input.onLook?.(progress.looked)
    }
    if (run.action !== 'unlabel') survey.freedBytes = survey.proven.bytes
    if (left <= 0 || page.next === null) break
    progress.place = page.next
    await input.onPage?.(progress)
  }
  return progress
}

/** Where Gmail's word comes from: its history, a listing, or messages one by one. */
type Source = 'history' | 'each' | Pick<Examining, 'standing' | 'listed'>

/**
 * Where Gmail no longer has the history since the cursor, listings of the labels that decide say the same for much less
 * than asking for each of many messages, and what happens meanwhile is in the history again. Of a mailbox, UNREAD,
 * IMPORTANT and the categories are the largest labels, and they rarely decide.
 */
async function sourceFor(
  { account, tables, signal }: Pick<SurveyInput, 'account' | 'tables' | 'signal'>,
  { standing, selection, messages }: { standing: Standing; selection: Selection; messages: number },
): Promise<Source> {
  if (messages === 0) return 'each'
  if (await historySince(account, standing.cursor, signal)) return 'history'
  const { client, name } = account
  const { historyId, messagesTotal } = await client.profile({ signal })
  const decides = (id: string): boolean => mayDecide(selection, id)
  const labelIds = (await tables.labels(name)).map(({ id }) => id).filter(decides)
  const pages = labelIds.length + LISTINGS * Math.ceil(messagesTotal / LIST_PAGE_MESSAGES)
  // A page costs no more than a message does, or a quarter of it.
  if (pages > messages) return 'each'
  const options = { labelIds, isTrusted: (id: string) => !decides(id), signal }
  const { vanished, relabeled } = await changesOfStored(account, stretchOf(selection, standing), options)
  const listed = new Map<string, readonly string[] | 'gone'>(relabeled.map((one) => [one.id, one.labelIds]))
  for (const id of vanished) listed.set(id, 'gone')
  return { standing: { ...standing, cursor: historyId, stale: new Set() }, listed }
}

/** All candidates are older than both. */
function stretchOf({ cutoffMs }: Selection, { markS }: Standing): Stretch {
  const cutoffS = Math.ceil(cutoffMs / 1000)
  return { fromS: null, toS: markS === null ? cutoffS : Math.min(markS, cutoffS) }
}

function newProgress(depth: Survey['depth']): SurveyProgress {
  const survey = { markS: null, depth, freedBytes: 0, unsearched: [], refused: {} }
  return { survey: { ...survey, proven: { messages: 0, bytes: 0 } }, place: null, looked: 0 }
}

async function patiently<Found>(
  { clock, signal }: Pick<SurveyInput, 'clock' | 'signal'>,
  look: () => Promise<Found>,
): Promise<Found> {
  for (const waitMs of RETRY_AFTER_MS) {
    try {
      return await look()
    } catch (thrown) {
      const { kind, retryAfterMs } = asTidemarkError(thrown)
      if (signal.aborted || (kind !== 'transient' && kind !== 'throttled')) throw thrown
      await sleep(clock, Math.max(waitMs, retryAfterMs ?? 0), signal)
    }
  }
  return look()
}

function addTo(sum: Sum, { id, bytes }: { id: string; bytes: number }): void {
  sum.messages += 1
  sum.bytes += bytes
  sum.example ??= id
}
