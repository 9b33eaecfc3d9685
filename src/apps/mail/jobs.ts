/**
 * The sync, as jobs. What is written when:
 *
 *   mail.plan       asks for the mailbox's history id first, then cuts time into slices
 *                   → commit: slices, their listers, the history id as cursor
 *   mail.list       a slice: ids page by page, those never listed before into batches
 *                   → commit per page: ids as listed, full batches, where to go on; at the end: sealed
 *   mail.fetch      a batch: raw bytes from the cloud, onto disk in the archive's shards (durable), then
 *                   → commit: what became of each id, which may settle the slice and move the mark
 *   mail.history    what changed since the cursor: labels and deletions onto disk in the shards (repeatable), then
 *                   → commit: new ids as a segment with its batches, and the new cursor
 *   mail.reconcile  when the history has expired: the mailbox compared with the archive, window by window
 *
 * A crash between the shards' commit and the ledger's only repeats work: storing again changes nothing, and what
 * is already stored is not fetched again.
 */
import { z } from 'zod'
import { defineJob, type Outcome, type RunContext, request, TidemarkError } from '../../engine/index.ts'
import type { AnyJobKind } from '../../engine/job-kind.ts'
import { Obstacles as EngineObstacles } from '../../engine/obstacles.ts'
import { accountOf, type MailAccount } from './account.ts'
import { runFetch } from './fetch.ts'
import { runHistory } from './history.ts'
import { Account, Batch, KeyedMutex, type MailDeps, type MailKinds, Slice } from './kinds.ts'
import { runListing } from './listing.ts'
import { readTotals } from './mailbox-totals.ts'
import { pastObstacles } from './obstacles.ts'
import {
  BatchSize,
  FailureRate,
  granularityFor,
  markOf,
  sliceQuery,
  slicesOf,
  standingAlone,
  wantsSpamOrTrash,
} from './plan.ts'
import { runReconcile } from './reconcile.ts'
import { noteUncompared } from './store/missing-messages.ts'
import { noteLabels, notePlan, noteTotals } from './store/tables.ts'

/** What batches are fetched before more are listed: the mark moves early, and the ledger stays small. */
const FETCH_PRIORITY = 1
const HISTORY_PRIORITY = 2

export function mailKinds(deps: MailDeps): MailKinds {
  const sizes = new Map<string, BatchSize>()
  const rates = new Map<string, FailureRate>()
  const budget = (stream: string | null): string => deps.accounts.budget(accountOf(stream ?? ''))
  const kinds: MailKinds = {
    ...deps,
    listingLock: new KeyedMutex(),
    obstacles: new EngineObstacles(deps.clock),
    batchSize: (account) => sizes.getOrInsertComputed(account, () => new BatchSize(deps.settings.batch)),
    failureRate: (account) => rates.getOrInsertComputed(account, () => new FailureRate()),
    plan: defineJob({
      kind: 'mail.plan',
      payload: Account,
      key: ({ account }) => account,
      budget,
      describe: { verb: 'planning', noun: 'mailbox' },
      run: (job) => pastObstacles(kinds, job, job.payload.account, () => planSlices(kinds, job)),
    }),
    list: defineJob({
      kind: 'mail.list',
      payload: Slice,
      lane: 'bulk',
      budget,
      describe: { verb: 'listing', noun: 'slice' },
      run: (job) => pastObstacles(kinds, job, job.payload.account, () => runListing(kinds, job)),
    }),
    fetch: defineJob({
      kind: 'mail.fetch',
      payload: Batch,
      lane: 'bulk',
      priority: FETCH_PRIORITY,
      budget,
      cost: deps.settings.priceOfGet,
      items: { of: ({ ids }) => ids, only: (payload, ids) => ({ ...payload, ids: [...ids] }) },
      describe: { verb: 'fetching', noun: 'message' },
      run: (job) => runFetch(kinds, job),
    }),
    history: defineJob({
      kind: 'mail.history',
      payload: Account,
      key: ({ account }) => account,
      lane: 'interactive',
      priority: HISTORY_PRIORITY,
      budget,
      describe: { verb: 'checking', noun: 'mailbox' },
      run: (job) => pastObstacles(kinds, job, job.payload.account, () => runHistory(kinds, job)),
    }),
    reconcile: defineJob({
      kind: 'mail.reconcile',
      payload: Account,
      key: ({ account }) => account,
      lane: 'bulk',
      priority: HISTORY_PRIORITY,
      budget,
      describe: { verb: 'comparing', noun: 'mailbox' },
      run: (job) => pastObstacles(kinds, job, job.payload.account, () => runReconcile(kinds, job)),
    }),
  }
  return kinds
}

export function jobsOf({ plan, list, fetch, history, reconcile, indexing }: MailKinds): AnyJobKind[] {
  return [plan, list, fetch, history, reconcile, ...(indexing ? [indexing.kind] : [])]
}

