/**
 * The tree of a message, by byte offsets: one pass over its lines, no recursion, no copies.
 *
 * The parser keeps the parts that are open, outermost first. A line that starts with `--` is looked up among
 * the boundaries of the open multiparts; a hit closes everything within that multipart, and opens its next
 * part unless it is the closing one. A message within a message opens at the start of its body.
 */

import { headerText } from './encoded-words.ts'
import { lineEndAt, scanHeaders, unfoldedValue } from './headers.ts'
import { BOUNDARY_CHARS_MAX, DEPTH_MAX, PARTS_MAX, type Problems, quoted } from './limits.ts'
import { parseParameters } from './parameters.ts'

export type PartKind = 'leaf' | 'multipart' | 'message'

export type Part = {
  parent: Part | null
  /** 1 for the message itself; the place among its siblings. */
  place: number
  children: number
  kind: PartKind
  /** Lower case, such as `text/plain`. */
  type: string
  parameters: ReadonlyMap<string, string>
  /** Lower case: `attachment`, `inline` or ''. */
  disposition: string
  dispositionParameters: ReadonlyMap<string, string>
  /** Lower case; '' where it names none. */
  encoding: string
  contentId: string | null
  /** Of a multipart, one character per byte. */
  boundary: string
  /** Beyond a limit: not looked into. */
  isOpaque: boolean
  headerStart: number
  bodyStart: number
  bodyEnd: number
  depth: number
  /** The innermost multipart/alternative around it. */
  alternative: Part | null
  /** The innermost message/rfc822 around it. */
  message: Part | null
}

const LF = 10
const CR = 13
const DASH = 45
const DASHES = Buffer.from('--')
/** How far into its body a multipart without a boundary is searched for one. */
const GUESS_BYTES_MAX = 10_000
const NO_PARAMETERS: ReadonlyMap<string, string> = new Map()
const CONTENT_HEADER = 'content-'

/** All parts in the order of the message, the message itself first. */
export function scanStructure(raw: Buffer, start: number, problems: Problems): Part[] {
  const scan = new Scan(raw, problems)
  scan.open(null, start)
  let at = scan.at
  while (at < raw.length && scan.listens) {
    const lineStart = nextDashedLine(raw, at)
    if (lineStart === -1) break
    const lineEnd = lineEndAt(raw, lineStart, raw.length)
    at = scan.delimiter(lineStart, lineEnd) ? scan.at : lineEnd + 1
  }
  scan.finish(raw.length)
  return scan.parts
}

/** `1.2.1` for problems. */
export function partPath(part: Part): string {
  const places: number[] = []
  for (let at: Part | null = part; at; at = at.parent) places.push(at.place)
  return places.reverse().slice(1).join('.') || '1'
}

/** The next line that starts with `--`, from the start of a line on. Skips lines without looking at their bytes. */
function nextDashedLine(raw: Buffer, from: number): number {
  let at = from
  while (at < raw.length) {
    if (raw[at] === DASH && raw[at + 1] === DASH) return at
    const dashes = raw.indexOf(DASHES, at)
    if (dashes === -1) return -1
    if (raw[dashes - 1] === LF) return dashes
    const lineEnd = raw.indexOf(LF, dashes)
    if (lineEnd === -1) return -1
    at = lineEnd + 1
  }
  return -1
}

class Scan {
  readonly parts: Part[] = []
  /** Where to go on reading, after a part was opened or closed. */
  at = 0
  readonly #raw: Buffer
  readonly #problems: Problems
  readonly #open: Part[] = []
  /** The open multiparts of each boundary, innermost last; each with its place in `#open`. */
  readonly #boundaries = new Map<string, number[]>()
  #isFull = false

  constructor(raw: Buffer, problems: Problems) {
    this.#raw = raw
    this.#problems = problems
  }

  /** Whether any boundary could still matter. */
  get listens(): boolean {
    return this.#boundaries.size > 0 && !this.#isFull
  }

  /** Reads the headers at `start`, and those of a message within. */
  open(parent: Part | null, start: number): void {
    let within = parent
    let at = start
    for (;;) {
      if (this.parts.length >= PARTS_MAX) {
        this.#problems.add(`the message has more than ${PARTS_MAX} parts; the rest was not taken apart`)
        this.#isFull = true
        break
      }
      const part = this.#read(within, at)
      this.parts.push(part)
      this.#open.push(part)
      at = part.bodyStart
      if (part.kind === 'multipart') this.#listen(part)
      if (part.kind !== 'message') break
      within = part
    }
    this.at = at
  }

  /** Takes a line that starts with `--`; false where it is no boundary of an open multipart. */
  delimiter(lineStart: number, lineEnd: number): boolean {
    const found = this.#match(lineStart, lineEnd)
    if (!found) return false
    this.at = Math.min(lineEnd + 1, this.#raw.length)
    const multipart = this.#open[found.place]!
    this.#closeAbove(found.place, lineBreakBefore(this.#raw, lineStart))
    if (found.isLast) this.#forget(multipart, found.place)
    else this.open(multipart, this.at)
    return true
  }

  finish(end: number): void {
    this.#closeAbove(-1, end)
  }

  #match(lineStart: number, lineEnd: number): { place: number; isLast: boolean } | null {
    let end = lineEnd
    while (end > lineStart && isBlank(this.#raw[end - 1]!)) end--
    if (end - lineStart - 4 > BOUNDARY_CHARS_MAX) return null
    const text = this.#raw.toString('latin1', lineStart + 2, end)
    const place = this.#boundaries.get(text)?.at(-1)
    if (place !== undefined) return { place, isLast: false }
    if (!text.endsWith('--')) return null
    const last = this.#boundaries.get(text.slice(0, -2).trimEnd())?.at(-1)
    return last === undefined ? null : { place: last, isLast: true }
  }

  #closeAbove(place: number, end: number): void {
    while (this.#open.length > place + 1) {
      const part = this.#open.pop()!
      part.bodyEnd = Math.max(part.bodyStart, end)
      if (part.kind === 'multipart') this.#forget(part, this.#open.length)
    }
  }

  #listen(multipart: Part): void {
    const places = this.#boundaries.get(multipart.boundary)
    const place = this.#open.length - 1
    if (places) places.push(place)
    else this.#boundaries.set(multipart.boundary, [place])
  }

