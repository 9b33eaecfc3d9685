/**
 * Mail that an agent sends to somebody whom its profile names. At most one in a run, and at most one to a recipient
 * because of the same message, whatever ends in between and however often that is sorted again. Gmail sends a draft only
 * once: the mail is made as a draft, and that draft, by its id, is sent while its message is the one that was made.
 *
 *   noted ─▶ draft in Gmail ─▶ made (its id, its message) ─▶ still that message? ─▶ sent by its id ─▶ sent
 *     │ noted again: its draft may have been made unheard. It is looked for by its Message-ID, which was noted
 *     │    among drafts, and as it was written     it is made
 *     │    among what was sent                     sent: the user did it
 *     │    anywhere else, or nowhere               lost: never made again, because the user may have sent it
 *     └ made: is the draft still there, and its message the same?
 *          there      it is sent
 *          changed    kept: the user has taken it over
 *          gone       sent, where it is among what was sent; lost otherwise
 *
 * Where Gmail said that it did not make the draft (throttled, signed out), the note is taken back. What is kept or lost
 * is told in the conversation's history.
 */
import { asTidemarkError } from '../../base/errors.ts'
import type { DraftRef } from '../../cloud/gmail/client.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { SendOutcome, SentMail } from './agent/tools/send.ts'
import type { Conversation } from './conversation.ts'
import { textHashOf } from './plan.ts'
import { messageIdOf, sentMime } from './reply.ts'
import { addEvent } from './store/records.ts'
import {
  countSends,
  forgetSend,
  hasSend,
  lockAccount,
  noteSend,
  type SendRow,
  setSendState,
} from './store/sends.ts'
import { visibleMessage } from './text/visible.ts'

/** Of a mailbox, in a day: two programs that answer each other must come to an end. */
export const SENDS_PER_DAY_MAX = 20
const DAY_MS = 24 * 3_600_000

export async function sendOnce(talk: Conversation, mail: SentMail): Promise<SendOutcome> {
  const { kinds, record, account } = talk
  const known = await kinds.tables.send(account.name, mail.key)
  if (known && known.state !== 'noted' && known.state !== 'made') return known.state
  const row: SendRow = known ?? {
    account: account.name,
    key: mail.key,
    run: mail.run,
    about: mail.about,
    thread: record.thread,
    recipient: mail.to,
    subject: mail.subject,
    text: mail.text,
    state: 'noted',
    draftId: null,
    messageId: null,
    notedAtMs: talk.nowMs,
  }
  const refusal = known ? undefined : await noted(talk, row)
  if (refusal) return refusal
  let made = row
  if (row.draftId === null) {
    const found = known ? await madeUnheard(talk, mail) : await makeDraft(talk, mail, row)
    if (found === 'sent' || found === 'lost') return settled(talk, row, found)
    made = { ...row, state: 'made', draftId: found.id, messageId: found.messageId }
    await talk.job.commit({ effects: (tx) => setSendState(tx, made) })
  }
  const there = await look(talk, mail, made)
  if (there !== 'same') return settled(talk, made, there)
  try {
    await account.client.sendDraft(made.draftId!, { signal: talk.signal })
  } catch (thrown) {
    if (asTidemarkError(thrown).code !== 'not-found') throw thrown
    return settled(talk, made, await goneBy(talk, mail))
  }
  return settled(talk, made, 'sent')
}

async function noted(talk: Conversation, row: SendRow): Promise<'too-many' | 'again' | undefined> {
  let refusal: 'too-many' | 'again' | undefined
  await talk.job.commit({
    effects: async (tx) => {
      await lockAccount(tx, row.account)
      const count = await countSends(tx, row.account, talk.nowMs - DAY_MS)
      if (await hasSend(tx, row)) refusal = 'again'
      else if (count >= SENDS_PER_DAY_MAX) refusal = 'too-many'
      else await noteSend(tx, row)
    },
  })
  return refusal
}

type Ended = 'sent' | 'kept' | 'lost'

/** On record at once: what was sent is not left to the end of the call. */
async function settled(talk: Conversation, row: SendRow, state: Ended): Promise<SendOutcome> {
  const { recipient, subject, text } = row
  const why = `${TOLD[state](recipient)}: ${subject}\n\n${text}`
  await talk.job.commit({
    effects: async (tx: Tx) => {
      await setSendState(tx, { ...row, state })
      await addEvent(tx, talk.event({ what: `agent-${state}`, why }))
    },
  })
  return state
}

const TOLD: Readonly<Record<Ended, (to: string) => string>> = {
  sent: (to) => `An agent sent this to ${to}`,
  kept: (to) => `An agent did not send this to ${to}, because you have changed its draft, which stays`,
  lost: (to) =>
    `An agent wanted to send this to ${to}; what became of its draft is not known, and it is not sent again`,
}

async function makeDraft(talk: Conversation, mail: SentMail, row: SendRow): Promise<DraftRef> {
  const raw = sentMime({ ...mail, owner: talk.account.owner, nowMs: talk.nowMs })
  const threadId = mail.answered && talk.record.thread
  try {
    return await talk.account.client.createDraft(
      { raw, ...(threadId && { threadId }) },
      { signal: talk.signal },
    )
  } catch (thrown) {
    const { kind } = asTidemarkError(thrown)
    const isUnmade = kind === 'throttled' || kind === 'auth'
    if (isUnmade) await talk.job.commit({ effects: (tx) => forgetSend(tx, row) })
    throw thrown
  }
}

async function madeUnheard(talk: Conversation, mail: SentMail): Promise<DraftRef | 'sent' | 'lost'> {
  const { account, signal } = talk
  const query = `rfc822msgid:${messageIdOf(mail.key, account.owner)}`
  const [found] = (await account.client.drafts({ query, signal })).drafts
  return found ?? goneBy(talk, mail)
}

/** An edit gives the draft another message. Of one that was found by its Message-ID only what it says can be compared. */
async function look(talk: Conversation, mail: SentMail, row: SendRow): Promise<'same' | Ended> {
  try {
    const { message } = await talk.account.client.draft(row.draftId!, { signal: talk.signal })
    const { id, to, cc, subject, text, attachments, headers } = visibleMessage(message)
    const isSame =
      (row.messageId === null || id === row.messageId) &&
      to.length === 1 &&
      to[0]!.address.toLowerCase() === mail.to &&
      cc.length + attachments.length === 0 &&
      !headers.some(([name]) => name === 'bcc') &&
      subject === row.subject &&
      textHashOf(text) === textHashOf(mail.text)
    return isSame ? 'same' : 'kept'
  } catch (thrown) {
    if (asTidemarkError(thrown).code !== 'not-found') throw thrown
    return goneBy(talk, mail)
  }
}

/** The draft is gone: sent by an earlier try or by the user, or thrown away by them. */
async function goneBy({ account, signal }: Conversation, { key }: SentMail): Promise<'sent' | 'lost'> {
  const query = `in:sent rfc822msgid:${messageIdOf(key, account.owner)}`
  const { ids } = await account.client.listIds({ query, includeSpamTrash: true, signal })
  return ids.length > 0 ? 'sent' : 'lost'
}
