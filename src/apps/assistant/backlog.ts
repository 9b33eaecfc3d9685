/**
 * Mail that a look finds and a model that costs money would have to read: what it would cost is told first.
 *
 *   history ─▶ more at once than is few enough, after an hour without a look or in masses, and not free: `held`, and no job
 *   scan ─▶ each page of mail that nobody knew: `held`, and no job
 *        ─▶ at its end: few enough, or free, or already agreed to? ─yes─▶ `waiting`, and jobs
 *                                                                 ─no──▶ it is told, and waits for a yes
 *        ─▶ drafts that waited for a model, many of them, and one is there that is not free: `held`, and no job
 *   yes (page, API) ─▶ one commit: what is held now is `waiting`; and a wish for another scan, which makes the jobs
 *   `--yes` ahead   ─▶ the same, and what the next scan finds; at its end that is over
 *
 * What is held is told with its price when the look has ended: until then it is being counted, and a yes covers only what
 * was found. Mail that comes meanwhile, a few at a time, goes its own way. Nothing of this is kept but the state of messages
 * and one flag of the mailbox, so that a crash leads to the same question.
 */
import { formatCount } from '../../base/format.ts'
import { request } from '../../engine/index.ts'
import { settingsOf, streamOf } from './account.ts'
import { type ActionPlace, syncPayload } from './actions.ts'
import { routedAgents } from './agent/router.ts'
import type { Purpose } from './contract.ts'
import type { Estimate, Models } from './models/ask.ts'
import { wantSync } from './store/accounts.ts'
import { releaseDrafts, releaseHeld } from './store/records.ts'
import type { AssistTables } from './store/tables.ts'

export type Backlog = {
  mails: number
  threads: number
  /** Besides them: drafts that waited for a model. */
  drafts: number
  /** A look is finding more. */
  isBeingCounted: boolean
  /** Undefined where no model is configured. */
  classify: Estimate | undefined
  /** Where each of them got a draft, and was looked up for it: what it costs at most. */
  draft: Estimate | undefined
  context: Estimate | undefined
  /** Where rules gave each of them to the dearest agent, and that was asked as often as it may be. */
  agent: Estimate | undefined
}

const MILLION = 1_000_000

/** Of all that is on its way, or only of what waits for a yes. */
export async function backlogOf(
  { tables, models }: { tables: AssistTables; models: Pick<Models, 'estimate'> },
  account: string,
  which: 'held' | 'all' = 'held',
): Promise<Backlog> {
  const found = await tables.backlog(account, which)
  const { threads, drafts } = found
  const estimate = (purpose: Purpose, calls: number): Promise<Estimate | undefined> =>
    models.estimate({ account, purpose, calls })
  const row = await tables.account(account)
  const agents = await Promise.all(
    (row ? routedAgents(settingsOf(row)) : []).map(({ model, max_iterations }) =>
      models.estimate({
        account,
        purpose: 'agent',
        calls: threads * max_iterations,
        model: model || undefined,
      }),
    ),
  )
  const dearest = agents.filter((one) => one !== undefined).sort((a, b) => b.costMicros - a.costMicros)
  return {
    ...found,
    classify: await estimate('classify', threads),
    draft: await estimate('draft', threads + drafts),
    context: await estimate('context', threads + drafts),
    agent: dearest[0],
  }
}

/**
 * What waits now is sorted, whatever it costs within the caps; `ahead`: what the next scan finds as well. False where the
 * mailbox is unknown or off.
 */
export function agreeToBacklog(
  { engine, kinds }: ActionPlace,
  account: string,
  { ahead = false }: { ahead?: boolean } = {},
): Promise<boolean> {
  return engine.transaction(async (tx) => {
    const nowMs = kinds.clock.now()
    if (!(await wantSync(tx, account, { full: true, agrees: ahead, nowMs }))) return false
    await releaseHeld(tx, account)
    await releaseDrafts(tx, account)
    await tx.enqueue([request(kinds.sync, syncPayload(account), { stream: streamOf(account) })])
    return true
  })
}

export function backlogText(backlog: Backlog): string {
  const { mails, threads, drafts: waiting, classify, draft, context, agent } = backlog
  if (backlog.isBeingCounted) {
    return 'Mail is still being counted: what sorting it costs is said when that is done.'
  }
  const count = (n: number, word: string): string => `${formatCount(n)} ${word}${n === 1 ? '' : 's'}`
  const lookUps = context ? `, and ${priceText(context)} for what they are looked up with` : ''
  if (mails === 0 && waiting > 0 && draft) {
    return `Writing ${count(waiting, 'draft')} that waited for a model costs about ${priceText(draft)} with ${draft.model}${lookUps}.`
  }
  const agents = agent
    ? ` Agents cost ${priceText(agent)} at most, if rules gave all of them to the dearest one.`
    : ''
  if (!classify && agent) return `Sorting costs nothing.${agents}`
  if (!classify) return 'No model is configured: sorting costs nothing.'
  const { model, basis, days } = classify
  const by = basis === 'calls' ? 'by what such calls used lately' : 'by the usual length of mail'
  const when =
    days === undefined
      ? '; not even one call fits into the cap of a day'
      : days > 1
        ? `; ${days} days with the cap`
        : ''
  const also = waiting > 0 ? `, with the ${count(waiting, 'draft')} that waited for a model` : ''
  const drafts = draft
    ? ` Drafts come on top: ${priceText(draft)} if each of them needed one${also}${lookUps}.`
    : ''
  return `Sorting ${count(mails, 'waiting message')} in ${count(threads, 'thread')} with ${model} costs about ${priceText(classify)}, ${by}${when}.${drafts}${agents}`
}

function priceText({ costMicros, inputTokens, outputTokens }: Estimate): string {
  const tokens = `${formatCount(inputTokens)} tokens in, ${formatCount(outputTokens)} out`
  return `${(costMicros / MILLION).toFixed(4)} (${tokens})`
}
