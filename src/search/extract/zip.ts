/**
 * Reads the members of a zip container as streams. Nothing that the container says about sizes is believed: what comes
 * out of a member is counted while it comes, against what the document may come to and against what went in.
 */
import { createInflateRaw, inflateRawSync } from 'node:zlib'
import { formatBytes, formatCount } from '../../base/format.ts'
import { type ExtractLimits, SkipDocument } from './contract.ts'
import { type Attributes, type MarkupEvents, markupParser } from './markup.ts'

type Member = { method: number; isEncrypted: boolean; at: number; bytes: number }

const END_MARK = 0x06054b50
const ENTRY_MARK = 0x02014b50
const MEMBER_MARK = 0x04034b50
const END_BYTES = 22
const COMMENT_BYTES_MAX = 0xffff
const ENTRY_BYTES = 46
const MEMBER_BYTES = 30
const UNKNOWN_32 = 0xffffffff
const STORED = 0
const DEFLATED = 8
const PIECE_BYTES = 64 * 1024
/** Inflated at once: a stream takes its turns among the platform's threads, which cost more than the work. */
const SMALL_BYTES = 32 * 1024
/** A member that is no larger than this is no bomb, however small it was. */
const INFLATED_BYTES_FREE = 1024 * 1024

export class ZipReader {
  readonly #bytes: Buffer
  readonly #limits: ExtractLimits
  readonly #members: Map<string, Member>
  #inflatedBytes = 0

