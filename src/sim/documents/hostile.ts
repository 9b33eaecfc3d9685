/** Documents that cost more than they look, or that cannot be read. Each is small itself. */
import { constants, crc32, deflateRawSync, deflateSync } from 'node:zlib'
import { seededRandom } from '../../base/random.ts'
import { type DocxContent, docxMembers } from './docx.ts'
import { type PdfObject, pdfFile } from './pdf.ts'
import { xlsxMembers } from './xlsx.ts'
import { XML_HEAD } from './xml.ts'
import { type ZipMember, zip } from './zip.ts'

const MB = 1024 * 1024

/** Head, `times` times the middle, tail: deflated without ever being held. */
function repeated(
  name: string,
  of: { head: string; middle: string; times: number; tail: string },
): ZipMember {
  const flush = { finishFlush: constants.Z_FULL_FLUSH }
  const middle = deflateRawSync(of.middle, flush)
  const content = Buffer.concat([
    deflateRawSync(of.head, flush),
    ...Array.from({ length: of.times }, () => middle),
    deflateRawSync(of.tail),
  ])
  const inflatedBytes = of.head.length + of.middle.length * of.times + of.tail.length
  return { name, content, deflated: { inflatedBytes, crc: crc32(of.head) } }
}

function withMember(members: ZipMember[], member: ZipMember): ZipMember[] {
  return members.map((one) => (one.name === member.name ? member : one))
}

const SHORT: DocxContent = { blocks: [{ paragraph: 'A short text.' }] }
const WORD_HEAD = `${XML_HEAD}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`

/** A Word document whose text is a letter again and again: about 1,000 times as large as it is. */
export function bombDocx({ inflatedMb, saysBytes }: { inflatedMb: number; saysBytes?: number }): Uint8Array {
  const bomb = repeated('word/document.xml', {
    head: `${WORD_HEAD}<w:p><w:r><w:t>`,
    middle: 'a'.repeat(MB),
    times: inflatedMb,
    tail: '</w:t></w:r></w:p></w:body></w:document>',
  })
  return zip(withMember(docxMembers(SHORT), { ...bomb, saysBytes }))
}

/** An archive of zeros. */
export function flatZipBomb({ inflatedMb }: { inflatedMb: number }): Uint8Array {
  return zip([repeated('zeros', { head: '', middle: '\0'.repeat(MB), times: inflatedMb, tail: '' })])
}

/** Archives within archives, ten in each. */
export function nestedZipBomb({ levels }: { levels: number }): Uint8Array {
  let inner = flatZipBomb({ inflatedMb: 10 })
  for (let level = 1; level < levels; level++) {
    const content = inner
    inner = zip(Array.from({ length: 10 }, (_, at) => ({ name: `${at}.zip`, content })))
  }
  return inner
}

/** A Word document with many empty members. */
export function crowdedDocx({ members }: { members: number }): Uint8Array {
  const more = Array.from({ length: members }, (_, at) => ({ name: `word/media/${at}`, content: '' }))
  return zip([...docxMembers(SHORT), ...more])
}

export function deepXml({ depth }: { depth: number }): Uint8Array {
  return Buffer.from(`${XML_HEAD}${'<a>'.repeat(depth)}text${'</a>'.repeat(depth)}`)
}

export function deepHtml({ depth }: { depth: number }): Uint8Array {
  return Buffer.from(`<!DOCTYPE html><html><body>${'<div>'.repeat(depth)}text`)
}

/** Tables within tables. */
export function deepDocx({ depth }: { depth: number }): Uint8Array {
  const [open, close] = ['<w:tbl><w:tr><w:tc>', '</w:tc></w:tr></w:tbl>']
  const content = `${WORD_HEAD}${open.repeat(depth)}<w:p/>${close.repeat(depth)}</w:body></w:document>`
  return zip(withMember(docxMembers(SHORT), { name: 'word/document.xml', content }))
}

/** Entities of entities: a billion words in a kilobyte. */
export function billionLaughs(): Uint8Array {
  const entities = Array.from({ length: 9 }, (_, at) => `<!ENTITY l${at + 1} "${`&l${at};`.repeat(10)}">`)
  return Buffer.from(`${XML_HEAD}<!DOCTYPE x [<!ENTITY l0 "lol">${entities.join('')}]><x>&l9;</x>`)
}

/** A workbook of `rows` rows by 20 columns. */
export function hugeXlsx({ rows }: { rows: number }): Uint8Array {
  const random = seededRandom(1)
  const cell = (): string => `<c><v>${Math.floor(random() * 100)}</v></c>`
  const some = Array.from({ length: 500 }, () => `<row>${Array.from({ length: 20 }, cell).join('')}</row>`)
  const sheet = repeated('xl/worksheets/sheet1.xml', {
    head: `${XML_HEAD}<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`,
    middle: some.join(''),
    times: Math.ceil(rows / some.length),
    tail: '</sheetData></worksheet>',
  })
  return zip(withMember(xlsxMembers({ sheets: [{ name: 'Huge', rows: [] }] }), sheet))
}

const FONT: PdfObject = { id: 3, body: '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>' }
const PAGE = '/Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]'

