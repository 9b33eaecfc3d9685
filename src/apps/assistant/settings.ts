/** The settings of the assistant, and what they mean. What a user chooses for a mailbox is in account.ts. */
import { type GmailReach, gmailReachOf } from '../../cloud/gmail/budgets.ts'
import { gmailSection } from '../../cloud/gmail/settings.ts'
import { modelsSection } from '../../cloud/models/settings.ts'
import { defineSection, type SectionValues, text, url, whole } from '../../config/section.ts'
import type { Config } from '../../config/settings.ts'

export const assistSection = defineSection('assist', {
  poll_minutes: whole(
    { min: 1, max: 1440 },
    15,
    'how often a mailbox is looked at where nothing was pushed: a safety net',
    { onPage: true },
  ),
  full_scan_minutes: whole(
    { min: 1, max: 10_080 },
    60,
    'how often the whole inbox, all labels and all drafts are compared: finds what pushes and history missed',
    { onPage: true },
  ),
  scan_days: whole({ min: 1, max: 3_650 }, 10, 'how old mail may be that such a scan sorts'),
  backlog_max: whole(
    { min: 0, max: 1_000_000 },
    50,
    'how many mails that are found at once, by a scan or after an hour without a look, are given to a model that costs money before you are asked, with what it would cost; new mail is not asked about, unless more than this and more than 50 come between two looks',
  ),
  attempts: whole({ min: 1, max: 20 }, 3, 'tries of a job before it fails'),
  model_wait_minutes: whole(
    { min: 0, max: 1440 },
    10,
    'how long sorting waits for a model that is down or over its budget, before rules and the local classifier decide',
  ),
  follow_up_days: whole(
    { min: 0, max: 60 },
    3,
    'working days after which a mail that asks for something and was not answered comes back; 0 for never',
  ),
  follow_up_hour: whole(
    { min: 0, max: 23 },
    7,
    'the hour of working days (UTC) at which such mail comes back',
  ),
  briefing_hour: whole(
    { min: 0, max: 23 },
    6,
    'the hour (UTC) in whose middle the briefing is put into mailboxes whose user wants it',
  ),
  watch_hours: whole(
    { min: 1, max: 144 },
    24,
    'how often Gmail is asked to go on telling of news, which it does for a week',
  ),
  push_topic: text('the Pub/Sub topic to which Gmail tells of new mail: projects/PROJECT/topics/TOPIC'),
  push_audience: text('the audience of the tokens with which Pub/Sub delivers'),
  push_account: text('the service account that signs them'),
  push_keys_url: url('https://www.googleapis.com/oauth2/v3/certs', 'where the keys of these tokens are'),
  patience_minutes: whole(
    { min: 0, max: 1440 },
    10,
    'how long a sync waits for Gmail when it is out of reach; with --watch it does so without end',
  ),
})

export const sections = [gmailSection, modelsSection, assistSection]

declare module '../../config/settings.ts' {
  interface Config {
    assist: SectionValues<typeof assistSection>
  }
}

const MINUTE_MS = 60_000

export type AssistSettings = GmailReach & {
  fullScanMs: number
  scanDays: number
  backlogMax: number
  attempts: number
  modelWaitMs: number
  followUpDays: number
  pushTopic: string | undefined
}

/** What a test or a command says about one run, over the configuration. */
export type AssistOverrides = Partial<AssistSettings>

export function assistSettingsOf(config: Config, overrides: AssistOverrides = {}): AssistSettings {
  const { assist } = config
  return {
    ...gmailReachOf(config),
    fullScanMs: assist.full_scan_minutes * MINUTE_MS,
    scanDays: assist.scan_days,
    backlogMax: assist.backlog_max,
    attempts: assist.attempts,
    modelWaitMs: assist.model_wait_minutes * MINUTE_MS,
    followUpDays: assist.follow_up_days,
    pushTopic: assist.push_topic,
    ...overrides,
  }
}
