/** The settings of mail, and what they mean. */
import { join } from 'node:path'
import { type GmailReach, gmailReachOf } from '../../cloud/gmail/budgets.ts'
import { gmailSection } from '../../cloud/gmail/settings.ts'
import { about, bytes, choice, defineSection, type SectionValues, text, whole } from '../../config/section.ts'
import type { Config } from '../../config/settings.ts'
import type { Granularity } from './plan.ts'
import type { ShardPeriod } from './store/contract.ts'

export const mailSection = defineSection('mail', {
  slice: choice(['auto', 'day', 'week', 'month'], 'auto', 'how long a slice of the mailbox is'),
  slice_by_label: text('a label that dominates the mailbox: it is listed apart from the rest'),
  batch: whole({ min: 1, max: 500 }, 300, 'messages in a batch to begin with'),
  shard_by: choice(['month', 'quarter', 'year'], 'year', 'the time that one file of the archive covers'),
  shard_max: bytes.prefault('4GB').register(about, {
    allowed: 'a size such as "4GB"',
    purpose: 'a file of the archive that is larger gets a successor',
    unit: 'bytes',
  }),
  poll_minutes: whole({ min: 1, max: 1440 }, 5, 'how often new mail is looked for', { onPage: true }),
  patience_minutes: whole(
    { min: 0, max: 1440 },
    10,
    'how long a sync waits for Gmail when it is out of reach; with --watch it does so without end',
  ),
  metadata_max: bytes.prefault('1GB').register(about, {
    allowed: 'a size such as "1GB"',
    purpose: 'room for what the ledger keeps about an account; alerts warn at half of it',
    unit: 'bytes',
  }),
  index: choice(['on', 'off'], 'on', 'whether mail is found by the search over everything'),
})

export const sections = [gmailSection, mailSection]

declare module '../../config/settings.ts' {
  interface Config {
    mail: SectionValues<typeof mailSection>
  }
}

export type MailSettings = GmailReach & {
  /** Where archives are: a folder for each account. */
  folder: string
  slice: Granularity | 'auto'
  sliceByLabel: string | undefined
  batch: number
  sinceMs: number | undefined
  shardBy: ShardPeriod
  shardBytesMax: number
  metadataBytesMax: number
}

/** What a command says about one run, over the configuration. */
export type MailOverrides = Partial<Pick<MailSettings, 'sinceMs'>> & {
  /** It stores nothing: what an archive lacks is noticed by those that do, or that tell how far it is. */
  onlyReads?: boolean
}

export function mailSettingsOf(config: Config, home: string, overrides: MailOverrides = {}): MailSettings {
  const { mail } = config
  return {
    folder: join(home, 'mail'),
    ...gmailReachOf(config),
    slice: mail.slice,
    sliceByLabel: mail.slice_by_label,
    batch: mail.batch,
    sinceMs: overrides.sinceMs,
    shardBy: mail.shard_by,
    shardBytesMax: mail.shard_max,
    metadataBytesMax: mail.metadata_max,
  }
}