/** A PDF that refers to itself: in its tree of pages, or by a picture that shows itself. */
export function loopingPdf(kind: 'pages' | 'parents' | 'form' | 'length'): Uint8Array {
  const catalogue: PdfObject = { id: 1, body: '<< /Type /Catalog /Pages 2 0 R >>' }
  const onePage: PdfObject = { id: 2, body: '<< /Type /Pages /Count 1 /Kids [4 0 R] >>' }
  const page = (contents: string): PdfObject => ({
    id: 4,
    body: `<< ${PAGE} /Resources << /Font << /F1 3 0 R >> /XObject << /X 6 0 R >> >> /Contents ${contents} >>`,
  })
  const text: PdfObject = {
    id: 5,
    body: '',
    stream: Buffer.from('BT /F1 11 Tf 50 700 Td (a loop) Tj ET /X Do'),
  }
  const form: PdfObject = {
    id: 6,
    body: '/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>',
    stream: Buffer.from('/X Do /X Do'),
  }
  switch (kind) {
    case 'pages':
      return pdfFile([catalogue, { id: 2, body: '<< /Type /Pages /Count 3 /Kids [2 0 R 2 0 R 2 0 R] >>' }])
    case 'parents':
      return pdfFile([
        catalogue,
        { id: 2, body: '<< /Type /Pages /Parent 4 0 R /Count 5 /Kids [4 0 R] >>' },
        { id: 4, body: '<< /Type /Pages /Parent 2 0 R /Count 5 /Kids [2 0 R] >>' },
      ])
    case 'form':
      return pdfFile([catalogue, onePage, FONT, page('5 0 R'), text, form])
    case 'length':
      return pdfFile([catalogue, onePage, FONT, page('[4 0 R 4 0 R]'), form])
  }
}

/** Says to have `pages` pages and has one, which stands in the tree that often. */
export function crowdedPdf({ pages }: { pages: number }): Uint8Array {
  return pdfFile([
    { id: 1, body: '<< /Type /Catalog /Pages 2 0 R >>' },
    {
      id: 2,
      body: `<< /Type /Pages /Count ${pages} /Kids [${'4 0 R '.repeat(Math.min(pages, 200_000))}] >>`,
    },
    FONT,
    { id: 4, body: `<< ${PAGE} /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>` },
    { id: 5, body: '', stream: Buffer.from('BT /F1 11 Tf 50 700 Td (again) Tj ET') },
  ])
}

/** A page whose commands, deflated twice, become `inflatedMb` of spaces. */
export function bombPdf({ inflatedMb }: { inflatedMb: number }): Uint8Array {
  const once = repeated('', { head: 'BT ', middle: ' '.repeat(MB), times: inflatedMb, tail: 'ET' })
  // As zlib writes it: two bytes before it, and a checksum behind it that nobody asks for.
  const deflated = Buffer.concat([Buffer.from([0x78, 0x9c]), once.content as Buffer, Buffer.alloc(4)])
  return pdfFile([
    { id: 1, body: '<< /Type /Catalog /Pages 2 0 R >>' },
    { id: 2, body: '<< /Type /Pages /Count 1 /Kids [4 0 R] >>' },
    FONT,
    { id: 4, body: `<< ${PAGE} /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>` },
    { id: 5, body: '/Filter [/FlateDecode /FlateDecode]', stream: deflateSync(deflated) },
  ])
}

/** A PDF that opens with a password only. */
export function encryptedPdf(): Uint8Array {
  const key = (byte: number): string => `<${byte.toString(16).padStart(2, '0').repeat(32)}>`
  return pdfFile(
    [
      { id: 1, body: '<< /Type /Catalog /Pages 2 0 R >>' },
      { id: 2, body: '<< /Type /Pages /Count 1 /Kids [4 0 R] >>' },
      FONT,
      { id: 4, body: `<< ${PAGE} /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>` },
      { id: 5, body: '', stream: junk({ bytes: 64 }) },
      { id: 6, body: `<< /Filter /Standard /V 1 /R 2 /O ${key(0x5a)} /U ${key(0xa5)} /P -4 >>` },
    ],
    '/Encrypt 6 0 R /ID [<0123456789abcdef> <0123456789abcdef>]',
  )
}

/** What a Word document with a password is: a container of streams, one of them the encrypted document. */
export function encryptedDocx(): Uint8Array {
  return streamContainer(['Root Entry', 'EncryptionInfo', 'EncryptedPackage'])
}

/** A Word document of before 2007. */
export function oldDoc(): Uint8Array {
  return streamContainer(['Root Entry', '1Table', 'WordDocument'])
}

function streamContainer(names: readonly string[]): Uint8Array {
  const head = Buffer.alloc(512)
  head.write('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'latin1')
  head.writeUInt16LE(0x3e, 24)
  head.writeUInt16LE(3, 26)
  head.writeUInt16LE(0xfffe, 28)
  head.writeUInt16LE(9, 30)
  head.writeUInt16LE(6, 32)
  head.writeUInt32LE(1, 48)
  const directory = Buffer.concat(
    names.map((name, at) => {
      const entry = Buffer.alloc(128)
      entry.write(name, 'utf16le')
      entry.writeUInt16LE(name.length * 2 + 2, 64)
      entry[66] = at === 0 ? 5 : 2
      return entry
    }),
  )
  const sector = Buffer.alloc(512)
  directory.copy(sector)
  return Buffer.concat([head, Buffer.alloc(512, 0xff), sector, junk({ bytes: 4_096 })])
}

/** Bytes without any meaning. */
export function junk({ bytes, seed = 1 }: { bytes: number; seed?: number }): Uint8Array {
  const random = seededRandom(seed)
  return Buffer.from(Array.from({ length: bytes }, () => Math.floor(random() * 256)))
}

/** The first part of a document, as a broken transfer leaves it. */
export function truncated(document: Uint8Array, share = 0.5): Uint8Array {
  return document.subarray(0, Math.floor(document.length * share))
}
