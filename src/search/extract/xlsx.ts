/** Workbooks: each sheet row by row, with the names of its columns, dates as dates, and formulas as their results. */
import type { ExtractLimits } from './contract.ts'
import type { Attributes } from './markup.ts'
import { mainMember, readProperties, relationsOf } from './office-container.ts'
import { CELLS_MAX, TableRows } from './table-rows.ts'
import type { TextOutput } from './text-output.ts'
import { attributeOf, ZipReader } from './zip.ts'

const SHEETS_MAX = 1_000
const STYLES_MAX = 100_000
const CELL_CHARS_MAX = 40_000

export async function readXlsx(bytes: Uint8Array, output: TextOutput, limits: ExtractLimits): Promise<void> {
  const zip = new ZipReader(bytes, limits)
  const main = await mainMember(zip)
  await readProperties(zip, 'docProps/core.xml', output)
  const related = await relationsOf(zip, main)
  const memberOf = (type: string): string => related.find((one) => one.type === type)?.target ?? ''
  const workbook = await readWorkbook(zip, main)
  const styles = await readStyles(zip, memberOf('styles'))
  const strings = await readStrings(zip, memberOf('sharedStrings'), output)
  for (const { name, relation } of workbook.sheets) {
    const target = related.find(({ id }) => id === relation)?.target
    if (target === undefined) continue
    const sheet = new Sheet(new TableRows(output, name), { strings, styles, is1904: workbook.is1904 })
    await zip.xml(target, sheet)
    sheet.end()
  }
}

type Workbook = { sheets: { name: string; relation: string }[]; is1904: boolean }

async function readWorkbook(zip: ZipReader, member: string): Promise<Workbook> {
  const workbook: Workbook = { sheets: [], is1904: false }
  await zip.xml(member, {
    open(name, attributes) {
      if (name === 'workbookPr') workbook.is1904 = /^(?:1|true)$/.test(attributes.date1904 ?? '')
      if (name !== 'sheet' || workbook.sheets.length === SHEETS_MAX) return
      workbook.sheets.push({ name: attributes.name ?? '', relation: attributeOf(attributes, 'id') ?? '' })
    },
    close() {},
    text() {},
  })
  return workbook
}

/** How the numbers of a cell's style are meant. */
type NumberKind = 'number' | 'date' | 'percent'

async function readStyles(zip: ZipReader, member: string): Promise<NumberKind[]> {
  const formats = new Map<number, string>()
  const kinds: NumberKind[] = []
  let isOfCells = false
  await zip.xml(member, {
    open(name, attributes) {
      if (name === 'cellXfs') isOfCells = true
      const id = Number(attributes.numFmtId)
      if (name === 'numFmt' && formats.size < STYLES_MAX) formats.set(id, attributes.formatCode ?? '')
      if (name === 'xf' && isOfCells && kinds.length < STYLES_MAX) kinds.push(kindOf(id, formats.get(id)))
    },
    close(name) {
      if (name === 'cellXfs') isOfCells = false
    },
    text() {},
  })
  return kinds
}

/** Numbers of formats that are built in: ECMA-376, part 1, 18.8.30. */
function kindOf(id: number, code: string | undefined): NumberKind {
  if ((id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)) {
    return 'date'
  }
  if (id === 9 || id === 10) return 'percent'
  if (code === undefined) return 'number'
  // Without quoted and escaped text, colors and conditions; what is in brackets and counts hours stays.
  const bare = code.replace(/"[^"]*"|\\.|_.|\*./g, '').replace(/\[(?!h+\]|m+\]|s+\])[^\]]*\]/gi, '')
  if (/[dmyhs]/i.test(bare) && !/general/i.test(bare)) return 'date'
  return bare.includes('%') ? 'percent' : 'number'
}

async function readStrings(zip: ZipReader, member: string, output: TextOutput): Promise<string[]> {
  const strings: string[] = []
  // What is held is what could be written, and as much again for what no cell uses.
  let charsLeft = output.charsWanted * 2
  let text = ''
  let isText = false
  let phoneticDepth = 0
  await zip.xml(member, {
    open(name) {
      if (name === 'si') text = ''
      if (name === 'rPh') phoneticDepth += 1
      isText = name === 't' && phoneticDepth === 0
    },
    close(name) {
      if (name === 'rPh') phoneticDepth -= 1
      if (name === 't') isText = false
      if (name !== 'si') return
      charsLeft -= text.length + 1
      if (charsLeft > 0) strings.push(text)
      else output.isCut = true
    },
    text(piece) {
      if (isText && text.length < CELL_CHARS_MAX) text += piece
    },
  })
  return strings
}

