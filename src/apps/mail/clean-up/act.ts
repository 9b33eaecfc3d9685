/**
 * Acts on one batch of a run; jobs.ts tells the whole flow. Whatever an attempt leaves behind is one of: entries as
 * planned, or entries with an intent, about which Gmail is asked first.
 */
import type { Outcome, RunContext } from '../../../engine/index.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { MailAccount } from '../account.ts'
import type { MessageChange } from '../message.ts'
import type { EntryRow, RunRow } from '../store/journal.ts'
import {
  endRunIfSettled,
  moveRun,
  noteDone,
  noteIntents,
  noteRefused,
  type Refused,
} from '../store/journal-writes.ts'
import { noteGone } from '../store/tables.ts'
import { callSplitting, readStates } from './cloud-state.ts'
import { examine, messageStanding } from './examination.ts'
import { deletedUntrashed } from './followed-state.ts'
import type { BatchPayload, CleanUpKinds } from './kinds.ts'
import { purposeOf } from './selection.ts'
import { changedLabels, changeOf, hasHappened } from './verdict.ts'

type Acting = { kinds: CleanUpKinds; job: RunContext<BatchPayload>; run: RunRow; account: MailAccount }

export async function actOnBatch(kinds: CleanUpKinds, job: RunContext<BatchPayload>): Promise<Outcome> {
  const journal = await kinds.journal()
  const run = await journal.run(job.payload.run)
  if (run?.state !== 'acting') return { skip: `the run is ${run?.state ?? 'unknown'}` }
  const acting = { kinds, job, run, account: await kinds.accounts.get(run.account) }
  const entries = await journal.entries(run.id, job.payload.batch, 'open')
  const left = await finishBegun(acting, entries)
  const { intended, refused } = await intend(acting, left)
  await kinds.point('intended')
  const called = await callSplitting(
    intended.map(({ id }) => id),
    (ids) => call(acting, ids),
  )
  await kinds.point('called')
  const byId = new Map(intended.map((entry) => [entry.id, entry]))
  const lost = await deletedMeanwhile(acting, intended)
  const done = called.done.filter((id) => !lost.has(id)).map((id) => byId.get(id)!)
  await tellArchive(
    acting,
    done.map((one) => changeFor(acting, one)),
  )
  await kinds.point('told')
  const failed = called.failed.map(({ id, error }): Refused => {
    return { id, bytes: byId.get(id)!.bytes, class: 'failed', detail: error.message }
  })
  failed.push(
    ...called.done
      .filter((id) => lost.has(id))
      .map((id): Refused => {
        return {
          id,
          bytes: byId.get(id)!.bytes,
          class: 'gone',
          detail: 'deleted in Gmail before it was trashed',
        }
      }),
  )
  return {
    effects: async (tx) => {
      await noteDoneAndGone(tx, acting, done)
      await noteRefused(tx, run.id, failed)
      await endRunIfSettled(tx, run.id, kinds.clock.now())
    },
    note: `${done.length} done, ${refused + failed.length} refused`,
  }
}

/** Entries with an intent from an earlier attempt: those whose call happened are finished, the others are left. */
async function finishBegun(acting: Acting, entries: readonly EntryRow[]): Promise<EntryRow[]> {
  const { job, run, account, kinds } = acting
  const begun = entries.filter(({ state }) => state === 'intent')
  if (begun.length === 0) return [...entries]
  const ids = begun.map(({ id }) => id)
  const states = await readStates(account.client, ids, { signal: job.signal })
  const happened = new Set(begun.filter(({ id }) => hasHappened(run, states.get(id)!)))
  const done = [...happened]
  await tellArchive(
    acting,
    done.map(({ id, priorLabels, priorHistory }): MessageChange => {
      const now = states.get(id)!
      if (now !== 'gone') return { id, historyId: now.historyId, setLabelIds: now.labelIds }
      return changeFor(acting, { id, labelIds: priorLabels!, historyId: priorHistory! })
    }),
  )
  await job.commit({ effects: (tx) => noteDoneAndGone(tx, acting, done) })
  await kinds.point('finished')
  return entries.filter((entry) => !happened.has(entry))
}

