/**
 * The words of the assistant, shared by its parts.
 *
 * A thread of a mailbox has one record. Its status:
 *
 *   pending ──draft──▶ drafted ──sent by the user──▶ sent
 *      │                 │  ▲                          │ a new message of somebody else: classified again
 *      │                 │  └──rework (at most 3)      ▼
 *      │                 └──draft discarded──▶ pending review (`discarded`)
 *      └──classified as something else──▶ skipped      archived: Done by the user
 *
 * What a model says is data: it is parsed into these types or refused, and nothing else of it has an effect.
 */

export const CATEGORIES = ['needs_response', 'action_required', 'payment_request', 'fyi', 'waiting'] as const
export type Category = (typeof CATEGORIES)[number]

export const LABELS = [
  'needs_response',
  'outbox',
  'rework',
  'action_required',
  'payment_request',
  'fyi',
  'waiting',
  'done',
] as const
/** What a label of the assistant means, whatever it is called in Gmail. */
export type LabelRole = (typeof LABELS)[number]

/** `discarded`: the user threw the draft away and sent nothing; it waits for their look. */
export type ThreadStatus = 'pending' | 'drafted' | 'discarded' | 'sent' | 'skipped' | 'archived' | 'agent'

/** Who decided a category. `local`: the classifier without a model, where no model could be asked. */
export type DecidedBy = 'rule' | 'model' | 'local' | 'user' | 'default'

export type Classification = {
  category: Category
  /** 0 to 1. */
  confidence: number
  /** For people; of a model's answer, cut and without markup. */
  reasoning: string
  /** As `en`, `de`; '' where nobody knows. */
  language: string
  /** The name of a style; '' for that of the contact or the default. */
  style: string
  isAutomated: boolean
  by: DecidedBy
}

/** A message as the assistant reads it: only what a person would see of it. */
export type VisibleMessage = {
  id: string
  threadId: string
  /** RFC 5322 Message-ID with its brackets; '' where it has none. */
  messageId: string
  references: string
  from: Mailbox
  replyTo: Mailbox[]
  to: Mailbox[]
  cc: Mailbox[]
  subject: string
  sentAtMs: number
  labelIds: readonly string[]
  /** Text that a person would see, without hidden parts; bounded. */
  text: string
  /** The same without what is quoted from earlier messages. */
  newText: string
  /** Something was hidden in it: for people, and for whoever judges it. */
  hidden: readonly string[]
  /** The beginning of what was hidden, for people to see: no model is ever given it. */
  hiddenText: string
  attachments: readonly { name: string; mimeType: string; sizeBytes: number }[]
  /** Lower-case names, in order, as they came. */
  headers: readonly (readonly [name: string, value: string])[]
  isDraft: boolean
  isSent: boolean
}

export type Mailbox = { name: string; address: string }

export type Style = {
  name: string
  rules: readonly string[]
  signOff: string
  examples: readonly string[]
  language: string
}

/** What is asked of a model and for what: each purpose has a model of its own in the settings. */
export const PURPOSES = ['classify', 'draft', 'context', 'agent'] as const
export type Purpose = (typeof PURPOSES)[number]

/** A passage that a draft may lean on, found with the eyes of the account's owner. */
export type ContextPassage = {
  /** For people: `mail: Re: Invoice 4711 (2026-03-01)`. */
  title: string
  source: string
  documentId: number
  url: string
  text: string
}

export type DraftWish = {
  thread: readonly VisibleMessage[]
  /** The message that is answered: the last one that is neither a draft nor the user's own. */
  answered: VisibleMessage
  owner: Mailbox
  style: Style
  context: readonly ContextPassage[]
  /** What the user wants, in their own words; '' where they said nothing. */
  instruction: string
  /** What stood in the draft before, for a rework. */
  earlier: string
}

/** Above it the user writes what should become of the draft; below it stands the draft. */
export const MARKER = '✂️'
export const REWORKS_MAX = 3
