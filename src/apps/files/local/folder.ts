/**
 * Ways to a place in the root that cannot be led astray: names come from OneDrive and from other programs, and any
 * folder on the way may be replaced by a link at any moment.
 *
 * On Linux every folder on the way is opened from the one above it, without following links, and files are named by
 * the open folder (`/proc/self/fd/<n>/<name>`): what was checked is what is used, and there is no race. Elsewhere the
 * way is checked by path before a file is opened, and again after, with the file itself: what is not the same then is
 * not used. Somebody with write access to the root who replaces one of its folders by a link and back within the
 * microseconds between these calls, twice, could still slip through there.
 *
 * In both cases a folder may be moved while it is held: then what is done is done in the moved folder, which is where
 * its owner would look for it.
 */
import { closeSync, constants, existsSync, fstatSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { OWN_FOLDER, unsafeNameOf } from '../names.ts'
import { nameKey } from '../trees.ts'
import type { OwnKind, Root } from './root.ts'
import { errnoOf, isAbsence, isSameThing, type Look, lookAt, toLook } from './stat.ts'

/** A file of the root, by the names that lead to it: none of them may be a link. */
export type FilePlace = { root: Root; names: readonly string[] }

export type HeldFolder = {
  look: Look
  /** A path of a name in it, for calls of the file system. */
  at(name: string): string
  close(): void
}

/** Of a place in the root, for people and for calls that do not write. Throws where it would lead out of it. */
export function inside(root: Root, names: readonly string[]): string {
  for (const name of names) {
    const problem = unsafeNameOf(name) ?? (name.includes('\\') && isWindows ? 'its name has a \\' : undefined)
    if (problem !== undefined) throw unsafe(names, problem)
  }
  if (names[0] !== undefined && nameKey(names[0]) === OWN_FOLDER) throw unsafe(names, "it is Tidemark's own")
  return join(root.path, ...names)
}

/** Opens the folder at these names, none for the root itself. Throws `folder-missing` or `folder-other`. */
export function holdFolder(root: Root, names: readonly string[]): HeldFolder {
  inside(root, names)
  return HAS_PROC ? openWay(root, names) : checkWay(root, names)
}

/** Holds the folder of a file while `run` works in it. */
export function inParentFolder<Value>(
  root: Root,
  names: readonly string[],
  run: (folder: HeldFolder, name: string) => Value,
): Value {
  const name = names.at(-1)
  if (name === undefined) throw unsafe(names, 'it is the root itself')
  inside(root, names)
  const folder = holdFolder(root, names.slice(0, -1))
  try {
    return run(folder, name)
  } finally {
    folder.close()
  }
}

/** A folder of our own. Throws `folder-missing` or `folder-other`, as no step to it may be a link either. */
export function holdOwn(root: Root, kind: OwnKind, names: readonly string[] = []): HeldFolder {
  const problem = names.map(unsafeNameOf).find((one) => one !== undefined)
  if (problem !== undefined) throw unsafe(names, problem)
  const way = [OWN_FOLDER, kind, ...names]
  return HAS_PROC ? openWay(root, way) : checkWay(root, way)
}

/** A file of our own, by the path that it has while its folder is held. */
export function atOwn<Value>(
  root: Root,
  kind: OwnKind,
  names: readonly string[],
  run: (path: string) => Value,
): Value {
  const folder = holdOwn(root, kind, names.slice(0, -1))
  try {
    return run(folder.at(names.at(-1) ?? '.'))
  } finally {
    folder.close()
  }
}

/** Undefined: nothing is there, or the way to it leads through something that is no folder. */
export function lookAtOwn(root: Root, kind: OwnKind, names: readonly string[]): Look | undefined {
  try {
    return atOwn(root, kind, names, lookAt)
  } catch (thrown) {
    if (isNoFolder(thrown)) return undefined
    throw thrown
  }
}

/** Undefined: nothing is there, or the way to it leads through something that is no folder. */
export function lookInside(root: Root, names: readonly string[]): Look | undefined {
  try {
    return inParentFolder(root, names, (folder, name) => lookAt(folder.at(name)))
  } catch (thrown) {
    if (isNoFolder(thrown)) return undefined
    throw thrown
  }
}

export function isNoFolder(thrown: unknown): boolean {
  const code = thrown instanceof TidemarkError ? thrown.code : undefined
  return code === 'folder-missing' || code === 'folder-other'
}

/**
 * A file for reading: itself, never what a link leads to, and never waiting for a pipe. Undefined: nothing is there, or
 * the way to it leads through something that is no folder.
 */
export function openFileAt({ root, names }: FilePlace): number | undefined {
  let fd: number | undefined
  try {
    fd = inParentFolder(root, names, (folder, name) => openSync(folder.at(name), READ_FLAGS))
    if (isStillAt({ root, names }, fd)) return fd
  } catch (error) {
    if (!isNoFolder(error) && !isAbsence(error) && errnoOf(error) !== 'ELOOP') throw error
  }
  if (fd !== undefined) closeSync(fd)
  return undefined
}

/** Whether the file that was opened by a path is the one at that place, and not what a link led to for a moment. */
export function isStillAt({ root, names }: FilePlace, fd: number): boolean {
  if (HAS_PROC) return true // opened from its folder, which was opened from the one above it
  const look = lookInside(root, names)
  return look !== undefined && isSameThing(look, toLook(fstatSync(fd, { bigint: true })))
}

/** Names in it that were just given or taken are on the disk after this. */
export function syncFolder(folder: HeldFolder): void {
  if (isWindows) return // folders cannot be opened there
  const fd = openSync(folder.at('.'), constants.O_RDONLY)
  try {
    fsyncSync(fd)
  } catch (error) {
    // Some network file systems know no fsync of a folder.
    if (errnoOf(error) !== 'EINVAL' && errnoOf(error) !== 'ENOTSUP') throw error
  } finally {
    closeSync(fd)
  }
}

const isWindows = process.platform === 'win32'
const HAS_PROC = process.platform === 'linux' && existsSync('/proc/self/fd')
const FOLDER_FLAGS = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0)
export const READ_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

