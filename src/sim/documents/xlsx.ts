/** Workbooks with shared strings and dates. */
import { contentTypes, coreProperties, escapeXml, relations, XML_HEAD } from './xml.ts'
import { type ZipMember, zip } from './zip.ts'

export type Cell = string | number | boolean | Date | null

export type XlsxContent = {
  title?: string
  sheets: readonly { name: string; rows: readonly (readonly Cell[])[] }[]
}

const MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
const R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
/** Places of `styles` below: a built-in date, and one of a form that a person has written. */
const DATE_STYLE = 1
const MOMENT_STYLE = 2
const MS_PER_DAY = 86_400_000
/** 1970-01-01 as a day of the workbook. */
const EPOCH_DAY = 25_569

export function xlsx(content: XlsxContent): Uint8Array {
  return zip(xlsxMembers(content))
}

export function xlsxMembers({ title = '', sheets }: XlsxContent): ZipMember[] {
  const strings = new Map<string, number>()
  const pages = sheets.map(({ rows }) => sheetXml(rows, strings))
  const sheetParts = sheets.map((_, at) => ({
    id: `rId${at + 1}`,
    type: 'worksheet',
    target: `worksheets/sheet${at + 1}.xml`,
  }))
  const others = [
    { id: `rId${sheets.length + 1}`, type: 'sharedStrings', target: 'sharedStrings.xml' },
    { id: `rId${sheets.length + 2}`, type: 'styles', target: 'styles.xml' },
  ]
  const list = sheets.map(
    ({ name }, at) => `<sheet name="${escapeXml(name)}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`,
  )
  const shared = [...strings.keys()].map((text) => `<si><t xml:space="preserve">${escapeXml(text)}</t></si>`)
  return [
    {
      name: '[Content_Types].xml',
      content: contentTypes([
        { part: '/xl/workbook.xml', type: 'spreadsheetml.sheet.main' },
        ...[...sheetParts, ...others].map(({ target, type }) => ({
          part: `/xl/${target}`,
          type: `spreadsheetml.${type}`,
        })),
        { part: '/docProps/core.xml', type: 'core' },
      ]),
    },
    {
      name: '_rels/.rels',
      content: relations([
        { id: 'rId1', type: 'officeDocument', target: 'xl/workbook.xml' },
        { id: 'rId2', type: 'core', target: 'docProps/core.xml' },
      ]),
    },
    { name: 'docProps/core.xml', content: coreProperties(title) },
    {
      name: 'xl/workbook.xml',
      content: `${XML_HEAD}<workbook ${MAIN} ${R}><sheets>${list.join('')}</sheets></workbook>`,
    },
    { name: 'xl/_rels/workbook.xml.rels', content: relations([...sheetParts, ...others]) },
    ...pages.map((content, at) => ({ name: `xl/${sheetParts[at]!.target}`, content })),
    { name: 'xl/sharedStrings.xml', content: `${XML_HEAD}<sst ${MAIN}>${shared.join('')}</sst>` },
    {
      name: 'xl/styles.xml',
      content: `${XML_HEAD}<styleSheet ${MAIN}><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd hh:mm"/></numFmts><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/></cellXfs></styleSheet>`,
    },
  ]
}

function sheetXml(rows: readonly (readonly Cell[])[], strings: Map<string, number>): string {
  const lines = rows.map((row, at) => {
    const cells = row.map((cell, column) => cellXml(cell, `${columnName(column)}${at + 1}`, strings))
    return `<row r="${at + 1}">${cells.join('')}</row>`
  })
  return `${XML_HEAD}<worksheet ${MAIN}><sheetData>${lines.join('')}</sheetData></worksheet>`
}

function cellXml(cell: Cell, ref: string, strings: Map<string, number>): string {
  if (cell === null) return ''
  if (typeof cell === 'boolean') return `<c r="${ref}" t="b"><v>${cell ? 1 : 0}</v></c>`
  if (typeof cell === 'number') return `<c r="${ref}"><v>${cell}</v></c>`
  if (cell instanceof Date) {
    const day = cell.getTime() / MS_PER_DAY + EPOCH_DAY
    return `<c r="${ref}" s="${Number.isInteger(day) ? DATE_STYLE : MOMENT_STYLE}"><v>${day}</v></c>`
  }
  if (!strings.has(cell)) strings.set(cell, strings.size)
  return `<c r="${ref}" t="s"><v>${strings.get(cell)}</v></c>`
}

/** A to Z, AA, AB … */
export function columnName(column: number): string {
  const letter = String.fromCharCode(65 + (column % 26))
  return column < 26 ? letter : columnName(Math.floor(column / 26) - 1) + letter
}
