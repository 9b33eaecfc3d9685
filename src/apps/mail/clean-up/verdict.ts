/**
 * May this message be taken out of Gmail? Pure decisions, in the order in which they are asked: what the ledger and
 * the archive's index say, what reading the bytes back showed, and what Gmail says just before.
 */
import type { Proof } from '../message.ts'
import type { Query } from '../query/query.ts'

/** `unlabel` takes a label away (INBOX: archives), `trash` can be taken back for 30 days, `delete` cannot. */
export const ARCHIVE_ACTIONS = ['unlabel', 'trash', 'delete'] as const
export type ArchiveAction = (typeof ARCHIVE_ACTIONS)[number]

export const REFUSAL_CLASSES = [
  'above-watermark',
  'bad',
  'deleted',
  'imported',
  'absent',
  'mismatch',
  'unreadable',
  'gone',
  'changed',
  'failed',
] as const
export type RefusalClass = (typeof REFUSAL_CLASSES)[number]

/** For people, in one line each. */
export const REFUSAL_TEXTS: Record<RefusalClass, string> = {
  'above-watermark': 'newer than what the archive is complete up to: not everything around it is settled yet',
  bad: 'in the registry of bad messages',
  deleted: 'marked as deleted in Gmail already',
  imported: 'imported from a file, not compared with Gmail yet',
  absent: 'not in the archive',
  mismatch: 'its bytes in the archive do not have their hash',
  unreadable: 'its bytes or its labels in the archive cannot be read',
  gone: 'no longer in Gmail',
  changed: 'changed in Gmail since it was planned',
  failed: 'refused by Gmail',
}

/** Refusals that say that the archive itself is damaged. */
export const DAMAGE: readonly RefusalClass[] = ['mismatch', 'unreadable']

export type Refusal = { class: RefusalClass; detail: string }

export type CloudState = { labelIds: readonly string[]; historyId: string } | 'gone'

/** What a run does, as far as it decides about a message. */
export type Purpose = {
  action: ArchiveAction
  /** What `unlabel` takes away. */
  label: string | null
  /** Ids of the labels that the query speaks of; null where one of them is not known. */
  queryLabels: readonly string[] | null
}

export const INBOX = 'INBOX'
export const TRASH = 'TRASH'
const DRAFT = 'DRAFT'
/** Whoever adds one of these wants the message treated differently, whatever the run does. */
const TELLING = ['STARRED', TRASH, 'SPAM']
/** Gmail itself puts these on and off. */
const HARMLESS = /^(?:UNREAD|IMPORTANT|CATEGORY_\w+)$/

/** Is there anything for the run to do about a message with these labels? */
export function isConcerned(
  { action, label }: Pick<Purpose, 'action' | 'label'>,
  labels: readonly string[],
): boolean {
  switch (action) {
    case 'unlabel':
      return label !== null && labels.includes(label)
    // A draft that is taken out cannot become a draft again.
    case 'trash':
      return !labels.includes(TRASH) && !labels.includes(DRAFT)
    case 'delete':
      return !labels.includes(DRAFT)
  }
}

/** What the watermark, the registry and the archive's index say. */
export function indexRefusal(message: {
  internalMs: number
  markS: number | null
  isBad: boolean
  deletedAtMs: number | null
  isImported: boolean
}): Refusal | null {
  const { internalMs, markS } = message
  if (message.deletedAtMs !== null) return refusal('deleted')
  if (markS === null) return { class: 'above-watermark', detail: 'the archive is complete up to nothing yet' }
  if (internalMs >= markS * 1000) return refusal('above-watermark')
  if (message.isBad) return refusal('bad')
  return message.isImported ? refusal('imported') : null
}

/** What reading the bytes back from the committed file showed. */
export function proofRefusal(proof: Proof): Refusal | null {
  if (proof.state !== 'proven') {
    return { class: proof.state, detail: proof.detail ?? REFUSAL_TEXTS[proof.state] }
  }
  return proof.deletedAtMs === null ? null : refusal('deleted')
}

