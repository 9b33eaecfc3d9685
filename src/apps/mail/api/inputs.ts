/** What routes of mail take: accounts, ids of messages, and the archives behind them. */
import { z } from 'zod'
import { accountText } from '../../../app/inputs.ts'
import { notFound } from '../../../app/problem.ts'
import { type OpenedArchive, withLabels } from '../merged-search.ts'
import type { StoredMessage } from '../message.ts'
import type { MailServices } from './route.ts'

/** Gmail's ids are hexadecimal; those of imported files begin with a word. */
export const messageId = z
  .string()
  .regex(/^[\w.@+=-]{1,200}$/, 'is not the id of a message')
  .describe('As lists and searches give it')
export const messageParams = z.object({ account: accountText, id: messageId })

/** The archive of a connected account, or 404. */
export async function archiveOf({ mail }: MailServices, account: string): Promise<OpenedArchive> {
  const { name, archive } = await mail.accounts.get(account)
  return withLabels(mail.tables, name, archive)
}

export async function messageOf(
  services: MailServices,
  { account, id }: { account: string; id: string },
): Promise<{ opened: OpenedArchive; message: StoredMessage }> {
  const opened = await archiveOf(services, account)
  const message = await opened.archive.message(id)
  if (message) return { opened, message }
  throw notFound(`The archive of ${account} has no message ${id}.`, { code: 'message-unknown' })
}
