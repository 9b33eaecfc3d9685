/**
 * JSON that is not line by line: a list, an object with a list in one of its fields, or values one behind the other.
 * The bytes are looked at once and only for where each value ends; what is a record is then parsed by the platform.
 * A value that is too long or too deep is passed over without being held.
 */
import { isAscii } from 'node:buffer'
import { ByteBuffer, unreadable } from './byte-stream.ts'
import { DEPTH_MAX, type ItemSink, NOT_UTF8, TOO_DEEP, textOf, tooLong } from './item-sink.ts'
import type { PieceReader } from './lines.ts'

/** `list`: `[…]`. `values`: `{…}{…}`. Otherwise the name of the field that holds the list. */
export type JsonLayout = { kind: 'list' } | { kind: 'values' } | { kind: 'field'; name: string }

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]
const KEY_BYTES_MAX = 4_096

/** Bytes that say something outside of a text: 1 a text begins, 2 opens, 3 closes. */
const STRUCTURE = new Uint8Array(256)
STRUCTURE[QUOTE] = 1
STRUCTURE[LIST] = STRUCTURE[OBJECT] = 2
STRUCTURE[LIST_END] = STRUCTURE[OBJECT_END] = 3

/** Where a reading stands: between values at the top, in the list of records, or in the object around it. */
type State = 'top' | 'list' | 'key' | 'colon' | 'field'
type ValuePurpose = 'record' | 'key' | 'passed'

export class JsonReader implements PieceReader {
  readonly #sink: ItemSink
  readonly #layout: JsonLayout
  readonly #bytesMax: number
  #state: State
  #byte: number | null
  #hasField = false
  #key = ''
  // The value that is being read.
  #purpose: ValuePurpose | undefined
  readonly #held = new ByteBuffer()
  #bytes = 0
  #depth = 0
  #deepest = 0
  #isText = false
  #isEscaped = false
  #isScalar = false

  /** `isWithin`: it begins behind a record of a list. */
  constructor(
    sink: ItemSink,
    options: { layout: JsonLayout; bytesMax: number; fromByte: number | null; isWithin: boolean },
  ) {
    this.#sink = sink
    this.#layout = options.layout
    this.#bytesMax = options.bytesMax
    this.#byte = options.fromByte
    this.#state = options.isWithin && options.layout.kind !== 'values' ? 'list' : 'top'
    this.#hasField = options.isWithin
  }

  push(piece: Buffer): void {
    const isPlain = isAscii(piece)
    for (let at = 0; at < piece.length; ) {
      at = this.#purpose === undefined ? this.#between(piece, at) : this.#value(piece, at, isPlain)
    }
    if (this.#byte !== null) this.#byte += piece.length
  }

  end(): void {
    if (this.#purpose !== undefined && this.#isScalar && this.#state === 'top')
      this.#finish(Buffer.alloc(0), 0, false)
    if (this.#purpose !== undefined || this.#state !== 'top') {
      throw unreadable('truncated', 'the object ends in the middle of its JSON')
    }
  }

  /** What stands between values; where one begins, it is left to be read. */
  #between(piece: Buffer, from: number): number {
    let at = from
    for (; at < piece.length; at++) {
      const byte = piece[at]!
      if (byte <= 0x20) continue
      if (this.#state === 'top') {
        if (this.#layout.kind === 'values') {
          if (byte !== COMMA) return this.#begin('record', at)
        } else if (byte === (this.#layout.kind === 'list' ? LIST : OBJECT)) {
          this.#state = this.#layout.kind === 'list' ? 'list' : 'key'
          this.#hasField = false
        } else throw this.#unexpected(byte, at)
      } else if (this.#state === 'list') {
        if (byte === LIST_END) this.#state = this.#layout.kind === 'field' ? 'key' : 'top'
        // Commas are passed over, so that a list reads the same from behind any of its records.
        else if (byte !== COMMA) return this.#begin('record', at)
      } else if (this.#state === 'key') {
        if (byte === OBJECT_END) this.#endObject()
        else if (byte === QUOTE) return this.#begin('key', at)
        else if (byte !== COMMA) throw this.#unexpected(byte, at)
      } else if (this.#state === 'colon') {
        if (byte !== COLON) throw this.#unexpected(byte, at)
        this.#state = 'field'
      } else {
        const isRecords = this.#layout.kind === 'field' && this.#key === this.#layout.name
        if (!isRecords || byte !== LIST) return this.#begin('passed', at)
        this.#hasField = true
        this.#state = 'list'
      }
    }
    return at
  }

  #endObject(): void {
    if (!this.#hasField && this.#layout.kind === 'field') {
      throw unreadable('schema', `the object has no list \`${this.#layout.name}\``)
    }
    this.#state = 'top'
  }

  #begin(purpose: ValuePurpose, at: number): number {
    this.#purpose = purpose
    this.#bytes = 0
    this.#depth = 0
    this.#deepest = 0
    this.#isText = false
    this.#isEscaped = false
    this.#isScalar = false
    return at
  }