/** What Gmail shows just before, compared with what the archive knew when the message was planned. */
export function cloudRefusal(purpose: Purpose, planned: readonly string[], now: CloudState): Refusal | null {
  if (now === 'gone') return refusal('gone')
  const { action, label, queryLabels } = purpose
  if (!isConcerned(purpose, now.labelIds)) {
    if (action !== 'unlabel' && now.labelIds.includes(DRAFT)) return changed('is a draft')
    return changed(action === 'trash' ? 'is in the trash already' : `no longer has the label ${label}`)
  }
  const added = now.labelIds.filter((id) => !planned.includes(id))
  const removed = planned.filter((id) => !now.labelIds.includes(id))
  const touched = [...added, ...removed]
  if (touched.length === 0) return null
  const told = touched.find((id) => (queryLabels === null ? !HARMLESS.test(id) : queryLabels.includes(id)))
  if (told !== undefined) return changed(`the label ${told}, of which the query speaks, was changed`)
  const meant = added.find((id) => TELLING.includes(id) || (action !== 'unlabel' && !HARMLESS.test(id)))
  return meant === undefined ? null : changed(`was given the label ${meant}`)
}

/** Whether what Gmail says of this label can make a difference to `cloudRefusal`. */
export function mayDecide({ action, label, queryLabels }: Purpose, id: string): boolean {
  if (id === label || TELLING.includes(id) || queryLabels?.includes(id)) return true
  return !HARMLESS.test(id) && (action !== 'unlabel' || queryLabels === null)
}

/** After a call whose answer is not known: did it happen? */
export function hasHappened({ action, label }: Pick<Purpose, 'action' | 'label'>, now: CloudState): boolean {
  if (now === 'gone') return action === 'delete'
  if (action === 'delete') return false
  return action === 'trash' ? now.labelIds.includes(TRASH) : !now.labelIds.includes(label ?? INBOX)
}

export function changedLabels(
  labelIds: readonly string[],
  { add, remove }: { add: readonly string[]; remove: readonly string[] },
): string[] {
  return [...new Set([...labelIds.filter((id) => !remove.includes(id)), ...add])]
}

/** The change that a run makes, in the words of batchModify; `delete` is another call. */
export function changeOf({ action, label }: Pick<Purpose, 'action' | 'label'>): {
  add: readonly string[]
  remove: readonly string[]
} {
  return action === 'trash' ? { add: [TRASH], remove: [] } : { add: [], remove: [label ?? INBOX] }
}

/**
 * What brings the labels of before back. For `unlabel` that is the one label, whatever else happened to the message
 * since; the trash takes labels along, so that everything missing comes back.
 */
export function restoringChange(
  { action, label }: Pick<Purpose, 'action' | 'label'>,
  prior: readonly string[],
  now: readonly string[],
): { add: readonly string[]; remove: readonly string[] } {
  const missing = prior.filter((id) => !now.includes(id))
  if (action === 'unlabel') return { add: missing.filter((id) => id === label), remove: [] }
  if (action === 'delete') return { add: [], remove: [] }
  return now.includes(TRASH) && !prior.includes(TRASH)
    ? { add: missing, remove: [TRASH] }
    : { add: [], remove: [] }
}

const QUERY_DEPTH_MAX = 100

/** The ids of the labels that a query names; null where a name means nothing here, or it is too deep to tell. */
export function labelsOfQuery(query: Query, ids: ReadonlyMap<string, string>): readonly string[] | null {
  const found: string[] = []
  const isKnown = (node: Query, depth: number): boolean => {
    if (depth > QUERY_DEPTH_MAX) return false
    if (node.is === 'and' || node.is === 'or') return node.of.every((one) => isKnown(one, depth + 1))
    if (node.is === 'not') return isKnown(node.of, depth + 1)
    if (node.is !== 'label') return true
    const id = ids.get(node.name.toLowerCase())
    if (id !== undefined) found.push(id)
    return id !== undefined
  }
  return isKnown(query, 0) ? found : null
}

function refusal(what: RefusalClass): Refusal {
  return { class: what, detail: REFUSAL_TEXTS[what] }
}

function changed(detail: string): Refusal {
  return { class: 'changed', detail }
}