  /** After its closing boundary, what is left of a multipart is of no meaning. */
  #forget(multipart: Part, place: number): void {
    const places = this.#boundaries.get(multipart.boundary)
    if (!places || places.at(-1) !== place) return
    places.pop()
    if (places.length === 0) this.#boundaries.delete(multipart.boundary)
  }

  #read(parent: Part | null, start: number): Part {
    const raw = this.#raw
    const block = scanHeaders({
      raw,
      start,
      end: raw.length,
      problems: this.#problems,
      keeps: (name) => name.startsWith(CONTENT_HEADER),
      endsAt: (lineStart, lineEnd) => this.#match(lineStart, lineEnd) !== null,
    })
    const part = newPart(parent, start, block.bodyStart)
    for (const field of block.fields) {
      const value = (): string => headerText(unfoldedValue(raw, field))
      if (field.name === 'content-type' && part.type === '') {
        const parsed = parseParameters(value())
        part.type = parsed.value
        part.parameters = parsed.parameters
      } else if (field.name === 'content-disposition' && part.disposition === '') {
        const parsed = parseParameters(value())
        part.disposition = parsed.value
        part.dispositionParameters = parsed.parameters
      } else if (field.name === 'content-transfer-encoding' && part.encoding === '') {
        part.encoding = parseParameters(value()).value
      } else if (field.name === 'content-id') part.contentId ??= value().replace(/^<|>$/g, '').slice(0, 1_000)
    }
    this.#classify(part)
    return part
  }

  #classify(part: Part): void {
    if (!part.type.includes('/')) {
      if (part.type !== '' && part.type !== 'text') {
        this.#problems.add(
          `the part ${partPath(part)} has the content type ${quoted(part.type)}, which is none`,
        )
      }
      part.type = part.parent?.type === 'multipart/digest' ? 'message/rfc822' : 'text/plain'
    }
    const isMessage =
      (part.type === 'message/rfc822' || part.type === 'message/global') && isIdentity(part.encoding)
    const isMultipart = part.type.startsWith('multipart/')
    if (!isMessage && !isMultipart) return
    if (isMultipart) part.boundary = boundaryOf(part)
    if (isMultipart && part.boundary === '') {
      this.#problems.add(`the part ${partPath(part)} says that it has parts, but names no boundary`)
      part.boundary = this.#guessBoundary(part.bodyStart)
      if (part.boundary === '') return
    }
    if (part.depth >= DEPTH_MAX) {
      part.isOpaque = true
      this.#problems.add(`parts lie more than ${DEPTH_MAX} deep; those below were not taken apart`)
      return
    }
    part.kind = isMultipart ? 'multipart' : 'message'
  }

  /** What the first line of dashes says, unless it is that of a multipart around. */
  #guessBoundary(bodyStart: number): string {
    const raw = this.#raw
    const near = raw.subarray(0, Math.min(raw.length, bodyStart + GUESS_BYTES_MAX))
    const lineStart = nextDashedLine(near, bodyStart)
    if (lineStart === -1) return ''
    const lineEnd = lineEndAt(near, lineStart, near.length)
    if (this.#match(lineStart, lineEnd)) return ''
    const boundary = raw.toString('latin1', lineStart + 2, lineEnd).trimEnd()
    return boundary.length > BOUNDARY_CHARS_MAX || /^-*$/.test(boundary) ? '' : boundary
  }
}

function newPart(parent: Part | null, headerStart: number, bodyStart: number): Part {
  if (parent) parent.children++
  return {
    parent,
    place: parent?.children ?? 1,
    children: 0,
    kind: 'leaf',
    type: '',
    parameters: NO_PARAMETERS,
    disposition: '',
    dispositionParameters: NO_PARAMETERS,
    encoding: '',
    contentId: null,
    boundary: '',
    isOpaque: false,
    headerStart,
    bodyStart,
    bodyEnd: bodyStart,
    depth: (parent?.depth ?? 0) + 1,
    alternative: parent?.type === 'multipart/alternative' ? parent : (parent?.alternative ?? null),
    message: parent?.kind === 'message' ? parent : (parent?.message ?? null),
  }
}

/** Compared by bytes: as the header has it, one character per byte where it is not ASCII. */
function boundaryOf(part: Part): string {
  const boundary = part.parameters.get('boundary')?.trimEnd() ?? ''
  return boundary.length > BOUNDARY_CHARS_MAX ? '' : Buffer.from(boundary, 'utf8').toString('latin1')
}

function isIdentity(encoding: string): boolean {
  return encoding === '' || encoding === '7bit' || encoding === '8bit' || encoding === 'binary'
}

/** The line break before a boundary belongs to the boundary. */
function lineBreakBefore(raw: Buffer, lineStart: number): number {
  if (raw[lineStart - 1] !== LF) return lineStart
  return raw[lineStart - 2] === CR ? lineStart - 2 : lineStart - 1
}

function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9 || byte === CR
}
