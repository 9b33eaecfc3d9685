/** What came, what waits for the user, what was done: for a page, the command line, and as mail to oneself. */
import { createHash } from 'node:crypto'
import { formatCount } from '../../base/format.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { Category, ThreadStatus } from './contract.ts'
import type { AccountPayload, AssistKinds } from './kinds.ts'
import { noteBriefing } from './store/accounts.ts'
import type { ThreadRecord } from './store/records.ts'
import type { Balance } from './store/tables.ts'

const DAY_MS = 86_400_000
const SHOWN_MAX = 20

export type BriefingLine = Pick<
  ThreadRecord,
  'thread' | 'subject' | 'sender' | 'category' | 'status' | 'reasoning'
>

export type Briefing = {
  account: string
  sinceMs: number
  untilMs: number
  balance: Balance
  /** What was sorted since then, by category. */
  counts: readonly { status: ThreadStatus; category: Category; count: number }[]
  /** What happened since then: by event. */
  events: Readonly<Record<string, number>>
  /** Drafts to look at, then what asks for something, what to pay, and what came back. */
  drafts: readonly BriefingLine[]
  actions: readonly BriefingLine[]
  payments: readonly BriefingLine[]
  waiting: readonly BriefingLine[]
  text: string
}

export async function briefingOf(
  kinds: Pick<AssistKinds, 'tables' | 'clock'>,
  account: string,
  sinceMs?: number,
): Promise<Briefing> {
  const { tables } = kinds
  const untilMs = kinds.clock.now()
  const from = sinceMs ?? untilMs - DAY_MS
  const list = async (filter: { status?: ThreadStatus; category?: Category }): Promise<BriefingLine[]> => {
    const records = await tables.list({ accounts: [account], limit: SHOWN_MAX, ...filter })
    return records
      .filter(({ label }) => label !== null && label !== 'done')
      .map(({ thread, subject, sender, category, status, reasoning }) => ({
        thread,
        subject,
        sender,
        category,
        status,
        reasoning,
      }))
  }
  const briefing = {
    account,
    sinceMs: from,
    untilMs,
    balance: await tables.balance(account),
    counts: await tables.counts(account),
    events: Object.fromEntries(await tables.eventCounts(account, from)),
    drafts: await list({ status: 'drafted' }),
    actions: await list({ category: 'action_required' }),
    payments: await list({ category: 'payment_request' }),
    waiting: await list({ category: 'waiting' }),
  }
  return { ...briefing, text: textOf(briefing) }
}

function textOf(briefing: Omit<Briefing, 'text'>): string {
  const { balance, events } = briefing
  const count = (what: string): number => events[what] ?? 0
  const sorted = count('classified') + count('reclassified')
  const lines = [
    `${formatCount(sorted)} conversations were sorted, ${formatCount(count('draft-created'))} drafts written, ${formatCount(count('sent'))} answers sent by you.`,
    `inbox ${formatCount(balance.inbox)} = ${formatCount(balance.classified)} classified + ${formatCount(balance.skipped)} skipped + ${formatCount(balance.onTheirWay)} on their way`,
  ]
  const part = (title: string, all: readonly BriefingLine[]): void => {
    if (all.length === 0) return
    lines.push(
      '',
      `${title}:`,
      ...all.map(({ subject, sender }) => `- ${subject || '(no subject)'} (${sender})`),
    )
  }
  part('Drafts for you to look at', briefing.drafts)
  part('Asks for something', briefing.actions)
  part('To pay', briefing.payments)
  part('Waiting', briefing.waiting)
  return lines.join('\n')
}

/** What the first try of a briefing has noted with it: whoever tries again writes the same one, whatever day it is by then. */
type Noted = { atMs: number; sinceMs: number }

/** Put into the mailbox, where the user wants that. It is inserted, not sent. */
export async function runBriefing(kinds: AssistKinds, job: RunContext<AccountPayload>): Promise<Outcome> {
  const { account: name } = job.payload
  const account = await kinds.accounts.get(name)
  if (!account.settings.briefing) return { skip: 'the user wants no briefing', code: 'off' }
  const done: Outcome = { note: 'already written today', code: 'nothing-new' }
  const { signal } = job
  let noted = job.checkpoint as Noted | null
  if (noted) {
    // That try may have ended before the mail, or after it.
    const query = `rfc822msgid:${idOf(name, noted)}`
    const found = await account.client.listIds({ query, includeSpamTrash: true, maxResults: 1, signal })
    if (found.ids.length > 0) return done
  } else {
    const atMs = kinds.clock.now()
    const last = account.row.briefedAtMs
    if (last !== null && dayOf(last) === dayOf(atMs)) return done
    noted = { atMs, sinceMs: last ?? atMs - DAY_MS }
    await job.commit({ checkpoint: noted, effects: (tx) => noteBriefing(tx, name, atMs) })
  }
  const { text } = await briefingOf(kinds, name, noted.sinceMs)
  const raw = mailOf({ address: name, text, id: idOf(name, noted), nowMs: noted.atMs })
  await account.client.insert({ raw, labelIds: ['INBOX', 'UNREAD'], internalMs: noted.atMs }, { signal })
  return { note: 'written', code: 'written' }
}

/** The Message-ID of its day's briefing, by which it is found again. */
function idOf(name: string, { atMs }: Noted): string {
  const hash = createHash('sha256')
    .update(`${name} ${dayOf(atMs)}`)
    .digest('hex')
  return `briefing-${hash.slice(0, 24)}@tidemark.invalid`
}

function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

function mailOf({
  address,
  text,
  id,
  nowMs,
}: {
  address: string
  text: string
  id: string
  nowMs: number
}): Uint8Array {
  const date = new Date(nowMs)
  const head = [
    `From: Tidemark <${address}>`,
    `To: ${address}`,
    `Message-ID: <${id}>`,
    `Subject: Briefing of ${date.toISOString().slice(0, 10)}`,
    `Date: ${date.toUTCString().replace('GMT', '+0000')}`,
    'Auto-Submitted: auto-generated',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: base64',
  ]
  const body = Buffer.from(text.replaceAll('\n', '\r\n')).toString('base64').replaceAll(/.{76}/g, '$&\r\n')
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}\r\n`)
}
