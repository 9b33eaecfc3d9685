/**
 * Tables of text, row by row. A quote is one only where a cell begins; what stands in quotes may contain separators and
 * line feeds. A quote that is not closed within the length of a record costs the rows up to there, as one that is bad,
 * and reading goes on behind the line in which that was found out.
 */
import { type ItemSink, NOT_UTF8, tooLong } from './item-sink.ts'
import { LineSplitter, type PieceReader, type Place } from './lines.ts'

export const COLUMNS_MAX = 10_000
/** Where the cells of a row go for which the header has no name. */
export const EXTRA_CELLS = '_extra'
const SEPARATORS = [',', ';', '\t', '|'] as const

/** Cells of one row, which may come in several lines. */
class Row {
  readonly #separator: string
  #cells: string[] = []
  /** Of a cell in quotes that goes on in the next line. */
  #open: string[] | undefined

  constructor(separator: string) {
    this.#separator = separator
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  take(): string[] {
    const cells = this.#cells
    this.#cells = []
    this.#open = undefined
    return cells
  }

  add(line: string): void {
    if (this.#open === undefined && !line.includes('"')) this.#cells = line.split(this.#separator)
    else this.#addQuoted(line)
  }

  #addQuoted(line: string): void {
    let at = 0
    if (this.#open !== undefined) this.#open.push('\n')
    do {
      let cell = ''
      if (this.#open !== undefined || line[at] === '"') {
        const next = this.#quoted(line, this.#open === undefined ? at + 1 : at)
        if (next === undefined) return
        cell = next.value
        at = next.next
      }
      // What stands behind a closing quote belongs to the cell, as programs that write such cells mean it.
      const end = line.indexOf(this.#separator, at)
      this.#cells.push(cell + line.slice(at, end < 0 ? line.length : end))
      at = end < 0 ? line.length + 1 : end + 1
    } while (at <= line.length)
  }

  #quoted(line: string, from: number): { value: string; next: number } | undefined {
    const pieces = this.#open ?? []
    let at = from
    for (;;) {
      const quote = line.indexOf('"', at)
      pieces.push(line.slice(at, quote < 0 ? line.length : quote))
      if (quote < 0) {
        this.#open = pieces
        return undefined
      }
      if (line[quote + 1] !== '"') {
        this.#open = undefined
        return { value: pieces.join(''), next: quote + 1 }
      }
      pieces.push('"')
      at = quote + 2
    }
  }
}

export class CsvReader implements PieceReader {
  readonly #sink: ItemSink
  readonly #splitter: LineSplitter
  readonly #row: Row
  readonly #bytesMax: number
  readonly #header: readonly string[] | null
  #isHeaderAhead: boolean
  #line: number | null
  /** Of the row whose quotes are open. */
  #rowBytes = 0
  #rowBeginning: Buffer | undefined
  #isRowUtf8 = true
  #endByte: number | null = null

  constructor(
    sink: ItemSink,
    options: {
      separator: string
      header: readonly string[] | null
      isHeaderAhead: boolean
      bytesMax: number
      place: Place
    },
  ) {
    this.#sink = sink
    this.#bytesMax = options.bytesMax
    this.#header = options.header
    this.#isHeaderAhead = options.isHeaderAhead
    this.#line = options.place.lines
    this.#row = new Row(options.separator)
    this.#splitter = new LineSplitter(
      {
        line: (text, bytes, endByte) => this.#onLine(text, bytes, endByte),
        longLine: (beginning, endByte) => {
          if (this.#line !== null) this.#line += 1
          this.#badRow(tooLong(this.#bytesMax), beginning, endByte)
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
    if (!this.#row.isOpen) return
    const fault = { code: 'unclosed-quote', reason: 'a quote of it is never closed' }
    this.#badRow(fault, this.#rowBeginning!, this.#endByte)
  }

  #onLine(text: string | undefined, bytes: Buffer, endByte: number | null): void {
    if (this.#line !== null) this.#line += 1
    this.#endByte = endByte
    const isFirst = !this.#row.isOpen
    if (isFirst && bytes.length === 0) return
    this.#rowBytes += bytes.length
    if (this.#rowBytes > this.#bytesMax) {
      this.#badRow(tooLong(this.#bytesMax), bytes, endByte)
      return
    }
    if (text === undefined) this.#isRowUtf8 = false
    // Each byte as a character: quotes and separators are where they are.
    this.#row.add(text ?? bytes.toString('latin1'))
    if (this.#row.isOpen) {
      if (isFirst) this.#rowBeginning = Buffer.from(bytes)
      return
    }
    if (!this.#isRowUtf8) this.#badRow(NOT_UTF8, bytes, endByte)
    else this.#tellRow(this.#row.take(), bytes, endByte)
    this.#reset()
  }

  #tellRow(cells: string[], bytes: Buffer, endByte: number | null): void {
    if (this.#isHeaderAhead) {
      this.#isHeaderAhead = false
    } else if (cells.length > COLUMNS_MAX) {
      const reason = `it has more than ${COLUMNS_MAX} cells`
      this.#badRow({ code: 'too-many-cells', reason }, bytes, endByte)
    } else if (!this.#sink.isWanted) this.#sink.pass()
    else this.#sink.record(recordOf(cells, this.#header), endByte, this.#line)
  }

  #badRow(fault: { code: string; reason: string }, bytes: Buffer, endByte: number | null): void {
    // A header that cannot be read is no record.
    this.#isHeaderAhead = false
    this.#sink.bad(fault, this.#rowBeginning ?? bytes, endByte, this.#line)
    this.#reset()
  }

  #reset(): void {
    this.#row.take()
    this.#rowBytes = 0
    this.#rowBeginning = undefined
    this.#isRowUtf8 = true
  }
}

/** A cell that is missing has no field; cells for which there is no name come together under one. */
function recordOf(cells: readonly string[], header: readonly string[] | null): Record<string, unknown> {
  const record: Record<string, unknown> = {}
  const named = header === null ? cells.length : Math.min(cells.length, header.length)
  for (let at = 0; at < named; at++) {
    const name = header === null ? `column${at + 1}` : header[at]!
    record[name] = cells[at]
  }
  if (cells.length > named) record[EXTRA_CELLS] = cells.slice(named)
  return record
}

/** What the beginning of a table says about it; undefined where its first row does not end there. */
export function csvShapeOf(
  sample: string,
  options: { isWhole: boolean; separator?: string; header?: boolean },
): { separator: string; header: readonly string[] | null } | undefined {
  const lines = sample.replace(/^\ufeff/, '').split(/\r?\n/)
  const separator = options.separator ?? separatorOf(lines)
  if (options.header === false) return { separator, header: null }
  const row = new Row(separator)
  for (const [at, line] of lines.entries()) {
    if (!row.isOpen && line === '') continue
    if (at === lines.length - 1 && !options.isWhole) return undefined
    row.add(line)
    if (row.isOpen) continue
    const cells = row.take()
    const isHeader = options.header ?? looksLikeHeader(cells)
    return { separator, header: isHeader ? namesOf(cells) : null }
  }
  return options.isWhole ? { separator, header: null } : undefined
}

/** Names are not empty, not numbers, and differ. */
function looksLikeHeader(cells: readonly string[]): boolean {
  const names = cells.map((cell) => cell.trim())
  return (
    names.every((name) => name !== '' && Number.isNaN(Number(name))) && new Set(names).size === names.length
  )
}

/** Each column has a name of its own: no cell is lost to another with the same. */
function namesOf(cells: readonly string[]): string[] {
  const names = new Set<string>()
  for (const [at, cell] of cells.slice(0, COLUMNS_MAX).entries()) {
    const wanted = cell.trim() || `column${at + 1}`
    // Assigning to this one would set a prototype.
    let name = wanted === '__proto__' || wanted === EXTRA_CELLS ? `column${at + 1}` : wanted
    for (let more = 2; names.has(name); more++) name = `${wanted}_${more}`
    names.add(name)
  }
  return [...names]
}

/** The one of which the first lines have the most, in even numbers. */
function separatorOf(lines: readonly string[]): string {
  const first = lines.slice(0, 20).map((line) => line.replace(/"[^"]*"/g, ''))
  const score = (separator: string): number => {
    const counts = first.filter((line) => line.trim() !== '').map((line) => line.split(separator).length - 1)
    const [most = 0] = counts
    return most === 0 ? 0 : counts.filter((count) => count === most).length * 100 + Math.min(most, 99)
  }
  return SEPARATORS.reduce((best, one) => (score(one) > score(best) ? one : best))
}
