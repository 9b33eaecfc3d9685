/**
 * When the history has expired: the whole mailbox is compared with the archive, year by year, for what is new, what
 * is gone and whose labels changed. The history id to go on from is taken before the comparison begins.
 *
 * It begins when the slices are listed: what it finds first is counted in its own segment, at the end of the stream, and
 * a slice that finds nothing left to list would let the mark pass messages that nobody has fetched yet.
 */
import { z } from 'zod'
import { hasJobs } from '../../app/sources.ts'
import { type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { MailAccount } from './account.ts'
import { compareStretch, type Difference, type Stretch } from './compare.ts'
import type { MailKinds } from './kinds.ts'
import { noticeLosses } from './losses.ts'
import { readTotals } from './mailbox-totals.ts'
import type { MessageChange } from './message.ts'
import { chunksOf, markOf } from './plan.ts'
import { noteCompared } from './store/missing-messages.ts'
import { noteStale } from './store/stale-labels.ts'
import { noteChoices, noteFresh, noteLabels, noteReturned, noteTotals } from './store/tables.ts'
import { holding } from './watermark.ts'

const State = z.object({
  historyId: z.string(),
  /** Where its segment begins. */
  fromS: z.number(),
  done: z.number(),
  /** Everything before it is compared; null at the start. By time, because files may come and go meanwhile. */
  uptoS: z.number().nullable().default(null),
  /** How old the archive was found to be before; null in a comparison that an older version has begun. */
  noticed: z.object({ older: z.number(), compared: z.number() }).nullable().default(null),
})
type State = z.output<typeof State>

const LISTING_WAIT_MS = 2_000

export async function runReconcile(kinds: MailKinds, job: RunContext<{ account: string }>): Promise<Outcome> {
  const { ledger, clock } = kinds
  const account = await kinds.accounts.get(job.payload.account)
  const resumed = State.nullable().parse(job.checkpoint)
  // Failed listers are not waited for: nobody knows when somebody sees to them.
  if (!resumed && (await hasJobs(ledger, { kind: kinds.list.kind, stream: account.stream }))) {
    return { again: { afterMs: LISTING_WAIT_MS }, note: 'waits until the slices are listed' }
  }
  const state = resumed ?? (await begin(kinds, job, account))
  const labels = await account.client.labels({ signal: job.signal })
  const { id: streamId } = await ledger.stream(account.stream)
  const [segment] = await ledger.segments(streamId, { fromAt: state.fromS, limit: 1 })
  const stretches = await stretchesOf(account, state.uptoS)
  const total = state.done + stretches.length
  for (const stretch of stretches) {
    const options = {
      labelIds: labels.map(({ id }) => id),
      signal: job.signal,
      // A year may have many pages and labels: this says that it is alive.
      onPage: (pages: number) => job.progress({ label: `comparing, page ${pages}` }),
    }
    const difference = await compareStretch(account, stretch, options)
    state.done += 1
    // The last one is compared again after a crash: there is no later time to note.
    if (stretch.toS !== null) state.uptoS = stretch.toS
    await kinds.listingLock.run(account.name, () =>
      mend(kinds, job, account, { difference, state, segmentId: segment!.id }),
    )
    job.progress({ done: state.done, total, unit: 'items', label: 'comparing' })
  }
  const totals = await readTotals(account, { atMs: clock.now(), signal: job.signal })
  return {
    counts: [{ segment: segment!.id, seal: true }],
    cursor: state.historyId,
    effects: async (tx) => {
      await noteLabels(tx, account.name, labels)
      await noteChoices(tx, account.name, account.choices)
      await noteTotals(tx, account.name, totals)
      if (state.noticed) await noteCompared(tx, account.name, state.noticed)
    },
    // Reads on from there, and notes when it has.
    jobs: [request(kinds.history, { account: account.name })],
    note: `compared ${state.done} stretches of the mailbox with the archive`,
  }
}

async function begin(
  kinds: MailKinds,
  job: RunContext<{ account: string }>,
  account: MailAccount,
): Promise<State> {
  const { ledger, clock } = kinds
  const noticed = await noticeLosses(kinds, account)
  const { historyId } = await account.client.profile({ signal: job.signal })
  return kinds.listingLock.run(account.name, async () => {
    const stream = await ledger.stream(account.stream)
    const { id: streamId, tail_at: fromS } = stream
    const state = { historyId, fromS, done: 0, uptoS: null, noticed }
    const to = Math.max(fromS + 1, Math.floor(clock.now() / 1000))
    await job.commit({
      segments: [{ streamId, from: fromS, to, mark: markOf(to), label: 'reconcile' }],
      effects: await holding(ledger, stream, await kinds.tables.findMailbox(account.name)),
      checkpoint: state,
    })
    return state
  })
}

/** End to end from there on, and open at both ends: no message is outside. */
async function stretchesOf({ archive }: MailAccount, uptoS: number | null): Promise<Stretch[]> {
  const starts = [...new Set((await archive.shards()).map(({ fromMs }) => Math.ceil(fromMs / 1000)))].sort(
    (a, b) => a - b,
  )
  const cuts = starts.slice(1).filter((startS) => uptoS === null || startS > uptoS)
  return [...cuts, null].map((toS, index) => ({ fromS: index === 0 ? uptoS : cuts[index - 1]!, toS }))
}

async function mend(
  { tables, clock, fetch, batchSize }: MailKinds,
  job: RunContext<{ account: string }>,
  account: MailAccount,
  { difference, state, segmentId }: { difference: Difference; state: State; segmentId: number },
): Promise<void> {
  const { historyId } = state
  const changes: MessageChange[] = [
    ...difference.vanished.map((id) => ({ id, historyId, deletedAtMs: clock.now() })),
    ...difference.returned.map((id) => ({ id, historyId, restored: true as const })),
    ...difference.relabeled.map(({ id, labelIds }) => ({ id, historyId, setLabelIds: labelIds })),
  ]
  // Of some the archive has heard since: what it has may be neither what was listed here nor what is true now.
  const { newer } = changes.length > 0 ? await account.archive.apply(changes) : { newer: [] as string[] }
  const size = batchSize(account.name).size
  const fresh = await tables.unlisted(account.name, difference.missing)
  const isFresh = new Set(fresh)
  const known = difference.missing.filter((id) => !isFresh.has(id))
  await job.commit({
    counts: fresh.length > 0 ? [{ segment: segmentId, listed: fresh.length }] : [],
    jobs: [
      ...chunksOf(fresh, size).map((ids) =>
        request(fetch, { account: account.name, ids }, { segment: segmentId }),
      ),
      // Listed before, and neither stored nor gone: on their way, bad, or lost from a shard.
      ...chunksOf(known, size).map((ids) => request(fetch, { account: account.name, ids })),
      ...chunksOf(newer, size).map((ids) => request(fetch, { account: account.name, ids, refresh: true })),
    ],
    effects: async (tx) => {
      await noteFresh(tx, account.name, fresh)
      await noteReturned(tx, account.name, difference.returned)
      await noteStale(tx, account.name, newer)
    },
    checkpoint: state,
  })
}
