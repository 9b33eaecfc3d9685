/**
 * How the bytes of a message are kept, with large attachments shared between messages.
 *
 * The encoded bodies of large attachments are cut out where encoding their content again gives the very same
 * bytes; what remains is the skeleton. A cut is known by the sha256 of its decoded content, so that a file
 * that was sent to ten people, or forwarded, is kept once.
 *
 * Encoded: version (1 byte), number of cuts, then for each cut: bytes of skeleton before it since the last
 * one, sha256 (32 bytes), bytes of content, line length, line end (1 byte: 0 none, 1 LF, 2 CRLF); then the
 * skeleton. Numbers are varints of 7 bits a byte, lowest first.
 */
import { hash } from 'node:crypto'
import { TidemarkError } from '../../../base/errors.ts'
import type { ParsedAttachment, ParsedMessage } from './parsed.ts'

/** Below this, sharing saves less than its bookkeeping costs. */
export const PARCEL_BYTES_MIN = 16_384
const VERSION = 1
const SHA256_BYTES = 32

export type LineEnd = '' | '\n' | '\r\n'

export type Cut = {
  /** Where in the skeleton it belongs. */
  at: number
  /** Of the decoded content, in hex. */
  sha256: string
  /** Of the decoded content. */
  bytes: number
  /** Base64 characters in a line; 0 where it is all one line. */
  lineLength: number
  /** Between lines; what follows the last one is in the skeleton. */
  lineEnd: LineEnd
}

export type Parcel = {
  skeleton: Uint8Array
  cuts: readonly Cut[]
  /** What was cut out, each content once. */
  contents: readonly { sha256: string; content: Uint8Array }[]
  /** The sha256 of the content of every attachment of the message, in hex, cut out or not. */
  attachmentHashes: readonly string[]
}

/** Cuts out only what comes back as the very same bytes: that is tried before this answers. */
export function packMessage(raw: Uint8Array, parsed: Pick<ParsedMessage, 'attachments'>): Parcel {
  const bytes = asBuffer(raw)
  const attachmentHashes = parsed.attachments.map((attachment) => hash('sha256', attachment.content, 'hex'))
  const candidates = candidatesOf(bytes, parsed.attachments, attachmentHashes)
  if (candidates.length > 0) {
    const parcel = cutOut(bytes, candidates, attachmentHashes)
    if (comesBack(bytes, parcel)) return parcel
    // One of them is not as regular as its first line and its length: those that are can still be cut out.
    const regular = candidates.filter((candidate) => isRegular(bytes, candidate))
    const rest = cutOut(bytes, regular, attachmentHashes)
    if (comesBack(bytes, rest)) return rest
  }
  return cutOut(bytes, [], attachmentHashes)
}

export function encodeParcel(parcel: Pick<Parcel, 'skeleton' | 'cuts'>): Uint8Array {
  const head: number[] = [VERSION]
  putVarint(head, parcel.cuts.length)
  let last = 0
  for (const cut of parcel.cuts) {
    putVarint(head, cut.at - last)
    head.push(...Buffer.from(cut.sha256, 'hex'))
    putVarint(head, cut.bytes)
    putVarint(head, cut.lineLength)
    head.push(LINE_ENDS.indexOf(cut.lineEnd))
    last = cut.at
  }
  return Buffer.concat([Uint8Array.from(head), parcel.skeleton])
}

/** The raw bytes; throws where what was kept, or a content that it asks for, is not what it should be. */
export function unpackMessage(encoded: Uint8Array, contentOf: (sha256: string) => Uint8Array): Uint8Array {
  const { skeleton, cuts } = decodeParcel(encoded)
  const contents = cuts.map((cut) => contentOf(cut.sha256))
  let length = skeleton.length
  for (const [place, cut] of cuts.entries()) {
    if (contents[place]!.length !== cut.bytes) throw damaged(`the content ${cut.sha256} has another length`)
    length += encodedLength(cut)
  }
  if (cuts.length === 0) return skeleton
  const raw = Buffer.allocUnsafe(length)
  let from = 0
  let to = 0
  for (const [place, cut] of cuts.entries()) {
    to += skeleton.copy(raw, to, from, cut.at)
    from = cut.at
    to = putEncoded(raw, to, cut, contents[place]!)
  }
  skeleton.copy(raw, to, from)
  return raw
}

type Candidate = Omit<Cut, 'at'> & { start: number; end: number; content: Uint8Array }

const LF = 10
const CR = 13
const LINE_ENDS: readonly LineEnd[] = ['', '\n', '\r\n']

/** Those whose first line and length are as they should be; the rest of the proof is `comesBack`. */
function candidatesOf(
  raw: Buffer,
  attachments: readonly ParsedAttachment[],
  hashes: readonly string[],
): Candidate[] {
  const candidates: Candidate[] = []
  let last = 0
  for (const [place, attachment] of attachments.entries()) {
    if (attachment.encoding !== 'base64' || attachment.content.length < PARCEL_BYTES_MIN) continue
    let { start, end } = attachment
    while (start < end && isLineEnd(raw[start]!)) start++
    while (end > start && isLineEnd(raw[end - 1]!)) end--
    if (start < last) continue
    const lineFeed = raw.subarray(start, end).indexOf(LF)
    const lineEnd: LineEnd = lineFeed <= 0 ? '' : raw[start + lineFeed - 1] === CR ? '\r\n' : '\n'
    const candidate = {
      sha256: hashes[place]!,
      bytes: attachment.content.length,
      lineLength: lineEnd === '' ? 0 : lineFeed + 1 - lineEnd.length,
      lineEnd,
      start,
      end,
      content: attachment.content,
    }
    if (encodedLength(candidate) !== end - start) continue
    candidates.push(candidate)
    last = end
  }
  return candidates
}

