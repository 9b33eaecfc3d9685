/**
 * When the history has expired: the whole mailbox is compared with the archive, year by year, for what is new, what
 * is gone and whose labels changed. The history id to go on from is taken before the comparison begins.
 */
import { z } from 'zod'
import { type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { MailAccount } from './account.ts'
import { compareStretch, type Difference, type Stretch } from './compare.ts'
import type { MailKinds } from './jobs.ts'
import type { MessageChange } from './message.ts'
import { chunksOf, markOf } from './plan.ts'
import { noteChecked, noteChoices, noteLabels, noteListed } from './store/tables.ts'

const State = z.object({
  historyId: z.string(),
  /** Where its segment begins. */
  fromS: z.number(),
  done: z.number(),
})
type State = z.output<typeof State>

export async function runReconcile(kinds: MailKinds, job: RunContext<{ account: string }>): Promise<Outcome> {
  const { ledger, clock } = kinds
  const account = await kinds.accounts.get(job.payload.account)
  const state = State.nullable().parse(job.checkpoint) ?? (await begin(kinds, job, account))
  const labels = await account.client.labels({ signal: job.signal })
  const { id: streamId } = await ledger.stream(account.stream)
  const [segment] = await ledger.segments(streamId, { fromAt: state.fromS, limit: 1 })
  const stretches = await stretchesOf(account)
  for (; state.done < stretches.length; ) {
    const options = { labelIds: labels.map(({ id }) => id), signal: job.signal }
    const difference = await compareStretch(account, stretches[state.done]!, options)
    await kinds.turns.take(account.name, () =>
      mend(kinds, job, account, { difference, state, segmentId: segment!.id }),
    )
    job.progress({ done: state.done, total: stretches.length, unit: 'items', label: 'comparing' })
  }
  return {
    counts: [{ segment: segment!.id, seal: true }],
    cursor: state.historyId,
    effects: async (tx) => {
      await noteLabels(tx, account.name, labels)
      await noteChecked(tx, account.name, clock.now())
      await noteChoices(tx, account.name, account.choices)
    },
    jobs: [request(kinds.history, { account: account.name })],
    note: `compared ${stretches.length} stretches of the mailbox with the archive`,
  }
}

async function begin(
  kinds: MailKinds,
  job: RunContext<{ account: string }>,
  account: MailAccount,
): Promise<State> {
  const { ledger, clock } = kinds
  const { historyId } = await account.client.profile({ signal: job.signal })
  return kinds.turns.take(account.name, async () => {
    const { id: streamId, tail_at: fromS } = await ledger.stream(account.stream)
    const state = { historyId, fromS, done: 0 }
    const to = Math.max(fromS + 1, Math.ceil(clock.now() / 1000))
    await job.commit({
      segments: [{ streamId, from: fromS, to, mark: markOf(to), label: 'reconcile' }],
      checkpoint: state,
    })
    return state
  })
}

/** End to end, and open at both ends: no message is outside. */
async function stretchesOf({ archive }: MailAccount): Promise<Stretch[]> {
  const starts = [...new Set((await archive.shards()).map(({ fromMs }) => Math.ceil(fromMs / 1000)))].sort(
    (a, b) => a - b,
  )
  const cuts = starts.slice(1)
  return [...cuts, null].map((toS, index) => ({ fromS: index === 0 ? null : cuts[index - 1]!, toS }))
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
  if (changes.length > 0) await account.archive.apply(changes)
  const fresh = await tables.unlisted(account.name, difference.missing)
  const isFresh = new Set(fresh)
  const known = difference.missing.filter((id) => !isFresh.has(id))
  state.done += 1
  await job.commit({
    counts: fresh.length > 0 ? [{ segment: segmentId, listed: fresh.length }] : [],
    jobs: [
      ...chunksOf(fresh, batchSize(account.name).size).map((ids) =>
        request(fetch, { account: account.name, ids }, { segment: segmentId }),
      ),
      // Listed before, and neither stored nor gone: on their way, bad, or lost from a shard.
      ...chunksOf(known, batchSize(account.name).size).map((ids) =>
        request(fetch, { account: account.name, ids }),
      ),
    ],
    effects: (tx) => noteListed(tx, account.name, fresh),
    checkpoint: state,
  })
}
