/** Mailboxes as they are written: what is wanted of them, how far their history was read, what was heard of them. */
import type { Tx } from '../../../ledger/contract.ts'
import type { LabelRole } from '../contract.ts'
import { releaseHeld, staleLook } from './records.ts'

export type LabelIds = Readonly<Record<LabelRole, string>>
export type LabelNames = Readonly<Record<LabelRole, string>>

/** `renewed`: roles whose label is another one than before. */
export type LabelsMade = { labels: LabelIds; labelNames: LabelNames; renewed: readonly LabelRole[] }

export type AccountRow = {
  account: string
  active: boolean
  /** As JSON: see account.ts. */
  settings: string
  labels: LabelIds
  /** As the labels were last named by us; null where nobody wrote it down. The user may have renamed them since. */
  labelNames: LabelNames | null
  /** The history id up to which everything was seen; null before the first scan. A decimal number of 64 bits. */
  cursor: string | null
  /** Grows with every wish for a sync: one that is under way notices. */
  syncWanted: number
  /** How many wishes for a scan are open: those that come while one is under way are left. */
  fullWanted: number
  pushedHistory: string | null
  pushedAtMs: number | null
  /** When the newest mail came that was seen. */
  mailAtMs: number | null
  syncedAtMs: number | null
  fullAtMs: number | null
  watchExpiresAtMs: number | null
  watchProblem: string | null
  /** What keeps models from being asked, for people. */
  problem: string | null
  problemCode: string | null
  /** The settings of models with which drafts were refused for good: with these, none is asked for again. */
  refusedBy: string | null
  briefedAtMs: number | null
  onboardedAtMs: number
}

/** 64 bits: whoever reads one as a number gets another one. Undefined is before all others. */
export function isLaterHistory(one: string, other: string | null | undefined): boolean {
  return other == null || BigInt(one) > BigInt(other)
}

/** Makes it, or takes over labels and settings; the cursor of one that is there stays. */
export async function putAccount(
  tx: Tx,
  { account, settings, made, nowMs }: { account: string; settings: string; made: LabelsMade; nowMs: number },
): Promise<void> {
  await tx.run(
    `INSERT INTO assist_accounts(account, active, settings, labels, onboarded_at) VALUES (?, 1, ?, ?, ?)
     ON CONFLICT (account) DO UPDATE SET active = 1, settings = excluded.settings`,
    [account, settings, JSON.stringify(made.labels), nowMs],
  )
  await setLabels(tx, account, made)
}

export async function setSettings(tx: Tx, account: string, settings: string): Promise<void> {
  await tx.run(`UPDATE assist_accounts SET settings = ? WHERE account = ?`, [settings, account])
}

/** No conversation has a label that was made anew: that is no doing of the user, so each is given it again. */
export async function setLabels(
  tx: Tx,
  account: string,
  { labels, labelNames, renewed }: LabelsMade,
): Promise<void> {
  await tx.run(`UPDATE assist_accounts SET labels = ?, label_names = ? WHERE account = ?`, [
    JSON.stringify(labels),
    JSON.stringify(labelNames),
    account,
  ])
  for (const role of renewed) {
    await tx.run(
      `UPDATE assist_threads SET label_was = CASE WHEN applied = 1 THEN NULL ELSE label_was END, applied = 0,
         version = version + 1 WHERE account = ? AND label = ?`,
      [account, role],
    )
  }
}

/** A push named a history that cannot be read, however long one waits: nobody waits for it any more. */
export async function dropPush(tx: Tx, account: string): Promise<void> {
  await tx.run(`UPDATE assist_accounts SET pushed_history = NULL WHERE account = ?`, [account])
}

/** Where it is on again, a scan finds what was left lying. */
export async function setActive(tx: Tx, account: string, active: boolean): Promise<void> {
  const also = active ? ', full_wanted = full_wanted + 1, sync_wanted = sync_wanted + 1' : ''
  await tx.run(`UPDATE assist_accounts SET active = ?, backlog_agreed = 0${also} WHERE account = ?`, [
    active ? 1 : 0,
    account,
  ])
}

/** A sync that is under way looks again before it ends. `false` where the mailbox was not onboarded, or is not active. */
export async function wantSync(
  tx: Tx,
  account: string,
  wish: { historyId?: string; full?: boolean; agrees?: boolean; nowMs: number },
): Promise<boolean> {
  const { historyId, full = false, agrees = false, nowMs } = wish
  const row = await lockedAccount(tx, account)
  if (!row || !Number(row.active)) return false
  const pushed =
    historyId !== undefined && isLaterHistory(historyId, row.pushed_history) ? historyId : row.pushed_history
  await tx.run(
    `UPDATE assist_accounts SET sync_wanted = sync_wanted + 1, full_wanted = full_wanted + ?,
       backlog_agreed = CASE WHEN ? = 1 THEN 1 ELSE backlog_agreed END, pushed_history = ?, pushed_at = ? WHERE account = ?`,
    [full ? 1 : 0, agrees ? 1 : 0, pushed, historyId === undefined ? row.pushed_at : nowMs, account],
  )
  return true
}

