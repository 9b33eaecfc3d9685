/** What routes of mail take: accounts, ids of messages, and the archives behind them. */
import { z } from 'zod'
import { accountText } from '../../../app/inputs.ts'
import { notFound } from '../../../app/problem.ts'
import { noteAccountLook, type RequestUser } from '../../../app/user.ts'
import { SERVICE } from '../account.ts'
import { type OpenedArchive, withLabels } from '../merged-search.ts'
import type { StoredMessage } from '../message.ts'
import type { MailServices } from './route.ts'

/** Gmail's ids are hexadecimal; those of imported files begin with a word. */
export const messageId = z
  .string()
  .regex(/^[\w.@+=-]{1,200}$/, 'is not the id of a message')
  .describe('As lists and searches give it')
export const messageParams = z.object({ account: accountText, id: messageId })

/** That somebody reads the mail of another user, or searches in it, is written down. */
export function noteMailLook(
  services: MailServices,
  user: RequestUser,
  { account, what }: { account: string | undefined; what: string },
): Promise<void> {
  const names = services.mail.accounts.names()
  return noteAccountLook(services, user, { service: SERVICE, account, names, what })
}

/** The archive of a connected account, or 404. */
export async function openArchive({ mail }: MailServices, account: string): Promise<OpenedArchive> {
  const { name, archive } = await mail.accounts.get(account)
  return withLabels(mail.tables, name, archive)
}

export async function openMessage(
  services: MailServices,
  user: RequestUser,
  { account, id }: { account: string; id: string },
): Promise<{ opened: OpenedArchive; message: StoredMessage }> {
  await noteMailLook(services, user, { account, what: `read mail ${id}` })
  return readMessage(services, { account, id })
}

/** For who has written it down. */
export async function readMessage(
  services: MailServices,
  { account, id }: { account: string; id: string },
): Promise<{ opened: OpenedArchive; message: StoredMessage }> {
  const opened = await openArchive(services, account)
  const message = await opened.archive.message(id)
  if (message) return { opened, message }
  throw notFound(`The archive of ${account} has no message ${id}.`, { code: 'message-unknown' })
}
