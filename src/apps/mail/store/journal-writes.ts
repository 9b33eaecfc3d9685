/**
 * What jobs write into the clean-up's journal: each as an effect in the transaction of the job's commit, and each
 * safe to be written again.
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { RefusalClass } from '../clean-up/verdict.ts'
import {
  type Candidate,
  type EntryUndo,
  type NewRun,
  OPEN,
  type RunRow,
  type RunState,
  rowsOf,
  textsOf,
  UNSETTLED,
} from './journal.ts'

const BATCHES_MAX = 100_000

/** Undefined where the account has an unfinished run already. */
export async function addRun(tx: Tx, run: NewRun, atMs: number): Promise<number | undefined> {
  const row = await tx.get<{ id: number }>(
    `INSERT INTO mail_archive_runs(account, action, label, query, cutoff_ms, messages_max, approved, state, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'planning', ?) ON CONFLICT DO NOTHING RETURNING id`,
    [
      run.account,
      run.action,
      run.label,
      run.query,
      run.cutoffMs,
      run.messagesMax,
      run.approved ? 1 : 0,
      atMs,
    ],
  )
  return row && Number(row.id)
}

/** Moves a run on; false where it is no longer in a state from which it can. Locks its row either way. */
export async function moveRun(
  tx: Tx,
  run: number,
  move: { from: readonly RunState[]; to: RunState; atMs?: number },
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE mail_archive_runs SET state = ?, ended_at = ? WHERE id = ? AND state IN (${move.from.map(() => '?').join(', ')})`,
    [move.to, move.atMs ?? null, run, ...move.from],
  )
  return changed === 1
}

export async function approveRun(tx: Tx, run: number): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE mail_archive_runs SET approved = 1, state = 'acting' WHERE id = ? AND state = 'planned'`,
    [run],
  )
  return changed === 1
}

