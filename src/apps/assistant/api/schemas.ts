/** What the API says of the assistant. Pages import the types. */
import { z } from 'zod'
import { CATEGORIES, LABELS } from '../contract.ts'

const ms = z.number().int()
const count = z.number().int().min(0)
const micros = z.number().int().min(0).describe('Millionths of the currency of the prices')

export const categorySchema = z.enum(CATEGORIES)
export type CategoryView = z.output<typeof categorySchema>
export const statusSchema = z.enum([
  'pending',
  'drafted',
  'discarded',
  'sent',
  'skipped',
  'archived',
  'agent',
])
export const decidedBySchema = z.enum(['rule', 'model', 'local', 'user', 'default'])

export const accountSchema = z.object({
  account: z.string(),
  isActive: z.boolean(),
  inbox: count.describe('Messages that came into the inbox: classified + skipped + onTheirWay'),
  classified: count,
  skipped: count,
  onTheirWay: count,
  held: count.describe('Of those on their way: what waits for a yes to its cost'),
  backlog: z
    .string()
    .nullable()
    .describe('What sorting them, and drafts that wait, would cost; null where nothing waits for a yes'),
  byCategory: z.array(z.object({ category: categorySchema, count })),
  draftsWaiting: count,
  lastMailAtMs: ms.nullable().describe('When the newest mail that was seen came'),
  lastPushAtMs: ms.nullable(),
  lastSyncAtMs: ms.nullable(),
  watchUntilMs: ms.nullable().describe('Until when Gmail tells of news by itself'),
  problem: z
    .object({ code: z.string(), text: z.string() })
    .nullable()
    .describe('What keeps models from being asked, or Gmail from telling of news'),
  model: z.string().nullable().describe('What drafts are written with; null where no model is configured'),
  sendsTo: z.array(z.string()).describe('To whom agents of this mailbox may send by themselves'),
  spentTodayMicros: micros,
  capPerDayMicros: micros.nullable(),
})
export type AssistAccountView = z.output<typeof accountSchema>

export const threadSchema = z.object({
  account: z.string(),
  thread: z.string(),
  subject: z.string(),
  sender: z.string(),
  category: categorySchema.nullable(),
  status: statusSchema,
  confidence: z.number().nullable(),
  reasoning: z.string(),
  by: decidedBySchema.nullable(),
  isAutomated: z.boolean(),
  language: z.string(),
  style: z.string(),
  label: z.enum(LABELS).nullable(),
  reworks: count,
  problem: z.string().nullable().describe('Why it waits; null where it does not'),
  lastMessageAtMs: ms,
  updatedAtMs: ms,
  url: z.string().describe('Opens it in Gmail'),
})
export type ThreadView = z.output<typeof threadSchema>

export const eventSchema = z.object({
  id: z.number().int(),
  atMs: ms,
  what: z.string().describe('A code: `classified`, `draft_created`, …'),
  text: z.string().describe('A sentence for people'),
  by: z.string(),
  canUndo: z.boolean(),
})
export type EventView = z.output<typeof eventSchema>

export const sourceSchema = z.object({
  title: z.string(),
  source: z.string(),
  documentId: z.number().int(),
  url: z.string(),
})

export const draftSchema = z.object({
  text: z.string(),
  isEdited: z.boolean().describe('The user has changed it: nothing overwrites it'),
  removed: z
    .array(z.object({ code: z.string(), text: z.string() }))
    .describe('What the model wrote and code took out'),
  sources: z.array(sourceSchema).describe('What it leans on'),
})

export const threadDetailSchema = threadSchema.extend({
  reworksMax: count.describe('How often its draft may be written anew'),
  events: z.array(eventSchema),
  draft: draftSchema.nullable(),
})
export type ThreadDetailView = z.output<typeof threadDetailSchema>

