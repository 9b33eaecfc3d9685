/**
 * The bytes of an object on their way to a reader: in pieces of bounded size, unpacked, and as UTF-8. Nothing is asked
 * of the source before somebody wants it.
 */
import type { Transform } from 'node:stream'
import { constants, createGunzip, createZstdDecompress } from 'node:zlib'
import { TidemarkError } from '../../../base/errors.ts'
import type { Compression } from '../contract.ts'

export type Pieces = AsyncIterable<Buffer>

export const PIECE_BYTES = 64 * 1024
/** What is no larger than this is no bomb, however small it was. */
export const EXPANDED_BYTES_FREE = 1024 * 1024
/** 128 MiB, which is what every writer may rely on; a frame that wants a larger window is refused. */
const ZSTD_WINDOW_LOG_MAX = 27

export function unreadable(code: string, message: string, cause?: unknown): TidemarkError {
  return new TidemarkError(message, { kind: 'permanent', code, cause })
}

export function bomb(expansionMax: number): TidemarkError {
  return unreadable('bomb', `a part of the object becomes more than ${expansionMax} times as large`)
}

/** A source may give pieces of any size; a reader makes a batch of each. */
export async function* inPieces(
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      signal.throwIfAborted()
      const length = Math.min(PIECE_BYTES, chunk.length - at)
      yield Buffer.from(chunk.buffer, chunk.byteOffset + at, length)
    }
  }
}

/** The first bytes, as many as are asked for or as there are, and all of them again. */
export async function peek(
  pieces: Pieces,
  bytesMax: number,
): Promise<{ sample: Buffer; isWhole: boolean; pieces: AsyncGenerator<Buffer> }> {
  const iterator = pieces[Symbol.asyncIterator]()
  const seen: Buffer[] = []
  let seenBytes = 0
  let failed: { thrown: unknown } | undefined
  let isDone = false
  while (seenBytes <= bytesMax && !isDone && !failed) {
    try {
      const next = await iterator.next()
      if (next.done === true) isDone = true
      else seenBytes += seen[seen.push(next.value) - 1]!.length
    } catch (thrown) {
      // What came before counts: whoever reads that far meets it.
      failed = { thrown }
    }
  }
  async function* again(): AsyncGenerator<Buffer> {
    try {
      while (seen.length > 0) yield seen.shift()!
      if (failed) throw failed.thrown
      while (!isDone) {
        const next = await iterator.next()
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await iterator.return?.()
    }
  }
  const sample = Buffer.concat(seen).subarray(0, bytesMax)
  return { sample, isWhole: isDone && seenBytes <= bytesMax, pieces: again() }
}

/** All members of gzip, all frames of zstd. */
export async function* unpacked(
  pieces: Pieces,
  compression: Exclude<Compression, 'none'>,
  expansionMax: number,
): AsyncGenerator<Buffer> {
  const packer =
    compression === 'gzip'
      ? createGunzip({ chunkSize: PIECE_BYTES })
      : createZstdDecompress({
          chunkSize: PIECE_BYTES,
          params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX },
        })
  const state = { thrown: undefined as { by: 'source' | 'packer'; error: unknown } | undefined, fedBytes: 0 }
  const changed = new Changes(packer)
  packer.once('error', (error) => {
    state.thrown ??= { by: 'packer', error }
  })
  const feeding = feed(pieces, packer, state)
  let bytes = 0
  try {
    for (;;) {
      const piece = packer.read() as Buffer | null
      if (piece !== null) {
        bytes += piece.length
        // Against what went in so far: whoever puts a bomb before much else does not gain by it.
        if (bytes > EXPANDED_BYTES_FREE && bytes > state.fedBytes * expansionMax) throw bomb(expansionMax)
        yield piece
      } else if (state.thrown) throw failureOf(state.thrown, compression)
      else if (packer.readableEnded) break
      else await changed.next()
    }
    await feeding
    // The platform ends without a word where what follows a frame is none: records might be missing.
    if (compression === 'zstd' && packer.bytesWritten < state.fedBytes) {
      throw unreadable('corrupt', 'something follows the zstd data of the object that is none')
    }
  } finally {
    packer.destroy()
    await feeding
  }
}

/** Says when a stream has something to tell: more to read, its end, or that it failed. */
class Changes {
  #isPending = false
  #wake: (() => void) | undefined

  constructor(stream: Transform) {
    for (const event of ['readable', 'end', 'error', 'close']) stream.on(event, () => this.#changed())
  }

  #changed(): void {
    this.#isPending = true
    this.#wake?.()
  }

  async next(): Promise<void> {
    if (!this.#isPending) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#isPending = false
    this.#wake = undefined
  }
}

async function feed(
  pieces: Pieces,
  packer: Transform,
  state: { thrown: { by: 'source' | 'packer'; error: unknown } | undefined; fedBytes: number },
): Promise<void> {
  try {
    for await (const piece of pieces) {
      if (packer.destroyed || state.thrown) return
      state.fedBytes += piece.length
      // Until it is unpacked: what came before an error of the source is told before the error is.
      await new Promise<void>((resolve) => {
        packer.once('close', resolve)
        packer.write(piece, () => {
          packer.off('close', resolve)
          resolve()
        })
      })
    }
    if (!packer.destroyed) packer.end()
  } catch (error) {
    state.thrown ??= { by: 'source', error }
    packer.emit('readable')
  }
}

function failureOf(thrown: { by: 'source' | 'packer'; error: unknown }, compression: Compression): unknown {
  if (thrown.by === 'source') return thrown.error
  if ((thrown.error as NodeJS.ErrnoException).code === 'Z_BUF_ERROR') {
    return unreadable('truncated', `the object ends in the middle of its ${compression} data`, thrown.error)
  }
  return unreadable('corrupt', `the object's ${compression} data is damaged`, thrown.error)
}

/** UTF-16 as UTF-8; a half of a pair that stands alone becomes the replacement character. */
export async function* fromUtf16(pieces: Pieces, encoding: 'utf-16le' | 'utf-16be'): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding)
  for await (const piece of pieces) {
    const text = decoder.decode(piece, { stream: true })
    if (text !== '') yield Buffer.from(text)
  }
  const rest = decoder.decode()
  if (rest !== '') yield Buffer.from(rest)
}

/** Bytes that are added at the end, without a copy for each. */
export class ByteBuffer {
  #bytes = Buffer.allocUnsafe(1_024)
  #length = 0

  get length(): number {
    return this.#length
  }

  append(piece: Buffer): void {
    const length = this.#length + piece.length
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, this.#bytes.length * 2))
      this.#bytes.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    piece.copy(this.#bytes, this.#length)
    this.#length = length
  }

  /** Valid until the next one is added. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  clear(): void {
    // What one long record needed is not kept for short ones; for long ones it is, which would each grow it anew.
    const isForShort = this.#length < this.#bytes.length / 4
    this.#length = 0
    if (isForShort && this.#bytes.length > 4 * PIECE_BYTES) this.#bytes = Buffer.allocUnsafe(1_024)
  }
}
