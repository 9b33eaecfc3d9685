/**
 * Whether a stamp of a file (its ctime) can still be given again. The system stamps by ticks: of some milliseconds, of a
 * second on older file systems, of two on FAT. A file that is read in the very tick in which it was last written may be
 * written again in it, and then looks the same although it is not. So it is read when that tick is over.
 *
 * What time it is there the file system says itself: it may be on another machine, and clocks are set.
 */
import { closeSync, constants, fstatSync, openSync, rmSync, unlinkSync, writeSync } from 'node:fs'
import { threadId } from 'node:worker_threads'
import type { LocalStat } from '../trees.ts'
import { atOwn } from './folder.ts'
import type { Root } from './root.ts'
import { errnoOf } from './stat.ts'

const LOOK_MS = 1
/** A little more than the longest tick. */
const LOOKS_MAX = 2_500

/** So many files are told by a stamp that was given before; a clock that is set back makes it wrong. */
const TOLD_MAX = 64

/** The latest stamp that each root's disk is known to have given, and how many files were told by it. */
const known = new Map<string, { latest: bigint; told: number }>()

/** Whatever is written from now on gets another stamp than this. One that is ahead was given by another clock. */
export function isPast(root: Root, { ctimeNs }: Pick<LocalStat, 'ctimeNs'>, ask = stampNow): boolean {
  const stamp = BigInt(ctimeNs)
  const before = known.get(root.path)
  if (before && stamp < before.latest && before.told < TOLD_MAX) {
    before.told += 1
    return true
  }
  const now = ask(root)
  if (now === undefined) return true
  known.set(root.path, { latest: now, told: 0 })
  return stamp !== now
}

/** For threads: it blocks between its steps. */
export function* untilPast(
  root: Root,
  stat: Pick<LocalStat, 'ctimeNs'>,
  ask = stampNow,
): Generator<undefined, void> {
  for (let looks = 0; looks < LOOKS_MAX && !isPast(root, stat, ask); looks++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS)
    yield
  }
}

const NEW_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)

/** Undefined where nothing can be written, which is then true of everybody. */
function stampNow(root: Root): bigint | undefined {
  try {
    return atOwn(root, 'partial', [`stamp-${process.pid}-${threadId}.partial`], (path) => {
      // One that was left behind, or a link of somebody else's: nothing is ever written through it.
      rmSync(path, { force: true })
      const file = openSync(path, NEW_FLAGS, 0o600)
      try {
        writeSync(file, '.')
        return BigInt.asIntN(64, fstatSync(file, { bigint: true }).ctimeNs)
      } finally {
        closeSync(file)
        unlinkSync(path)
      }
    })
  } catch (thrown) {
    if (errnoOf(thrown) === undefined) throw thrown
    return undefined
  }
}
