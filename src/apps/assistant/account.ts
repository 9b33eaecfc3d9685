/** A mailbox as the jobs see it, what its user has chosen, and the names that follow from its address. */
import { z } from 'zod'
import type { AccountSource } from '../../app/signed-in.ts'
import type { GmailClient } from '../../cloud/gmail/client.ts'
import type { Reader } from '../../search/contract.ts'
import { LABELS, type LabelRole, type Mailbox, type Style } from './contract.ts'
import type { AccountRow, LabelIds } from './store/accounts.ts'

/** Whose accounts it works for. */
export const SERVICE = 'gmail'
export const APP = 'assist'

/** Above all labels of the assistant; Gmail nests by `/`. */
export const LABEL_PARENT = '🤖 AI'

const LABEL_TITLES: Readonly<Record<LabelRole, string>> = {
  needs_response: 'Needs Response',
  outbox: 'Outbox',
  rework: 'Rework',
  action_required: 'Action Required',
  payment_request: 'Payment Requests',
  fyi: 'FYI',
  waiting: 'Waiting',
  done: 'Done',
}

export const DEFAULT_LABELS = Object.fromEntries(
  LABELS.map((role) => [role, `${LABEL_PARENT}/${LABEL_TITLES[role]}`]),
) as Readonly<Record<LabelRole, string>>

export function labelTitle(role: LabelRole): string {
  return LABEL_TITLES[role]
}

const TEXTS_MAX = 200
const shortText = z.string().max(500)

export const styleSchema = z.strictObject({
  name: z.string().min(1).max(60),
  rules: z.array(shortText).max(TEXTS_MAX).default([]),
  signOff: shortText.default(''),
  examples: z.array(z.string().max(5_000)).max(20).default([]),
  language: z.string().max(20).default(''),
})

export const DEFAULT_STYLE: Style = {
  name: 'default',
  rules: ['Short and friendly.', 'Answers what was asked, and nothing else.'],
  signOff: '',
  examples: [],
  language: '',
}

const storedSettings = z.strictObject({
  /** As drafts sign, where no style says how. */
  name: shortText.default(''),
  labels: z.partialRecord(z.enum(LABELS), z.string().min(1).max(225)).default({}),
  styles: z.array(styleSchema).max(TEXTS_MAX).default([]),
  defaultStyle: z.string().max(60).default(''),
  /** By address: the style for a person. */
  contacts: z.record(z.string(), z.string().max(60)).default({}),
  /** By domain: the style for everybody there. */
  domains: z.record(z.string(), z.string().max(60)).default({}),
  /** Globs of senders whose mail is never answered. */
  blacklist: z.array(z.string().min(1).max(320)).max(2_000).default([]),
  /** Which mail goes to an agent, first match wins: read by agent/router.ts. */
  routing: z.array(z.unknown()).max(TEXTS_MAX).default([]),
  /** What agents there are: read by agent/profiles.ts. */
  profiles: z.array(z.unknown()).max(50).default([]),
  /** Working days after which a mail that asks for something comes back; 0 for never; undefined as configured. */
  followUpDays: z.int().min(0).max(60).optional(),
  /** Whether the briefing is put into the mailbox each morning. */
  briefing: z.boolean().default(false),
})
export type AccountSettings = z.output<typeof storedSettings>

/** What the user of a mailbox has chosen. In the database; a TOML file can be imported (config-import.ts). */
export const accountSettings = storedSettings.superRefine(({ labels }, context) => {
  const wrong = wrongLabel(labels)
  if (wrong) context.addIssue({ code: 'custom', path: ['labels', wrong.role], message: wrong.why })
})

/** As they are kept: what was taken over once can be read, and changed. */
export function settingsOf(row: Pick<AccountRow, 'settings'>): AccountSettings {
  return storedSettings.parse(JSON.parse(row.settings))
}

/** Labels of Gmail itself, as its pages and its API call them: whoever sets one moves mail. */
const GMAIL_LABELS: ReadonlySet<string> = new Set(
  [
    ['inbox', 'sent', 'sent mail', 'draft', 'drafts', 'trash', 'bin', 'spam', 'junk', 'starred', 'important'],
    ['unread', 'read', 'chat', 'chats', 'all', 'all mail', 'archive', 'snoozed', 'scheduled', 'muted'],
    ['voicemail', 'category', 'categories'],
  ].flat(),
)

/** Each role has a label of its own, which is none of Gmail's. */
function wrongLabel(names: Partial<Record<LabelRole, string>>): { role: LabelRole; why: string } | undefined {
  const taken = new Map<string, LabelRole>()
  const wanted = { ...DEFAULT_LABELS, ...names }
  // Chosen names last, so that they are the ones that are told.
  for (const role of LABELS.toSorted((a, b) => Number(a in names) - Number(b in names))) {
    const name = wanted[role]
    const pieces = name.split('/').map((piece) => piece.trim().toLowerCase())
    const [first = ''] = pieces
    if (pieces.includes('')) return { role, why: `${JSON.stringify(name)} is no name of a label.` }
    if (GMAIL_LABELS.has(first) || first.startsWith('category_')) {
      return {
        role,
        why: `${JSON.stringify(name)} is a label of Gmail itself: the assistant needs one of its own.`,
      }
    }
    const other = taken.get(pieces.join('/'))
    if (other)
      return { role, why: `${JSON.stringify(name)} is the label of ${other}, too: each needs its own.` }
    taken.set(pieces.join('/'), role)
  }
  return undefined
}

export type AssistAccount = {
  /** Its address. */
  name: string
  stream: string
  client: GmailClient
  settings: AccountSettings
  labels: LabelIds
  owner: Mailbox
  row: AccountRow
}

export type AssistAccounts = {
  /** Those that were onboarded, are active, and whose account is connected. */
  names(): readonly string[]
  /** With settings and labels as they are now; refuses one that was not onboarded. */
  get(name: string): Promise<AssistAccount>
  /** Of any connected account, onboarded or not. */
  client(name: string): Promise<GmailClient>
  /** With whose eyes drafts and tools look: those of the user whose account it is. */
  reader(name: string): Promise<Reader>
  budget(name: string): string
  reload(): Promise<void>
}

export function streamOf(account: string): string {
  return `${APP}:${account}`
}

export function accountOf(stream: string): string {
  return stream.slice(`${APP}:`.length)
}

export function sourcesOf(names: readonly string[]): AccountSource[] {
  return names.map((name) => ({ stream: streamOf(name), account: name }))
}
