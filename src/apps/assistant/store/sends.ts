/** Mail that agents have sent, or were about to: noted before anything is done, so that it is done once. */
import type { Tx } from '../../../ledger/contract.ts'

/** See sending.ts. */
export type SendState = 'noted' | 'made' | 'sent' | 'kept' | 'lost'

export type SendRow = {
  account: string
  key: string
  thread: string
  recipient: string
  subject: string
  text: string
  state: SendState
  draftId: string | null
  notedAtMs: number
}

export async function noteSend(tx: Tx, row: SendRow): Promise<void> {
  await tx.run(
    `INSERT INTO assist_sends(account, send_key, thread, recipient, subject, send_text, state, noted_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [row.account, row.key, row.thread, row.recipient, row.subject, row.text, row.state, row.notedAtMs],
  )
}

export async function setSendState(
  tx: Tx,
  { account, key, state, draftId }: Pick<SendRow, 'account' | 'key' | 'state' | 'draftId'>,
): Promise<void> {
  await tx.run(
    `UPDATE assist_sends SET state = ?, draft_id = COALESCE(?, draft_id) WHERE account = ? AND send_key = ?`,
    [state, draftId, account, key],
  )
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
  draft_id: string | null
  noted_at: number
}

export function sendOf(row: RawSend): SendRow {
  return {
    account: row.account,
    key: row.send_key,
    thread: row.thread,
    recipient: row.recipient,
    subject: row.subject,
    text: row.send_text,
    state: row.state,
    draftId: row.draft_id,
    notedAtMs: Number(row.noted_at),
  }
}
