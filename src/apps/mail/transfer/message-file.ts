/** A file of an import: opened without following a link or waiting for a pipe, and read within limits. */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { TidemarkError } from '../../../base/errors.ts'
import { type FileKind, fileKindOf, HEAD_BYTES } from './file-kind.ts'
import { gunzipped } from './gzip-stream.ts'
import { MESSAGE_BYTES_MAX, NO_FILE, unreadable } from './source-item.ts'

const READ_BYTES = 1_048_576
/** Neither follows a link nor waits for a writer, where the system knows how. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

export type OpenedFile = {
  kind: Exclude<FileKind, 'gzip'>
  size: number
  modifiedMs: number
  /** From the start, unpacked. Once. */
  chunks(): AsyncGenerator<Buffer>
  close(): Promise<void>
}

/** The reason where it cannot be read. `link: 'follow'`: it was named by a person. */
export async function openMessageFile(
  path: string,
  name: string,
  link: 'follow' | 'refuse' = 'refuse',
): Promise<OpenedFile | { reason: string }> {
  let file: FileHandle | undefined
  try {
    file = await open(path, link === 'follow' ? 'r' : OPEN_FLAGS)
    const found = await file.stat()
    if (!found.isFile()) {
      await file.close()
      return { reason: NO_FILE }
    }
    const kept = file
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    const by = link === 'follow' ? 'person' : 'walk'
    const kind = fileKindOf(buffer.subarray(0, bytesRead), name, by)
    const packed = (): AsyncGenerator<Buffer> => chunksOf(kept)
    const plain = (): AsyncGenerator<Buffer> => (kind === 'gzip' ? gunzipped(packed()) : packed())
    return {
      kind: kind === 'gzip' ? unpackedKind(await headOf(plain()), name, by) : kind,
      size: found.size,
      modifiedMs: Math.trunc(found.mtimeMs),
      chunks: plain,
      close: () => kept.close(),
    }
  } catch (thrown) {
    await file?.close()
    return { reason: unreadable(thrown) }
  }
}

function unpackedKind(head: Buffer, name: string, by: 'person' | 'walk'): OpenedFile['kind'] {
  const kind = fileKindOf(head, name.replace(/\.gz$/i, ''), by)
  return kind === 'gzip' ? { passedOver: 'packed twice: unpack it first' } : kind
}

async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function headOf(chunks: AsyncGenerator<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    pieces.push(chunk)
    bytes += chunk.length
    if (bytes >= HEAD_BYTES) break
  }
  return Buffer.concat(pieces).subarray(0, HEAD_BYTES)
}

/** All of it, as one message. */
export async function wholeMessage(file: OpenedFile): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const chunk of file.chunks()) {
    bytes += chunk.length
    if (bytes > MESSAGE_BYTES_MAX) {
      throw new TidemarkError(`it is larger than ${MESSAGE_BYTES_MAX / 1e6} MB`, { kind: 'permanent' })
    }
    pieces.push(chunk)
  }
  if (bytes === 0) throw new TidemarkError('the file is empty', { kind: 'permanent' })
  return Buffer.concat(pieces)
}

/** Apple's: as many bytes after the first line as it says. */
export function emlxMessage(content: Buffer): Buffer {
  const lineEnd = content.indexOf('\n')
  const bytes = Number(content.toString('latin1', 0, lineEnd).trim())
  const start = lineEnd + 1
  if (!Number.isSafeInteger(bytes) || start + bytes > content.length) {
    throw new TidemarkError('it is shorter than its first line says', { kind: 'permanent' })
  }
  return content.subarray(start, start + bytes)
}
