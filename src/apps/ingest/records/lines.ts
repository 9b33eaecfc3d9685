/** Lines: NDJSON, text, and what the rows of tables are made of. */
import { isAscii } from 'node:buffer'
import { ByteBuffer } from './byte-stream.ts'
import { type ItemSink, NOT_UTF8, textOf, tooLong } from './item-sink.ts'

/** Takes pieces as they come, tells what it found to a sink. */
export interface PieceReader {
  push(piece: Buffer): void
  end(): void
}

export type Place = {
  /** Where the first piece begins; null where positions mean nothing, as behind a decompression. */
  byte: number | null
  /** How many lines were before it; null where nobody knows. */
  lines: number | null
}

export type LineEvents = {
  /**
   * `text` is undefined where the bytes are not UTF-8. Without its line feed; `endByte` is behind that. `bytes` are good
   * until it returns.
   */
  line(text: string | undefined, bytes: Buffer, endByte: number | null): void
  /** A line of more than `bytesMax`, of which only the beginning was kept. */
  longLine(beginning: Buffer, endByte: number | null): void
}

const LF = 0x0a
const CR = 0x0d

/** Holds at most one line, and of one that is too long only its beginning. */
export class LineSplitter implements PieceReader {
  readonly #events: LineEvents
  readonly #bytesMax: number
  readonly #held = new ByteBuffer()
  #isTooLong = false
  #byte: number | null

  constructor(events: LineEvents, options: { bytesMax: number; fromByte: number | null }) {
    this.#events = events
    this.#bytesMax = options.bytesMax
    this.#byte = options.fromByte
  }

  push(piece: Buffer): void {
    const last = piece.lastIndexOf(LF)
    if (last < 0) {
      this.#hold(piece)
      return
    }
    const start = this.#byte
    let from = 0
    if (this.#held.length > 0) {
      from = piece.indexOf(LF) + 1
      this.#hold(piece.subarray(0, from - 1))
      if (start !== null) this.#byte = start + from
      this.#tellHeld()
    }
    if (from <= last) this.#tellLines(piece.subarray(from, last + 1), start === null ? null : start + from)
    if (start !== null) this.#byte = start + last + 1
    this.#hold(piece.subarray(last + 1))
  }

  end(): void {
    if (this.#held.length > 0) this.#tellHeld()
  }

  #hold(piece: Buffer): void {
    if (this.#byte !== null) this.#byte += piece.length
    if (this.#isTooLong || piece.length === 0) return
    const room = this.#bytesMax + 2 - this.#held.length
    this.#held.append(piece.length > room ? piece.subarray(0, room) : piece)
    if (piece.length > room) this.#isTooLong = true
  }

  #tellHeld(): void {
    // Whoever is told keeps nothing of it: no copy of a long line is made.
    const bytes = this.#held.view()
    this.#tell(this.#isTooLong ? undefined : textOf(withoutCr(bytes)), bytes, this.#byte)
    this.#held.clear()
    this.#isTooLong = false
  }

  #tell(text: string | undefined, bytes: Buffer, endByte: number | null): void {
    const line = withoutCr(bytes)
    if (line.length > this.#bytesMax) this.#events.longLine(line.subarray(0, this.#bytesMax), endByte)
    else this.#events.line(text, line, endByte)
  }

  /** Whole lines. In ASCII a place in the text is a place in the bytes, and all of it is decoded at once. */
  #tellLines(bytes: Buffer, startByte: number | null): void {
    const whole = isAscii(bytes) ? bytes.toString('latin1') : undefined
    for (let from = 0; from < bytes.length; ) {
      const end = whole === undefined ? bytes.indexOf(LF, from) : whole.indexOf('\n', from)
      const endByte = startByte === null ? null : startByte + end + 1
      const to = end > from && bytes[end - 1] === CR ? end - 1 : end
      const line = bytes.subarray(from, to)
      if (line.length > this.#bytesMax) this.#events.longLine(line.subarray(0, this.#bytesMax), endByte)
      else this.#events.line(whole === undefined ? textOf(line) : whole.slice(from, to), line, endByte)
      from = end + 1
    }
  }
}

function withoutCr(line: Buffer): Buffer {
  return line.at(-1) === CR ? line.subarray(0, -1) : line
}

/** A record in each line that is not empty: JSON, or the line itself as `text`. */
export class LineReader implements PieceReader {
  readonly #sink: ItemSink
  readonly #splitter: LineSplitter
  readonly #bytesMax: number
  readonly #isJson: boolean
  #line: number | null

  constructor(sink: ItemSink, options: { format: 'ndjson' | 'text'; bytesMax: number; place: Place }) {
    this.#sink = sink
    this.#bytesMax = options.bytesMax
    this.#isJson = options.format === 'ndjson'
    this.#line = options.place.lines
    this.#splitter = new LineSplitter(
      {
        line: (text, bytes, endByte) => this.#onLine(text, bytes, endByte),
        longLine: (beginning, endByte) => {
          if (this.#line !== null) this.#line += 1
          this.#sink.bad(tooLong(this.#bytesMax), beginning, endByte, this.#line)
        },
      },
      { bytesMax: options.bytesMax, fromByte: options.place.byte },
    )
  }

  push(piece: Buffer): void {
    this.#splitter.push(piece)
  }

  end(): void {
    this.#splitter.end()
  }

  #onLine(text: string | undefined, bytes: Buffer, endByte: number | null): void {
    if (this.#line !== null) this.#line += 1
    if (text === undefined) this.#sink.bad(NOT_UTF8, bytes, endByte, this.#line)
    else if (isBlank(text)) return
    else if (this.#isJson) this.#sink.json(text, bytes, endByte, this.#line)
    else this.#sink.record({ text }, endByte, this.#line)
  }
}

/** Most lines begin with something, and are not looked at any further. */
function isBlank(text: string): boolean {
  return text.length === 0 || (text.charCodeAt(0) <= 0x20 && text.trim() === '')
}
