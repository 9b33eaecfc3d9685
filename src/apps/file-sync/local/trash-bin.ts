/** The trash as people see it: what is in it, out of it again, and how long it keeps things. */
import { mkdirSync, readdirSync, rmdirSync, unlinkSync } from 'node:fs'
import { holdFolder } from './folder.ts'
import { ownPath, type Root } from './root.ts'
import { errnoOf, isAbsence, lookAt } from './stat.ts'
import { bringBack, originOf } from './trash.ts'

export type TrashEntry = {
  /** Below the trash, the day first. */
  names: string[]
  /** Where it was, relative to the root. */
  origin: string[]
  /** `2026-11-16` */
  day: string
  bytes: number
}

export type Retention = { atMs: number; keepDays: number; bytesMax: number }

const DAY = /^\d{4}-\d\d-\d\d/
const DAY_MS = 86_400_000

/** Oldest day first. One folder at a time is in memory. */
export function* listTrash(root: Root): Generator<TrashEntry> {
  for (const day of namesIn(root, [])) {
    if (DAY.test(day)) yield* listBelow(root, [day])
  }
}

function* listBelow(root: Root, names: string[]): Generator<TrashEntry> {
  for (const name of namesIn(root, names)) {
    const below = [...names, name]
    const look = lookAt(ownPath(root, 'trash', ...below))
    if (look?.type === 'folder') yield* listBelow(root, below)
    else if (look)
      yield { names: below, origin: originOf(below), day: names[0]!.slice(0, 10), bytes: look.size }
  }
}

function namesIn(root: Root, names: readonly string[]): string[] {
  try {
    return readdirSync(ownPath(root, 'trash', ...names)).sort()
  } catch (error) {
    if (isAbsence(error)) return []
    throw error
  }
}

/** Back to where it was, or to another place; folders on the way are made. `taken`: something has that name. */
export function restore(
  root: Root,
  entry: Pick<TrashEntry, 'names'>,
  to: readonly string[] = originOf(entry.names),
): 'done' | 'taken' | 'gone' {
  if (!lookAt(ownPath(root, 'trash', ...entry.names))) return 'gone'
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

/** Deletes for good what is older than `keepDays`, then the oldest until the rest is at most `bytesMax`. */
export function emptyTrash(
  root: Root,
  { atMs, keepDays, bytesMax }: Retention,
): { files: number; bytes: number } {
  const oldest = new Date(atMs - keepDays * DAY_MS).toISOString().slice(0, 10)
  let left = 0
  for (const entry of listTrash(root)) if (entry.day >= oldest) left += entry.bytes
  const gone = { files: 0, bytes: 0 }
  for (const entry of listTrash(root)) {
    const isOld = entry.day < oldest
    if (!isOld && left <= bytesMax) break
    unlinkSync(ownPath(root, 'trash', ...entry.names))
    if (!isOld) left -= entry.bytes
    gone.files += 1
    gone.bytes += entry.bytes
  }
  for (const day of namesIn(root, [])) removeEmpty(root, [day])
  return gone
}

function removeEmpty(root: Root, names: string[]): void {
  if (lookAt(ownPath(root, 'trash', ...names))?.type !== 'folder') return
  for (const name of namesIn(root, names)) removeEmpty(root, [...names, name])
  try {
    rmdirSync(ownPath(root, 'trash', ...names))
  } catch (error) {
    const code = errnoOf(error)
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST' && code !== 'ENOENT') throw error
  }
}
