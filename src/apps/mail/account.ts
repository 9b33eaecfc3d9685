/** A mail account as the jobs see it: its cloud, its archive, and what of it is wanted. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { AccountSource } from '../../app/signed-in.ts'
import type { GmailClient } from '../../cloud/gmail/client.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { CallWatch } from './call-watch.ts'
import type { Archive } from './store/contract.ts'

export const SERVICE = 'gmail'

/** What an archive of imports is called where no address is named. */
export const LOCAL_NAME = 'imported'

/** What the user chose when the account was connected. */
export const mailChoices = z.object({
  spam: z.boolean().default(false),
  trash: z.boolean().default(true),
  /** Label names: only mail with one of them; none means all mail. */
  onlyLabels: z.array(z.string()).default([]),
  skipLabels: z.array(z.string()).default([]),
})

export type MailChoices = z.output<typeof mailChoices>

/** They stand in the account's settings under the name of this app; in those of an older Tidemark, in the settings themselves. */
export function choicesOf({ settings }: Pick<Account, 'settings'>): MailChoices {
  return mailChoices.parse(settings.mail ?? settings)
}

export type MailAccount = {
  /** Its address. */
  name: string
  stream: string
  /** The budget that paces its calls. */
  units: string
  choices: MailChoices
  client: GmailClient
  /** Whether the cloud answers. */
  calls?: CallWatch
  archive: Archive
}

export type MailAccounts = {
  /** All that have an archive to read. */
  names(): readonly string[]
  /** Those of a cloud, which are synced. */
  connected(): readonly string[]
  /** An archive for mail from files, without an account. */
  addLocal(name: string): Promise<MailAccount>
  /** Opens its archive and its client when first asked for; one that was connected meanwhile is found. */
  get(name: string): Promise<MailAccount>
  /** The budget that paces its calls, known to the engine from then on. */
  budget(name: string): string
  /** Sees accounts that were connected, changed or removed since, and settings that changed. */
  reload(): Promise<void>
  close(): Promise<void>
}

export function streamOf(account: string): string {
  return `mail:${account}`
}

export function sourcesOf(names: readonly string[]): AccountSource[] {
  return names.map((name) => ({ stream: streamOf(name), account: name }))
}

export function accountOf(stream: string): string {
  return stream.slice('mail:'.length)
}

/** The address where it can be a folder's name on every system; a hash tells apart what would become the same. */
export function folderName(account: string): string {
  const plain = account.toLowerCase()
  if (/^[a-z0-9][a-z0-9.@_+-]{0,99}$/.test(plain) && plain === account && !plain.endsWith('.')) return plain
  const hash = createHash('sha256').update(account).digest('hex').slice(0, 12)
  return `${plain.replaceAll(/[^a-z0-9@_+-]+/g, '-').slice(0, 80)}-${hash}`
}
