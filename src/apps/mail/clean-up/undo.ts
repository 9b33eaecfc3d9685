/**
 * Undoes one batch of a run, by what Gmail shows now: messages that are there get the labels of before, messages
 * that are not there because of the run are inserted again. Covers every entry that ever had an intent, done or not.
 */
import type { Outcome, RunContext } from '../../../engine/index.ts'
import type { MailAccount } from '../account.ts'
import type { MessageChange } from '../message.ts'
import { chunksOf } from '../plan.ts'
import type { EntryRow, RunRow } from '../store/journal.ts'
import { endUndoIfSettled, noteUndone, type Undone } from '../store/journal-writes.ts'
import { after } from './act.ts'
import { callSplitting, readStates } from './cloud-state.ts'
import { messageStanding, PROOF_GROUP } from './examination.ts'
import { deletedUntrashed, followedStates, type KnownLabels } from './followed-state.ts'
import type { BatchPayload, CleanUpKinds } from './kinds.ts'
import { adoptReinserted, reinsert } from './reinsertion.ts'
import { type CloudState, changedLabels, restoringChange } from './verdict.ts'

type Present = { entry: EntryRow; state: Exclude<CloudState, 'gone'> }
type Restoring = Present & { add: readonly string[]; remove: readonly string[] }

export async function undoBatch(kinds: CleanUpKinds, job: RunContext<BatchPayload>): Promise<Outcome> {
  const { signal, payload } = job
  const journal = await kinds.journal()
  const run = await journal.run(payload.run)
  if (!run?.undo) return { skip: 'the run is not being undone' }
  const account = await kinds.accounts.get(run.account)
  const entries = await journal.entries(run.id, payload.batch, 'to-undo')
  const states = await statesOf(kinds, job, account, entries)
  const labels = new Set((await account.client.labels({ signal })).map(({ id }) => id))
  const present: Present[] = []
  const missing: EntryRow[] = []
  for (const entry of entries) {
    const state = states.get(entry.id)!
    if (state === 'gone') missing.push(entry)
    else present.push({ entry, state })
  }
  const left = await takenByOthers(account, run, missing, signal)
  const vanished = missing.filter((entry) => !left.has(entry))
  const restored = await restoreLabels({ kinds, job, run, account, labels }, present)
  restored.push(
    ...[...left].map(
      ({ id }): Undone => ({ id, undo: 'unneeded', detail: 'deleted in Gmail, not by this run' }),
    ),
  )
  await job.commit({ effects: (tx) => noteUndone(tx, run.id, restored, kinds.clock.now()) })
  for (const [index, entry] of vanished.entries()) {
    signal.throwIfAborted()
    await reinsert({ kinds, job, account, labels }, entry)
    job.progress({ done: restored.length + index + 1, total: entries.length, unit: 'items' })
  }
  // An attempt before this one may have ended in between.
  for (const { id, newId } of await journal.entries(run.id, payload.batch, 'unadopted')) {
    await adoptReinserted({ job, account }, { id, newId: newId! })
    job.progress()
  }
  return {
    effects: (tx) => endUndoIfSettled(tx, run.id),
    note: `${restored.length} still there, ${vanished.length} inserted again`,
  }
}

/**
 * From the history, where the archive knows the message and nothing of it is damaged; what seems to be gone is asked
 * for, before it is inserted.
 */
async function statesOf(
  kinds: CleanUpKinds,
  job: RunContext<BatchPayload>,
  account: MailAccount,
  entries: readonly EntryRow[],
): Promise<Map<string, CloudState>> {
  const { signal } = job
  const standing = await messageStanding(kinds, account)
  const known: KnownLabels[] = []
  for (const group of chunksOf(entries, PROOF_GROUP)) {
    const proofs = await account.archive.prove(group.map(({ id }) => id))
    known.push(...proofs.filter(({ state, deletedAtMs }) => state === 'proven' && deletedAtMs === null))
    job.progress()
  }
  const states = await followedStates(account, known, standing, { signal })
  const asked = entries.map(({ id }) => id).filter((id) => (states.get(id) ?? 'gone') === 'gone')
  for (const [id, state] of await readStates(account.client, asked, { signal })) states.set(id, state)
  return states
}

/**
 * Messages that are gone although the run did not take them away: whoever deleted them wants them so. A run that takes
 * a label off deletes nothing; what was refused was not touched; and of a trash run whose call was not seen to work, the
 * history tells whether a message came to the trash before it was deleted.
 */
async function takenByOthers(
  account: MailAccount,
  run: RunRow,
  missing: readonly EntryRow[],
  signal: AbortSignal,
): Promise<Set<EntryRow>> {
  const found = missing.filter(({ state }) => run.action === 'unlabel' || state === 'refused')
  const unsure = missing.filter(({ state }) => run.action === 'trash' && state === 'intent')
  const deleted = await deletedUntrashed(account, unsure, signal)
  return new Set([...found, ...unsure.filter(({ id }) => deleted.has(id))])
}

type Context = {
  kinds: CleanUpKinds
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
        id,
        historyId: after(state.historyId),
        setLabelIds: changedLabels(state.labelIds, { add, remove }),
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
