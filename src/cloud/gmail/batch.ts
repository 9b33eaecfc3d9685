/**
 * The batch endpoint's two formats: the request that carries many calls, and the answer that carries their
 * answers, read as it streams in.
 *
 * The parser is pushed chunks and yields each part when the delimiter after it has come. Its states:
 * preamble → part ⇄ skip (the rest of a part that is too large) → closed.
 *
 * Invariants:
 * - each byte is copied once and searched once, however the answer is cut into chunks
 * - it holds one part at most, and never more than `partBytesMax` of it
 * - whatever it is pushed, it yields parts or throws a TidemarkError; a part that it cannot read it yields
 *   as damaged, so that only this part is lost
 */
import { type AnswerHeaders, cutShort, damagedAnswer, wrongContentType } from './errors.ts'

/** `key`: the Content-ID of the call that this answers; undefined where the part does not say. */
export type BatchPart =
  | {
      key: string | undefined
      state: 'whole'
      status: number
      headers: AnswerHeaders
      /** A view into the parser's memory: gone with the next step. */
      body: Buffer
    }
  | { key: string | undefined; state: 'damaged' | 'too-large' }

export type BatchParserOptions = {
  boundary: string
  partBytesMax: number
  /** More parts than were asked for are no answer. */
  partsMax: number
}

const REQUEST_BOUNDARY = 'tidemark_batch'
const BOUNDARY_LENGTH_MAX = 200
const HEAD_BYTES_MAX = 16 * 1024
const PREAMBLE_BYTES_MAX = 64 * 1024
/** White space that may stand behind a delimiter. */
const PADDING_BYTES_MAX = 64
/** What the parser keeps from one part to the next; a larger buffer is let go after a large part. */
const KEPT_BYTES_MAX = 4 * 1024 * 1024
const START_BYTES = 128 * 1024
const WHAT = 'a batch'

const LF = 10
const CR = 13
const DASH = 45

export type BatchCall = { key: string; path: string }

/** Keys and paths must be of plain characters; what they are made of was checked before. */
export function buildBatch(calls: readonly BatchCall[]): { body: string; contentType: string } {
  const parts = calls.map(
    ({ key, path }) =>
      `--${REQUEST_BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <${key}>\r\n\r\nGET ${path} HTTP/1.1\r\n\r\n\r\n`,
  )
  return {
    body: `${parts.join('')}--${REQUEST_BOUNDARY}--\r\n`,
    contentType: `multipart/mixed; boundary=${REQUEST_BOUNDARY}`,
  }
}

/** The boundary that the Content-Type of a batch answer names. */
export function boundaryOf(contentType: string | null): string {
  const named = /^multipart\/\w+\s*;.*?\bboundary=(?:"([^"\r\n]+)"|([^\s;"]+))/i.exec(contentType ?? '')
  const boundary = named?.[1] ?? named?.[2]
  if (!boundary || boundary.length > BOUNDARY_LENGTH_MAX) throw wrongContentType(contentType, 'a batch')
  return boundary
}

export class BatchParser {
  readonly #delimiter: Buffer
  readonly #options: BatchParserOptions
  #state: 'preamble' | 'part' | 'skip' | 'closed' = 'preamble'
  /** The bytes at hand are those from start to end; up to `scanned` there is no delimiter. */
  // Never of the shared pool: it is given back as a whole.
  #buffer = Buffer.allocUnsafeSlow(START_BYTES)
  #start = 0
  #end = 0
  #scanned = 0
  #preambleBytes = 0
  #parts = 0

  constructor(options: BatchParserOptions) {
    this.#options = options
    this.#delimiter = Buffer.from(`\n--${options.boundary}`, 'latin1')
    // The first delimiter may be the very first line: then it has a line end before it too.
    this.#buffer[this.#end++] = LF
  }

  /** The last delimiter has come; what follows it is of no interest. */
  get closed(): boolean {
    return this.#state === 'closed'
  }

