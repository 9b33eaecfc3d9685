/**
 * Whether one folder lies in another. By their paths, and by what they are: a folder that is mounted at a second place,
 * or whose name is written in other letters where these are the same, has two paths.
 */
import { statSync } from 'node:fs'
import { dirname, isAbsolute, relative, sep } from 'node:path'

/** What a path leads to, by what no other has; undefined where nothing is there. */
export type IdentityOf = (path: string) => string | undefined

/** `path` is `folder`, or lies in it. Both whole, and without links. */
export function isWithin(path: string, folder: string, identityOf: IdentityOf = identityOnDisk): boolean {
  return wayIn(path, folder, identityOf) !== undefined
}

/** The names that lead from `folder` to `path`; undefined where it does not lie in it. */
export function wayIn(
  path: string,
  folder: string,
  identityOf: IdentityOf = identityOnDisk,
): string[] | undefined {
  const way = relative(folder, path)
  if (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)) return pathNames(way)
  const wanted = identityOf(folder)
  if (wanted === undefined) return undefined
  for (let at = path; ; at = dirname(at)) {
    if (identityOf(at) === wanted) return pathNames(relative(at, path))
    if (dirname(at) === at) return undefined
  }
}

function pathNames(way: string): string[] {
  return way === '' ? [] : way.split(sep)
}

function identityOnDisk(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    // Some file systems have no numbers for what is in them.
    return ino === 0n ? undefined : `${dev}:${ino}`
  } catch {
    return undefined // not there, or not to be looked at: what its path says is all there is
  }
}
