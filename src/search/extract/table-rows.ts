/** Collects the rows of a table into parts. The names in its first row are carried into each row below. */
import { oneLine } from './clean-text.ts'
import type { TextOutput } from './text-output.ts'

const PART_ROWS_MAX = 500
const PART_CHARS_MAX = 50_000
/** Of a row; the rest is left out. */
export const CELLS_MAX = 1_000
const CELL_CHARS_MAX = 20_000
const HEADER_CHARS_MAX = 60
/** It is part of every chunk's place; Excel allows 31. */
const SHEET_CHARS_MAX = 100
/** A title may stand above the names; further down nobody looks for them. */
const ROWS_BEFORE_HEADER_MAX = 5
const NUMBER = /^[-+]?[\d.,\s]+%?$|^\d{4}-\d\d-\d\d/

export class TableRows {
  readonly #output: TextOutput
  readonly #sheet: string | undefined
  #lines: string[] = []
  #chars = 0
  #first = 1
  #header: string[] | undefined
  #rowsSeen = 0

  constructor(output: TextOutput, sheet?: string) {
    this.#output = output
    this.#sheet = sheet === undefined ? undefined : oneLine(sheet, SHEET_CHARS_MAX)
  }

  /** Rows come in order, from 1 on; those that are empty may be left out. */
  add(row: number, cells: readonly string[]): void {
    if (cells.length > CELLS_MAX) this.#output.isCut = true
    const texts = cells.slice(0, CELLS_MAX).map((cell) => oneLine(cell, CELL_CHARS_MAX))
    const line = this.#lineOf(texts)
    if (line === '') return
    const isNext = row === this.#first + this.#lines.length
    if (!isNext || this.#lines.length >= PART_ROWS_MAX || this.#chars > PART_CHARS_MAX) this.end()
    if (this.#lines.length === 0) this.#first = row
    this.#lines.push(line)
    this.#chars += line.length
  }

  end(): void {
    const { length } = this.#lines
    if (length === 0) return
    const place = {
      kind: 'rows',
      first: this.#first,
      last: this.#first + length - 1,
      sheet: this.#sheet,
    } as const
    const text = this.#lines.join('\n')
    this.#lines = []
    this.#chars = 0
    this.#output.add({ text, headings: this.#sheet === undefined ? [] : [this.#sheet], place })
  }

  #lineOf(cells: string[]): string {
    const filled = cells.filter((cell) => cell !== '')
    if (filled.length === 0) return ''
    const header = this.#header
    if (header) {
      const named = cells.map((cell, at) => (cell === '' || !header[at] ? cell : `${header[at]}: ${cell}`))
      return named.filter((cell) => cell !== '').join(' | ')
    }
    this.#rowsSeen += 1
    if (this.#rowsSeen <= ROWS_BEFORE_HEADER_MAX && isHeader(filled)) this.#header = cells
    return filled.join(' | ')
  }
}

/** Names are short texts, and no two are the same. */
function isHeader(cells: string[]): boolean {
  return (
    cells.length > 1 &&
    new Set(cells).size === cells.length &&
    cells.every((cell) => cell.length <= HEADER_CHARS_MAX && !NUMBER.test(cell))
  )
}
