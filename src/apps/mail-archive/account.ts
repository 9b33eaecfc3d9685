/** A mail account as the jobs see it: its cloud, its archive, and what of it is wanted. */
import { z } from 'zod'
import type { GmailClient } from '../../cloud/gmail/client.ts'
import type { Archive } from './store/contract.ts'

export const SERVICE = 'gmail'

/** What the user chose when the account was connected. */
export const mailChoices = z.object({
  spam: z.boolean().default(false),
  trash: z.boolean().default(true),
  /** Label names: only mail with one of them; none means all mail. */
  onlyLabels: z.array(z.string()).default([]),
  skipLabels: z.array(z.string()).default([]),
})

export type MailChoices = z.output<typeof mailChoices>

export type MailAccount = {
  /** Its address. */
  name: string
  stream: string
  /** The budget that paces its calls. */
  units: string
  choices: MailChoices
  client: GmailClient
  archive: Archive
}

export type MailAccounts = {
  names(): readonly string[]
  /** Opens its archive and its client when first asked for. */
  get(name: string): Promise<MailAccount>
  close(): Promise<void>
}

export function streamOf(account: string): string {
  return `mail:${account}`
}

export function accountOf(stream: string): string {
  return stream.slice('mail:'.length)
}

export function unitsOf(account: string): string {
  return `gmail-units:${account}`
}

export function requestsOf(account: string): string {
  return `gmail-requests:${account}`
}
