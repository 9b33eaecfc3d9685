/** Giving a file a name without ever taking it from another one. */
import { closeSync, linkSync, openSync, renameSync, unlinkSync } from 'node:fs'
import { errnoOf } from './stat.ts'

/** The file system has no hard links, or not for this file. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'EMLINK',
  'ENOSYS',
  'EACCES',
])

/** A second name. False: the name is taken. */
export function linkIfFree(from: string, to: string): boolean | 'no-links' {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    if (NO_LINKS.has(errnoOf(error))) return 'no-links'
    throw error
  }
}

/** Another name instead of this one, where that is free: else false, and nothing happened. `from` must be our own. */
export function moveIfFree(from: string, to: string): boolean {
  const linked = linkIfFree(from, to)
  if (linked === 'no-links') return renameIfFree(from, to)
  if (linked) unlinkSync(from)
  return linked
}

/**
 * Where there are no links: an empty file takes the name, and is replaced. Who opens and writes it in the microseconds
 * between loses that; only file systems such as FAT get here.
 */
export function renameIfFree(from: string, to: string): boolean {
  if (!takeName(to)) return false
  renameSync(from, to)
  return true
}

/** An empty file at a free name; false where it is taken. */
export function takeName(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600))
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
}
