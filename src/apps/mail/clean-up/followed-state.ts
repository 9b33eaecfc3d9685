/**
 * What Gmail says about messages, from its history: 2 units for a page of changes, where asking for each message costs
 * 20. The archive has every message's labels as of the stream's cursor, because changes are applied before the cursor
 * moves; what happened since is in the history. What the history does not answer is asked for one by one: a message that
 * it names without saying what happened, or whose labels in the archive are noted as stale; and all of them where the
 * history has expired, or is so long that asking is no dearer.
 *
 * Who asks has read the cursor, and which messages are stale, before the archive: what the archive
 * knows beyond the cursor is then told once more by the history, which changes nothing.
 */

import { TidemarkError } from '../../../base/errors.ts'
import type { HistoryRecord } from '../../../cloud/gmail/client.ts'
import type { MailAccount } from '../account.ts'
import type { Standing } from './candidates.ts'
import { type Looking, readStates } from './cloud-state.ts'
import { type CloudState, changedLabels, TRASH } from './verdict.ts'

/** 100 units: with batches of 200 messages a fortieth of what asking for each costs. */
const PAGES_MAX = 50

export type KnownLabels = { id: string; labelIds: readonly string[] | 'gone' }

export async function followedStates(
  account: MailAccount,
  known: readonly KnownLabels[],
  standing: Pick<Standing, 'cursor' | 'stale'>,
  looking: Looking,
): Promise<Map<string, CloudState>> {
  const ids = known.map(({ id }) => id)
  const history = known.length === 0 ? null : await historySince(account, standing.cursor, looking.signal)
  if (!history) return askedStates(account, ids, looking)
  const touched = touchesOf(history.records, new Set(ids))
  const isUnsure = (id: string): boolean => standing.stale.has(id) || touched.get(id) === 'unclear'
  const unsure = ids.filter(isUnsure)
  const looks = await readStates(account.client, unsure, { ...looking, onLook: undefined })
  const states = asOf(history.historyId, looks)
  for (const { id, labelIds } of known) {
    if (!states.has(id)) states.set(id, followedState(labelIds, touched.get(id) ?? [], history.historyId))
  }
  looking.onLook?.(states.size)
  return states
}

async function askedStates(
  { client }: MailAccount,
  ids: readonly string[],
  looking: Looking,
): Promise<Map<string, CloudState>> {
  if (ids.length === 0) return new Map()
  const { historyId } = await client.profile({ signal: looking.signal })
  return asOf(historyId, await readStates(client, ids, looking))
}

/**
 * With the mailbox's history id from before the look: a message's own is that of its last change, perhaps years ago, from
 * which no history tells any more what happened after the look.
 */
function asOf(historyId: string, states: ReadonlyMap<string, CloudState>): Map<string, CloudState> {
  return new Map([...states].map(([id, state]) => [id, state === 'gone' ? state : { ...state, historyId }]))
}

export type FollowedHistory = { records: HistoryRecord[]; historyId: string }

/** Null where it cannot be had. */
export async function historySince(
  { client }: Pick<MailAccount, 'client'>,
  cursor: string | null,
  signal: AbortSignal,
): Promise<FollowedHistory | null> {
  if (cursor === null) return null
  const records: HistoryRecord[] = []
  let pageToken: string | undefined
  let historyId: string | undefined
  for (let page = 0; page < PAGES_MAX; page++) {
    try {
      const answer = await client.history({ startHistoryId: cursor, pageToken, signal })
      records.push(...answer.records)
      // That of the first page: what happens while pages are turned may be on none of them.
      historyId ??= answer.historyId
      pageToken = answer.nextPageToken
    } catch (thrown) {
      if (thrown instanceof TidemarkError && thrown.code === 'history-expired') return null
      throw thrown
    }
    if (!pageToken) return { records, historyId }
  }
  return null
}

type Touch = 'deleted' | { add: readonly string[]; remove: readonly string[] }

function touchesOf(
  records: readonly HistoryRecord[],
  ids: ReadonlySet<string>,
): Map<string, Touch[] | 'unclear'> {
  const touches = new Map<string, Touch[] | 'unclear'>()
  const note = (id: string, touch: Touch): void => {
    const before = touches.get(id) ?? []
    if (ids.has(id) && before !== 'unclear') touches.set(id, [...before, touch])
  }
  for (const { added, labelsAdded, labelsRemoved, deleted, touched } of records) {
    for (const { id } of [...added, ...touched]) if (ids.has(id)) touches.set(id, 'unclear')
    for (const { id, labelIds } of labelsAdded) note(id, { add: labelIds, remove: [] })
    for (const { id, labelIds } of labelsRemoved) note(id, { add: [], remove: labelIds })
    for (const { id } of deleted) note(id, 'deleted')
  }
  return touches
}

function followedState(
  labelIds: readonly string[] | 'gone',
  touches: readonly Touch[] | 'unclear',
  historyId: string,
): CloudState {
  if (labelIds === 'gone') return 'gone'
  let labels = [...labelIds]
  for (const touch of touches) {
    if (touch === 'deleted') return 'gone'
    if (typeof touch !== 'string') labels = changedLabels(labels, touch)
  }
  return { labelIds: labels, historyId }
}

/**
 * Of messages that a trash run was about: those that were deleted without having come to the trash since the state that
 * was seen before. None where the history cannot tell.
 */
export async function deletedUntrashed(
  account: MailAccount,
  seen: readonly { id: string; priorHistory: string | null }[],
  signal: AbortSignal,
): Promise<Set<string>> {
  const starts = seen.flatMap(({ priorHistory }) => (priorHistory === null ? [] : [BigInt(priorHistory)]))
  if (starts.length === 0) return new Set()
  const start = starts.reduce((one, other) => (other < one ? other : one))
  const history = await historySince(account, String(start), signal)
  const touches = touchesOf(history?.records ?? [], new Set(seen.map(({ id }) => id)))
  const isUntrashed = (of: readonly Touch[]): boolean =>
    !of.some((touch) => touch !== 'deleted' && touch.add.includes(TRASH)) && of.includes('deleted')
  return new Set([...touches].flatMap(([id, of]) => (of !== 'unclear' && isUntrashed(of) ? [id] : [])))
}
