/** Questions that a scan asks the file system about single places. */
import { realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import { OWN_FOLDER } from '../names.ts'
import type { FileType, LocalRow, LocalStat } from '../trees.ts'
import { holdFolder, lookInside } from './folder.ts'
import type { Root } from './root.ts'
import type { ScanOptions } from './scan-options.ts'
import { type Entry, isNowhere } from './scan-places.ts'
import { errnoOf, isSameThing, localStat, lookAt } from './stat.ts'

/** Only inside of the root, never to a folder that the link is in, and never a link behind a link. */
export function linkTarget(
  root: Root,
  path: string,
): { type: FileType; path: string; stat: LocalStat } | undefined {
  try {
    const real = realpathSync(path)
    const isInside = real.startsWith(root.path + sep) && !isWithin(real, join(root.path, OWN_FOLDER))
    if (!isInside || isWithin(path, real)) return undefined
    const stats = statSync(real, { bigint: true })
    if (stats.isFile()) return { type: 'file', path: real, stat: localStat(stats) }
    return stats.isDirectory() ? { type: 'folder', path: real, stat: localStat(stats) } : undefined
  } catch {
    return undefined // it leads nowhere, or in a circle: a link that is not followed
  }
}

/** Where no birth is told, a number that was given again must not make a new file an old one. */
export function isSameMoved(row: LocalRow, { type, stat }: Entry): boolean {
  if (!isSameThing(row, stat)) return false
  const isSure = row.birthNs !== '0' && stat.birthNs !== '0'
  return isSure || type === 'folder' || (row.size === stat.size && row.mtimeNs === stat.mtimeNs)
}

/** Whether a row's own place is free for what is there to have come from it. What nobody knows has not left. */
export async function hasLeft(
  { root, tree, followLinks }: Pick<ScanOptions, 'root' | 'tree' | 'followLinks'>,
  row: LocalRow,
  { type, seenAt }: { type: FileType; seenAt: readonly string[] },
): Promise<boolean> {
  const names = await tree.path(row.id)
  if (!names || isNowhere(row)) return true
  // The folders above have changed places as well, and so it is back where its path always was.
  if (type === 'folder' && names.join('/') === seenAt.join('/')) return true
  try {
    // Through a link that is not followed there is nothing.
    const look = followLinks ? lookAt(join(root.path, ...names)) : lookInside(root, names)
    if (!look) return true
    if (look.type === 'link' && followLinks) return false
    // At a file's place any file is that file: paths come first. A folder is known by what it is.
    return type === 'file' ? look.type !== 'file' : !isSameThing(look, row)
  } catch (error) {
    // A folder above it is a file now: it is not there. Anything else: nobody knows.
    return errnoOf(error) === 'ENOTDIR'
  }
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder + sep)
}

export function isSomethingAt(path: string): boolean {
  try {
    return lookAt(path) !== undefined
  } catch (error) {
    // Unknown is not absent.
    return !(error instanceof Error && 'code' in error && error.code === 'ENOTDIR')
  }
}

/** Its stat, if every step to it is a folder and not a link. */
export function realFolder(root: Root, names: readonly string[]): LocalStat | undefined {
  try {
    const folder = holdFolder(root, names)
    folder.close()
    return folder.look
  } catch {
    return undefined // not there, or cannot be opened: then its parent's look tells
  }
}
