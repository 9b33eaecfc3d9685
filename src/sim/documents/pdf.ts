/** PDF documents of several pages, the same bytes for the same text. */
import { deflateSync } from 'node:zlib'

export type PdfContent = {
  title?: string
  /** The text of each page; lines are broken where they are too long. */
  pages: readonly string[]
  /** What no page shows, behind so many blanks. */
  unseen?: { stream: Uint8Array; blanks: number }
}

const LINE_CHARS = 90
const TOP = 760
const LEADING = 14
/** Letters of the standard fonts. */
const LATIN = /^[\x20-\x7e\xa1-\xff]*$/

export type PdfObject = { id: number; body: string; stream?: Uint8Array }

export function pdf({ title, pages, unseen }: PdfContent): Uint8Array {
  const letters = new Set<number>()
  const contents = pages.map((text) => deflateSync(Buffer.from(pageCommands(text, letters), 'latin1')))
  const pageIds = pages.map((_, at) => FIRST_PAGE + 2 * at)
  return pdfFile(
    [
      { id: 1, body: '<< /Type /Catalog /Pages 2 0 R >>' },
      {
        id: 2,
        body: `<< /Type /Pages /Count ${pages.length} /Kids [${pageIds.map((id) => `${id} 0 R`).join(' ')}] >>`,
      },
      { id: 3, body: '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>' },
      {
        id: 4,
        body: '<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /DescendantFonts [5 0 R] /ToUnicode 7 0 R >>',
      },
      {
        id: 5,
        body: '<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor 6 0 R /DW 600 >>',
      },
      {
        id: 6,
        body: '<< /Type /FontDescriptor /FontName /Any /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>',
      },
      { id: 7, body: '', stream: Buffer.from(unicodeMap(letters)) },
      { id: 8, body: title === undefined ? '<< >>' : `<< /Title ${utf16(title)} >>` },
      ...contents.flatMap((stream, at) => [
        {
          id: pageIds[at]!,
          body: `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents ${pageIds[at]! + 1} 0 R >>`,
        },
        { id: pageIds[at]! + 1, body: '/Filter /FlateDecode', stream },
      ]),
      ...(unseen ? [{ id: UNSEEN, body: ' '.repeat(unseen.blanks), stream: unseen.stream }] : []),
    ],
    '/Info 8 0 R',
  )
}

const UNSEEN = 9
const FIRST_PAGE = 10

/** Objects with their table of places. The first is the catalogue. */
export function pdfFile(objects: readonly PdfObject[], trailer = ''): Uint8Array {
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n%\xe2\xe3\xcf\xd3\n', 'latin1')]
  let at = parts[0]!.length
  const places = new Map<number, number>()
  for (const { id, body, stream } of objects) {
    places.set(id, at)
    const written = stream
      ? Buffer.concat([
          Buffer.from(`${id} 0 obj\n<< /Length ${stream.length} ${body} >>\nstream\n`, 'latin1'),
          stream,
          Buffer.from('\nendstream\nendobj\n', 'latin1'),
        ])
      : Buffer.from(`${id} 0 obj\n${body}\nendobj\n`, 'latin1')
    parts.push(written)
    at += written.length
  }
  const size = Math.max(...places.keys()) + 1
  const rows = Array.from({ length: size }, (_, id) => {
    const place = places.get(id)
    return place === undefined ? '0000000000 65535 f \n' : `${String(place).padStart(10, '0')} 00000 n \n`
  })
  parts.push(
    Buffer.from(
      `xref\n0 ${size}\n${rows.join('')}trailer\n<< /Size ${size} /Root ${objects[0]!.id} 0 R ${trailer} >>\nstartxref\n${at}\n%%EOF\n`,
      'latin1',
    ),
  )
  return Buffer.concat(parts)
}

function pageCommands(text: string, letters: Set<number>): string {
  const lines = text.split('\n').flatMap(brokenLine)
  const shown = lines.map((line) => {
    if (LATIN.test(line)) return `/F1 11 Tf (${line.replace(/[\\()]/g, '\\$&')}) Tj T*`
    const codes = [...Array(line.length).keys()].map((at) => line.charCodeAt(at))
    for (const code of codes) letters.add(code)
    return `/F2 11 Tf <${codes.map(hex).join('')}> Tj T*`
  })
  return `BT ${LEADING} TL 50 ${TOP} Td ${shown.join('\n')} ET`
}

function brokenLine(line: string): string[] {
  const lines: string[] = []
  let rest = line
  while (rest.length > LINE_CHARS) {
    const space = rest.lastIndexOf(' ', LINE_CHARS)
    const at = space > 0 ? space : LINE_CHARS
    lines.push(rest.slice(0, at))
    rest = rest.slice(at).trimStart()
  }
  return [...lines, rest]
}

/** Which letter each code of the second font is. */
function unicodeMap(letters: Set<number>): string {
  const codes = [...letters].sort((a, b) => a - b)
  const blocks: string[] = []
  for (let at = 0; at < codes.length; at += 100) {
    const some = codes.slice(at, at + 100).map((code) => `<${hex(code)}> <${hex(code)}>`)
    blocks.push(`${some.length} beginbfchar\n${some.join('\n')}\nendbfchar`)
  }
  return `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Any def /CMapType 2 def 1 begincodespacerange <0000> <ffff> endcodespacerange\n${blocks.join('\n')}\nendcmap CMapName currentdict /CMap defineresource pop end end`
}

function hex(code: number): string {
  return code.toString(16).padStart(4, '0')
}

function utf16(text: string): string {
  return `<feff${[...Array(text.length).keys()].map((at) => hex(text.charCodeAt(at))).join('')}>`
}
