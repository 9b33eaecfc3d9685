/**
 * What Tidemark deletes or replaces in the root goes to `.tidemark/trash/<day>/<path>` and stays there for a while.
 *
 * A file may be edited in the very moment in which it is taken away. So it is looked at after it was taken: a rename
 * takes whatever is there, whole, and what turns out to be something else is put back, or stays in the trash where
 * its place was filled meanwhile. Nothing is ever unlinked that was not looked at under a name of our own.
 */
import { copyFileSync, mkdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { TidemarkError } from '../../../base/errors.ts'
import type { LocalStat } from '../trees.ts'
import { copyAttributes } from './attributes.ts'
import { moveIfFree, takeName } from './exclusive.ts'
import { atOwn, type HeldFolder, holdOwn, inParentFolder, inside, isNoFolder, lookAtOwn } from './folder.ts'
import type { Root } from './root.ts'
import { errnoOf, isAbsence, isSameButChanged, isSameStat, isSameThing, lookAt } from './stat.ts'

/** Something in the trash. */
export type Kept = {
  /** Below the trash, the day first. */
  names: string[]
  /** What it was when it was taken. */
  stat: LocalStat
}

export type Trashed =
  | { outcome: 'done'; kept: Kept }
  /** It was not what was expected. It is in its place; or, where that was filled meanwhile, in the trash. */
  | { outcome: 'changed'; kept?: Kept }
  | { outcome: 'gone' }

export type TrashTime = { atMs: number }

/** Takes a file away if it is still as expected. */
export function moveToTrash(
  root: Root,
  names: readonly string[],
  expect: LocalStat,
  time: TrashTime,
): Trashed {
  return inParentFolder(root, names, (folder, name) =>
    takeFrom(root, folder, name, { names, expect, ...time }),
  )
}

/** The same in a folder that is held already. */
export function takeFrom(
  root: Root,
  folder: HeldFolder,
  name: string,
  { names, expect, atMs }: TrashTime & { names: readonly string[]; expect: LocalStat },
): Trashed {
  const before = lookAt(folder.at(name))
  if (!before) return { outcome: 'gone' }
  if (before.type !== 'file' || !isSameStat(before, expect)) return { outcome: 'changed' }
  const keptNames = claim(root, names, atMs, (path) => takeName(path))
  return atOwn(root, 'trash', keptNames, (path) => {
    try {
      renameSync(folder.at(name), path)
    } catch (error) {
      unlinkSync(path) // the empty file that held the name
      if (isAbsence(error)) return { outcome: 'gone' }
      if (errnoOf(error) === 'EXDEV') throw otherDisk(names, error)
      throw error
    }
    const taken = lookAt(path)!
    const kept: Kept = { names: keptNames, stat: taken }
    if (isSameButChanged(taken, expect)) return { outcome: 'done', kept }
    return moveIfFree(path, folder.at(name)) ? { outcome: 'changed' } : { outcome: 'changed', kept }
  })
}

/** What a command replaces, wherever it is: taken away whole, or copied where the trash is on another disk. */
export function takeReplaced(
  root: Root,
  path: string,
  { names, atMs }: TrashTime & { names: readonly string[] },
): { kept: string[]; isCopy: boolean } {
  inside(root, names)
  const kept = claim(root, names, atMs, (free) => takeName(free))
  return atOwn(root, 'trash', kept, (place) => {
    try {
      return { kept, isCopy: takeOrCopy(path, place) === 'copy' }
    } catch (error) {
      unlinkSync(place) // the empty file that held the name, or a copy of no use
      throw error
    }
  })
}

function takeOrCopy(path: string, place: string): 'move' | 'copy' {
  try {
    renameSync(path, place)
    return 'move'
  } catch (error) {
    if (errnoOf(error) !== 'EXDEV') throw error
  }
  const before = lookAt(path)
  copyFileSync(path, place)
  copyAttributes(path, place)
  const after = lookAt(path)
  // What was written meanwhile is not in the copy, or only half of it.
  if (before && after && isSameStat(before, after)) return 'copy'
  throw new TidemarkError(`${path} was changed while it was kept; it was left alone.`, {
    kind: 'transient',
    code: 'changed',
    hint: 'Try again when nobody writes to it.',
  })
}

/** Out of the trash to any path, where that is free. */
export function putBack(root: Root, kept: readonly string[], to: string): boolean {
  return atOwn(root, 'trash', kept, (path) => moveIfFree(path, to))
}

/** A file of our own goes to the trash, as if it had been at that place. */
export function putInTrash(
  root: Root,
  path: string,
  names: readonly string[],
  { atMs }: TrashTime,
): string[] {
  inside(root, names)
  return claim(root, names, atMs, (kept) => moveIfFree(path, kept))
}

/** Out of the trash to a place in the root, where that is free. Folders on the way must be there. */
export function bringBack(
  root: Root,
  kept: Pick<Kept, 'names'>,
  to: readonly string[],
): 'done' | 'taken' | 'gone' {
  if (!lookAtOwn(root, 'trash', kept.names)) return 'gone'
  return inParentFolder(root, to, (folder, name) =>
    putBack(root, kept.names, folder.at(name)) ? 'done' : 'taken',
  )
}

/** Deletes a folder if it is empty: nothing that someone saved can be in it. */
export function removeEmptyFolder(
  root: Root,
  names: readonly string[],
  expect: LocalStat,
): 'done' | 'changed' | 'not-empty' | 'gone' {
  return inParentFolder(root, names, (folder, name) => {
    const before = lookAt(folder.at(name))
    if (!before) return 'gone'
    if (before.type !== 'folder' || !isSameThing(before, expect)) return 'changed'
    try {
      rmdirSync(folder.at(name))
      return 'done'
    } catch (error) {
      const code = errnoOf(error)
      if (code === 'ENOTEMPTY' || code === 'EEXIST') return 'not-empty'
      if (code === 'ENOENT') return 'gone'
      if (code === 'ENOTDIR') return 'changed'
      throw error
    }
  })
}

const DAYS_MAX = 100
const NAMES_MAX = 10_000
const NAME_BYTES_MAX = 255

/** Finds a free name for a path in the trash of a day; `take` says whether it got it. */
function claim(
  root: Root,
  names: readonly string[],
  atMs: number,
  take: (path: string) => boolean,
): string[] {
  const at = new Date(atMs).toISOString()
  const name = names.at(-1)!
  for (let day = 1; day <= DAYS_MAX; day++) {
    // A folder may have the name that a file of the same day has there: then the day is begun anew.
    const folder = [day === 1 ? at.slice(0, 10) : `${at.slice(0, 10)}.${day}`, ...names.slice(0, -1)]
    const held = madeFolder(root, folder)
    if (!held) continue
    try {
      for (let turn = 0; turn < NAMES_MAX; turn++) {
        const kept = keptName(name, at, turn)
        if (take(held.at(kept))) return [...folder, kept]
      }
    } finally {
      held.close()
    }
  }
  throw new TidemarkError(`The trash has no free name for ${names.join('/')}.`, {
    kind: 'permanent',
    code: 'trash-full',
    hint: 'Empty the trash.',
  })
}

/** Held; undefined where something that is no folder has its name, or that of one above it. */
function madeFolder(root: Root, names: readonly string[]): HeldFolder | undefined {
  for (let depth = 0; depth <= names.length; depth++) {
    try {
      return holdOwn(root, 'trash', names)
    } catch (thrown) {
      if (!isNoFolder(thrown)) throw thrown
      if (depth === names.length || !makeIfFree(root, names.slice(0, depth + 1))) return undefined
    }
  }
  return undefined
}

/** False where its folder is none. */
function makeIfFree(root: Root, names: readonly string[]): boolean {
  try {
    atOwn(root, 'trash', names, (path) => mkdirSync(path, { mode: 0o700 }))
  } catch (error) {
    if (isNoFolder(error)) return false
    if (errnoOf(error) !== 'EEXIST') throw error
  }
  return true
}

const STAMP = /~\d{9}(?:-\d+)?$/

/** `report.pdf`, then `report.pdf~031500123`, then `report.pdf~031500123-2`. */
function keptName(name: string, at: string, turn: number): string {
  if (turn === 0) return name
  const stamp = `~${at.slice(11, 23).replaceAll(/\D/g, '')}${turn > 1 ? `-${turn}` : ''}`
  let stem = name
  while (Buffer.byteLength(stem + stamp) > NAME_BYTES_MAX) stem = [...stem].slice(0, -1).join('')
  return stem + stamp
}

/** Where something in the trash was before. */
export function originalNames(names: readonly string[]): string[] {
  const origin = names.slice(1)
  const name = origin.pop()
  return name === undefined ? [] : [...origin, name.replace(STAMP, '') || name]
}

function otherDisk(names: readonly string[], cause: unknown): TidemarkError {
  return new TidemarkError(
    `${names.join('/')} is on another disk than the trash, and was left where it is.`,
    {
      kind: 'permanent',
      code: 'other-disk',
      hint: 'Delete it yourself, or leave that folder out of the sync.',
      cause,
    },
  )
}
