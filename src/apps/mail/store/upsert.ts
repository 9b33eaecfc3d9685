/**
 * What becomes of a stored message when it arrives again, or when the cloud reports a change: pure.
 *
 * Gmail never changes a message's bytes, so the first ones from the cloud stay. Labels and marks go by history id: the
 * view with the higher one is newer, and an older one changes nothing, in whatever order they come.
 */
import type { MessageChange, MessageSource } from '../message.ts'
import { hexOf, paddedHistoryId } from './shard-row.ts'

/** What is compared, of a stored row and of what arrives. */
export type MessageView = {
  threadId: string
  /** Padded. */
  historyId: string
  labelIds: readonly string[]
  internalMs: number
  sha256: Uint8Array
  source: MessageSource
}

export type StoredView = MessageView & { deletedMs: number | null; problems: readonly string[] }

export type RowState = {
  threadId: string
  historyId: string
  labelIds: readonly string[]
  internalMs: number
  source: MessageSource
  deletedMs: number | null
  problems: readonly string[]
}

/**
 * keep: nothing to change, though there may be something to tell. touch: these columns. replace: also the bytes and all
 * that follows from them or from the time of arrival.
 */
export type Upsert =
  | { do: 'keep'; tell: readonly string[] }
  | { do: 'touch' | 'replace'; state: RowState; tell: readonly string[] }

const REPLACED_NOTE = 'the bytes that were stored were damaged, and have been replaced'
const PROBLEMS_MAX = 50

/** `isIntact`: the stored bytes were read back and have their hash. */
export function upsertOf(
  stored: StoredView,
  incoming: MessageView & { problems: readonly string[] },
  isIntact: boolean,
): Upsert {
  const isVerified = stored.source === 'import' && incoming.source === 'gmail'
  if (Buffer.compare(stored.sha256, incoming.sha256) !== 0) {
    return otherBytes(stored, incoming, { isIntact, isVerified })
  }
  const state = merged(stored, incoming, stored.problems)
  if (!isIntact) return { do: 'replace', state: noted(state, REPLACED_NOTE), tell: [REPLACED_NOTE] }
  if (isVerified && stored.internalMs !== incoming.internalMs) return { do: 'replace', state, tell: [] }
  return isSame(stored, state) ? { do: 'keep', tell: [] } : { do: 'touch', state, tell: [] }
}

/** In a note of a message that took the place of another: its shard may be of another time than Gmail's. */
export const INSERTED_AGAIN = 'it was deleted in Gmail and inserted again'

/**
 * Of the same bytes under a new id. Gmail dates what is inserted by its header or by that day: when it arrived is known
 * from the one before, if that came from the cloud.
 */
export function takenOver(
  before: StoredView & { id: string },
  incoming: MessageView & { problems: readonly string[] },
): RowState {
  const { threadId, historyId, labelIds, internalMs, source } = incoming
  const state = { threadId, historyId, labelIds, internalMs, source, deletedMs: null }
  if (before.source !== 'gmail') return { ...state, problems: incoming.problems }
  const problems = [...new Set([...before.problems, ...incoming.problems])]
  const note = `${INSERTED_AGAIN}: before, its id was ${before.id}`
  return noted({ ...state, internalMs: before.internalMs, problems }, note)
}

/** The archive has heard of the message since: the change says nothing about what it has now. */
export function isOutdated(
  { historyId }: Pick<MessageChange, 'historyId'>,
  stored: { historyId: string },
): boolean {
  return paddedHistoryId(historyId) < stored.historyId
}

/** The state after a change; undefined where it changes nothing. */
export function changedState(stored: StoredView, change: MessageChange): RowState | undefined {
  // That it was seen is no older view: otherwise a mark that was wrong would stay for ever. What has happened since
  // the view was taken follows in the history.
  const isReturn = change.restored === true && stored.deletedMs !== null
  if (isOutdated(change, stored) && !isReturn) return undefined
  const removed = new Set(change.removeLabelIds)
  const labels = new Set(change.setLabelIds ?? stored.labelIds)
  for (const label of removed) labels.delete(label)
  for (const label of change.addLabelIds ?? []) labels.add(label)
  let { deletedMs } = stored
  if (change.deletedAtMs !== undefined) deletedMs ??= change.deletedAtMs
  if (change.restored) deletedMs = null
  const state: RowState = {
    threadId: stored.threadId,
    historyId: paddedHistoryId(change.historyId),
    labelIds: [...labels].sort(),
    internalMs: stored.internalMs,
    source: stored.source,
    deletedMs,
    problems: stored.problems,
  }
  return isSame(stored, state) ? undefined : state
}

function otherBytes(
  stored: StoredView,
  incoming: MessageView & { problems: readonly string[] },
  { isIntact, isVerified }: { isIntact: boolean; isVerified: boolean },
): Upsert {
  const theirs = hexOf(stored.sha256).slice(0, 16)
  const ours = hexOf(incoming.sha256).slice(0, 16)
  if (!isIntact && (incoming.source === 'gmail' || stored.source === 'import')) {
    const state = merged(stored, incoming, incoming.problems)
    return { do: 'replace', state: noted(state, REPLACED_NOTE), tell: [REPLACED_NOTE] }
  }
  if (isVerified) {
    const note = `the imported copy differed (sha256 ${theirs}…) and was replaced by the cloud's`
    return { do: 'replace', state: noted(merged(stored, incoming, incoming.problems), note), tell: [note] }
  }
  if (incoming.source === 'import') {
    const note = `this copy differs (sha256 ${ours}…) from the one that is stored, which is kept`
    return { do: 'keep', tell: [note] }
  }
  const note = `the cloud later gave other bytes for it (sha256 ${ours}…); the first ones are kept`
  const state = noted(merged(stored, incoming, stored.problems), note)
  return isSame(stored, state) ? { do: 'keep', tell: [note] } : { do: 'touch', state, tell: [note] }
}

function merged(stored: StoredView, incoming: MessageView, problems: readonly string[]): RowState {
  const isVerified = stored.source === 'import' && incoming.source === 'gmail'
  const isAsNew = incoming.historyId >= stored.historyId
  const isNewer = incoming.historyId > stored.historyId
  return {
    threadId: isVerified ? incoming.threadId : stored.threadId,
    historyId: isAsNew ? incoming.historyId : stored.historyId,
    labelIds: isAsNew ? incoming.labelIds : stored.labelIds,
    internalMs: isVerified ? incoming.internalMs : stored.internalMs,
    source: isVerified ? 'gmail' : stored.source,
    // What is fetched is there; but a fetch from before the deletion says nothing about it.
    deletedMs: isNewer ? null : stored.deletedMs,
    problems,
  }
}

function noted(state: RowState, note: string): RowState {
  if (state.problems.includes(note) || state.problems.length >= PROBLEMS_MAX) return state
  return { ...state, problems: [...state.problems, note] }
}

function isSame(stored: StoredView, state: RowState): boolean {
  return (
    stored.threadId === state.threadId &&
    stored.historyId === state.historyId &&
    stored.source === state.source &&
    stored.deletedMs === state.deletedMs &&
    stored.problems.length === state.problems.length &&
    stored.labelIds.length === state.labelIds.length &&
    stored.labelIds.every((label, index) => label === state.labelIds[index])
  )
}