  /** Goes on with the value that begins or goes on at `from`; answers where to go on after it. */
  #value(piece: Buffer, from: number, isPlain: boolean): number {
    let at = from
    let depth = this.#depth
    if (this.#bytes === 0 && STRUCTURE[piece[at]!] === 0) this.#isScalar = true
    if (this.#isScalar) return this.#scalar(piece, from, isPlain)
    while (at < piece.length) {
      if (this.#isText) {
        at = this.#textEnd(piece, at)
        if (this.#isText) break
        if (depth === 0) return this.#ended(piece, from, at, isPlain)
        continue
      }
      const kind = STRUCTURE[piece[at++]!]
      if (kind === 0) continue
      if (kind === 1) this.#isText = true
      else if (kind === 2) {
        depth += 1
        if (depth > this.#deepest) this.#deepest = depth
      } else {
        depth -= 1
        if (depth <= 0) return this.#ended(piece, from, at, isPlain)
      }
    }
    this.#depth = depth
    this.#keep(piece.subarray(from, at))
    return at
  }

  /** Behind the quote that ends a text, or the end of the piece. */
  #textEnd(piece: Buffer, from: number): number {
    let at = from
    if (this.#isEscaped && at < piece.length) {
      this.#isEscaped = false
      at += 1
    }
    for (; at < piece.length; at++) {
      const byte = piece[at]
      if (byte === QUOTE) {
        this.#isText = false
        return at + 1
      }
      if (byte !== BACKSLASH) continue
      at += 1
      if (at >= piece.length) this.#isEscaped = true
    }
    return piece.length
  }

  /** A number or a word ends where something else begins, which is not part of it. */
  #scalar(piece: Buffer, from: number, isPlain: boolean): number {
    for (let at = from; at < piece.length; at++) {
      const byte = piece[at]!
      const isEnd = byte <= 0x20 || byte === COMMA || STRUCTURE[byte]! > 0
      if (isEnd && (at > from || this.#bytes > 0)) return this.#ended(piece, from, at, isPlain)
    }
    this.#keep(piece.subarray(from))
    return piece.length
  }

  #keep(part: Buffer): void {
    const bytesMax = this.#purpose === 'key' ? KEY_BYTES_MAX : this.#bytesMax
    if (this.#purpose !== 'passed' && this.#held.length < bytesMax) {
      this.#held.append(part.subarray(0, bytesMax - this.#held.length))
    }
    this.#bytes += part.length
  }

  #ended(piece: Buffer, from: number, to: number, isPlain: boolean): number {
    let value = piece.subarray(from, to)
    if (this.#bytes > 0) {
      this.#keep(value)
      value = Buffer.from(this.#held.view())
      isPlain = false
    } else this.#bytes = value.length
    this.#finish(value, to, isPlain)
    return to
  }

  #finish(value: Buffer, to: number, isPlain: boolean): void {
    const bytes = value.length === 0 ? Buffer.from(this.#held.view()) : value
    const purpose = this.#purpose
    this.#purpose = undefined
    this.#held.clear()
    if (purpose === 'record') {
      const endByte = this.#byte === null ? null : this.#byte + to
      if (this.#bytes > this.#bytesMax) {
        this.#sink.bad(tooLong(this.#bytesMax), bytes.subarray(0, this.#bytesMax), endByte, null)
      } else if (this.#deepest > DEPTH_MAX) this.#sink.bad(TOO_DEEP, bytes, endByte, null)
      else {
        const text = isPlain ? bytes.toString('latin1') : textOf(bytes)
        if (text === undefined) this.#sink.bad(NOT_UTF8, bytes, endByte, null)
        else this.#sink.json(text, bytes, endByte, null)
      }
    } else if (purpose === 'key') {
      this.#key = this.#bytes > KEY_BYTES_MAX ? '' : keyOf(bytes)
      this.#state = 'colon'
    } else this.#state = 'key'
  }

  #unexpected(byte: number, at: number): Error {
    const where = this.#byte === null ? '' : ` at byte ${this.#byte + at}`
    const what = byte < 0x7f ? `\`${String.fromCharCode(byte)}\`` : `the byte ${byte}`
    return unreadable('corrupt', `the object is not the JSON that its beginning promised: ${what}${where}`)
  }
}

function keyOf(bytes: Buffer): string {
  try {
    return String(JSON.parse(bytes.toString()))
  } catch {
    // A key that is none is nobody's name.
    return ''
  }
}
