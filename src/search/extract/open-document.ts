/** OpenDocument: texts by sections, workbooks by rows, presentations by slides. All three are one file of XML. */
import type { ExtractLimits } from './contract.ts'
import type { Attributes } from './markup.ts'
import { readProperties } from './office-container.ts'
import { Sections } from './sections.ts'
import { CELLS_MAX, TableRows } from './table-rows.ts'
import type { TextOutput } from './text-output.ts'
import { attributeOf, ZipReader } from './zip.ts'

/** What was deleted, and what only programs read. */
const LEFT_OUT = new Set(['tracked-changes', 'scripts', 'font-face-decls', 'automatic-styles'])
const SPACES_MAX = 100

export async function readOpenDocument(
  bytes: Uint8Array,
  output: TextOutput,
  limits: ExtractLimits,
): Promise<void> {
  const zip = new ZipReader(bytes, limits)
  await readProperties(zip, 'meta.xml', output)
  const content = new Content(output)
  await zip.xml('content.xml', content)
  content.end()
}

class Content {
  readonly #output: TextOutput
  readonly #sections: Sections
  #leftOutDepth = 0
  /** Notes stand inside of the paragraph that refers to them. */
  readonly #paragraphs: { text: string; level: number | undefined }[] = []
  #cells: { texts: string[]; repeats: number } | undefined
  #sheet: { rows: TableRows; row: number; rowRepeats: number } | undefined
  #isWorkbook = false
  #date: string | undefined
  #slide = 0
  #slideText = ''
  #slideTitle = ''
  #isTitle = false

  constructor(output: TextOutput) {
    this.#output = output
    this.#sections = new Sections(output)
  }

  open = (name: string, attributes: Attributes): void => {
    if (LEFT_OUT.has(name)) this.#leftOutDepth += 1
    if (this.#leftOutDepth > 0) return
    switch (name) {
      case 'spreadsheet':
        this.#isWorkbook = true
        break
      case 'h':
        this.#paragraphs.push({ text: '', level: numberOf(attributes, 'outline-level', 1) })
        break
      case 'p':
        this.#paragraphs.push({ text: '', level: undefined })
        break
      case 's':
        this.#write(' '.repeat(Math.min(numberOf(attributes, 'c', 1), SPACES_MAX)))
        break
      case 'tab':
        this.#write(' ')
        break
      case 'line-break':
        this.#write('\n')
        break
      case 'table':
        if (!this.#isWorkbook) break
        this.#sheet = {
          rows: new TableRows(this.#output, attributeOf(attributes, 'name') ?? ''),
          row: 0,
          rowRepeats: 1,
        }
        break
      case 'table-row':
        this.#cells = { texts: [], repeats: 1 }
        if (this.#sheet) this.#sheet.rowRepeats = numberOf(attributes, 'number-rows-repeated', 1)
        break
      case 'table-cell':
      case 'covered-table-cell':
        this.#openCell(numberOf(attributes, 'number-columns-repeated', 1))
        this.#date = this.#sheet && attributeOf(attributes, 'date-value')
        break
      case 'page':
        this.#endSlide()
        this.#slide += 1
        break
      case 'frame':
        this.#isTitle = attributeOf(attributes, 'class') === 'title'
    }
  }

  close = (name: string): void => {
    if (LEFT_OUT.has(name)) this.#leftOutDepth -= 1
    if (this.#leftOutDepth > 0) return
    if (name === 'p' || name === 'h') this.#endParagraph()
    if (name === 'table-row') this.#endRow()
    if (name === 'table' && this.#sheet) {
      this.#sheet.rows.end()
      this.#sheet = undefined
    }
    if (name === 'frame') this.#isTitle = false
  }

  text = (text: string): void => {
    if (this.#leftOutDepth === 0) this.#write(text)
  }

  end(): void {
    this.#endSlide()
    this.#sections.end()
  }

  #write(text: string): void {
    const paragraph = this.#paragraphs.at(-1)
    if (!paragraph) return
    paragraph.text += text
    // More than is taken is not held.
    if (paragraph.text.length > this.#output.charsWanted) this.#endParagraph()
  }

  #endParagraph(): void {
    const paragraph = this.#paragraphs.pop()
    // A day is written as in every other workbook, whatever its cell shows.
    const shown = this.#date?.replace('T', ' ') ?? paragraph?.text
    this.#date = undefined
    const text = shown?.replace(/[ \t\r\n]+/g, ' ').trim()
    if (!paragraph || !text) return
    if (this.#cells && this.#cells.texts.length > 0)
      this.#cells.texts[this.#cells.texts.length - 1] += ` ${text}`
    else if (this.#slide > 0) {
      if (this.#isTitle) this.#slideTitle += this.#slideTitle === '' ? text : ` ${text}`
      this.#slideText += `${text}\n`
    } else if (paragraph.level !== undefined) this.#sections.heading(paragraph.level, text)
    else this.#sections.paragraph(text)
  }

  /** A cell that is repeated holds its text once. */
  #openCell(repeats: number): void {
    if (!this.#cells) return
    const { texts } = this.#cells
    const empty = Math.min(this.#cells.repeats, CELLS_MAX + 1 - texts.length) - 1
    for (let at = 0; at < empty; at++) texts.push('')
    if (texts.length <= CELLS_MAX) texts.push('')
    this.#cells.repeats = repeats
  }

  #endRow(): void {
    const cells = this.#cells
    this.#cells = undefined
    if (!cells) return
    if (this.#sheet) {
      this.#sheet.rows.add(this.#sheet.row + 1, cells.texts)
      this.#sheet.row += this.#sheet.rowRepeats
    } else if (this.#slide > 0) this.#slideText += `${cells.texts.filter(Boolean).join(' | ')}\n`
    else this.#sections.row(cells.texts)
  }

  #endSlide(): void {
    if (this.#slide === 0) return
    const headings = this.#slideTitle === '' ? [] : [this.#slideTitle]
    const text = this.#slideText
    this.#slideText = ''
    this.#slideTitle = ''
    this.#output.add({ text, headings, place: { kind: 'slide', slide: this.#slide } })
  }
}

function numberOf(attributes: Attributes, name: string, otherwise: number): number {
  const number = Number(attributeOf(attributes, name) ?? otherwise)
  return Number.isInteger(number) && number > 0 ? number : otherwise
}