/** How far the planning of slices is: a search of some steps, each of which a call may take long for. */
const Planning = z.object({
  historyId: z.string(),
  messages: z.number(),
  atMs: z.number(),
  /** The oldest message lies between these days; null before the first step. */
  days: z.tuple([z.number(), z.number()]).nullable(),
})
type Planning = z.output<typeof Planning>

async function planSlices(kinds: MailKinds, job: RunContext<{ account: string }>): Promise<Outcome> {
  const { accounts, ledger, clock, settings } = kinds
  const { signal, payload } = job
  const name = payload.account
  const account = await accounts.get(name)
  const stream = await ledger.stream(account.stream)
  if (stream.tail_at > 0) return { skip: 'its slices are planned already' }
  // First of all: what happens to the mailbox from here on is found in its history.
  const state = Planning.nullable().parse(job.checkpoint) ?? (await anchored(account, clock.now(), signal))
  await job.commit({ checkpoint: state })
  const labels = await account.client.labels({ signal })
  const { atMs } = state
  const endS = Math.floor(atMs / 1000)
  const sinceS = settings.sinceMs === undefined ? null : Math.floor(settings.sinceMs / 1000)
  if (sinceS !== null && (sinceS <= 0 || sinceS >= endS)) {
    throw new TidemarkError('the start that was asked for lies in the future or before 1970', {
      kind: 'permanent',
    })
  }
  const granularity = granularityFor(state.messages, settings.slice)
  const oldestS = (await oldestSecond(account, job, { state, fromS: sinceS ?? 0, toS: endS })) ?? endS - 1
  const slices = slicesOf({ originS: sinceS ?? 0, oldestS, endS, granularity })
  const totals = await readTotals(account, { atMs: clock.now(), signal })
  const hasMail = (await account.archive.shards()).some(({ messages }) => messages > 0)
  const leftOut =
    sinceS === null
      ? []
      : [
          {
            streamId: stream.id,
            from: 0,
            to: sinceS,
            mark: markOf(sinceS),
            label: 'left out',
            ref: 'left-out',
          },
        ]
  return {
    cursor: state.historyId,
    segments: [
      ...leftOut,
      ...slices.map(({ fromS, toS }) => ({
        streamId: stream.id,
        from: fromS,
        to: toS,
        mark: markOf(toS),
        ref: `slice-${fromS}`,
      })),
    ],
    counts: leftOut.map(({ ref }) => ({ segment: ref, seal: true })),
    jobs: slices.map(({ fromS, toS }, index) =>
      request(
        kinds.list,
        {
          // With what is left out before it, nobody else lists its first second.
          account: name,
          fromS: index === 0 ? Math.max(0, fromS - 1) : fromS,
          toS,
          isFirst: index === 0 && sinceS === null,
          isLast: index === slices.length - 1,
        },
        { segment: `slice-${fromS}`, items: 0 },
      ),
    ),
    effects: async (tx) => {
      await noteLabels(tx, name, labels)
      await notePlan(tx, { account: name, granularity, sinceS, atMs, choices: account.choices })
      await noteTotals(tx, name, totals)
      if (hasMail) await noteUncompared(tx, name)
    },
    note: `${slices.length} slices, one a ${granularity}`,
  }
}

const DAY_S = 86_400

async function anchored(account: MailAccount, atMs: number, signal: AbortSignal): Promise<Planning> {
  const { historyId, messagesTotal } = await account.client.profile({ signal })
  return { historyId, messages: messagesTotal, atMs, days: null }
}

/**
 * The day of the oldest message, by asking whether there is any before a day: a few calls for any mailbox. Each is noted:
 * whoever is killed again and again goes on with the next.
 */
async function oldestSecond(
  account: MailAccount,
  job: RunContext<{ account: string }>,
  { state, fromS, toS }: { state: Planning; fromS: number; toS: number },
): Promise<number | null> {
  const { signal } = job
  const { choices, client } = account
  const anyBefore = async (dayS: number): Promise<boolean> => {
    const bounds = { fromS: fromS > 0 ? fromS : null, toS: dayS }
    const query = sliceQuery(standingAlone(bounds), choices)
    const includeSpamTrash = wantsSpamOrTrash(choices)
    const page = await client.listIds({ query, includeSpamTrash, maxResults: 1, signal })
    return page.ids.length > 0
  }
  if (state.days === null && !(await anyBefore(toS))) return null
  let [low, high] = state.days ?? [Math.floor(fromS / DAY_S), Math.ceil(toS / DAY_S)]
  // None before the start of day `low`, some before that of `high`.
  while (high - low > 1) {
    await job.commit({ checkpoint: { ...state, days: [low, high] } })
    const middle = Math.floor((low + high) / 2)
    if (await anyBefore(middle * DAY_S)) high = middle
    else low = middle
  }
  return low * DAY_S
}
