/** Presentations with notes. */
import { contentTypes, coreProperties, escapeXml, relations, XML_HEAD } from './xml.ts'
import { type ZipMember, zip } from './zip.ts'

export type PptxContent = {
  title?: string
  slides: readonly { title: string; lines: readonly string[]; notes?: string }[]
}

const SPACES =
  'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'

export function pptx({ title = '', slides }: PptxContent): Uint8Array {
  const list = slides.map((_, at) => `<p:sldId id="${256 + at}" r:id="rId${at + 1}"/>`)
  const targets = slides.map((_, at) => ({
    id: `rId${at + 1}`,
    type: 'slide',
    target: `slides/slide${at + 1}.xml`,
  }))
  const noted = slides.flatMap(({ notes }, at) => (notes === undefined ? [] : [{ at, notes }]))
  return zip([
    {
      name: '[Content_Types].xml',
      content: contentTypes([
        { part: '/ppt/presentation.xml', type: 'presentationml.presentation.main' },
        ...targets.map(({ target }) => ({ part: `/ppt/${target}`, type: 'presentationml.slide' })),
        ...noted.map(({ at }) => ({
          part: `/ppt/notesSlides/notesSlide${at + 1}.xml`,
          type: 'presentationml.notesSlide',
        })),
        { part: '/docProps/core.xml', type: 'core' },
      ]),
    },
    {
      name: '_rels/.rels',
      content: relations([
        { id: 'rId1', type: 'officeDocument', target: 'ppt/presentation.xml' },
        { id: 'rId2', type: 'core', target: 'docProps/core.xml' },
      ]),
    },
    { name: 'docProps/core.xml', content: coreProperties(title) },
    {
      name: 'ppt/presentation.xml',
      content: `${XML_HEAD}<p:presentation ${SPACES}><p:sldIdLst>${list.join('')}</p:sldIdLst></p:presentation>`,
    },
    { name: 'ppt/_rels/presentation.xml.rels', content: relations(targets) },
    ...slides.map(({ title, lines }, at) => ({
      name: `ppt/slides/slide${at + 1}.xml`,
      content: page('sld', [shape('title', [title]), shape('body', lines)]),
    })),
    ...noted.flatMap(({ at, notes }) => notesMembers(at, notes)),
  ])
}

function notesMembers(at: number, notes: string): ZipMember[] {
  const target = `../notesSlides/notesSlide${at + 1}.xml`
  return [
    {
      name: `ppt/slides/_rels/slide${at + 1}.xml.rels`,
      content: relations([{ id: 'rId1', type: 'notesSlide', target }]),
    },
    {
      name: `ppt/notesSlides/notesSlide${at + 1}.xml`,
      content: page('notes', [shape('body', [notes]), shape('sldNum', [String(at + 1)])]),
    },
  ]
}

function page(name: 'sld' | 'notes', shapes: readonly string[]): string {
  return `${XML_HEAD}<p:${name} ${SPACES}><p:cSld><p:spTree>${shapes.join('')}</p:spTree></p:cSld></p:${name}>`
}

function shape(kind: 'title' | 'body' | 'sldNum', lines: readonly string[]): string {
  const paragraphs = lines.map((line) => `<a:p><a:r><a:t>${escapeXml(line)}</a:t></a:r></a:p>`)
  return `<p:sp><p:nvSpPr><p:nvPr><p:ph type="${kind}"/></p:nvPr></p:nvSpPr><p:txBody>${paragraphs.join('')}</p:txBody></p:sp>`
}