type SheetContext = { strings: string[]; styles: NumberKind[]; is1904: boolean }

class Sheet {
  readonly #rows: TableRows
  readonly #context: SheetContext
  #row = 0
  #cells: string[] = []
  #column = 0
  #type = ''
  #style = 0
  #value = ''
  #isValue = false

  constructor(rows: TableRows, context: SheetContext) {
    this.#rows = rows
    this.#context = context
  }

  open = (name: string, attributes: Attributes): void => {
    if (name === 'row') {
      const given = Number(attributes.r)
      this.#row = Number.isInteger(given) && given > this.#row ? given : this.#row + 1
      this.#cells = []
      this.#column = 0
    } else if (name === 'c') {
      this.#column = columnOf(attributes.r) ?? this.#column
      this.#type = attributes.t ?? 'n'
      this.#style = Number(attributes.s ?? 0)
      this.#value = ''
    }
    this.#isValue = name === 'v' || name === 't'
  }

  close = (name: string): void => {
    this.#isValue = false
    if (name === 'row') this.#rows.add(this.#row, this.#cells)
    if (name !== 'c') return
    const text = this.#textOf()
    // One more than is taken, so that whoever counts them finds it out.
    if (text !== '' && this.#column <= CELLS_MAX) {
      while (this.#cells.length < this.#column) this.#cells.push('')
      this.#cells[this.#column] = text
    }
    this.#column += 1
  }

  text = (text: string): void => {
    if (this.#isValue && this.#value.length < CELL_CHARS_MAX) this.#value += text
  }

  end(): void {
    this.#rows.end()
  }

  #textOf(): string {
    const value = this.#value
    switch (this.#type) {
      case 's':
        return this.#context.strings[Number(value)] ?? ''
      case 'b':
        return value === '' ? '' : value === '1' ? 'TRUE' : 'FALSE'
      case 'n':
        return value === '' ? '' : this.#numberText(Number(value))
      default:
        return value
    }
  }

  #numberText(number: number): string {
    if (!Number.isFinite(number)) return ''
    const kind = this.#context.styles[this.#style] ?? 'number'
    // Below one it is a time without a day.
    if (kind === 'date') return dateText(this.#context.is1904 && number >= 1 ? number + DAYS_TO_1904 : number)
    if (kind === 'percent') return `${rounded(number * 100)}%`
    return String(rounded(number))
  }
}

/** Fifteen digits are what a workbook shows at most: 0.30000000000000004 is 0.3. */
function rounded(number: number): number {
  return Number(number.toPrecision(15))
}

function columnOf(ref: string | undefined): number | undefined {
  const letters = /^[A-Z]{1,3}/.exec(ref ?? '')?.[0]
  if (letters === undefined) return undefined
  let column = 0
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64
  return column - 1
}

const DAYS_TO_1904 = 1_462
const EPOCH_DAY = 25_569
/** The format has a 29th of February 1900, which was none. */
const LAST_WRONG_DAY = 60
const MINUTES_PER_DAY = 1_440
const MS_PER_MINUTE = 60_000
/** The 31st of December 9999. */
const DAY_MAX = 2_958_465

/** `2026-03-01`, `2026-03-01 09:30`, or `09:30` of a time without a day. */
function dateText(serial: number): string {
  if (serial < 0 || serial > DAY_MAX + 1) return String(rounded(serial))
  const days = serial < LAST_WRONG_DAY ? serial + 1 : serial
  const minutes = Math.round((days - EPOCH_DAY) * MINUTES_PER_DAY)
  const [day = '', time = ''] = new Date(minutes * MS_PER_MINUTE).toISOString().split('T')
  const clock = time.slice(0, 5)
  if (serial < 1) return clock
  return clock === '00:00' ? day : `${day} ${clock}`
}
