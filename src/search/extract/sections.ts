/** Collects paragraphs, headings and rows into parts, for formats that have no places of their own. */
import { HeadingPath } from './heading-path.ts'
import type { TextOutput } from './text-output.ts'

/** A longer section comes as several parts, so that little is held. */
const PART_CHARS_MAX = 50_000

export class Sections {
  readonly #output: TextOutput
  readonly #path = new HeadingPath()
  #text = ''

  constructor(output: TextOutput) {
    this.#output = output
  }

  /** Level 0 stands above all: the title. */
  heading(level: number, text: string): void {
    this.end()
    this.#path.enter(level, text)
    this.#text = `${text}\n\n`
  }

  paragraph(text: string): void {
    this.#write(text, '\n\n')
  }

  row(cells: readonly string[]): void {
    const filled = cells.map((cell) => cell.replace(/\s+/g, ' ').trim()).filter((cell) => cell !== '')
    this.#write(filled.join(' | '), '\n')
  }

  end(): void {
    const text = this.#text
    this.#text = ''
    this.#output.add({ text, headings: this.#path.headings, place: { kind: 'none' } })
  }

  #write(text: string, end: string): void {
    if (text.trim() === '') return
    if (this.#text.length + text.length > PART_CHARS_MAX) this.end()
    this.#text += text.trimEnd() + end
    if (this.#text.length > PART_CHARS_MAX) this.end()
  }
}
