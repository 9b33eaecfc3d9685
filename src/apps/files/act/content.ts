/** Hashes of local content, and pieces of it on their way to OneDrive. */
import { fstatSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { RunContext } from '../../../engine/index.ts'
import { ContentHash } from '../content-hash.ts'
import { lookInside } from '../local/folder.ts'
import type { Root } from '../local/root.ts'
import { errnoOf, isSameStat, type Look, plainStat, toLook } from '../local/stat.ts'
import type { DiskThreads } from '../local/threads.ts'
import type { Digests, LocalStat } from '../trees.ts'

import { FileChanged } from './transfers.ts'

const READ_BYTES = 1024 * 1024
const PIECE_BYTES = 256 * 1024
/** One that is sent, one that is read, and one to spare. */
const BUFFERS = 3

type Hashing = Pick<RunContext<unknown>, 'signal' | 'progress'>

/** Threads that read files, so that nobody waits for a large one. */
export type Disk = Pick<DiskThreads, 'hash' | 'read' | 'pass'>

/** The hashes and the stat that they belong to; or why there are none. */
export async function hashInside(
  disk: Disk,
  root: Root,
  names: readonly string[],
  { signal }: Pick<Hashing, 'signal'>,
): Promise<(Digests & { stat: LocalStat }) | 'changed' | 'unreadable'> {
  const look = lookInside(root, names)
  if (look?.type !== 'file') return 'changed'
  try {
    const hashed = await disk.hash({ root, names }, plainStat(look), signal)
    if (hashed.outcome !== 'done') return 'changed'
    return { hash: hashed.hash, sha256: hashed.sha256, stat: plainStat(look) }
  } catch (thrown) {
    if (isForbidden(thrown)) return 'unreadable'
    throw thrown
  }
}

export function isForbidden(thrown: unknown): boolean {
  const code = errnoOf(thrown)
  return code === 'EACCES' || code === 'EPERM'
}

/** Undefined where it changed meanwhile. */
export async function hashOpened(
  file: FileHandle,
  stat: LocalStat,
  job: Hashing,
): Promise<Digests | undefined> {
  const hash = await hashUpTo(file, new ContentHash(), stat.size, job)
  return (await isUnchanged(file, stat)) ? hash.digest() : undefined
}

export async function isUnchanged(file: FileHandle, stat: LocalStat): Promise<boolean> {
  return isSameStat(lookOpened(file), stat)
}

/** Of an open file the system knows it without asking the disk; an asynchronous call took twenty times as long. */
export function lookOpened({ fd }: Pick<FileHandle, 'fd'>): Look {
  return toLook(fstatSync(fd, { bigint: true }))
}

/** Goes on from where the hash is. Throws FileChanged where the file is shorter. */
export async function hashUpTo(
  file: FileHandle,
  hash: ContentHash,
  bytes: number,
  { signal, progress }: Hashing,
): Promise<ContentHash> {
  let at = hash.bytes
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(READ_BYTES, bytes - at)))
  while (at < bytes) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, bytes - at), at)
    if (bytesRead === 0) throw new FileChanged()
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
    progress({ done: at, total: bytes, unit: 'bytes' })
  }
  return hash
}

/**
 * A stretch of a file. The next piece is read while one is sent. Buffers are used again, in turns: who asks for the next
 * piece must be done with the one before (new ones for each took a sixth of the time of a large upload to clear away).
 */
export async function* piecesOf(
  file: FileHandle,
  { offset, length }: { offset: number; length: number },
  onPiece: (piece: Buffer, sent: number) => void,
): AsyncGenerator<Buffer> {
  const end = offset + length
  const buffers: Buffer[] = []
  const read = async (at: number, turn: number): Promise<Buffer> => {
    buffers[turn] ??= Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, length))
    const buffer = buffers[turn]
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at)
    if (bytesRead === 0) throw new FileChanged()
    return buffer.subarray(0, bytesRead)
  }
  let reading: Promise<Buffer> | undefined
  try {
    reading = length > 0 ? read(offset, 0) : undefined
    for (let at = offset, turn = 1; reading; turn++) {
      const piece: Buffer = await reading
      at += piece.length
      reading = at < end ? read(at, turn % BUFFERS) : undefined
      onPiece(piece, at - offset)
      yield piece
    }
  } finally {
    // Nobody waits for a piece that was read ahead.
    reading?.catch(() => undefined)
  }
}