function cutOut(raw: Buffer, candidates: readonly Candidate[], attachmentHashes: readonly string[]): Parcel {
  if (candidates.length === 0) return { skeleton: raw, cuts: [], contents: [], attachmentHashes }
  const pieces: Buffer[] = []
  const cuts: Cut[] = []
  const contents = new Map<string, Uint8Array>()
  let from = 0
  let at = 0
  for (const { start, end, content, sha256, bytes, lineLength, lineEnd } of candidates) {
    pieces.push(raw.subarray(from, start))
    at += start - from
    from = end
    cuts.push({ at, sha256, bytes, lineLength, lineEnd })
    contents.set(sha256, content)
  }
  pieces.push(raw.subarray(from))
  return {
    skeleton: Buffer.concat(pieces),
    cuts,
    contents: [...contents].map(([sha256, content]) => ({ sha256, content })),
    attachmentHashes,
  }
}

function comesBack(raw: Buffer, parcel: Parcel): boolean {
  const contents = new Map(parcel.contents.map(({ sha256, content }) => [sha256, content]))
  const back = unpackMessage(encodeParcel(parcel), (sha256) => contents.get(sha256)!)
  return raw.equals(back)
}

function isRegular(raw: Buffer, candidate: Candidate): boolean {
  const encoded = Buffer.allocUnsafe(encodedLength(candidate))
  putEncoded(encoded, 0, candidate, candidate.content)
  return raw.subarray(candidate.start, candidate.end).equals(encoded)
}

type Layout = Pick<Cut, 'bytes' | 'lineLength' | 'lineEnd'>

function encodedLength({ bytes, lineLength, lineEnd }: Layout): number {
  const chars = Math.ceil(bytes / 3) * 4
  return lineLength === 0 ? chars : chars + (Math.ceil(chars / lineLength) - 1) * lineEnd.length
}

/** Writes the base64 of `content` in lines; answers where it ends. */
function putEncoded(out: Buffer, at: number, layout: Layout, content: Uint8Array): number {
  const { lineLength, lineEnd } = layout
  const end = at + encodedLength(layout)
  const text = asBuffer(content).toString('base64')
  // All of it at the end of its place first; the lines then move to the front, so that no second buffer is needed.
  let from = end - text.length
  out.write(text, from, 'latin1')
  if (lineLength === 0) return end
  let to = at
  for (;;) {
    out.copyWithin(to, from, Math.min(from + lineLength, end))
    from += lineLength
    to += lineLength
    if (from >= end) return end
    if (lineEnd === '\r\n') out[to++] = CR
    out[to++] = LF
  }
}

function decodeParcel(encoded: Uint8Array): { skeleton: Buffer; cuts: Cut[] } {
  const bytes = asBuffer(encoded)
  if (bytes[0] !== VERSION) throw damaged(`its version is ${bytes[0] ?? 'missing'}, not ${VERSION}`)
  const reader = { bytes, at: 1 }
  const count = takeVarint(reader)
  const cuts: Cut[] = []
  let at = 0
  for (let place = 0; place < count; place++) {
    at += takeVarint(reader)
    const sha256 = bytes.toString('hex', reader.at, reader.at + SHA256_BYTES)
    reader.at += SHA256_BYTES
    const size = takeVarint(reader)
    const lineLength = takeVarint(reader)
    const lineEnd = LINE_ENDS[bytes[reader.at++] ?? LINE_ENDS.length]
    if (lineEnd === undefined || lineLength > 0 !== (lineEnd !== '')) throw damaged('a cut has no line end')
    cuts.push({ at, sha256, bytes: size, lineLength, lineEnd })
  }
  const skeleton = bytes.subarray(reader.at)
  if (at > skeleton.length) throw damaged('a cut lies beyond its end')
  return { skeleton, cuts }
}

/** 2^49 is beyond any mail; more bytes than these are no number of ours. */
const VARINT_BYTES_MAX = 7

function putVarint(out: number[], value: number): void {
  let rest = value
  while (rest >= 128) {
    out.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
}

function takeVarint(reader: { bytes: Buffer; at: number }): number {
  let value = 0
  let scale = 1
  for (let count = 0; count < VARINT_BYTES_MAX; count++) {
    const byte = reader.bytes[reader.at++]
    if (byte === undefined) break
    value += (byte & 127) * scale
    if (byte < 128) return value
    scale *= 128
  }
  throw damaged('a number in it has no end')
}

function damaged(what: string): TidemarkError {
  return new TidemarkError(`the stored bytes of a message are damaged: ${what}`, {
    kind: 'permanent',
    code: 'parcel-damaged',
    hint: 'Run `tidemark mail verify --repair` to fetch the message again.',
  })
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function isLineEnd(byte: number): boolean {
  return byte === LF || byte === CR
}
