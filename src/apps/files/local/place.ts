/**
 * How content gets into the root. Nothing is overwritten: a new file takes a free name by a link; a file that
 * is replaced is moved to the trash first, whole, and looked at there. For some microseconds its name is free then;
 * who fills it keeps it. A process that dies in between leaves the old version in the trash and the new one in
 * OneDrive, which is downloaded again.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fchmodSync,
  fsync,
  futimesSync,
  lstatSync,
  openSync,
  statfsSync,
} from 'node:fs'
import { open, readdir, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { LocalStat } from '../trees.ts'
import { copyAttributes } from './attributes.ts'
import { moveIfFree } from './exclusive.ts'
import { type HeldFolder, holdOwn, inParentFolder, READ_FLAGS } from './folder.ts'
import { syncFolderSoon } from './folder-sync.ts'
import type { Root } from './root.ts'
import { lookAt, plainStat } from './stat.ts'
import { type Kept, putBack, takeFrom } from './trash.ts'

const syncFile = promisify(fsync)

export type Placed =
  | { outcome: 'done'; stat: LocalStat /** What was replaced. */; kept?: Kept }
  /** Something has the name that was expected to be free. */
  | { outcome: 'taken' }
  /** What is there is not what was expected; it was left alone, or is in the trash where its place was filled. */
  | { outcome: 'changed' }

export type Target = {
  names: readonly string[]
  /** What must be there, just before. */
  expect: LocalStat | 'absent'
  /** Of the content, as OneDrive has it; null: now. */
  modifiedMs: number | null
  /** It has that time already, and is on the disk with it. */
  isSettled?: true
  atMs: number
}

/** One version of one item: what is left of another version is never continued. Ids are not names: they are hashed. */
export function partialName({ itemId, cTag }: PartialKey): string {
  const key = createHash('sha256')
    .update(JSON.stringify([itemId, cTag]))
    .digest('hex')
  return `${key.slice(0, 32)}.partial`
}

type PartialKey = { itemId: string; cTag: string | null }

/** By its folder, which stays held: a download takes its time, and no link may come between. */
export function partialPath(root: Root, key: PartialKey): string {
  const now = holdOwn(root, 'partial')
  const id = `${now.look.dev}:${now.look.ino}:${now.look.birthNs}`
  const held = partials.get(id)
  if (held) now.close()
  else partials.set(id, now)
  return (held ?? now).at(partialName(key))
}

/** Never closed: a path by a number that was given again would lead elsewhere. There is one for each root. */
const partials = new Map<string, HeldFolder>()

/** A whole and verified download gets its place. The partial file is gone only when that is done. */
export async function putInPlace(root: Root, partial: string, target: Target): Promise<Placed> {
  if (!target.isSettled) await settlePath(partial, target.modifiedMs)
  const { placed, synced } = inParentFolder(root, target.names, (folder, name) => {
    const { expect } = target
    const placed =
      expect === 'absent'
        ? putNew(partial, folder, name)
        : putInstead(root, partial, { folder, name, target, expect })
    return { placed, synced: placed.outcome === 'done' ? syncFolderSoon(folder) : undefined }
  })
  await synced
  return placed
}

async function settlePath(partial: string, modifiedMs: number | null): Promise<void> {
  const file = await open(partial, constants.O_RDWR | (constants.O_NOFOLLOW ?? 0))
  try {
    await settle(file.fd, modifiedMs)
  } finally {
    await file.close()
  }
}

/** Content and time are on the disk after this. */
export async function settle(fd: number, modifiedMs: number | null): Promise<void> {
  if (modifiedMs !== null) {
    // A number below 0 would mean now.
    const at = new Date(modifiedMs)
    futimesSync(fd, at, at)
  }
  await syncFile(fd)
}

function putNew(partial: string, folder: HeldFolder, name: string): Placed {
  const before = lookAt(partial)
  if (!moveIfFree(partial, folder.at(name))) return { outcome: 'taken' }
  return { outcome: 'done', stat: placedStat(folder, name, before!) }
}

function putInstead(
  root: Root,
  partial: string,
  { folder, name, target, expect }: { folder: HeldFolder; name: string; target: Target; expect: LocalStat },
): Placed {
  const { names, atMs } = target
  const before = lstatSync(folder.at(name), { throwIfNoEntry: false })
  if (!before) return { outcome: 'changed' }
  // Whether it may be run, and what is attached to it, is not in OneDrive, and stays.
  copyAttributes(folder.at(name), partial)
  giveMode(partial, before.mode & 0o777)
  const own = lookAt(partial)
  const trashed = takeFrom(root, folder, name, { names, expect, atMs })
  if (trashed.outcome !== 'done') return { outcome: 'changed' }
  try {
    // Where its name was filled in between, that stays, and the old version is in the trash.
    if (!moveIfFree(partial, folder.at(name))) return { outcome: 'changed' }
  } catch (error) {
    putBack(root, trashed.kept.names, folder.at(name))
    throw error
  }
  return { outcome: 'done', stat: placedStat(folder, name, own!), kept: trashed.kept }
}

/** To the file itself: a link in its place would make a file of its owner's open to others. */
function giveMode(partial: string, mode: number): void {
  const fd = openSync(partial, READ_FLAGS)
  try {
    fchmodSync(fd, mode)
  } finally {
    closeSync(fd)
  }
}

/**
 * Of the content that was put there, as it was `before` that. A file that was edited, replaced or taken away the
 * moment after is for the next look, which would not see an edit whose stat is known already.
 */
function placedStat(folder: HeldFolder, name: string, before: LocalStat): LocalStat {
  const look = lookAt(folder.at(name))
  const isAsPut = look && look.size === before.size && look.mtimeNs === before.mtimeNs
  return plainStat(isAsPut ? look : before)
}

/** The bytes that may still be written to the root's disk. */
export function freeBytes(root: Root): number {
  const { bavail, bsize } = statfsSync(root.path)
  return bavail * bsize
}

/** Deletes partial downloads that nobody has written to since then. */
export async function sweepPartials(root: Root, { beforeMs }: { beforeMs: number }): Promise<number> {
  let swept = 0
  const folder = holdOwn(root, 'partial')
  try {
    for (const name of await readdir(folder.at('.'))) {
      const path = folder.at(name)
      // A download that ends just now takes its own away.
      const found = lstatSync(path, { throwIfNoEntry: false })
      // A whole one has the time of its content already; when it was last changed says its other time.
      if (!found || Math.max(found.mtimeMs, found.ctimeMs) >= beforeMs) continue
      await rm(path, { force: true })
      swept += 1
    }
  } finally {
    folder.close()
  }
  return swept
}