/**
 * The end of a scan: what it held goes on its way where it is `free`, few enough, or agreed to. In one transaction with
 * the look at the flag, so that a yes that comes at this moment is either seen here, or sees what is held.
 */
export async function decideBacklog(
  tx: Tx,
  account: string,
  { free, max }: { free: boolean; max: number },
): Promise<void> {
  const row = await lockedAccount(tx, account)
  const held = await tx.get<{ n: number }>(
    `SELECT COUNT(*) AS n FROM assist_messages WHERE account = ? AND state = 'held'`,
    [account],
  )
  if (free || Number(row?.backlog_agreed) === 1 || Number(held?.n) <= max) await releaseHeld(tx, account)
  await tx.run(`UPDATE assist_accounts SET backlog_agreed = 0 WHERE account = ?`, [account])
}

/**
 * Everything up to there was seen. The cursor never moves backwards. `full`: by a scan, with the wishes for one that it
 * answers; those that came since it began are left.
 */
export async function moveCursor(
  tx: Tx,
  account: string,
  { cursor, full, nowMs }: { cursor: string; full: { wanted: number } | undefined; nowMs: number },
): Promise<void> {
  const row = await lockedAccount(tx, account)
  if (!row) return
  await tx.run(
    `UPDATE assist_accounts SET cursor = ?, synced_at = ?, full_at = CASE WHEN ? = 1 THEN ? ELSE full_at END,
       full_wanted = CASE WHEN full_wanted > ? THEN full_wanted - ? ELSE 0 END WHERE account = ?`,
    [
      isLaterHistory(cursor, row.cursor) ? cursor : row.cursor,
      nowMs,
      full ? 1 : 0,
      nowMs,
      full?.wanted ?? 0,
      full?.wanted ?? 0,
      account,
    ],
  )
}

/** Throws `staleLook` where somebody wanted a sync after this one had begun: it looks again. */
export async function checkWanted(tx: Tx, account: string, wanted: number): Promise<void> {
  const row = await lockedAccount(tx, account)
  if (row && Number(row.sync_wanted) !== wanted) throw staleLook()
}

export async function noteMail(tx: Tx, account: string, mailAtMs: number): Promise<void> {
  await tx.run(
    `UPDATE assist_accounts SET mail_at = ? WHERE account = ? AND (mail_at IS NULL OR mail_at < ?)`,
    [mailAtMs, account, mailAtMs],
  )
}

export async function noteWatch(
  tx: Tx,
  account: string,
  { expiresAtMs, problem }: { expiresAtMs: number | null; problem: string | null },
): Promise<void> {
  await tx.run(
    `UPDATE assist_accounts SET watch_expires_at = COALESCE(?, watch_expires_at), watch_problem = ? WHERE account = ?`,
    [expiresAtMs, problem, account],
  )
}

/** Null where models can be asked again. */
export async function noteProblem(
  tx: Tx,
  account: string,
  problem: { code: string; text: string } | null,
): Promise<void> {
  await tx.run(
    `UPDATE assist_accounts SET problem = ?, problem_code = ? WHERE account = ? AND COALESCE(problem_code, '') <> ?`,
    [problem?.text ?? null, problem?.code ?? null, account, problem?.code ?? ''],
  )
}

/** Null where a draft was written. */
export async function noteRefusal(tx: Tx, account: string, settings: string | null): Promise<void> {
  await tx.run(`UPDATE assist_accounts SET refused_by = ? WHERE account = ?`, [settings, account])
}

export async function noteBriefing(tx: Tx, account: string, nowMs: number): Promise<void> {
  await tx.run(`UPDATE assist_accounts SET briefed_at = ? WHERE account = ?`, [nowMs, account])
}

/** Everything that is kept of a mailbox. */
export async function forgetAccount(tx: Tx, account: string): Promise<void> {
  for (const table of ['sends', 'events', 'examples', 'rules', 'drafts', 'messages', 'threads', 'accounts']) {
    await tx.run(`DELETE FROM assist_${table} WHERE account = ?`, [account])
  }
}

type LockedRow = {
  active: number
  cursor: string | null
  sync_wanted: number
  pushed_history: string | null
  pushed_at: number | null
  backlog_agreed: number
}

function lockedAccount(tx: Tx, account: string): Promise<LockedRow | undefined> {
  const lock = tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
  return tx.get<LockedRow>(
    `SELECT active, cursor, sync_wanted, pushed_history, pushed_at, backlog_agreed FROM assist_accounts
     WHERE account = ?${lock}`,
    [account],
  )
}
