/** How many messages Gmail says there are, and how many of them are left out by choice: so that numbers add up. */
import { z } from 'zod'
import { asTidemarkError } from '../../base/errors.ts'
import type { MailAccount, MailChoices } from './account.ts'

const Totals = z.object({
  messages: z.number().int().min(0),
  spam: z.number().int().min(0),
  trash: z.number().int().min(0),
  atMs: z.number(),
})
/** As of `atMs`; `messages` are all of them, spam and trash included. */
export type MailboxTotals = z.output<typeof Totals>

export type LeftOut = {
  spam: number
  trash: number
  /** Labels or a start were chosen, too: nobody knows how many these leave out. */
  isMore: boolean
}

/** For 3 units. Undefined where Gmail does not tell: a sync goes on without. */
export async function readTotals(
  { client }: Pick<MailAccount, 'client'>,
  { atMs, signal }: { atMs: number; signal: AbortSignal },
): Promise<MailboxTotals | undefined> {
  try {
    const { messagesTotal: messages } = await client.profile({ signal })
    const spam = await client.labelCount('SPAM', { signal })
    const trash = await client.labelCount('TRASH', { signal })
    return { messages, spam, trash, atMs }
  } catch (thrown) {
    if (signal.aborted || asTidemarkError(thrown).kind === 'bug') throw thrown
    return undefined
  }
}

export function totalsFrom(text: string | null | undefined): MailboxTotals | null {
  return text == null ? null : Totals.parse(JSON.parse(text))
}

export function leftOutOf(totals: MailboxTotals, choices: MailChoices, sinceMs: number | null): LeftOut {
  return {
    spam: choices.spam ? 0 : totals.spam,
    trash: choices.trash ? 0 : totals.trash,
    isMore: choices.onlyLabels.length + choices.skipLabels.length > 0 || sinceMs !== null,
  }
}

/** How many messages there will be when all are listed; null where nobody can tell. */
export function wholeOf({
  gmail,
  leftOut,
  listed,
}: {
  gmail: MailboxTotals | null
  leftOut: LeftOut | null
  listed: number
}): number | null {
  if (!gmail || !leftOut || leftOut.isMore) return null
  return Math.max(listed, gmail.messages - leftOut.spam - leftOut.trash)
}

/**
 * `3,000 in all; left out by choice: 46 in spam; stored here and not there any more: 60`. `kept` are those: without them
 * more would be stored than Gmail has.
 */
export function totalsText(
  { messages }: MailboxTotals,
  { spam, trash, isMore, kept }: LeftOut & { kept: number },
  count: (n: number) => string,
): string {
  const parts = [
    ...(spam > 0 ? [`${count(spam)} in spam`] : []),
    ...(trash > 0 ? [`${count(trash)} in the trash`] : []),
    ...(isMore ? ['what the chosen labels or start leave out'] : []),
  ]
  const leftOut = parts.length > 0 ? `; left out by choice: ${parts.join(', ')}` : ''
  return `${count(messages)} in all${leftOut}${kept > 0 ? `; stored here and not there any more: ${count(kept)}` : ''}`
}
