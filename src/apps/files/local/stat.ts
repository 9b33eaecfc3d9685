/** What the file system says about one name, without following it. */
import { type BigIntStats, constants, lstatSync, type PathLike } from 'node:fs'
import type { LocalRow, LocalStat } from '../trees.ts'

export type Look = LocalStat & { type: LocalRow['type'] | 'link' }

/** Undefined: nothing is there. A link is looked at itself; `link` is for those who may follow it. */
export function lookAt(path: PathLike): Look | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && toLook(stats)
}

export function toLook(stats: BigIntStats): Look {
  return { type: entryType(stats), ...localStat(stats) }
}

export function localStat({ dev, ino, birthtimeNs, mtimeNs, ctimeNs, size }: BigIntStats): LocalStat {
  return {
    dev: String(dev),
    ino: String(ino),
    birthNs: birthtimeNs > 0n ? String(birthtimeNs) : '0',
    // As a listing packs it: times after the year 2262 need more bits than it has.
    mtimeNs: String(BigInt.asIntN(64, mtimeNs)),
    ctimeNs: String(BigInt.asIntN(64, ctimeNs)),
    size: Number(size),
  }
}

/** Without the type. */
export function plainStat({ dev, ino, birthNs, mtimeNs, ctimeNs, size }: LocalStat): LocalStat {
  return { dev, ino, birthNs, mtimeNs, ctimeNs, size }
}

/** By one mask, as a folder has many entries. */
export function entryType({ mode }: BigIntStats): Look['type'] {
  switch (Number(mode) & constants.S_IFMT) {
    case constants.S_IFREG:
      return 'file'
    case constants.S_IFDIR:
      return 'folder'
    case constants.S_IFLNK:
      return 'link'
    default:
      return 'other'
  }
}

/** The very same file, with the very same content as far as the file system can tell. */
export function isSameStat(one: LocalStat, other: LocalStat): boolean {
  return one.ctimeNs === other.ctimeNs && isSameButChanged(one, other)
}

/** The same, whatever its ctime: a rename or another link of our own has changed that. */
export function isSameButChanged(one: LocalStat, other: LocalStat): boolean {
  return (
    one.ino === other.ino &&
    one.mtimeNs === other.mtimeNs &&
    one.size === other.size &&
    one.dev === other.dev &&
    one.birthNs === other.birthNs
  )
}

/** The same file or folder, whatever is in it now. Numbers are given again once a file is gone: its birth tells. */
export function isSameThing(one: LocalStat, other: LocalStat): boolean {
  return (
    one.ino === other.ino &&
    one.dev === other.dev &&
    (one.birthNs === other.birthNs || one.birthNs === '0' || other.birthNs === '0')
  )
}

/** `ENOENT` and so on; undefined for what is no error of the file system. */
export function errnoOf(thrown: unknown): string | undefined {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** Nothing there, or a file where a folder would have to be. */
export function isAbsence(thrown: unknown): boolean {
  const code = errnoOf(thrown)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
