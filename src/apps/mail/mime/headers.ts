/** A header block by its bytes: where each field lies, and where the body begins. Linear, whatever comes. */
import { HEADER_BYTES_MAX, HEADERS_MAX, type Problems } from './limits.ts'

export type HeaderField = {
  /** Lower case. */
  name: string
  /** The field with its name, without its last line end: [start, end). */
  start: number
  valueStart: number
  end: number
}

export type HeaderBlock = {
  fields: HeaderField[]
  /** After the blank line; where the body begins, or would. */
  bodyStart: number
}

export type HeaderScan = {
  raw: Buffer
  start: number
  end: number
  problems: Problems
  /** Which fields are kept; all where absent. */
  keeps?: (name: string) => boolean
  /** A line that ends the block although it is not blank (a boundary). Asked only for lines that start with `--`. */
  endsAt?: (lineStart: number, lineEnd: number) => boolean
}

const LF = 10
const CR = 13
const SPACE = 32
const TAB = 9
const COLON = 58
const DASH = 45

export function scanHeaders(scan: HeaderScan): HeaderBlock {
  const { raw, end, problems } = scan
  const fields: HeaderField[] = []
  let field: HeaderField | null = null
  let at = scan.start
  let count = 0
  while (at < end) {
    const lineEnd = lineEndAt(raw, at, end)
    const next = Math.min(lineEnd + 1, end)
    const textEnd = lineEnd > at && raw[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd
    if (textEnd === at) return { fields, bodyStart: next }
    const first = raw[at]!
    if (first === DASH && raw[at + 1] === DASH && scan.endsAt?.(at, textEnd)) return { fields, bodyStart: at }
    if (at - scan.start > HEADER_BYTES_MAX) {
      problems.add('a header block is longer than 1 MB; the rest of it was not read')
      return { fields, bodyStart: skipBlock(scan, at) }
    }
    if (first === SPACE || first === TAB) {
      if (field) field.end = Math.min(textEnd, scan.start + HEADER_BYTES_MAX)
    } else {
      const colon = colonOf(raw, at, textEnd)
      if (colon > 0) {
        field = fieldAt(raw, at, colon, Math.min(textEnd, scan.start + HEADER_BYTES_MAX))
        if (scan.keeps && !scan.keeps(field.name)) field = null
        else if (++count > HEADERS_MAX) {
          problems.add(`a header block has more than ${HEADERS_MAX} fields; the rest was not read`)
          return { fields, bodyStart: skipBlock(scan, next) }
        } else fields.push(field)
      } else {
        field = null
        if (!isEnvelope(raw, at)) {
          problems.add('a header block has lines that are no header')
          if (!looksLikeHeader(raw, next, end)) return { fields, bodyStart: at }
        }
      }
    }
    at = next
  }
  return { fields, bodyStart: end }
}

/** The bytes of a value with its folds taken out, one character per byte. */
export function unfoldedValue(raw: Buffer, field: HeaderField): string {
  const value = raw.toString('latin1', field.valueStart, field.end)
  return value.includes('\n') ? value.replace(/\r?\n/g, '').trim() : value.trim()
}

/** The place of the line feed that ends the line at `from`, or `end`. */
export function lineEndAt(raw: Buffer, from: number, end: number): number {
  const found = raw.indexOf(LF, from)
  return found === -1 || found > end ? end : found
}

function fieldAt(raw: Buffer, start: number, colon: number, end: number): HeaderField {
  let nameEnd = colon
  while (nameEnd > start && isBlank(raw[nameEnd - 1]!)) nameEnd--
  return {
    name: raw.toString('latin1', start, nameEnd).toLowerCase(),
    start,
    valueStart: Math.min(colon + 1, end),
    end: Math.max(colon + 1, end),
  }
}

const NAME_BYTES_MAX = 200

/** Where the colon is in a line that is a header field; 0 where it is none. */
function colonOf(raw: Buffer, start: number, end: number): number {
  const stop = Math.min(end, start + NAME_BYTES_MAX)
  let at = start
  while (at < stop && raw[at]! > SPACE && raw[at]! < 127 && raw[at] !== COLON) at++
  if (at === start) return 0
  while (at < stop && isBlank(raw[at]!)) at++
  return at < stop && raw[at] === COLON ? at : 0
}

/** Lines such as `From a@b.c Mon Jan 1 …` come from mailbox files, and sometimes stay in the mail. */
function isEnvelope(raw: Buffer, at: number): boolean {
  const text = raw.toString('latin1', at, at + 6)
  return text.startsWith('From ') || text === '>From '
}

/** After a line that is no header: does the header go on, or has the body begun without its blank line? */
function looksLikeHeader(raw: Buffer, at: number, end: number): boolean {
  const lineEnd = lineEndAt(raw, at, end)
  if (lineEnd - at <= 1) return at < end && (lineEnd === at || raw[at] === CR)
  return colonOf(raw, at, lineEnd) > 0
}

/** Past the blank line that ends the block, without looking at its fields. */
function skipBlock(scan: HeaderScan, from: number): number {
  const { raw, end } = scan
  let at = from
  while (at < end) {
    const lineEnd = lineEndAt(raw, at, end)
    const textEnd = lineEnd > at && raw[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd
    if (textEnd === at) return Math.min(lineEnd + 1, end)
    if (raw[at] === DASH && raw[at + 1] === DASH && scan.endsAt?.(at, textEnd)) return at
    at = lineEnd + 1
  }
  return end
}

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === TAB
}