  /** Parts are to be used up before the next step. */
  *push(chunk: Uint8Array): Generator<BatchPart, void, undefined> {
    if (this.closed) return
    this.#append(chunk)
    for (let found = this.#nextDelimiter(); found; found = this.#nextDelimiter()) {
      const before = this.#state
      const [from, to] = [this.#start, this.#buffer[found.at - 1] === CR ? found.at - 1 : found.at]
      this.#start = found.next
      this.#scanned = found.next
      this.#state = found.last ? 'closed' : 'part'
      if (before === 'part') yield this.#count(this.#read(from, Math.max(from, to)))
      if (found.last) return
    }
    yield* this.#keepWithinLimits()
  }

  /** Gives its memory back now, and not when garbage is next collected; nothing can be pushed after that. */
  release(): void {
    this.#state = 'closed'
    this.#buffer.buffer.transfer(0)
  }

  /** The answer has ended: throws where it ended too early. */
  end(): void {
    if (this.closed) return
    if (this.#state === 'preamble') throw damagedAnswer(WHAT, 'it has no parts')
    throw cutShort(WHAT)
  }

  #append(chunk: Uint8Array): void {
    const held = this.#end - this.#start
    const needed = held + chunk.length
    const tooSmall = needed > this.#buffer.length
    const tooLarge = this.#buffer.length > KEPT_BYTES_MAX && needed < this.#buffer.length / 4
    if (tooSmall || tooLarge) {
      const larger = Buffer.allocUnsafeSlow(Math.max(START_BYTES, Math.ceil(needed * 1.5)))
      this.#buffer.copy(larger, 0, this.#start, this.#end)
      this.#buffer = larger
    } else if (this.#start > 0) {
      this.#buffer.copyWithin(0, this.#start, this.#end)
    }
    this.#scanned -= this.#start
    this.#start = 0
    this.#buffer.set(chunk, held)
    this.#end = needed
  }

  /** `at`: where the line end before it is; `next`: where the line after it begins. */
  #nextDelimiter(): { at: number; next: number; last: boolean } | undefined {
    const bytes = this.#buffer.subarray(0, this.#end)
    for (;;) {
      const at = bytes.indexOf(this.#delimiter, this.#scanned)
      if (at < 0) {
        this.#scanned = Math.max(this.#scanned, this.#start, this.#end - this.#delimiter.length + 1)
        return undefined
      }
      const after = at + this.#delimiter.length
      const line = restOfDelimiter(bytes, after)
      if (line === 'unknown') {
        this.#scanned = at
        return undefined
      }
      if (line !== 'other') return { at, ...line }
      this.#scanned = at + 1
    }
  }

  *#keepWithinLimits(): Generator<BatchPart, void, undefined> {
    if (this.#state === 'part') {
      if (this.#end - this.#start <= this.#options.partBytesMax) return
      const key = keyOf(headOf(this.#buffer.subarray(this.#start, this.#end))?.text ?? '')
      this.#state = 'skip'
      yield this.#count({ key, state: 'too-large' })
    }
    // Nothing before the place where a delimiter may still begin will be looked at again.
    if (this.#state === 'preamble') this.#preambleBytes += this.#scanned - this.#start
    this.#start = this.#scanned
    if (this.#preambleBytes > PREAMBLE_BYTES_MAX) throw damagedAnswer(WHAT, 'it has no parts')
  }

  #count(part: BatchPart): BatchPart {
    this.#parts += 1
    if (this.#parts > this.#options.partsMax) throw damagedAnswer(WHAT, 'it has too many parts')
    return part
  }

  /** A part is a head, then an HTTP answer with a head of its own. */
  #read(from: number, to: number): BatchPart {
    const bytes = this.#buffer.subarray(from, to)
    const outer = headOf(bytes)
    const key = keyOf(outer?.text ?? '')
    if (bytes.length > this.#options.partBytesMax) return { key, state: 'too-large' }
    if (!outer) return { key, state: 'damaged' }
    const rest = bytes.subarray(outer.next)
    // An answer without a body may end with its head.
    const inner = headOf(rest) ?? { text: rest.toString('latin1', 0, HEAD_BYTES_MAX), next: rest.length }
    const status = /^HTTP\/\d(?:\.\d)? (\d{3})(?!\d)/.exec(inner.text)?.[1]
    if (!status) return { key, state: 'damaged' }
    const headers = { get: (name: string) => headerOf(inner.text, name) ?? null }
    return { key, state: 'whole', status: Number(status), headers, body: rest.subarray(inner.next) }
  }
}

/** What stands behind the boundary decides whether it is one: `unknown` until enough of it has come. */
function restOfDelimiter(
  bytes: Buffer,
  after: number,
): { next: number; last: boolean } | 'unknown' | 'other' {
  if (bytes[after] === DASH) {
    if (bytes.length === after + 1) return 'unknown'
    return bytes[after + 1] === DASH ? { next: after + 2, last: true } : 'other'
  }
  for (let at = after; at < after + PADDING_BYTES_MAX; at++) {
    const byte = bytes[at]
    if (byte === undefined) return 'unknown'
    if (byte === LF) return { next: at + 1, last: false }
    if (byte !== CR && byte !== 32 && byte !== 9) return 'other'
  }
  return 'other'
}

/** The lines up to the first empty one, and where what follows begins. */
function headOf(bytes: Buffer): { text: string; next: number } | undefined {
  if (bytes[0] === LF) return { text: '', next: 1 }
  if (bytes[0] === CR && bytes[1] === LF) return { text: '', next: 2 }
  const window = bytes.subarray(0, HEAD_BYTES_MAX)
  const crlf = window.indexOf('\n\r\n')
  const lf = (crlf < 0 ? window : window.subarray(0, crlf)).indexOf('\n\n')
  if (lf >= 0) return { text: window.toString('latin1', 0, lf), next: lf + 2 }
  return crlf < 0 ? undefined : { text: window.toString('latin1', 0, crlf), next: crlf + 3 }
}

function keyOf(head: string): string | undefined {
  return /^<?response-([^<>\s]{1,200})>?$/.exec(headerOf(head, 'content-id') ?? '')?.[1]
}

function headerOf(head: string, name: string): string | undefined {
  const wanted = `${name.toLowerCase()}:`
  for (const line of head.split('\n')) {
    if (line.slice(0, wanted.length).toLowerCase() === wanted) return line.slice(wanted.length).trim()
  }
  return undefined
}
