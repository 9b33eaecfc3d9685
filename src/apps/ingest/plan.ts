/** What becomes of an object that was announced or listed, given what is known of it. Pure. */
import type { ObjectVersion } from '../../cloud/object-store.ts'
import { compareSequencers } from './envelope.ts'
import type { ShardState, SkipCode } from './shard-states.ts'

/** A version of an object that somebody told of. */
export type Found = {
  id: string
  uri: string
  /** '' where nobody says, not even the store: there is no such object. */
  version: string
  versionId: string | null
  sequencer: string | null
  sizeBytes: number | null
  /** It is what the store has now: it was listed, or asked for just before. */
  isCurrent: boolean
  /** What the message carried itself. */
  data: Uint8Array | null
}

export type KnownShard = {
  id: string
  state: ShardState
  code: string | null
  sequencer: string | null
  created_at: number
}

export type Placement =
  | { act: 'insert'; state: ShardState; code: SkipCode | 'known' | null; reason: string | null }
  /** It is there: another delivery, another listing. */
  | { act: 'known' }
  /** It was replaced, and is what the object is again; or it was bad or gone, and is put there anew. */
  | { act: 'reopen' }

export const OLDER = 'something newer of the same object was announced before'
export const REPLACED = 'a newer version of the object took its place'

/** `others`: of the same object. `isInIndex`: records of exactly this version are there, although no shard is. */
export function placementOf(
  found: Pick<Found, 'id' | 'sequencer' | 'isCurrent'>,
  known: { same: KnownShard | undefined; others: readonly KnownShard[]; isInIndex: boolean },
  overwrites: 'replace' | 'append',
): Placement {
  const { same, isInIndex } = known
  // Where versions stand beside each other, none makes another one superfluous, in whichever order they are told of.
  const others = overwrites === 'replace' ? known.others : []
  if (same) return isBack(found, same, others) ? { act: 'reopen' } : { act: 'known' }
  if (isInIndex) {
    const reason = 'its records are in the index already'
    return { act: 'insert', state: 'stored', code: 'known', reason }
  }
  if (others.some((other) => isBefore(found, other))) {
    return { act: 'insert', state: 'skipped', code: 'older', reason: OLDER }
  }
  return { act: 'insert', state: 'open', code: null, reason: null }
}

function isBack(
  found: Pick<Found, 'sequencer' | 'isCurrent'>,
  same: KnownShard,
  others: readonly KnownShard[],
): boolean {
  if (same.state === 'open' || same.state === 'stored') return false
  // What is bad for another reason is as bad as before, each time that it is listed.
  if (found.isCurrent) return same.state !== 'bad' || same.code === 'object-missing'
  return isLater(found, same) && !others.some((other) => isBefore(found, other))
}

/** It tells of something that nobody has told of the same version before. */
export function isLater(found: Pick<Found, 'sequencer'>, same: Pick<KnownShard, 'sequencer'>): boolean {
  return found.sequencer !== null && (same.sequencer === null || isBefore(same, found))
}

/** By sequencers alone, where both have one: nothing else orders events of one object. */
export function isBefore(found: Pick<Found, 'sequencer'>, other: Pick<KnownShard, 'sequencer'>): boolean {
  if (found.sequencer === null || other.sequencer === null) return false
  return compareSequencers(found.sequencer, other.sequencer) < 0
}

type Ordered = Pick<KnownShard, 'id' | 'sequencer' | 'created_at'>

/** Which of two versions of one object is the newer one: by their sequencers, or by when they were found. */
export function isNewer(one: Ordered, other: Ordered): boolean {
  if (one.sequencer !== null && other.sequencer !== null) {
    const order = compareSequencers(one.sequencer, other.sequencer)
    if (order !== 0) return order > 0
  }
  if (one.created_at !== other.created_at) return one.created_at > other.created_at
  return one.id > other.id
}

/** Of what a batch announces several times, one: the newest by its sequencer. */
export function distinct(found: readonly Found[]): Found[] {
  const by = new Map<string, Found>()
  for (const one of found) {
    const before = by.get(one.id)
    if (!before || isBefore(before, one)) by.set(one.id, one)
  }
  return [...by.values()]
}

export function versionOf(row: {
  version: string
  version_id: string | null
  sequencer: string | null
}): ObjectVersion | null {
  if (row.version === '') return null
  return {
    id: row.version,
    ...(row.version_id === null ? {} : { versionId: row.version_id }),
    ...(row.sequencer === null ? {} : { sequencer: row.sequencer }),
  }
}
