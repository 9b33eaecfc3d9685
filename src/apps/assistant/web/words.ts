/** What categories, states and deciders are called on the pages. */
import type { StateText } from '../../../../web/src/components/badge.tsx'
import type { CategoryView, ThreadView } from '../api/schemas.ts'

export const CATEGORY_TEXTS: Readonly<Record<CategoryView, string>> = {
  needs_response: 'Needs response',
  action_required: 'Action required',
  payment_request: 'Payment requests',
  fyi: 'FYI',
  waiting: 'Waiting',
}

export const STATUS_TEXTS: Readonly<Record<ThreadView['status'], StateText>> = {
  pending: { text: 'Draft to come', tone: 'accent' },
  drafted: { text: 'Draft to review', tone: 'warn' },
  discarded: { text: 'Draft thrown away', tone: 'warn' },
  sent: { text: 'Answered', tone: 'neutral' },
  skipped: { text: 'No answer needed', tone: 'neutral' },
  archived: { text: 'Done', tone: 'neutral' },
  agent: { text: 'With an agent', tone: 'accent' },
}

export const CATEGORIES = Object.keys(CATEGORY_TEXTS) as readonly CategoryView[]

const DECIDED_BY: Readonly<Record<NonNullable<ThreadView['by']>, string>> = {
  rule: 'by a rule',
  model: 'by the model',
  local: 'without a model',
  user: 'by you',
  default: 'because nothing could be said of it',
}

/** `by the model, 92 % sure` */
export function decidedText({ by, confidence }: Pick<ThreadView, 'by' | 'confidence'>): string {
  if (by === null) return 'not sorted yet'
  const sure =
    confidence === null || by === 'user' || by === 'rule' ? '' : `, ${Math.round(confidence * 100)} % sure`
  return `${DECIDED_BY[by]}${sure}`
}

/** Prices have no currency of their own: what stands in the settings counts. */
export function costText(micros: number): string {
  return (micros / 1_000_000).toLocaleString(undefined, {
    minimumFractionDigits: 2,
    maximumFractionDigits: 4,
  })
}