type Intended = { id: string; bytes: number; historyId: string; labelIds: readonly string[] }

/** Examines what is left, and commits what is refused and what is intended before anything is called. */
async function intend(
  { kinds, job, run, account }: Acting,
  entries: readonly EntryRow[],
): Promise<{ intended: Intended[]; refused: number }> {
  if (entries.length === 0) return { intended: [], refused: 0 }
  const standing = await messageStanding(kinds, account)
  const purpose = await purposeOf(kinds, run)
  const { passed, refused } = await examine(entries, {
    account,
    standing,
    purpose,
    depth: 'full',
    // What cannot be taken back is asked for one by one.
    asking: run.action === 'delete' ? 'each' : 'history',
    signal: job.signal,
    onStep: (done) => job.progress({ done, total: entries.length, unit: 'items' }),
  })
  await kinds.point('examined')
  const intents = passed.map(({ candidate: { id }, state }) => ({ id, ...state! }))
  let isActing = false
  await job.commit({
    effects: async (tx) => {
      // Fenced: a run that was stopped meanwhile gets no more intents, and without them nothing is called.
      isActing = await moveRun(tx, run.id, { from: ['acting'], to: 'acting' })
      if (!isActing) return
      await noteRefused(tx, run.id, refused)
      await noteIntents(tx, run.id, intents, kinds.clock.now())
    },
  })
  const intended = passed.map(({ candidate: { id, bytes }, state }) => ({ id, bytes, ...state! }))
  return isActing ? { intended, refused: refused.length } : { intended: [], refused: 0 }
}

async function call({ job, run, account }: Acting, ids: readonly string[]): Promise<void> {
  const { signal } = job
  signal.throwIfAborted()
  if (run.action === 'delete') await account.client.batchDelete(ids, { signal })
  else await account.client.batchModify({ ids, ...changeOf(run) }, { signal })
}

/**
 * Gmail says nothing about ids that are gone: whoever deleted a message between the look and the call does not want it
 * back, and an undo must not take it for one that this run has trashed.
 */
async function deletedMeanwhile(
  { job, run, account }: Acting,
  intended: readonly Intended[],
): Promise<Set<string>> {
  if (run.action !== 'trash') return new Set()
  const seen = intended.map(({ id, historyId }) => ({ id, priorHistory: historyId }))
  return deletedUntrashed(account, seen, job.signal)
}

/** The archive learns of it now, not only when the history says so: a second run must not plan it again. */
async function tellArchive({ account }: Acting, changes: readonly MessageChange[]): Promise<void> {
  if (changes.length > 0) await account.archive.apply(changes)
}

/**
 * All labels, not only those that we changed: the archive may not know yet what others did before, and after this
 * it would take that for old.
 */
function changeFor(
  { run, kinds }: Acting,
  { id, labelIds, historyId }: Pick<Intended, 'id' | 'labelIds' | 'historyId'>,
): MessageChange {
  if (run.action === 'delete') {
    return { id, historyId: after(historyId), setLabelIds: labelIds, deletedAtMs: kinds.clock.now() }
  }
  return { id, historyId: after(historyId), setLabelIds: changedLabels(labelIds, changeOf(run)) }
}

/** Newer than the state that was seen, and never newer than the record that the change itself will have. */
export function after(historyId: string): string {
  return String(BigInt(historyId) + 1n)
}

async function noteDoneAndGone(
  tx: Tx,
  { run, kinds }: Acting,
  done: readonly { id: string; bytes: number }[],
): Promise<void> {
  await noteDone(tx, run.id, done)
  if (run.action !== 'delete') return
  const ids = done.map(({ id }) => id)
  await noteGone(tx, run.account, ids, kinds.clock.now())
}
