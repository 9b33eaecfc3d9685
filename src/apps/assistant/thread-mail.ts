/**
 * The mail of a conversation for the person who reviews its draft: read from Gmail when they look, as plain text and
 * bounded, because a stranger has written it. What it hides from its reader is told, with the beginning of it.
 */
import { asTidemarkError } from '../../base/errors.ts'
import { cutText } from '../../search/extract/clean-text.ts'
import type { MessageView } from './api/schemas.ts'
import type { Mailbox, VisibleMessage } from './contract.ts'
import type { AssistKinds } from './kinds.ts'
import { lastInbound } from './plan.ts'
import type { ThreadRecord } from './store/records.ts'
import { hiddenWays } from './text/hidden.ts'
import { visibleMessage } from './text/visible.ts'

const MESSAGES_MAX = 20
const TEXT_CHARS_MAX = 10_000
const EXCERPT_CHARS_MAX = 300
const NAMES_MAX = 20

/** The one that is answered first, then the newest; `older`: how many more there are. Nothing where it is gone. */
export type ThreadMail = { items: MessageView[]; older: number }

export async function threadMail(
  { accounts }: Pick<AssistKinds, 'accounts'>,
  record: Pick<ThreadRecord, 'account' | 'thread' | 'answered'>,
  signal: AbortSignal,
): Promise<ThreadMail> {
  const { client } = await accounts.get(record.account)
  const thread = await client.thread(record.thread, { signal }).catch((thrown: unknown) => {
    if (asTidemarkError(thrown).code !== 'not-found') throw thrown
    return { messages: [] }
  })
  const all = thread.messages.map(visibleMessage).filter(({ isDraft }) => !isDraft)
  const answered = all.find(({ id }) => id === record.answered) ?? lastInbound(all, record.account)
  const others = all.filter((message) => message !== answered).reverse()
  const shown = [...(answered ? [answered] : []), ...others].slice(0, MESSAGES_MAX)
  return {
    items: shown.map((message) => messageView(message, message === answered)),
    older: all.length - shown.length,
  }
}

function messageView(message: VisibleMessage, isAnswered: boolean): MessageView {
  const { id, from, to, cc, subject, sentAtMs, isSent, text, attachments, hidden, hiddenText } = message
  const shown = cutText(text, TEXT_CHARS_MAX)
  return {
    id,
    from: mailboxText(from),
    to: [...to, ...cc].slice(0, NAMES_MAX).map(mailboxText),
    subject,
    sentAtMs,
    isAnswered,
    isOwn: isSent,
    text: shown,
    isCut: shown.length < text.length || hidden.includes('cut'),
    attachments: attachments.slice(0, NAMES_MAX).map(({ name }) => name),
    hidden:
      hiddenWays(hidden).length === 0
        ? null
        : { ways: hiddenWays(hidden), excerpt: cutText(hiddenText, EXCERPT_CHARS_MAX) },
  }
}

function mailboxText({ name, address }: Mailbox): string {
  return name === '' ? address : `${name} <${address}>`
}
