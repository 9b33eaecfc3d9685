/**
 * Ways to a place in the root that cannot be led astray: names come from OneDrive and from other programs, and any
 * folder on the way may be replaced by a link at any moment.
 *
 * On Linux every folder on the way is opened from the one above it, without following links, and files are named by
 * the open folder (`/proc/self/fd/<n>/<name>`): what was checked is what is used, and there is no race. Elsewhere the
 * way is checked by path before, and `isStillThere` again after; what can slip through in between is that a person
 * with write access to the root replaces one of its folders by a link within those microseconds, and gets a file that
 * they could have written there themselves.
 *
 * In both cases a folder may be moved while it is held: then what is done is done in the moved folder, which is where
 * its owner would look for it.
 */
import { closeSync, constants, existsSync, fstatSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { TidemarkError, UsageError } from '../../../errors.ts'
import { OWN_FOLDER } from '../filter.ts'
import { unsafeNameOf } from '../names.ts'
import { nameKey } from '../trees.ts'
import type { Root } from './root.ts'
import { errnoOf, isSameThing, type Look, lookAt, lookOf } from './stat.ts'

export type HeldFolder = {
  look: Look
  /** A path of a name in it, for calls of the file system. */
  at(name: string): string
  /** Whether the path that led to it still does. */
  isStillThere(): boolean
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
export function inFolderOf<Value>(
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

function openWay(root: Root, names: readonly string[]): HeldFolder {
  let fd = openFolder(root.path, root.path)
  try {
    const look = lookOf(fstatSync(fd, { bigint: true }))
    if (!isSameThing(look, root.look)) throw rootReplaced(root)
    for (const [depth, name] of names.entries()) {
      const next = openFolder(`/proc/self/fd/${fd}/${name}`, join(root.path, ...names.slice(0, depth + 1)))
      closeSync(fd)
      fd = next
    }
    return heldBy(fd, root, names)
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

function heldBy(fd: number, root: Root, names: readonly string[]): HeldFolder {
  const look = lookOf(fstatSync(fd, { bigint: true }))
  return {
    look,
    at: (name) => `/proc/self/fd/${fd}/${name}`,
    isStillThere: () => isSameFolder(join(root.path, ...names), look),
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
  return {
    look,
    at: (name) => join(path, name),
    isStillThere: () => isSameFolder(path, look),
    close: () => undefined,
  }
}

function isSameFolder(path: string, look: Look): boolean {
  const now = lookAt(path)
  return now?.type === 'folder' && isSameThing(now, look)
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
