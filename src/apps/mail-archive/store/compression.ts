/**
 * zstd as the archive uses it: the blobs are plain zstd frames that any tool can read.
 *
 * Small blobs share one compressor. node:zlib makes a new one for every call, which takes half of the time: 55 µs
 * instead of 30 µs for a mail of 9 kB. So its own binding is driven as its synchronous functions drive it. Should
 * another Node have another binding, that is noticed at the first use, and those functions do the work.
 */
import { constants, createZstdCompress, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/** Measured on mails of 8 kB: level 1 takes 86 µs for 2,731 bytes, level 3 90 µs for 2,580, level 6 232 µs for 2,494. */
const LEVEL = 3
const CHUNK_BYTES_MIN = 256
const CHUNK_BYTES_MAX = 1_048_576
/** What the shared compressor takes; its window has the same size, so that reading needs no more memory than that. */
const SHARED_WINDOW_LOG = 17
const SHARED_BYTES_MAX = 2 ** SHARED_WINDOW_LOG

export function compressed(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength <= SHARED_BYTES_MAX) {
    shared ??= sharedCompressor()
    const packed = shared(bytes)
    if (packed) return packed
  }
  return zstdCompressSync(bytes, {
    // With the size known, zstd takes smaller tables for small mails.
    pledgedSrcSize: bytes.byteLength,
    chunkSize: chunkBytes(bytes.byteLength),
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL },
  })
}

/** Room for the result in one piece, and not 16 kB for each of many small ones. */
function chunkBytes(bytes: number): number {
  return Math.max(CHUNK_BYTES_MIN, Math.min(CHUNK_BYTES_MAX, bytes + (bytes >> 8) + CHUNK_BYTES_MIN))
}

/** `bytesMax`: what it can be at most; a damaged blob must not fill the memory. */
export function decompressed(bytes: Uint8Array, bytesMax: number): Uint8Array {
  return zstdDecompressSync(bytes, { maxOutputLength: bytesMax })
}

/** The part of node:zlib's binding that is used: `state` is told what room and what input were left. */
type Binding = {
  _handle: {
    reset(): void
    writeSync(
      flush: number,
      from: Uint8Array,
      at: number,
      bytes: number,
      to: Uint8Array,
      toAt: number,
      room: number,
    ): void
  }
  _writeState: Uint32Array
}

/** Undefined where it could not do it. */
type Compressor = (bytes: Uint8Array) => Uint8Array | undefined

let shared: Compressor | undefined

function sharedCompressor(): Compressor {
  const params = {
    [constants.ZSTD_c_compressionLevel]: LEVEL,
    [constants.ZSTD_c_windowLog]: SHARED_WINDOW_LOG,
  }
  const { _handle: handle, _writeState: state } = createZstdCompress({ params }) as unknown as Binding
  const room = new Uint8Array(SHARED_BYTES_MAX + chunkBytes(SHARED_BYTES_MAX))
  const compress: Compressor = (bytes) => {
    handle.reset()
    handle.writeSync(constants.ZSTD_e_end, bytes, 0, bytes.byteLength, room, 0, room.byteLength)
    const [roomLeft, inputLeft] = state
    if (inputLeft !== 0 || !roomLeft) return undefined
    return room.slice(0, room.byteLength - roomLeft)
  }
  return isSound(compress) ? compress : () => undefined
}

function isSound(compress: Compressor): boolean {
  try {
    return ['first', 'second'.repeat(1_000)].every((text) => {
      const packed = compress(Buffer.from(text))
      return packed !== undefined && Buffer.from(decompressed(packed, SHARED_BYTES_MAX)).toString() === text
    })
  } catch {
    return false // another binding: node:zlib's own functions do the work
  }
}
