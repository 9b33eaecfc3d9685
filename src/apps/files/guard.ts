/**
 * What waits for a yes, however much of it there is: the guards of the plan. They are pure, and count what is open
 * together with what was done lately without a question.
 */
import type { NodeKey } from './trees.ts'

export type DeleteGuard = {
  /** Items of the base, and how many of them everything that is open would delete, on each side. */
  baseItems: number
  deletes: Sides
  /** The same of files alone: folders that stay hold nothing when all their files are gone. */
  baseFiles: number
  deletedFiles: number
  /** How many deletions someone said yes to. */
  forced: number
  recent?: RecentDeletes
}

/** Done without a question: within `RECENT_MS`, and within `SHARE_MS`. */
export type RecentDeletes = { lately: number; items: number; files: number }

export type Sides = { local: number; remote: number }

/** How many wait, on each side; `replaced`: so many of them are no deletions, but files that get another content. */
export type Held = Sides & { replaced?: Sides }

/** All that a yes is for. */
export function heldTotal(held: Held | null | undefined): { deleted: number; replaced: number; all: number } {
  const all = held ? held.local + held.remote : 0
  const replaced = held?.replaced ? held.replaced.local + held.replaced.remote : 0
  return { deleted: all - replaced, replaced, all }
}

export function withReplaced(deletes: Sides, replaced: Sides): Held {
  const [local, remote] = [deletes.local + replaced.local, deletes.remote + replaced.remote]
  return { local, remote, replaced }
}

/** Files that would get another content, on each side. */
export type OverwriteGuard = {
  ahead: Sides
  /** So many of them one that is older than what it replaces, and that nobody has chosen. */
  older: number
  /** Whose older version somebody has chosen: that is no mistake. */
  chosen: ReadonlySet<NodeKey>
  /** Files that are not as they were, and that nobody has read yet: some may come to be among those. */
  unread: number
  unreadOlder: number
  /** One that is being read, or else one that is going to be. */
  reading: NodeKey | undefined
  /** Of the base. */
  baseFiles: number
  /** Done without a question within `RECENT_MS`: different files. */
  recent: { files: number; older: number }
  /** How many someone said yes to. */
  forced: number
}

const GUARD_DELETES_MAX = 1_000
const GUARD_SHARE_MAX = 0.5
/** A folder that is deleted slowly, or elsewhere, is heard of little by little: so deletions are counted over time. */
export const RECENT_MS = 3_600_000
export const SHARE_MS = 24 * 3_600_000
const NO_DELETES: RecentDeletes = { lately: 0, items: 0, files: 0 }
/** Fewer are a piece of work, even if the folder has no more. */
const OVERWRITES_MIN = 20
/** One or two older versions are somebody's wish; more look like a backup. */
const OLDER_MIN = 3

/**
 * S5: so many, or so much of what there is, may be a wrong click, or a folder that is not what it seems. However small
 * the folder is, nobody empties it unasked.
 */
export function isHeld(guard: DeleteGuard): boolean {
  const { baseItems, baseFiles, deletes, deletedFiles, recent = NO_DELETES } = guard
  if (isAllowed(guard)) return false
  const count = deletes.local + deletes.remote
  return (
    count + recent.lately > GUARD_DELETES_MAX ||
    isMost(count, { of: baseItems, recent: recent.items }) ||
    isMost(deletedFiles, { of: baseFiles, recent: recent.files })
  )
}

/** Of what there was when the recent ones were still there. */
function isMost(count: number, { of, recent }: { of: number; recent: number }): boolean {
  return count > 0 && count + recent > (of + recent) * GUARD_SHARE_MAX
}

/** Somebody said yes to as many. */
export function isAllowed({ deletes, forced }: Pick<DeleteGuard, 'deletes' | 'forced'>): boolean {
  return deletes.local + deletes.remote <= forced
}

/**
 * Contents that are replaced stay in OneDrive's history, or in the trash here; but nobody looks there unasked. Most
 * files of a folder at once are what ransomware does; older versions in the place of newer ones what a backup does
 * that was copied over the folder, or over OneDrive. `unclear`: that depends on files that nobody has read yet.
 */
export function judgeOverwrite(
  guard: OverwriteGuard,
  { isOlder }: { isOlder: boolean },
): 'free' | 'held' | 'unclear' {
  const { ahead, older, unread, unreadOlder, recent, baseFiles, forced } = guard
  const count = ahead.local + ahead.remote
  if (count <= forced) return 'free'
  const isMany = (files: number): boolean =>
    files > GUARD_DELETES_MAX || (files >= OVERWRITES_MIN && files > baseFiles * GUARD_SHARE_MAX)
  const isHeldWith = (extra: { files: number; older: number }): boolean =>
    isMany(count + recent.files + extra.files) || (isOlder && older + recent.older + extra.older >= OLDER_MIN)
  if (isHeldWith({ files: 0, older: 0 })) return 'held'
  return isHeldWith({ files: unread, older: unreadOlder }) ? 'unclear' : 'free'
}
