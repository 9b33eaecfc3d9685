/**
 * What files hold: contents by their SHA-256, or by seed and size where they are synthetic, each kept once, and never
 * thrown away, so that an oracle can ask for every byte that was ever saved.
 *
 * A content is kept as its bytes, or as seed and size where it was synthetic, or, above `keepBytesMax`, only
 * as hash and size: it is listed like any other, and a download of it fails.
 *
 * QuickXorHash is no cryptographic hash: it is what the service tells of a content, and many can have the same one.
 */
import { createHash } from 'node:crypto'
import { QuickXorHash } from '../../base/quick-xor-hash.ts'
import {
  isSyntheticAt,
  SYNTHETIC_HEADER_BYTES,
  type Synthetic,
  syntheticBytes,
  syntheticHash,
  syntheticOf,
} from './synthetic.ts'

export type Content = {
  /** Its SHA-256 in hex, or seed and size. */
  key: string
  /** QuickXorHash in base64. */
  hash: string
  size: number
  source: Source
}

type Source =
  | { kind: 'bytes'; chunks: readonly Buffer[] }
  | { kind: 'synthetic'; synthetic: Synthetic }
  | { kind: 'forgotten' }

export type ContentInput = string | Uint8Array | Synthetic

export const KEEP_BYTES_MAX = 256 * 2 ** 20
/** A chunk that uses less of its memory than this is copied: sockets read into 64 KiB at a time. */
const SHARE_OF_MEMORY_MIN = 0.75

export class ContentStore {
  readonly keepBytesMax: number
  readonly #contents = new Map<string, Content>()

  constructor(options: { keepBytesMax?: number } = {}) {
    this.keepBytesMax = options.keepBytesMax ?? KEEP_BYTES_MAX
  }

  add(input: ContentInput): Content {
    if (typeof input === 'string') return this.#addBytes(Buffer.from(input))
    if (input instanceof Uint8Array) return this.#addBytes(Buffer.from(input))
    return this.keep({
      key: `synthetic-${input.seed}-${input.size}`,
      hash: syntheticHash(input),
      size: input.size,
      source: { kind: 'synthetic', synthetic: input },
    })
  }

  /** Chunks as they came from a socket. */
  addChunks(chunks: readonly Buffer[]): Content {
    const writer = this.writer()
    for (const chunk of chunks) writer.append(chunk)
    return writer.finish()
  }

  writer(): ContentWriter {
    return new ContentWriter(this)
  }

  get(key: string): Content | undefined {
    return this.#contents.get(key)
  }

  keep(made: Content): Content {
    const known = this.#contents.get(made.key)
    if (known) return known
    this.#contents.set(made.key, made)
    return made
  }

  #addBytes(bytes: Buffer): Content {
    const hash = new QuickXorHash().update(bytes).digest().toString('base64')
    const key = createHash('sha256').update(bytes).digest('hex')
    return this.keep({ key, hash, size: bytes.length, source: { kind: 'bytes', chunks: [bytes] } })
  }
}

/** A content on its way in, in order. */
export class ContentWriter {
  readonly #store: ContentStore
  #hash = new QuickXorHash()
  #key = createHash('sha256')
  #chunks: Buffer[] = []
  #isForgotten = false
  #synthetic: Synthetic | undefined
  /** The first bytes, until there are enough to see what they are. */
  #head: Buffer | undefined = Buffer.alloc(0)
  size = 0

  constructor(store: ContentStore) {
    this.#store = store
  }

  append(chunk: Buffer): void {
    if (!this.#head) {
      this.#take(chunk)
      return
    }
    this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk])
    if (this.#head.length >= SYNTHETIC_HEADER_BYTES) this.#begin()
  }

  finish(): Content {
    if (this.#head) this.#begin()
    const synthetic = this.#synthetic
    if (synthetic && this.size === synthetic.size) return this.#store.add(synthetic)
    if (synthetic) this.#unmask(synthetic)
    const source: Source = this.#isForgotten ? { kind: 'forgotten' } : { kind: 'bytes', chunks: this.#chunks }
    const hash = this.#hash.digest().toString('base64')
    return this.#store.keep({ key: this.#key.digest('hex'), hash, size: this.size, source })
  }

  /** How many bytes came, also those that wait in the head. */
  get received(): number {
    return this.size + (this.#head?.length ?? 0)
  }

  #begin(): void {
    const head = this.#head!
    this.#head = undefined
    this.#synthetic = syntheticOf(head)
    this.#take(head)
  }

  #take(chunk: Buffer): void {
    if (this.#synthetic && !isSyntheticAt(this.#synthetic, this.size, chunk)) this.#unmask(this.#synthetic)
    this.size += chunk.length
    if (!this.#synthetic) this.#keep(chunk)
  }

  /** It began like a synthetic one and is none: what came so far is made again. */
  #unmask(synthetic: Synthetic): void {
    this.#synthetic = undefined
    for (const piece of syntheticBytes(synthetic, { to: this.size })) this.#keep(piece)
  }

  #keep(chunk: Buffer): void {
    this.#hash.update(chunk)
    this.#key.update(chunk)
    if (this.#isForgotten) return
    if (this.size > this.#store.keepBytesMax) {
      this.#isForgotten = true
      this.#chunks = []
      return
    }
    this.#chunks.push(compacted(chunk))
  }
}

/** Undefined where the bytes were not kept. */
export function readContent(
  content: Content,
  { from = 0, to = content.size }: { from?: number; to?: number } = {},
): Iterable<Buffer> | undefined {
  const { source } = content
  if (source.kind === 'forgotten') return undefined
  if (source.kind === 'synthetic') return syntheticBytes(source.synthetic, { from, to })
  return sliced(source.chunks, from, to)
}

export function bytesOfContent(content: Content): Buffer | undefined {
  if (content.source.kind === 'bytes' && content.source.chunks.length === 1) return content.source.chunks[0]
  const pieces = readContent(content)
  return pieces && Buffer.concat([...pieces])
}

function* sliced(chunks: readonly Buffer[], from: number, to: number): Iterable<Buffer> {
  let at = 0
  for (const chunk of chunks) {
    const start = Math.max(0, from - at)
    const end = Math.min(chunk.length, to - at)
    at += chunk.length
    if (start < end) yield start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end)
    if (at >= to) return
  }
}

function compacted(chunk: Buffer): Buffer {
  return chunk.length < chunk.buffer.byteLength * SHARE_OF_MEMORY_MIN ? Buffer.from(chunk) : chunk
}
