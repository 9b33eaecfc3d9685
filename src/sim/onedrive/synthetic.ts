/**
 * Content that is given by a seed and a size, so that a file of ten gigabytes needs no ten gigabytes: its
 * bytes are made while they are read, recognised while they are written, and hashed without being made.
 *
 * It is a row of equal blocks of noise. The first begins with a header (magic, seed, size) and every other
 * with its number, so that no two files and no two places in a file are alike. The block is a multiple of
 * 160 bytes, the period of QuickXorHash, and of 320 KiB, the measure of upload fragments: two equal blocks
 * take each other out of the hash, and what is left of any number of them is one block.
 */
import { QuickXorHash } from '../../base/quick-xor-hash.ts'
import { seededRandom } from '../../base/random.ts'

export type Synthetic = { seed: number; size: number }

export const SYNTHETIC_HEADER_BYTES = 32

const MAGIC = Buffer.from('tidemark-sim-v1\n', 'latin1')
const BLOCK_BYTES = 4 * 320 * 1024
const STAMP_BYTES = 8
const NOISES_MAX = 16

const noises = new Map<number, Buffer>()

/** The bytes from `from` to before `to`. */
export function* syntheticBytes(
  { seed, size }: Synthetic,
  { from = 0, to = size }: { from?: number; to?: number } = {},
): Iterable<Buffer> {
  const noise = noiseOf(seed)
  const end = Math.min(to, size)
  for (let at = Math.max(0, from); at < end; ) {
    const block = Math.floor(at / BLOCK_BYTES)
    const within = at - block * BLOCK_BYTES
    const stamp = stampOf({ seed, size }, block)
    const piece = within < stamp.length ? stamp.subarray(within) : noise.subarray(within)
    const kept = piece.length > end - at ? piece.subarray(0, end - at) : piece
    yield kept
    at += kept.length
  }
}

/** Whether these bytes stand at this place; what is not there yet is compared when it comes. */
export function isSyntheticAt(synthetic: Synthetic, at: number, bytes: Buffer): boolean {
  if (at + bytes.length > synthetic.size) return false
  let offset = 0
  for (const piece of syntheticBytes(synthetic, { from: at, to: at + bytes.length })) {
    if (bytes.compare(piece, 0, piece.length, offset, offset + piece.length) !== 0) return false
    offset += piece.length
  }
  return true
}

/** What the first bytes of a file say that it is. */
export function syntheticOf(head: Buffer): Synthetic | undefined {
  if (head.length < SYNTHETIC_HEADER_BYTES || head.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) {
    return undefined
  }
  const size = Number(head.readBigUInt64LE(MAGIC.length + 4))
  return Number.isSafeInteger(size) ? { seed: head.readUInt32LE(MAGIC.length), size } : undefined
}

/** QuickXorHash of the whole in base64. */
export function syntheticHash(synthetic: Synthetic): string {
  const { seed, size } = synthetic
  const noise = noiseOf(seed)
  const blocks = Math.ceil(size / BLOCK_BYTES)
  const rest = size % BLOCK_BYTES
  const full = Math.floor(size / BLOCK_BYTES)
  const sum = Buffer.alloc(BLOCK_BYTES)
  // A byte of noise stays when an odd number of blocks reach as far as it.
  if (full % 2 === 1) noise.copy(sum)
  for (let at = 0; at < rest; at++) sum[at]! ^= noise[at]!
  for (let block = 0; block < blocks; block++) {
    const stamp = stampOf(synthetic, block)
    const length = Math.min(stamp.length, size - block * BLOCK_BYTES)
    for (let at = 0; at < length; at++) sum[at]! ^= stamp[at]! ^ noise[at]!
  }
  const digest = new QuickXorHash().update(sum).digest()
  const lengths = BigInt(BLOCK_BYTES) ^ BigInt(size)
  digest.writeBigUInt64LE(digest.readBigUInt64LE(12) ^ lengths, 12)
  return digest.toString('base64')
}

function stampOf({ seed, size }: Synthetic, block: number): Buffer {
  if (block > 0) {
    const stamp = Buffer.allocUnsafe(STAMP_BYTES)
    stamp.writeBigUInt64LE(BigInt(block))
    return stamp
  }
  const header = Buffer.alloc(SYNTHETIC_HEADER_BYTES)
  MAGIC.copy(header)
  header.writeUInt32LE(seed >>> 0, MAGIC.length)
  header.writeBigUInt64LE(BigInt(size), MAGIC.length + 4)
  return header
}

function noiseOf(seed: number): Buffer {
  const known = noises.get(seed)
  if (known) return known
  const random = seededRandom(seed)
  const words = new Uint32Array(BLOCK_BYTES / 4)
  for (let at = 0; at < words.length; at++) words[at] = random() * 2 ** 32
  const noise = Buffer.from(words.buffer)
  noises.set(seed, noise)
  const [oldest] = noises.keys()
  if (noises.size > NOISES_MAX && oldest !== undefined) noises.delete(oldest)
  return noise
}
