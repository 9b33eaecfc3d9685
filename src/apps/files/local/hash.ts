/**
 * The hashes of a file, in the thread that asks for it; `DiskThreads.hash` asks another one.
 *
 * Measured: 10,000 small files take 0.4 s of CPU through threads that call synchronously, and 1.1 s by asynchronous
 * calls on the main thread; for huge files both take 1.4 times what reading them takes, but the threads leave the main
 * thread alone. So files are hashed in threads.
 */
import { closeSync, fstatSync, readSync } from 'node:fs'
import { ContentHash, digestsOf } from '../content-hash.ts'
import type { Digests, LocalStat } from '../trees.ts'
import { type FilePlace, openFileAt } from './folder.ts'
import { untilPast } from './stamp.ts'
import { isSameStat, toLook } from './stat.ts'

export type Hashed =
  | ({ outcome: 'done' } & Digests)
  /** It is not, or did not stay, what was expected. */
  | { outcome: 'changed' }
  | { outcome: 'gone' }

/** The content, and its hashes. */
export type ReadWhole = ({ outcome: 'done'; bytes: Uint8Array } & Digests) | Exclude<Hashed, { hash: string }>

/** Larger ones were not faster; smaller ones cost more calls. */
const CHUNK_BYTES = 1024 * 1024
const STEP_BYTES = 16 * CHUNK_BYTES

let chunk: Buffer | undefined

/**
 * Hashes in steps of `STEP_BYTES`, so that a small file need not wait for a huge one. What is expected is looked at
 * through the open file, and no link is followed on the way to it: nothing can put another file in its place.
 */
export function* hashSteps(place: FilePlace, expect: LocalStat): Generator<undefined, Hashed> {
  const fd = openFileAt(place)
  if (fd === undefined) return { outcome: 'gone' }
  try {
    if (!isAsExpected(fd, expect)) return { outcome: 'changed' }
    yield* untilPast(place.root, expect)
    chunk ??= Buffer.allocUnsafeSlow(CHUNK_BYTES)
    const hash = new ContentHash()
    let untilPause = STEP_BYTES
    for (let left = expect.size; left > 0; ) {
      const bytes = readSync(fd, chunk, 0, Math.min(left, CHUNK_BYTES), null)
      if (bytes === 0) return { outcome: 'changed' }
      hash.update(chunk.subarray(0, bytes))
      left -= bytes
      untilPause -= bytes
      if (untilPause > 0) continue
      yield
      untilPause = STEP_BYTES
    }
    if (!isAsExpected(fd, expect)) return { outcome: 'changed' }
    return { outcome: 'done', ...hash.digest() }
  } finally {
    closeSync(fd)
  }
}

/** The same of small files: all of it, in memory. */
export function* readSteps(place: FilePlace, expect: LocalStat): Generator<undefined, ReadWhole> {
  yield* untilPast(place.root, expect)
  return readWhole(place, expect)
}

/** At once: only where `isPast` says that its stamp is not given again. */
export function readWhole(place: FilePlace, expect: LocalStat): ReadWhole {
  const fd = openFileAt(place)
  if (fd === undefined) return { outcome: 'gone' }
  try {
    if (!isAsExpected(fd, expect)) return { outcome: 'changed' }
    const bytes = new Uint8Array(expect.size)
    for (let at = 0; at < bytes.length; ) {
      const count = readSync(fd, bytes, at, bytes.length - at, null)
      if (count === 0) return { outcome: 'changed' }
      at += count
    }
    if (!isAsExpected(fd, expect)) return { outcome: 'changed' }
    return { outcome: 'done', bytes, ...digestsOf(bytes) }
  } finally {
    closeSync(fd)
  }
}

function isAsExpected(fd: number, expect: LocalStat): boolean {
  const look = toLook(fstatSync(fd, { bigint: true }))
  return look.type === 'file' && isSameStat(look, expect)
}
