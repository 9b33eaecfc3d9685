/**
 * Mail that a scan finds and a model that costs money would have to read: what it would cost is told first.
 *
 *   scan ─▶ each page of mail that nobody knew: `held`, and no job
 *        ─▶ at its end: few enough, or free, or already agreed to? ─yes─▶ `waiting`, and jobs
 *                                                                 ─no──▶ it is told, and waits for a yes
 *   yes (page, API, `--yes`) ─▶ one commit: `waiting`, and a wish for another scan, which makes the jobs
 *
 * Mail that comes meanwhile goes its own way (history, not a scan). Nothing of this is kept but the state of messages
 * and one flag of the mailbox, so that a crash leads to the same question.
 */
import { formatCount } from '../../base/format.ts'
import { request } from '../../engine/index.ts'
import { streamOf } from './account.ts'
import { type ActionPlace, syncPayload } from './actions.ts'
import type { Estimate, Models } from './models/ask.ts'
import { wantSync } from './store/accounts.ts'
import { releaseHeld } from './store/records.ts'
import type { AssistTables } from './store/tables.ts'

export type Backlog = {
  mails: number
  threads: number
  /** Undefined where no model is configured. */
  classify: Estimate | undefined
  /** Where each of them got a draft: what it costs at most. */
  draft: Estimate | undefined
}

const MILLION = 1_000_000

/** Of all that is on its way, or only of what waits for a yes. */
export async function backlogOf(
  { tables, models }: { tables: AssistTables; models: Pick<Models, 'estimate'> },
  account: string,
  which: 'held' | 'all' = 'held',
): Promise<Backlog> {
  const { mails, threads } = await tables.backlog(account, which)
  const estimate = (purpose: 'classify' | 'draft'): Promise<Estimate | undefined> =>
    models.estimate({ account, purpose, calls: threads })
  return { mails, threads, classify: await estimate('classify'), draft: await estimate('draft') }
}

/** What waits is sorted, whatever it costs within the caps. False where the mailbox is unknown or off. */
export function agreeToBacklog({ engine, kinds }: ActionPlace, account: string): Promise<boolean> {
  return engine.transaction(async (tx) => {
    const nowMs = kinds.clock.now()
    if (!(await wantSync(tx, account, { full: true, agrees: true, nowMs }))) return false
    await releaseHeld(tx, account)
    await tx.enqueue([request(kinds.sync, syncPayload(account), { stream: streamOf(account) })])
    return true
  })
}

export function backlogText({ mails, threads, classify, draft }: Backlog): string {
  if (!classify) return 'No model is configured: sorting costs nothing.'
  const { model, basis, days } = classify
  const by = basis === 'calls' ? 'by what such calls used lately' : 'by the usual length of mail'
  const when =
    days === undefined
      ? '; not even one call fits into the cap of a day'
      : days > 1
        ? `; ${days} days with the cap`
        : ''
  const count = (n: number, word: string): string => `${formatCount(n)} ${word}${n === 1 ? '' : 's'}`
  const drafts = draft ? ` Drafts come on top: ${priceText(draft)} if each of them needed one.` : ''
  return `Sorting ${count(mails, 'waiting message')} in ${count(threads, 'thread')} with ${model} costs about ${priceText(classify)}, ${by}${when}.${drafts}`
}

function priceText({ costMicros, inputTokens, outputTokens }: Estimate): string {
  const tokens = `${formatCount(inputTokens)} tokens in, ${formatCount(outputTokens)} out`
  return `${(costMicros / MILLION).toFixed(4)} (${tokens})`
}
