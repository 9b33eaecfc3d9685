/** Word documents with headings, tables, a header, a footer and footnotes. */
import { contentTypes, coreProperties, escapeXml, relations, XML_HEAD } from './xml.ts'
import { type ZipMember, zip } from './zip.ts'

/** What a document consists of, whatever its format. */
export type Block =
  | { heading: string; level?: number }
  | { paragraph: string; footnote?: string }
  | { table: readonly (readonly string[])[] }

export type DocxContent = { title?: string; blocks: readonly Block[]; header?: string; footer?: string }

const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
const R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'

export function docx(content: DocxContent): Uint8Array {
  return zip(docxMembers(content))
}

export function docxMembers({ title = '', blocks, header, footer }: DocxContent): ZipMember[] {
  const footnotes: string[] = []
  const body = blocks.map((block) => blockXml(block, footnotes)).join('')
  const edges = `${header === undefined ? '' : '<w:headerReference w:type="default" r:id="rId3"/>'}${
    footer === undefined ? '' : '<w:footerReference w:type="default" r:id="rId4"/>'
  }`
  const word = 'wordprocessingml'
  const parts = [
    { id: 'rId1', type: 'styles', target: 'styles.xml', xml: styles() },
    { id: 'rId2', type: 'footnotes', target: 'footnotes.xml', xml: footnotesXml(footnotes) },
    { id: 'rId3', type: 'header', target: 'header1.xml', xml: edge('hdr', header) },
    { id: 'rId4', type: 'footer', target: 'footer1.xml', xml: edge('ftr', footer) },
  ].filter(({ xml }) => xml !== undefined)
  return [
    {
      name: '[Content_Types].xml',
      content: contentTypes([
        { part: '/word/document.xml', type: `${word}.document.main` },
        ...parts.map(({ target, type }) => ({ part: `/word/${target}`, type: `${word}.${type}` })),
        { part: '/docProps/core.xml', type: 'core' },
      ]),
    },
    {
      name: '_rels/.rels',
      content: relations([
        { id: 'rId1', type: 'officeDocument', target: 'word/document.xml' },
        { id: 'rId2', type: 'core', target: 'docProps/core.xml' },
      ]),
    },
    { name: 'docProps/core.xml', content: coreProperties(title) },
    {
      name: 'word/document.xml',
      content: `${XML_HEAD}<w:document ${W} ${R}><w:body>${body}<w:sectPr>${edges}</w:sectPr></w:body></w:document>`,
    },
    { name: 'word/_rels/document.xml.rels', content: relations(parts) },
    ...parts.map(({ target, xml }) => ({ name: `word/${target}`, content: xml! })),
  ]
}

function blockXml(block: Block, footnotes: string[]): string {
  if ('heading' in block) return paragraph(run(block.heading), `Heading${block.level ?? 1}`)
  if ('table' in block) {
    const cell = (text: string): string => `<w:tc>${paragraph(run(text))}</w:tc>`
    const rows = block.table.map((row) => `<w:tr>${row.map(cell).join('')}</w:tr>`)
    return `<w:tbl>${rows.join('')}</w:tbl>`
  }
  if (block.footnote === undefined) return paragraph(run(block.paragraph))
  footnotes.push(block.footnote)
  return paragraph(`${run(block.paragraph)}<w:r><w:footnoteReference w:id="${footnotes.length}"/></w:r>`)
}

function paragraph(runs: string, style?: string): string {
  return `<w:p>${style === undefined ? '' : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}${runs}</w:p>`
}

/** Cut in two, as editors do with what somebody has gone over once more. */
function run(text: string): string {
  const middle = Math.floor(text.length / 2)
  const at = text.isWellFormed() && !text.slice(0, middle).isWellFormed() ? middle + 1 : middle
  return [text.slice(0, at), text.slice(at)]
    .filter((piece) => piece !== '')
    .map((piece) => `<w:r><w:t xml:space="preserve">${escapeXml(piece)}</w:t></w:r>`)
    .join('')
}

function edge(name: 'hdr' | 'ftr', text: string | undefined): string | undefined {
  return text === undefined ? undefined : `${XML_HEAD}<w:${name} ${W}>${paragraph(run(text))}</w:${name}>`
}

function footnotesXml(footnotes: readonly string[]): string | undefined {
  if (footnotes.length === 0) return undefined
  const notes = footnotes.map(
    (text, at) => `<w:footnote w:id="${at + 1}">${paragraph(run(text))}</w:footnote>`,
  )
  return `${XML_HEAD}<w:footnotes ${W}>${notes.join('')}</w:footnotes>`
}

function styles(): string {
  const levels = [1, 2, 3, 4, 5, 6].map(
    (level) =>
      `<w:style w:type="paragraph" w:styleId="Heading${level}"><w:name w:val="heading ${level}"/><w:pPr><w:outlineLvl w:val="${level - 1}"/></w:pPr></w:style>`,
  )
  return `${XML_HEAD}<w:styles ${W}>${levels.join('')}</w:styles>`
}
