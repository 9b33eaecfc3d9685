/** Mail that agents have sent, or were about to: noted before anything is done, so that it is done once. */
import type { Tx } from '../../../ledger/contract.ts'

/** See sending.ts. */
export type SendState = 'noted' | 'made' | 'sent' | 'kept' | 'lost'

export type SendRow = {
  account: string
  key: string
  /** Of the agent, and the message that it was about. */
  run: number
  about: string
  thread: string
  recipient: string
  subject: string
  text: string
  state: SendState
  draftId: string | null
  /** Of the draft, as it was made; null in rows of earlier versions. */
  messageId: string | null
  notedAtMs: number
}

export async function noteSend(tx: Tx, row: SendRow): Promise<void> {
  await tx.run(
    `INSERT INTO assist_sends(account, send_key, run, about, thread, recipient, subject, send_text, state, noted_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      row.account,
      row.key,
      row.run,
      row.about,
      row.thread,
      row.recipient,
      row.subject,
      row.text,
      row.state,
      row.notedAtMs,
    ],
  )
}

export async function setSendState(
  tx: Tx,
  { account, key, state, draftId, messageId }: SendRow,
): Promise<void> {
  await tx.run(
    `UPDATE assist_sends SET state = ?, draft_id = ?, message = ? WHERE account = ? AND send_key = ?`,
    [state, draftId, messageId, account, key],
  )
}

/** Of one that was certainly not made. */
export async function forgetSend(tx: Tx, { account, key }: SendRow): Promise<void> {
  await tx.run(`DELETE FROM assist_sends WHERE account = ? AND send_key = ? AND state = 'noted'`, [
    account,
    key,
  ])
}

/** Whether its run has one already, or its recipient because of the same message; whatever became of that. */
export async function hasSend(tx: Tx, { account, run, about, recipient }: SendRow): Promise<boolean> {
  const row = await tx.get(
    `SELECT send_key FROM assist_sends WHERE account = ? AND (run = ? OR (about = ? AND recipient = ?)) LIMIT 1`,
    [account, run, about, recipient],
  )
  return row !== undefined
}

/** Whoever counts and then notes must be alone with the mailbox. */
export async function lockAccount(tx: Tx, account: string): Promise<void> {
  const lock = tx.dialect === 'postgres' ? ' FOR UPDATE' : ''
  await tx.get(`SELECT account FROM assist_accounts WHERE account = ?${lock}`, [account])
}

export async function countSends(tx: Tx, account: string, sinceMs: number): Promise<number> {
  const row = await tx.get<{ n: number }>(
    `SELECT COUNT(*) AS n FROM assist_sends WHERE account = ? AND noted_at > ?`,
    [account, sinceMs],
  )
  return Number(row?.n ?? 0)
}

export type RawSend = Record<
  'account' | 'send_key' | 'thread' | 'recipient' | 'subject' | 'send_text',
  string
> & {
  state: SendState
  run: number | null
  about: string | null
  draft_id: string | null
  message: string | null
  noted_at: number
}

export function sendOf(row: RawSend): SendRow {
  return {
    account: row.account,
    key: row.send_key,
    run: Number(row.run),
    about: row.about ?? '',
    thread: row.thread,
    recipient: row.recipient,
    subject: row.subject,
    text: row.send_text,
    state: row.state,
    draftId: row.draft_id,
    messageId: row.message,
    notedAtMs: Number(row.noted_at),
  }
}