function openWay(root: Root, names: readonly string[]): HeldFolder {
  let fd = openFolder(root.path, root.path)
  try {
    const look = toLook(fstatSync(fd, { bigint: true }))
    if (!isSameThing(look, root.look)) throw rootReplaced(root)
    for (const [depth, name] of names.entries()) {
      const next = openFolder(`/proc/self/fd/${fd}/${name}`, join(root.path, ...names.slice(0, depth + 1)))
      closeSync(fd)
      fd = next
    }
    return heldBy(fd)
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

function heldBy(fd: number): HeldFolder {
  return {
    look: toLook(fstatSync(fd, { bigint: true })),
    at: (name) => `/proc/self/fd/${fd}/${name}`,
    close: () => closeSync(fd),
  }
}

function openFolder(path: string, shown: string): number {
  try {
    return openSync(path, FOLDER_FLAGS)
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ENOENT') throw folderMissing(shown, error)
    // ELOOP: a link; ENOTDIR: with O_DIRECTORY also a link, else a file.
    if (code === 'ELOOP' || code === 'ENOTDIR') throw folderOther(shown, error)
    throw error
  }
}

function checkWay(root: Root, names: readonly string[]): HeldFolder {
  const rootLook = lookAt(root.path)
  if (!rootLook || !isSameThing(rootLook, root.look)) throw rootReplaced(root)
  let path = root.path
  let look = rootLook
  for (const name of names) {
    path = join(path, name)
    const next = lookAt(path)
    if (!next) throw folderMissing(path)
    if (next.type !== 'folder') throw folderOther(path)
    look = next
  }
  return { look, at: (name) => join(path, name), close: () => undefined }
}

function unsafe(names: readonly string[], problem: string): UsageError {
  return new UsageError(`${JSON.stringify(names.join('/'))} cannot be used here: ${problem}.`, {
    code: 'path-unsafe',
  })
}

function rootReplaced(root: Root): UsageError {
  return new UsageError(`The folder ${root.path} was replaced by another one.`, {
    code: 'root-missing',
    hint: 'Bring it back: is its disk mounted, was it moved? Until then nothing is changed on either side.',
  })
}

function folderMissing(path: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`The folder ${path} is not there.`, {
    kind: 'gone',
    code: 'folder-missing',
    cause,
  })
}

function folderOther(path: string, cause?: unknown): TidemarkError {
  return new TidemarkError(`${path} is not a folder, but a link or a file: nothing is written through it.`, {
    kind: 'permanent',
    code: 'folder-other',
    cause,
  })
}
