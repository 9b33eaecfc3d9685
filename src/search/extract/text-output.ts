/** What the readers of formats write into: it cleans the text and holds the limits of what comes out. */

import { cleanText, cutText, oneLine } from './clean-text.ts'
import type { ExtractLimits, Place, TextPart } from './contract.ts'
import { decodeText } from './decode.ts'

const HEADING_CHARS_MAX = 200
const TITLE_CHARS_MAX = 300
const LANGUAGE_TAG = /^[a-z]{2,3}(?:-[a-z0-9]{1,8}){0,3}$/i

/** Thrown by `add` when no more is taken: the reader ends there, and what was written stands. */
export class OutputFull extends Error {}

export class TextOutput {
  readonly parts: TextPart[] = []
  title: string | undefined
  language: string | undefined
  /** A reader left something out that was more than it may read. */
  isCut = false
  #charsLeft: number
  #partsLeft: number

  constructor({ charsMax, partsMax }: Pick<ExtractLimits, 'charsMax' | 'partsMax'>) {
    this.#charsLeft = charsMax
    this.#partsLeft = partsMax
  }

  /** How many more characters are worth reading. One more than fits, so that whoever stops there is found out. */
  get charsWanted(): number {
    return this.#charsLeft + 1
  }

  /** As much of a text as is wanted. */
  decode(bytes: Uint8Array): string {
    const { text, isCut } = decodeText(bytes, { charsMax: this.charsWanted })
    this.isCut ||= isCut
    return text
  }

  /** The text of one part. Parts that are empty are left out. */
  add(part: { text: string; headings?: readonly string[]; place: Place }): void {
    const text = trimLines(cleanText(part.text), part.place)
    if (text.text === '') return
    if (this.#partsLeft === 0 || this.#charsLeft === 0) throw new OutputFull()
    const cut = cutText(text.text, this.#charsLeft)
    this.#partsLeft -= 1
    this.#charsLeft -= cut.length
    this.parts.push({
      text: cut,
      headings: (part.headings ?? []).map((heading) => oneLine(heading, HEADING_CHARS_MAX)).filter(Boolean),
      place: cut.length === text.text.length ? text.place : endingAt(text.place, cut),
    })
    if (cut.length < text.text.length) throw new OutputFull()
  }

  setTitle(title: string | undefined): void {
    this.title ??= oneLine(title ?? '', TITLE_CHARS_MAX) || undefined
  }

  setLanguage(tag: string | undefined): void {
    if (tag !== undefined && LANGUAGE_TAG.test(tag.trim())) this.language ??= tag.trim()
  }
}

/** Without the empty lines around it. Where lines are counted, the place follows. */
function trimLines(text: string, place: Place): { text: string; place: Place } {
  const end = text.trimEnd().length
  let start = text.search(/\S/)
  if (start < 0) return { text: '', place }
  start = text.lastIndexOf('\n', start) + 1
  const trimmed = text.slice(start, end)
  if (place.kind !== 'lines' && place.kind !== 'rows') return { text: trimmed.trim(), place }
  const first = place.first + countLines(text.slice(0, start)) - 1
  return { text: trimmed, place: { ...place, first, last: first + countLines(trimmed) - 1 } }
}

function endingAt(place: Place, text: string): Place {
  if (place.kind !== 'lines' && place.kind !== 'rows') return place
  return { ...place, last: place.first + countLines(text) - 1 }
}

function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}
