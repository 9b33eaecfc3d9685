/**
 * Mail that an agent sends to somebody whom its profile names. At most once for a call of a run, whatever ends in
 * between, because Gmail sends a draft only once: the mail is made as a draft, and that draft, by its id, is sent.
 *
 *   noted ─▶ draft in Gmail ─▶ made (its id) ─▶ sent by its id ─▶ sent
 *     │ noted again: looked for by its Message-ID, which was noted, and made where it is not there
 *     └───────────────────────── made again: is it still there, and as it was written?
 *                                   there      it is sent
 *                                   changed    kept: the user has taken it over
 *                                   gone       sent, where it is among what was sent; lost otherwise, and not made again
 *
 * Only a draft whose id is on record is ever sent. One that was made and not recorded stays a draft.
 */
import { asTidemarkError } from '../../base/errors.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { SendOutcome, SentMail } from './agent/tools/send.ts'
import type { Conversation } from './conversation.ts'
import { textHashOf } from './plan.ts'
import { messageIdOf, sentMime } from './reply.ts'
import { addEvent } from './store/records.ts'
import { countSends, lockAccount, noteSend, type SendRow, setSendState } from './store/sends.ts'
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
    thread: record.thread,
    recipient: mail.to,
    subject: mail.subject,
    text: mail.text,
    state: 'noted',
    draftId: null,
    notedAtMs: talk.nowMs,
  }
  if (!known) {
    let isTooMany = false
    await talk.job.commit({
      effects: async (tx) => {
        await lockAccount(tx, row.account)
        isTooMany = (await countSends(tx, row.account, talk.nowMs - DAY_MS)) >= SENDS_PER_DAY_MAX
        if (!isTooMany) await noteSend(tx, row)
      },
    })
    if (isTooMany) return 'too-many'
  }
  const draftId = row.draftId ?? (await made(talk, mail, { isNew: !known }))
  if (row.draftId === null) {
    await talk.job.commit({ effects: (tx) => setSendState(tx, { ...row, state: 'made', draftId }) })
  }
  if (known) {
    const there = await lookAgain(talk, mail, draftId)
    if (there !== 'same') return settled(talk, row, there)
  }
  try {
    await account.client.sendDraft(draftId, { signal: talk.signal })
  } catch (thrown) {
    if (asTidemarkError(thrown).code !== 'not-found') throw thrown
    return settled(talk, row, await goneBy(talk, mail))
  }
  return settled(talk, row, 'sent')
}

/** On record at once: what was sent is not left to the end of the call. */
async function settled(
  talk: Conversation,
  row: SendRow,
  state: 'sent' | 'kept' | 'lost',
): Promise<SendOutcome> {
  const { recipient, subject, text } = row
  const why = `An agent sent this to ${recipient}: ${subject}\n\n${text}`
  await talk.job.commit({
    effects: async (tx: Tx) => {
      await setSendState(tx, { ...row, state })
      if (state === 'sent') await addEvent(tx, talk.event({ what: 'agent-sent', why }))
    },
  })
  return state
}

async function made(talk: Conversation, mail: SentMail, { isNew }: { isNew: boolean }): Promise<string> {
  const { account, signal } = talk
  if (!isNew) {
    const query = `rfc822msgid:${messageIdOf(mail.key, account.owner)}`
    const [found] = (await account.client.drafts({ query, signal })).drafts
    if (found) return found.id
  }
  const raw = sentMime({ ...mail, owner: account.owner, nowMs: talk.nowMs })
  const threadId = mail.answered && talk.record.thread
  return (await account.client.createDraft({ raw, ...(threadId && { threadId }) }, { signal })).id
}

async function lookAgain(
  talk: Conversation,
  mail: SentMail,
  draftId: string,
): Promise<'same' | 'kept' | 'sent' | 'lost'> {
  try {
    const { message } = await talk.account.client.draft(draftId, { signal: talk.signal })
    const { to, cc, text, attachments } = visibleMessage(message)
    const isSame =
      to.length === 1 &&
      to[0]!.address.toLowerCase() === mail.to &&
      cc.length + attachments.length === 0 &&
      textHashOf(text) === textHashOf(mail.text)
    return isSame ? 'same' : 'kept'
  } catch (thrown) {
    if (asTidemarkError(thrown).code !== 'not-found') throw thrown
    return goneBy(talk, mail)
  }
}

/** The draft is gone: sent by an earlier try, or thrown away by the user. */
async function goneBy({ account, signal }: Conversation, { key }: SentMail): Promise<'sent' | 'lost'> {
  const query = `in:sent rfc822msgid:${messageIdOf(key, account.owner)}`
  const { ids } = await account.client.listIds({ query, includeSpamTrash: true, signal })
  return ids.length > 0 ? 'sent' : 'lost'
}
