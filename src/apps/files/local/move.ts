/** New folders and new places in the root, never over something else. */
import { lstatSync, mkdirSync, renameSync, unlinkSync } from 'node:fs'
import type { LocalStat } from '../trees.ts'
import { linkIfFree, renameIfFree } from './exclusive.ts'
import { atOwn, type HeldFolder, inParentFolder, syncFolder } from './folder.ts'
import type { Root } from './root.ts'
import { errnoOf, isSameButChanged, isSameStat, isSameThing, type Look, lookAt, plainStat } from './stat.ts'
import { takeFrom } from './trash.ts'

/** `there`: a folder of this name is there already, which is as good. */
export function makeFolder(
  root: Root,
  names: readonly string[],
): { outcome: 'done' | 'there'; stat: LocalStat } | { outcome: 'taken' } {
  return inParentFolder(root, names, (folder, name) => {
    let outcome: 'done' | 'there' = 'done'
    try {
      mkdirSync(folder.at(name))
      syncFolder(folder)
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
      outcome = 'there'
    }
    const look = lookAt(folder.at(name))
    return look?.type === 'folder' ? { outcome, stat: plainStat(look) } : { outcome: 'taken' }
  })
}

export type Move = {
  from: readonly string[]
  to: readonly string[]
  /** Of a folder only what it is counts, not its time. */
  expect: LocalStat
  atMs: number
}

/** `inside`: its new place is in itself by now. */
export type Moved =
  | { outcome: 'done'; stat: LocalStat }
  | { outcome: 'taken' | 'changed' | 'gone' | 'inside' }

export function moveInside(root: Root, move: Move): Moved {
  return inParentFolder(root, move.from, (source, sourceName) =>
    inParentFolder(root, move.to, (target, targetName) => {
      const moved = moveBetween(root, move, {
        source,
        old: sourceName,
        path: source.at(sourceName),
        wanted: target.at(targetName),
      })
      if (moved.outcome === 'done') {
        syncFolder(target)
        syncFolder(source)
      }
      return moved
    }),
  )
}

type Way = { source: HeldFolder; old: string; path: string; wanted: string }

function moveBetween(root: Root, move: Move, way: Way): Moved {
  const before = lookAt(way.path)
  const there = lookAt(way.wanted)
  if (!before) return there && isMoved(there, move) ? doneAs(there) : { outcome: 'gone' }
  // The same thing under both names: a disk on which case does not count, or a move of a file that is half done.
  const isSame = there !== undefined && isSameThing(there, before)
  if (!(isSame ? isMoved : isAsExpected)(before, move)) return { outcome: 'changed' }
  if (there && !isSame) return { outcome: 'taken' }
  const isFile = before.type !== 'folder'
  const outcome = isFile && (!isSame || hasTwoNames(way.path)) ? relink(root, move, way, isSame) : rename(way)
  return outcome === 'done' ? doneAs(lookAt(way.wanted) ?? before) : { outcome }
}

function isAsExpected(look: Look, { expect }: Move): boolean {
  return look.type === 'folder' ? isSameThing(look, expect) : isSameStat(look, expect)
}

/** Or half of it, by a try that was interrupted and has changed its ctime. */
function isMoved(look: Look, { expect }: Move): boolean {
  return look.type === 'folder' ? isSameThing(look, expect) : isSameButChanged(look, expect)
}

function doneAs(look: Look): Moved {
  return { outcome: 'done', stat: plainStat(look) }
}

function hasTwoNames(path: string): boolean {
  return (lstatSync(path, { throwIfNoEntry: false })?.nlink ?? 1) > 1
}

/** For folders: the call itself refuses to replace a file, or a folder that is not empty. */
function rename({ path, wanted }: Way): 'done' | 'taken' | 'gone' | 'inside' {
  try {
    renameSync(path, wanted)
    return 'done'
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR') return 'taken'
    if (code === 'ENOENT') return 'gone'
    if (code === 'EINVAL') return 'inside'
    throw error
  }
}

/**
 * For files: the new name by a link; then the old name is taken to the trash, and unlinked there only if it is the
 * same file. What was saved under the old name in between is put back.
 */
function relink(root: Root, move: Move, way: Way, isLinked: boolean): 'done' | 'taken' | 'changed' | 'gone' {
  if (!isLinked) {
    const linked = linkIfFree(way.path, way.wanted)
    if (linked === 'no-links') return renameIfFree(way.path, way.wanted) ? 'done' : 'taken'
    if (!linked) return 'taken'
  }
  const { from, atMs } = move
  // The link has changed it.
  const { ctimeNs } = lookAt(way.path) ?? move.expect
  const expect = { ...move.expect, ctimeNs }
  const taken = takeFrom(root, way.source, way.old, { names: from, expect, atMs })
  if (taken.outcome !== 'done') return taken.outcome === 'gone' ? 'done' : 'changed'
  const moved = lookAt(way.wanted)
  // If the new name was taken away meanwhile, the trash has the last one.
  if (moved && isSameThing(moved, taken.kept.stat)) atOwn(root, 'trash', taken.kept.names, unlinkSync)
  return 'done'
}