export const messageSchema = z.object({
  id: z.string(),
  from: z.string(),
  to: z.array(z.string()).describe('Some of them'),
  subject: z.string(),
  sentAtMs: ms,
  isAnswered: z.boolean().describe('It is what the draft answers'),
  isOwn: z.boolean().describe('The owner of the mailbox has sent it'),
  text: z.string().describe('What a reader sees of it, as plain text'),
  isCut: z.boolean().describe('There is more of it'),
  attachments: z.array(z.string()).describe('Names of some of them'),
  hidden: z
    .object({
      ways: z.array(z.object({ code: z.string(), text: z.string() })),
      excerpt: z.string().describe('How it begins; empty where it cannot be told'),
    })
    .nullable()
    .describe('Text that the mail hides from its reader, and that no model was given'),
})
export type MessageView = z.output<typeof messageSchema>

export const threadMailSchema = z.object({
  items: z.array(messageSchema).describe('What is answered first, then the newest'),
  older: count.describe('How many more there are'),
})
export type ThreadMailView = z.output<typeof threadMailSchema>

export const ruleSchema = z.object({
  id: z.number().int(),
  account: z.string(),
  from: z.string().nullable().describe('The sender, as a glob such as `*@example.com`'),
  subject: z.string().nullable().describe('A text that the subject contains'),
  category: categorySchema,
  isOn: z.boolean(),
  origin: z.enum(['user', 'correction']),
  hits: count,
  createdAtMs: ms,
})
export type RuleView = z.output<typeof ruleSchema>

export const exampleSchema = z.object({
  id: z.number().int(),
  account: z.string(),
  thread: z.string(),
  text: z.string().describe('What is learned from: the name of the sender, the subject and the text, cut'),
  category: categorySchema,
  isOn: z.boolean(),
  createdAtMs: ms,
})
export type ExampleView = z.output<typeof exampleSchema>

export const replayedSchema = z.object({
  looked: count,
  fits: count.describe('Threads that it fits'),
  changes: count.describe('Of these, how many it would sort otherwise'),
  shown: z
    .array(
      z.object({
        thread: z.string(),
        subject: z.string(),
        was: categorySchema.nullable(),
        becomes: categorySchema,
      }),
    )
    .describe('Some of them'),
  archive: count.nullable().describe('Mail of the archive that it fits, and that was never sorted'),
})
export type ReplayedView = z.output<typeof replayedSchema>

export const callSchema = z.object({
  day: z.string(),
  purpose: z.string(),
  model: z.string(),
  calls: count,
  failed: count,
  inputTokens: count,
  outputTokens: count,
  costMicros: micros,
})
export type CallView = z.output<typeof callSchema>

export const runSchema = z.object({
  id: z.number().int(),
  account: z.string(),
  thread: z.string(),
  profile: z.string(),
  rule: z.string(),
  status: z.enum(['running', 'completed', 'max_iterations', 'error']),
  iterations: count,
  startedAtMs: ms,
  endedAtMs: ms.nullable(),
  text: z.string().describe('What it said at the end, or what went wrong'),
})
export type RunView = z.output<typeof runSchema>

export const stepSchema = z.object({
  number: count,
  atMs: ms,
  tool: z.string().nullable(),
  arguments: z.string(),
  result: z.string(),
  outcome: z.enum(['said', 'begun', 'done', 'refused', 'failed']),
})
export type StepView = z.output<typeof stepSchema>

const briefedThread = threadSchema.pick({
  account: true,
  thread: true,
  subject: true,
  sender: true,
  category: true,
  status: true,
  reasoning: true,
})

export const briefingSchema = z.object({
  account: z.string(),
  sinceMs: ms,
  untilMs: ms,
  text: z.string().describe('All of it, for people'),
  drafts: z.array(briefedThread),
  actions: z.array(briefedThread),
  payments: z.array(briefedThread),
  waiting: z.array(briefedThread),
})
export type BriefingView = z.output<typeof briefingSchema>

export const runDetailSchema = runSchema.extend({ steps: z.array(stepSchema) })
export type RunDetailView = z.output<typeof runDetailSchema>

export const routedSchema = z.object({
  route: z.enum(['pipeline', 'agent']),
  profile: z.string().nullable(),
  rule: z.string().nullable(),
  why: z.array(z.string()).describe('Of each rule that was asked: whether it fits, and why'),
})
export type RoutedView = z.output<typeof routedSchema>

export const settingsSchema = z.object({
  account: z.string(),
  toml: z.string().describe('Styles, contacts, blacklist and routing, as TOML'),
})
export type SettingsView = z.output<typeof settingsSchema>