  constructor(bytes: Uint8Array, limits: ExtractLimits) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#limits = limits
    this.#members = membersOf(this.#bytes, limits.zipEntriesMax)
  }

  get names(): string[] {
    return [...this.#members.keys()]
  }

  has(name: string): boolean {
    return this.#members.has(name)
  }

  /** All that was inflated so far: the measure of what a container costs. */
  get inflatedBytes(): number {
    return this.#inflatedBytes
  }

  /** A member that is not there has no pieces. Whoever needs no more ends the loop, and no more is inflated. */
  async *pieces(name: string): AsyncGenerator<Uint8Array> {
    const member = this.#members.get(name)
    if (!member) return
    if (member.isEncrypted) throw new SkipDocument('encrypted', 'it is protected with a password')
    const data = dataOf(this.#bytes, member)
    if (member.method === STORED) {
      this.#count(data.length, data.length, data.length)
      yield data
    } else if (member.method !== DEFLATED) {
      throw new SkipDocument('damaged', `a part of it is packed in an unknown way (${member.method})`)
    } else if (data.length <= SMALL_BYTES) yield this.#inflatedAtOnce(data)
    else yield* this.#inflated(data)
  }

  /** Never more than a bomb has to be. */
  #inflatedAtOnce(data: Buffer): Uint8Array {
    const bytesMax = Math.max(INFLATED_BYTES_FREE, data.length * this.#limits.inflateRatioMax)
    try {
      const inflated = inflateRawSync(data, { maxOutputLength: bytesMax, chunkSize: PIECE_BYTES })
      this.#count(inflated.length, inflated.length, data.length)
      return inflated
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw thrown
      this.#inflatedBytes += bytesMax
      throw bomb(this.#limits.inflateRatioMax)
    }
  }

  async *#inflated(data: Buffer): AsyncGenerator<Uint8Array> {
    const inflate = createInflateRaw({ chunkSize: PIECE_BYTES })
    inflate.end(data)
    let bytes = 0
    for await (const piece of inflate as AsyncIterable<Buffer>) {
      bytes += piece.length
      // Against what went in so far: whoever puts a bomb before much else does not gain by it.
      this.#count(piece.length, bytes, inflate.bytesWritten)
      yield piece
    }
  }

  #count(more: number, memberBytes: number, packedBytes: number): void {
    this.#inflatedBytes += more
    const { inflateRatioMax, inflatedBytesMax } = this.#limits
    if (memberBytes > INFLATED_BYTES_FREE && memberBytes > packedBytes * inflateRatioMax) {
      throw bomb(inflateRatioMax)
    }
    if (this.#inflatedBytes > inflatedBytesMax) {
      throw new SkipDocument('too-large', `unpacked it has more than ${formatBytes(inflatedBytesMax)}`)
    }
  }

  /** A small member as text. */
  async text(name: string, charsMax: number): Promise<string> {
    const decoder = new TextDecoder()
    let text = ''
    for await (const piece of this.pieces(name)) {
      text += decoder.decode(piece, { stream: true })
      if (text.length > charsMax) break
    }
    return text
  }

  /** A member that is XML. Names come without their prefixes, which each writer chooses. */
  async xml(name: string, events: Pick<MarkupEvents, 'open' | 'close' | 'text'>): Promise<void> {
    const parser = markupParser(
      { kind: 'xml', depthMax: this.#limits.depthMax },
      {
        open: (name, attributes, at) => events.open(withoutPrefix(name), attributes, at),
        close: (name) => events.close(withoutPrefix(name)),
        text: events.text,
      },
    )
    let decoder: TextDecoder | undefined
    for await (const piece of this.pieces(name)) {
      decoder ??= new TextDecoder(piece[0] === 0xff ? 'utf-16le' : piece[0] === 0xfe ? 'utf-16be' : 'utf-8')
      parser.write(decoder.decode(piece, { stream: true }))
    }
    parser.end()
  }
}

export function withoutPrefix(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** The value of an attribute, whatever its prefix. */
export function attributeOf(attributes: Attributes, name: string): string | undefined {
  if (attributes[name] !== undefined) return attributes[name]
  for (const key in attributes) if (key.endsWith(`:${name}`)) return attributes[key]
  return undefined
}

function membersOf(bytes: Buffer, entriesMax: number): Map<string, Member> {
  const end = endOf(bytes)
  let at = bytes.readUInt32LE(end + 16)
  const members = new Map<string, Member>()
  for (let count = 0; at + ENTRY_BYTES <= end && bytes.readUInt32LE(at) === ENTRY_MARK; count++) {
    if (count === entriesMax) {
      throw new SkipDocument('bomb', `it consists of more than ${formatCount(entriesMax)} files`)
    }
    const [nameBytes, extraBytes] = [bytes.readUInt16LE(at + 28), bytes.readUInt16LE(at + 30)]
    const nameAt = at + ENTRY_BYTES
    const name = bytes.toString('utf8', nameAt, nameAt + nameBytes)
    const extra = bytes.subarray(nameAt + nameBytes, nameAt + nameBytes + extraBytes)
    const long = longFields(extra, bytes.readUInt32LE(at + 24) === UNKNOWN_32)
    const [packed, place] = [bytes.readUInt32LE(at + 20), bytes.readUInt32LE(at + 42)]
    members.set(name.replaceAll('\\', '/').replace(/^\//, ''), {
      method: bytes.readUInt16LE(at + 10),
      isEncrypted: (bytes.readUInt16LE(at + 8) & 1) === 1,
      bytes: packed === UNKNOWN_32 ? (long.shift() ?? packed) : packed,
      at: place === UNKNOWN_32 ? (long.shift() ?? place) : place,
    })
    at = nameAt + nameBytes + extraBytes + bytes.readUInt16LE(at + 32)
  }
  if (members.size === 0) throw damaged()
  return members
}

/** Sizes and places that did not fit (zip64), without the inflated size, which is not asked for. */
function longFields(extra: Buffer, hasInflatedBytes: boolean): number[] {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue
    const fields: number[] = []
    const end = Math.min(extra.length, at + 4 + extra.readUInt16LE(at + 2))
    for (let field = at + 4; field + 8 <= end; field += 8) fields.push(Number(extra.readBigUInt64LE(field)))
    return hasInflatedBytes ? fields.slice(1) : fields
  }
  return []
}

/** The end says where the list of members is. It stands before a comment, whose length only it knows. */
function endOf(bytes: Buffer): number {
  const from = Math.max(0, bytes.length - END_BYTES - COMMENT_BYTES_MAX)
  for (let at = bytes.length - END_BYTES; at >= from; at--) {
    if (bytes.readUInt32LE(at) === END_MARK) return at
  }
  throw damaged()
}

function dataOf(bytes: Buffer, { at, bytes: length }: Member): Buffer {
  if (at + MEMBER_BYTES > bytes.length || bytes.readUInt32LE(at) !== MEMBER_MARK) throw damaged()
  const from = at + MEMBER_BYTES + bytes.readUInt16LE(at + 26) + bytes.readUInt16LE(at + 28)
  if (from + length > bytes.length) throw damaged()
  return bytes.subarray(from, from + length)
}

function bomb(ratio: number): SkipDocument {
  return new SkipDocument('bomb', `a part of it becomes more than ${ratio} times as large`)
}

function damaged(): SkipDocument {
  return new SkipDocument('damaged', 'it is damaged or not complete: its parts cannot be found')
}
