/** The bytes of an object of the simulated cloud: held, or made while they are read. */
import { crc32 } from 'node:zlib'

export type ObjectContent = {
  sizeBytes: number
  /** From `from` to before `to`, in pieces. */
  read(from: number, to: number): Iterable<Buffer>
}

/** An object of any size that nobody holds. The same place must always give the same bytes. */
export type SyntheticObject = { sizeBytes: number; bytesAt(from: number, to: number): Uint8Array }

const PIECE_BYTES = 256 * 1024

export function heldContent(pieces: readonly Buffer[]): ObjectContent {
  const sizeBytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return {
    sizeBytes,
    *read(from, to) {
      let at = 0
      for (const piece of pieces) {
        const start = Math.max(0, from - at)
        const end = Math.min(piece.length, to - at)
        if (end > start) yield piece.subarray(start, end)
        at += piece.length
        if (at >= to) return
      }
    },
  }
}

export function syntheticContent({ sizeBytes, bytesAt }: SyntheticObject): ObjectContent {
  return {
    sizeBytes,
    *read(from, to) {
      const end = Math.min(to, sizeBytes)
      for (let at = from; at < end; at += PIECE_BYTES) {
        const bytes = bytesAt(at, Math.min(at + PIECE_BYTES, end))
        yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      }
    },
  }
}

/** All of it, for tests and for what is small. */
export function bytesOf(content: ObjectContent): Buffer {
  return Buffer.concat([...content.read(0, content.sizeBytes)])
}

export type ByteRange = { from: number; to: number }

/** Undefined: the whole. Null: there is no such range. What cannot be read is as if it were not there. */
export function rangeOf(header: string | undefined, sizeBytes: number): ByteRange | null | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '')
  if (!match || (match[1] === '' && match[2] === '')) return undefined
  const [, first = '', last = ''] = match
  if (first === '') {
    const count = Math.min(Number(last), sizeBytes)
    return count === 0 ? null : { from: sizeBytes - count, to: sizeBytes }
  }
  const from = Number(first)
  if (from >= sizeBytes) return null
  const to = last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes)
  return to <= from ? undefined : { from, to }
}

/** In base64 of four bytes, as headers have it. */
export function crc32Of(bytes: Buffer): string {
  const four = Buffer.alloc(4)
  four.writeUInt32BE(crc32(bytes))
  return four.toString('base64')
}
