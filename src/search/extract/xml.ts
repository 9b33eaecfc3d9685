/** XML of no known kind: its texts and the values of its attributes, each on the line where it stands. */
import type { ExtractLimits } from './contract.ts'
import { type Attributes, readMarkup } from './markup.ts'
import type { TextOutput } from './text-output.ts'

/** A longer stretch without text ends a part. */
const EMPTY_LINES_MAX = 20
const PART_CHARS_MAX = 100_000
const COUNTED_LINES_KEPT = 10_000

export function readXml(bytes: Uint8Array, output: TextOutput, limits: ExtractLimits): void {
  const lines = new LineTexts(output)
  readMarkup(bytes, { kind: 'xml', depthMax: limits.depthMax }, lines)
  lines.end()
}

class LineTexts {
  readonly #output: TextOutput
  #text = ''
  #first = 1
  #last = 1
  /** Positions of line ends that lie before the end of what was given and behind what was read. */
  #lineEnds: number[] = []
  #lineEndsPassed = 0
  #line = 1
  #given = 0
  #pending = ''
  #pendingAt = 0

  constructor(output: TextOutput) {
    this.#output = output
  }

  piece(text: string): void {
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1))
      this.#lineEnds.push(this.#given + at)
    this.#given += text.length
  }

  open(_name: string, attributes: Attributes, at: number): void {
    this.#endText()
    for (const [name, value] of Object.entries(attributes)) {
      if (!name.startsWith('xmlns') && value.trim() !== '') this.#write(value.replace(/\s+/g, ' '), at)
    }
  }

  close(): void {
    this.#endText()
  }

  /** A text comes in pieces, cut at entities and anywhere. */
  text(text: string, at: number): void {
    if (this.#pending === '') this.#pendingAt = at
    this.#pending += text
    if (this.#pending.length > PART_CHARS_MAX) this.#endText()
  }

  end(): void {
    this.#endText()
    this.#endPart()
  }

  #endText(): void {
    const text = this.#pending
    this.#pending = ''
    const start = text.search(/\S/)
    if (start >= 0) this.#write(text.trim(), this.#pendingAt + start)
  }

  #endPart(): void {
    this.#output.add({ text: this.#text, place: { kind: 'lines', first: this.#first, last: this.#last } })
    this.#text = ''
  }

  #write(text: string, at: number): void {
    const line = this.#lineOf(at)
    if (line - this.#last > EMPTY_LINES_MAX || this.#text.length > PART_CHARS_MAX) this.#endPart()
    if (this.#text === '') this.#first = line
    else this.#text += line > this.#last ? '\n'.repeat(line - this.#last) : ' '
    this.#text += text
    this.#last = Math.max(line, this.#last) + text.split('\n').length - 1
  }

  #lineOf(at: number): number {
    while (this.#lineEndsPassed < this.#lineEnds.length && this.#lineEnds[this.#lineEndsPassed]! < at) {
      this.#lineEndsPassed += 1
      this.#line += 1
    }
    if (this.#lineEndsPassed > COUNTED_LINES_KEPT) {
      this.#lineEnds = this.#lineEnds.slice(this.#lineEndsPassed)
      this.#lineEndsPassed = 0
    }
    return this.#line
  }
}
