/**
 * Undoes one batch of a run, by what Gmail shows now: messages that are there get the labels of before, messages
 * that are not are inserted again. Covers every entry that ever had an intent, done or not.
 */
import type { Outcome, RunContext } from '../../../engine/index.ts'
import type { MailAccount } from '../account.ts'
import type { MessageChange } from '../message.ts'
import type { EntryRow, RunRow } from '../store/journal.ts'
import { endUndoIfSettled, noteUndone, type Undone } from '../store/journal-writes.ts'
import { after, changed } from './act.ts'
import { callSplitting, readStates } from './cloud-state.ts'
import type { ArchiverKinds, BatchPayload } from './jobs.ts'
import { reinsert } from './reinsertion.ts'
import { type CloudState, restoringChange } from './verdict.ts'

type Present = { entry: EntryRow; state: Exclude<CloudState, 'gone'> }
type Restoring = Present & { add: readonly string[]; remove: readonly string[] }

export async function undoBatch(kinds: ArchiverKinds, job: RunContext<BatchPayload>): Promise<Outcome> {
  const { signal, payload } = job
  const journal = await kinds.journal()
  const run = await journal.run(payload.run)
  if (run?.undo !== 'undoing') return { skip: 'the run is not being undone' }
  const account = await kinds.accounts.get(run.account)
  const entries = await journal.entries(run.id, payload.batch, 'to-undo')
  const ids = entries.map(({ id }) => id)
  const states = await readStates(account.client, ids, { signal })
  const labels = new Set((await account.client.labels({ signal })).map(({ id }) => id))
  const present: Present[] = []
  const vanished: EntryRow[] = []
  for (const entry of entries) {
    const state = states.get(entry.id)!
    if (state === 'gone') vanished.push(entry)
    else present.push({ entry, state })
  }
  const restored = await restoreLabels({ kinds, job, run, account, labels }, present)
  await job.commit({ effects: (tx) => noteUndone(tx, run.id, restored, kinds.clock.now()) })
  for (const [index, entry] of vanished.entries()) {
    signal.throwIfAborted()
    await reinsert({ kinds, job, account, labels }, entry)
    job.progress({ done: restored.length + index + 1, total: entries.length, unit: 'items' })
  }
  return {
    effects: (tx) => endUndoIfSettled(tx, run.id),
    note: `${restored.length} still there, ${vanished.length} inserted again`,
  }
}

type Context = {
  kinds: ArchiverKinds
  job: RunContext<BatchPayload>
  run: RunRow
  account: MailAccount
  labels: ReadonlySet<string>
}

/** Repeatable: what has its labels again needs nothing. */
async function restoreLabels(context: Context, present: readonly Present[]): Promise<Undone[]> {
  const { run, account, labels, job, kinds } = context
  const groups = new Map<string, Restoring[]>()
  const undone: Undone[] = []
  for (const { entry, state } of present) {
    const { add: missing, remove } = restoringChange(run, entry.priorLabels ?? [], state.labelIds)
    const add = missing.filter((id) => labels.has(id))
    const lost = missing.filter((id) => !labels.has(id))
    if (add.length + remove.length > 0) {
      const key = JSON.stringify([[...add].sort(), remove])
      const group = groups.get(key) ?? []
      group.push({ entry, state, add, remove })
      groups.set(key, group)
    } else if (lost.length > 0)
      undone.push({ id: entry.id, undo: 'failed', detail: `no label ${lost.join(', ')} any more` })
    else undone.push({ id: entry.id, undo: 'unneeded' })
  }
  for (const group of groups.values()) {
    const { add, remove } = group[0]!
    const ids = group.map(({ entry }) => entry.id)
    const called = await callSplitting(ids, (some) =>
      account.client.batchModify({ ids: some, add, remove }, { signal: job.signal }),
    )
    await kinds.point('restored')
    const done = new Set(called.done)
    await tellArchive(
      account,
      group.filter(({ entry }) => done.has(entry.id)),
    )
    undone.push(...called.done.map((id): Undone => ({ id, undo: 'restored' })))
    undone.push(
      ...called.failed.map(({ id, error }): Undone => ({ id, undo: 'failed', detail: error.message })),
    )
  }
  if (run.action === 'delete') await tellUndeleted(account, present)
  return undone
}

async function tellArchive(account: MailAccount, restored: readonly Restoring[]): Promise<void> {
  if (restored.length === 0) return
  await account.archive.apply(
    restored.map(({ entry: { id }, state, add, remove }): MessageChange => {
      return {
        ...{ id, historyId: after(state.historyId) },
        setLabelIds: changed(state.labelIds, { add, remove }),
      }
    }),
  )
}

/** Deletions that were intended and never happened: whatever the archive was told, Gmail has them. */
async function tellUndeleted(account: MailAccount, present: readonly Present[]): Promise<void> {
  if (present.length === 0) return
  await account.archive.apply(
    present.map(({ entry: { id }, state }): MessageChange => {
      return { id, historyId: state.historyId, setLabelIds: state.labelIds, restored: true }
    }),
  )
}
