/** The trash as people see it: what is in it, out of it again, and how long it keeps things. */
import { hash } from 'node:crypto'
import { mkdirSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs'
import { atOwn, holdFolder, holdOwn, isNoFolder, lookAtOwn } from './folder.ts'
import type { Root } from './root.ts'
import { errnoOf } from './stat.ts'
import { bringBack, originalNames } from './trash.ts'

export type TrashEntry = {
  /** Below the trash, the day first. */
  names: string[]
  /** Where it was, relative to the root. */
  origin: string[]
  /** `2026-11-16` */
  day: string
  bytes: number
}

/** How long each day's things are there is counted by who asks: see store/trash-ages.ts. */
export type Retention = {
  days: readonly (TrashDay & { ageMs: number })[]
  keepMs: number
  bytesMax: number
}

type Listed = TrashEntry & { ino: string; ctimeNs: string }

const DAY = /^\d{4}-\d\d-\d\d/

/** Oldest day first. One folder at a time is in memory. */
export function* listTrash(root: Root): Generator<TrashEntry> {
  for (const day of namesIn(root, [])) {
    if (!DAY.test(day)) continue
    for (const { ino: _, ctimeNs: __, ...entry } of listBelow(root, [day])) yield entry
  }
}

function* listBelow(root: Root, names: string[]): Generator<Listed> {
  for (const name of namesIn(root, names)) {
    const below = [...names, name]
    const look = lookAtOwn(root, 'trash', below)
    if (look?.type === 'folder') yield* listBelow(root, below)
    else if (look) {
      const { ino, ctimeNs, size } = look
      yield {
        names: below,
        origin: originalNames(below),
        day: names[0]!.slice(0, 10),
        bytes: size,
        ino,
        ctimeNs,
      }
    }
  }
}

function namesIn(root: Root, names: readonly string[]): string[] {
  try {
    const folder = holdOwn(root, 'trash', names)
    try {
      return readdirSync(folder.at('.')).sort()
    } finally {
      folder.close()
    }
  } catch (error) {
    if (isNoFolder(error)) return []
    throw error
  }
}

/** Back to where it was, or to another place; folders on the way are made. `taken`: something has that name. */
export function restore(
  root: Root,
  entry: Pick<TrashEntry, 'names'>,
  to: readonly string[] = originalNames(entry.names),
): 'done' | 'taken' | 'gone' {
  if (!lookAtOwn(root, 'trash', entry.names)) return 'gone'
  for (let depth = 0; depth < to.length - 1; depth++) {
    const folder = holdFolder(root, to.slice(0, depth))
    try {
      mkdirSync(folder.at(to[depth]!))
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
    } finally {
      folder.close()
    }
  }
  return bringBack(root, entry, to)
}

/** What is in the trash of one day; the digest is another one when something came or left. */
export type TrashDay = { day: string; digest: string; bytes: number }

export function trashDays(root: Root): TrashDay[] {
  return namesIn(root, [])
    .filter((day) => DAY.test(day))
    .map((day) => toTrashDay(day, [...listBelow(root, [day])]))
}

function toTrashDay(day: string, entries: readonly Listed[]): TrashDay {
  const text = entries.map(({ names, ino, ctimeNs }) => [...names, ino, ctimeNs].join('/')).join('\n')
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
  return { day, digest: hash('sha256', text, 'base64'), bytes }
}

/** Deletes for good what is there for at least `keepMs`, then the oldest until the rest is at most `bytesMax`. */
export function emptyTrash(
  root: Root,
  { days, keepMs, bytesMax }: Retention,
): { files: number; bytes: number } {
  const oldestFirst = days.toSorted((one, other) => other.ageMs - one.ageMs || (one.day < other.day ? -1 : 1))
  let left = 0
  for (const { ageMs, bytes } of days) if (ageMs < keepMs) left += bytes
  const gone = { files: 0, bytes: 0 }
  for (const { day, digest, ageMs } of oldestFirst) {
    const isOld = ageMs >= keepMs
    if (!isOld && left <= bytesMax) continue
    const entries = [...listBelow(root, [day])]
    // What came since then is younger.
    if (toTrashDay(day, entries).digest !== digest) continue
    for (const { names, bytes } of entries) {
      if (!isOld && left <= bytesMax) break
      atOwn(root, 'trash', names, unlinkSync)
      if (!isOld) left -= bytes
      gone.files += 1
      gone.bytes += bytes
    }
    removeEmpty(root, [day])
  }
  return gone
}

function removeEmpty(root: Root, names: string[]): void {
  if (lookAtOwn(root, 'trash', names)?.type !== 'folder') return
  for (const name of namesIn(root, names)) removeEmpty(root, [...names, name])
  try {
    atOwn(root, 'trash', names, (path) => rmdirSync(path))
  } catch (error) {
    const code = errnoOf(error)
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOENT') throw error
  }
}
