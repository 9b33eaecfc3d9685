/** What is kept of threads, events and rules, as pages, programs and the command line are told. */
import type { EventView, ExampleView, RuleView, ThreadDetailView, ThreadView } from './api/schemas.ts'
import { REWORKS_MAX } from './contract.ts'
import type { DraftRow, ThreadRecord } from './store/records.ts'
import type { Example, Rule } from './store/rules.ts'
import type { EventRow } from './store/tables.ts'

/** Opens the thread for that account, whichever accounts the browser is signed in to. */
export function gmailUrl(account: string, thread: string): string {
  return `https://mail.google.com/mail/?authuser=${encodeURIComponent(account)}#all/${encodeURIComponent(thread)}`
}

export function threadView(record: ThreadRecord): ThreadView {
  const { account, thread, subject, sender, category, status, reasoning, by, isAutomated } = record
  return {
    account,
    thread,
    subject,
    sender,
    category,
    status,
    confidence: category === null ? null : record.confidence,
    reasoning,
    by,
    isAutomated,
    language: record.language,
    style: record.style,
    label: record.label,
    reworks: record.reworks,
    problem: record.problem,
    lastMessageAtMs: record.lastAtMs,
    updatedAtMs: record.updatedAtMs,
    url: gmailUrl(account, thread),
  }
}

/** Of what the assistant did, the reason alone would not tell what it was. */
const DONE: Readonly<Record<string, string>> = {
  classified: 'Sorted',
  reclassified: 'Sorted again',
  routed: 'Given to an agent',
  'draft-created': 'Draft written',
  'draft-reworked': 'Draft written anew',
  'draft-failed': 'No draft yet',
  'follow-up': 'Brought back',
}

export function eventText({ what, why }: Pick<EventRow, 'what' | 'why'>): string {
  const title = DONE[what]
  return title === undefined ? why : `${title}: ${why}`
}

export function eventView(event: EventRow): EventView {
  const { id, atMs, what, by, undo, undoneAtMs } = event
  return { id, atMs, what, text: eventText(event), by, canUndo: undo !== null && undoneAtMs === null }
}

export function threadDetail(
  record: ThreadRecord,
  { events, draft }: { events: readonly EventRow[]; draft: DraftRow | undefined },
): ThreadDetailView {
  const isThere = draft?.state === 'live' || draft?.state === 'edited'
  return {
    ...threadView(record),
    reworksMax: REWORKS_MAX,
    events: events.map(eventView),
    draft:
      draft === undefined || !isThere
        ? null
        : {
            text: draft.text,
            isEdited: draft.state === 'edited',
            removed: [...record.removed],
            sources: [...record.sources],
          },
  }
}

export function exampleView(example: Example): ExampleView {
  const { id, account, thread, text, category, enabled, createdAtMs } = example
  return { id, account, thread, text, category, isOn: enabled, createdAtMs }
}

export function ruleView(rule: Rule): RuleView {
  const { id, account, match, category, enabled, origin, hits, createdAtMs } = rule
  return {
    id,
    account,
    from: match.from ?? null,
    subject: match.subject ?? null,
    category,
    isOn: enabled,
    origin,
    hits,
    createdAtMs,
  }
}
