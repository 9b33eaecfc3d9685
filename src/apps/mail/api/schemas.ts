/** What the API says about mail: accounts, search, messages, the clean-up. Pages import the types. */
import { z } from 'zod'

const ms = z.number().int()
const count = z.number().int().min(0)

export const addressSchema = z.object({ name: z.string(), address: z.string() })

/** Of one account, besides what is said of all of them. */
export const mailAccountSchema = z.object({
  stream: z.string(),
  phase: z.enum(['new', 'backfill', 'following']),
  paused: z.boolean(),
  watermarkMs: ms.nullable(),
  /** The watermark speaks of the mailbox as it was then. */
  watermarkAsOfMs: ms.nullable(),
  checkedAtMs: ms.nullable(),
  listed: count,
  stored: count,
  gone: count,
  skipped: count,
  bad: count,
  onTheirWay: z.number().int(),
  gmail: z
    .object({ messages: count, spam: count, trash: count, atMs: z.number() })
    .nullable()
    .describe('How many messages Gmail said there are, at that time; null before the first sync'),
  leftOut: z
    .object({ spam: count, trash: count, isMore: z.boolean() })
    .nullable()
    .describe('How many of these are left out by choice; `isMore`: labels or a start leave out others'),
  inGmail: z.string().nullable().describe('The same in words'),
  whole: count.nullable().describe('How many there will be when all are listed; null where nobody can tell'),
  missing: count,
  lost: count,
  lostImports: count,
  verified: z
    .object({ atMs: ms, messages: count, damaged: count, brokenFiles: count, missing: count.nullable() })
    .nullable(),
  files: count,
  fileBytes: count,
  rawBytes: count,
  damagedFiles: z.array(z.string()),
  choices: z.object({
    spam: z.boolean(),
    trash: z.boolean(),
    onlyLabels: z.array(z.string()),
    skipLabels: z.array(z.string()),
  }),
  unitsPerMinute: z.number(),
  labels: z.array(z.object({ id: z.string(), name: z.string() })),
})
export type MailAccountView = z.output<typeof mailAccountSchema>

export const messageSummarySchema = z.object({
  account: z.string(),
  id: z.string(),
  threadId: z.string(),
  subject: z.string(),
  from: z.array(addressSchema),
  to: z.array(addressSchema),
  snippet: z.string(),
  labels: z.array(z.string()).describe('Names, not ids'),
  internalMs: ms,
  bytes: count,
  attachments: count,
  deletedAtMs: ms.nullable(),
})
export type MessageSummary = z.output<typeof messageSummarySchema>

export const searchHitSchema = messageSummarySchema.extend({
  excerpt: z.array(z.object({ text: z.string(), match: z.boolean() })),
})
export type SearchHitView = z.output<typeof searchHitSchema>

export const searchAnswerSchema = z.object({
  items: z.array(searchHitSchema),
  next: z.string().nullable(),
  unsearched: z.array(z.object({ account: z.string(), shard: z.string(), reason: z.string() })),
  tookMs: z.number(),
})
export type SearchAnswer = z.output<typeof searchAnswerSchema>

const facetCount = z.object({ value: z.string(), messages: count })
export const searchFacetsSchema = z.object({
  messages: count,
  bytes: count,
  counted: count.describe('So many of them, the newest, were looked at for the rest'),
  years: z.array(facetCount),
  senders: z.array(facetCount),
  labels: z.array(facetCount),
})
export type SearchFacetsView = z.output<typeof searchFacetsSchema>

export const suggestionSchema = z.object({ items: z.array(z.object({ text: z.string(), what: z.string() })) })

export const messageSchema = messageSummarySchema.extend({
  cc: z.array(addressSchema),
  bcc: z.array(addressSchema),
  messageId: z.string(),
  headerMs: ms.nullable(),
  sha256: z.string(),
  shard: z.string(),
  source: z.enum(['gmail', 'import']),
  problems: z.array(z.string()),
  text: z.string().describe('Plain text; HTML is fetched apart, sanitised, for a sandboxed frame'),
  hasHtml: z.boolean(),
  htmlHeights: z
    .object({ narrowPx: z.number(), widePx: z.number() })
    .nullable()
    .describe('About how high its HTML is in a narrow frame and in a wide one'),
  gmailUrl: z
    .string()
    .nullable()
    .describe('Where Gmail shows it; null where it has it no more, or never had'),
  /** What is attached; `index` is its place in …/attachments/{index}. */
  files: z.array(z.object({ index: count, name: z.string(), type: z.string(), bytes: count })),
})
export type MessageView = z.output<typeof messageSchema>

export const cleanUpWishSchema = z.object({
  account: z.string(),
  olderThan: z
    .string()
    .regex(/^\d{1,4}(?:d|w|mo|y)$/)
    .describe('Only mail that is older: days, weeks, months or years, such as `90d`, `6mo`, `2y`'),
  query: z.string().max(2_000).default('').describe("Only mail that this finds, in Gmail's search language"),
  action: z
    .enum(['unlabel', 'trash', 'delete'])
    .default('unlabel')
    .describe('`unlabel`: out of the inbox. `trash`: Gmail deletes it after 30 days. `delete`: for good'),
})
export type CleanUpWish = z.input<typeof cleanUpWishSchema>

const classCount = z.object({
  class: z.string(),
  text: z.string(),
  messages: count,
  bytes: count,
  example: z.string().nullable(),
})

export const cleanUpPlanSchema = z.object({
  wish: z.object({ account: z.string(), olderThan: z.string(), query: z.string(), action: z.string() }),
  understood: z
    .string()
    .describe('The query with every joint, time and name written out; empty for all mail'),
  /** What would be taken out. */
  messages: count,
  bytes: count,
  freedBytes: count,
  /** Proof states of what is refused, by class. */
  refused: z.array(classCount),
  /** Bytes were read back and Gmail asked; otherwise only the index was looked at. */
  isFull: z.boolean(),
  /** Of a deletion for good: the words that confirm it. */
  confirm: z.string().nullable(),
})
export type CleanUpPlan = z.output<typeof cleanUpPlanSchema>

export const cleanUpProofSchema = z.object({
  id: z.number().int(),
  state: z.enum(['running', 'done', 'failed']),
  looked: count.describe('Messages that were looked at so far, of those that the index does not refuse'),
  plan: cleanUpPlanSchema.nullable().describe('Null until it is done'),
  trouble: z.string().nullable().describe('Why it failed, or what it waits for'),
})
export type CleanUpProof = z.output<typeof cleanUpProofSchema>

export const cleanUpRunSchema = z.object({
  id: z.number().int(),
  account: z.string(),
  action: z.string(),
  query: z.string().describe('As it was understood'),
  state: z.string(),
  createdAtMs: ms,
  planned: count,
  done: count,
  refused: count,
  bytes: count,
  canUndo: z.boolean(),
  canResume: z.boolean(),
  /** Of a deletion for good that waits: the words with which it is resumed. */
  confirm: z.string().nullable(),
  classes: z.array(classCount),
  trouble: z.string().nullable(),
})
export type CleanUpRunView = z.output<typeof cleanUpRunSchema>