/** Back to where it waits for a word; what is planned next waits too. False where it is over. */
export async function haltRun(tx: Tx, run: number): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE mail_archive_runs SET approved = 0, state = CASE WHEN state = 'acting' THEN 'planned' ELSE state END
     WHERE id = ? AND state IN ('planning', 'planned', 'acting')`,
    [run],
  )
  return changed === 1
}

/** After the last page: to work, or to wait for a word; without anything to do, done. */
export async function endPlanning(tx: Tx, run: number, atMs: number): Promise<void> {
  await tx.run(
    `UPDATE mail_archive_runs SET state = CASE WHEN planned = 0 THEN 'done' WHEN approved = 1 THEN 'acting' ELSE 'planned' END,
       ended_at = CASE WHEN planned = 0 THEN CAST(? AS BIGINT) ELSE NULL END WHERE id = ? AND state = 'planning'`,
    [atMs, run],
  )
}

/** Already known ids stay as they are: a page that is planned twice is there once. */
export async function addEntries(
  tx: Tx,
  run: number,
  entries: readonly (Candidate & { batch: number })[],
): Promise<void> {
  if (entries.length === 0) return
  await tx.run(
    `INSERT INTO mail_archive_entries(run_id, id, batch, internal_ms, bytes, labels)
     SELECT ?, r.value ->> 'id', CAST(r.value ->> 'batch' AS BIGINT), CAST(r.value ->> 'ms' AS BIGINT),
       CAST(r.value ->> 'bytes' AS BIGINT), r.value ->> 'labels'
     FROM ${rowsOf(tx)} WHERE true ON CONFLICT (run_id, id) DO NOTHING`,
    [
      run,
      JSON.stringify(
        entries.map(({ id, batch, internalMs, bytes, labelIds }) => ({
          id,
          batch,
          ms: internalMs,
          bytes,
          labels: JSON.stringify(labelIds),
        })),
      ),
    ],
  )
}

export async function notePlanned(
  tx: Tx,
  run: number,
  about: Pick<RunRow, 'passedOver' | 'unsearched'>,
): Promise<void> {
  await tx.run(
    `UPDATE mail_archive_runs SET passed_over = ?, unsearched = ?,
       planned = (SELECT count(*) FROM mail_archive_entries WHERE run_id = ?),
       planned_bytes = (SELECT coalesce(sum(bytes), 0) FROM mail_archive_entries WHERE run_id = ?) WHERE id = ?`,
    [JSON.stringify(about.passedOver), JSON.stringify(about.unsearched), run, run, run],
  )
}

/** The batches that have something left to do, in order. */
export async function openBatches(tx: Tx, run: number, which: 'open' | 'to-undo'): Promise<number[]> {
  const rows = await tx.all<{ batch: number }>(
    `SELECT DISTINCT batch FROM mail_archive_entries WHERE run_id = ? AND ${which === 'open' ? OPEN : UNSETTLED}
     ORDER BY batch LIMIT ${BATCHES_MAX}`,
    [run],
  )
  return rows.map(({ batch }) => Number(batch))
}

export type Refused = { id: string; bytes: number; class: RefusalClass; detail: string }

export async function noteRefused(tx: Tx, run: number, refused: readonly Refused[]): Promise<void> {
  if (refused.length === 0) return
  const changed = await tx.run(
    `UPDATE mail_archive_entries AS e SET state = 'refused', class = r.value ->> 'class', detail = r.value ->> 'detail'
     FROM ${rowsOf(tx)} WHERE e.run_id = ? AND e.id = r.value ->> 'id' AND e.${OPEN}`,
    [JSON.stringify(refused), run],
  )
  await tx.run(`UPDATE mail_archive_runs SET refused = refused + ? WHERE id = ?`, [changed, run])
}

export type Intent = { id: string; labelIds: readonly string[]; historyId: string }

/** An intent that is there already keeps the labels that were journaled first: they are those of before. */
export async function noteIntents(
  tx: Tx,
  run: number,
  intents: readonly Intent[],
  atMs: number,
): Promise<void> {
  if (intents.length === 0) return
  await tx.run(
    `UPDATE mail_archive_entries AS e SET state = 'intent', acted_at = ?,
       prior_labels = coalesce(e.prior_labels, r.value ->> 'labels'),
       prior_history = coalesce(e.prior_history, r.value ->> 'history')
     FROM ${rowsOf(tx)} WHERE e.run_id = ? AND e.id = r.value ->> 'id' AND e.${OPEN}`,
    [
      atMs,
      JSON.stringify(
        intents.map(({ id, labelIds, historyId }) => ({
          id,
          labels: JSON.stringify(labelIds),
          history: historyId,
        })),
      ),
      run,
    ],
  )
}

export async function noteDone(
  tx: Tx,
  run: number,
  entries: readonly { id: string; bytes: number }[],
): Promise<void> {
  if (entries.length === 0) return
  const rows = await tx.all<{ bytes: number }>(
    `UPDATE mail_archive_entries SET state = 'done' WHERE run_id = ? AND ${OPEN} AND id IN (${textsOf(tx)}) RETURNING bytes`,
    [run, JSON.stringify(entries.map(({ id }) => id))],
  )
  const bytes = rows.reduce((sum, row) => sum + Number(row.bytes), 0)
  await tx.run(`UPDATE mail_archive_runs SET done = done + ?, done_bytes = done_bytes + ? WHERE id = ?`, [
    rows.length,
    bytes,
    run,
  ])
}

/** Ends the run with its last entry. The run's row is locked first, so that of two last batches one sees both. */
export async function endRunIfSettled(tx: Tx, run: number, atMs: number): Promise<void> {
  await tx.run(`UPDATE mail_archive_runs SET approved = approved WHERE id = ?`, [run])
  await tx.run(
    `UPDATE mail_archive_runs SET state = 'done', ended_at = ? WHERE id = ? AND state = 'acting'
     AND NOT EXISTS (SELECT 1 FROM mail_archive_entries WHERE run_id = ? AND ${OPEN})`,
    [atMs, run, run],
  )
}

export async function beginUndo(tx: Tx, run: number): Promise<void> {
  await tx.run(`UPDATE mail_archive_runs SET undo = 'undoing' WHERE id = ?`, [run])
}

/** What is about to be inserted again, and what looked like it before. */
export async function noteInserting(
  tx: Tx,
  run: number,
  inserting: { id: string; seenBefore: readonly string[] },
): Promise<void> {
  await tx.run(
    `UPDATE mail_archive_entries SET undo = 'inserting', seen_before = ? WHERE run_id = ? AND id = ? AND undo IS NULL`,
    [JSON.stringify(inserting.seenBefore), run, inserting.id],
  )
}

export type Undone = { id: string; undo: Exclude<EntryUndo, 'inserting'>; newId?: string; detail?: string }

export async function noteUndone(
  tx: Tx,
  run: number,
  undone: readonly Undone[],
  atMs: number,
): Promise<void> {
  if (undone.length === 0) return
  const changed = await tx.run(
    `UPDATE mail_archive_entries AS e SET undo = r.value ->> 'undo', new_id = r.value ->> 'newId',
       undo_detail = r.value ->> 'detail', undo_at = ?
     FROM ${rowsOf(tx)} WHERE e.run_id = ? AND e.id = r.value ->> 'id' AND (e.undo IS NULL OR e.undo = 'inserting')`,
    [atMs, JSON.stringify(undone), run],
  )
  await tx.run(`UPDATE mail_archive_runs SET undone = undone + ? WHERE id = ?`, [changed, run])
}

export async function endUndoIfSettled(tx: Tx, run: number): Promise<void> {
  await tx.run(`UPDATE mail_archive_runs SET approved = approved WHERE id = ?`, [run])
  await tx.run(
    `UPDATE mail_archive_runs SET undo = 'undone' WHERE id = ? AND undo = 'undoing'
     AND NOT EXISTS (SELECT 1 FROM mail_archive_entries WHERE run_id = ? AND ${UNSETTLED})`,
    [run, run],
  )
}

/** What could not be undone is tried again: the file may be mended by now. */
export async function retryFailedUndo(tx: Tx, run: number): Promise<void> {
  const changed = await tx.run(
    `UPDATE mail_archive_entries SET undo = CASE WHEN seen_before IS NULL THEN NULL ELSE 'inserting' END
     WHERE run_id = ? AND undo = 'failed'`,
    [run],
  )
  await tx.run(`UPDATE mail_archive_runs SET undone = undone - ? WHERE id = ?`, [changed, run])
}
