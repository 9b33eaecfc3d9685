/**
 * The kinds of documents that a generated world has, and how each is written: texts, Office files, PDFs, pictures,
 * native documents, and a few that nobody can read or that cost more than they look.
 */
import { escapeHtml } from '../../base/escape-html.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import { type Block, docx } from '../documents/docx.ts'
import * as hostile from '../documents/hostile.ts'
import { pdf } from '../documents/pdf.ts'
import { jpeg, png } from '../documents/plain.ts'
import { pptx } from '../documents/pptx.ts'
import { xlsx } from '../documents/xlsx.ts'
import { gaps, type Topic } from './generate-topics.ts'
import { mimeTypes } from './item.ts'

/** What a document says, before it has a format. */
export type Draft = { title: string; topic: Topic; sections: { heading: string; paragraphs: string[] }[] }

export type Kind = {
  extension: string
  mimeType: string
  /** How many of all documents, in relation to the other kinds. */
  share: number
  write(draft: Draft, random: Random): string | Uint8Array
}

const OFFICE = 'application/vnd.openxmlformats-officedocument'
const officeTypes = {
  docx: `${OFFICE}.wordprocessingml.document`,
  xlsx: `${OFFICE}.spreadsheetml.sheet`,
  pptx: `${OFFICE}.presentationml.presentation`,
} as const

/** Hostile and unreadable ones are rare: about one in eighty. */
const RARE = 0.1
const LONG_BYTES = 11 * 2 ** 20

const readable: readonly Kind[] = [
  { extension: '', mimeType: mimeTypes.document, share: 24, write: markdownOf },
  { extension: '.md', mimeType: 'text/markdown', share: 12, write: markdownOf },
  { extension: '.txt', mimeType: 'text/plain', share: 12, write: plainOf },
  { extension: '.html', mimeType: 'text/html', share: 8, write: htmlOf },
  { extension: '.pdf', mimeType: 'application/pdf', share: 14, write: pdfOf },
  { extension: '.docx', mimeType: officeTypes.docx, share: 10, write: docxOf },
  { extension: '.xlsx', mimeType: officeTypes.xlsx, share: 5, write: xlsxOf },
  { extension: '.pptx', mimeType: officeTypes.pptx, share: 4, write: pptxOf },
  { extension: '.csv', mimeType: 'text/csv', share: 4, write: csvOf },
  { extension: '', mimeType: mimeTypes.spreadsheet, share: 4, write: csvOf },
  { extension: '', mimeType: mimeTypes.presentation, share: 3, write: slidesOf },
  { extension: '.json', mimeType: 'application/json', share: 2, write: jsonOf },
  { extension: '.ts', mimeType: 'text/plain', share: 2, write: sourceOf },
]

const pictures: readonly Kind[] = [
  {
    extension: '.png',
    mimeType: 'image/png',
    share: 2,
    write: (_, random) => png({ color: colorOf(random) }),
  },
  { extension: '.jpg', mimeType: 'image/jpeg', share: 1, write: () => jpeg() },
]

const unreadable: readonly Omit<Kind, 'share'>[] = [
  { extension: '', mimeType: mimeTypes.document, write: longOf },
  { extension: '.bin', mimeType: 'application/octet-stream', write: (_, random) => junkOf(random) },
  { extension: '.pdf', mimeType: 'application/pdf', write: (_, random) => junkOf(random) },
  { extension: '.docx', mimeType: officeTypes.docx, write: pdfOf },
  { extension: '.pdf', mimeType: 'application/pdf', write: () => hostile.encryptedPdf() },
  { extension: '.docx', mimeType: officeTypes.docx, write: () => hostile.encryptedDocx() },
  { extension: '.doc', mimeType: 'application/msword', write: () => hostile.oldDoc() },
  { extension: '.docx', mimeType: officeTypes.docx, write: (draft) => hostile.truncated(docxOf(draft)) },
  { extension: '.docx', mimeType: officeTypes.docx, write: () => hostile.bombDocx({ inflatedMb: 300 }) },
  { extension: '.zip', mimeType: 'application/zip', write: () => hostile.nestedZipBomb({ levels: 5 }) },
  { extension: '.pdf', mimeType: 'application/pdf', write: () => hostile.bombPdf({ inflatedMb: 300 }) },
  { extension: '.pdf', mimeType: 'application/pdf', write: () => hostile.loopingPdf('pages') },
  { extension: '.xlsx', mimeType: officeTypes.xlsx, write: () => hostile.hugeXlsx({ rows: 200_000 }) },
  { extension: '.html', mimeType: 'text/html', write: () => hostile.deepHtml({ depth: 20_000 }) },
]

export type KindChoice = 'mixed' | 'readable' | 'text'

export const kinds: Readonly<Record<KindChoice, readonly Kind[]>> = {
  mixed: [...readable, ...pictures, ...unreadable.map((kind) => ({ ...kind, share: RARE }))],
  readable,
  text: readable.slice(0, 3),
}

function markdownOf({ title, sections }: Draft): string {
  const parts = sections.map(({ heading, paragraphs }) => `## ${heading}\n\n${paragraphs.join('\n\n')}`)
  return `# ${title}\n\n${parts.join('\n\n')}\n`
}

/** Longer than what the service exports. */
function longOf(draft: Draft): string {
  const once = markdownOf(draft)
  return once.repeat(Math.ceil(LONG_BYTES / once.length))
}

function plainOf({ title, sections }: Draft): string {
  const parts = sections.map(
    ({ heading, paragraphs }) => `${heading.toUpperCase()}\n${paragraphs.join('\n\n')}`,
  )
  return `${title}\n${'='.repeat(title.length)}\n\n${parts.join('\n\n')}\n`
}

function htmlOf({ title, topic, sections }: Draft): string {
  const parts = sections.map(
    ({ heading, paragraphs }) =>
      `<h2>${escapeHtml(heading)}</h2>\n${paragraphs.map((text) => `<p>${escapeHtml(text)}</p>`).join('\n')}`,
  )
  const head = `<meta charset="utf-8"><title>${escapeHtml(title)}</title>`
  return `<!DOCTYPE html>\n<html lang="${topic.language}"><head>${head}</head><body>\n<h1>${escapeHtml(title)}</h1>\n${parts.join('\n')}\n</body></html>\n`
}

function jsonOf({ title, topic, sections }: Draft): string {
  const body = { title, language: topic.language, sections }
  return `${JSON.stringify(body, null, 2)}\n`
}

function sourceOf({ title, sections }: Draft): string {
  const functions = sections.map(({ heading, paragraphs }, at) => {
    const name = heading.replace(/[^a-z]+/gi, '') || 'step'
    return `/** ${paragraphs[0]} */\nexport function step${at}${name}(input: string): string {\n  return input.trim()\n}`
  })
  return `// ${title}\n\n${functions.join('\n\n')}\n`
}

const COLUMNS = ['No', 'Customer', 'City', 'Contact', 'Month', 'Amount']

type TableRow = {
  number: number
  company: string
  city: string
  person: string
  month: string
  amount: number
}

function tableOf(random: Random): TableRow[] {
  const draw = (gap: string): string => pick(gaps[gap]!, random)
  return Array.from({ length: 5 + Math.floor(random() * 30) }, (_, at) => ({
    number: at + 1,
    company: draw('company'),
    city: draw('city'),
    person: draw('person'),
    month: draw('month'),
    amount: Number(draw('amount').replace(',', '')),
  }))
}

function csvOf({ title }: Draft, random: Random): string {
  const rows = tableOf(random).map((row) => Object.values(row).join(','))
  return [`"${title}"`, COLUMNS.join(','), ...rows, ''].join('\n')
}

function slidesOf({ title, sections }: Draft): string {
  const slides = sections.map(({ heading, paragraphs }) =>
    [heading, '', ...linesOf(paragraphs[0]!)].join('\n'),
  )
  return [title, ...slides].join('\n\n---\n\n')
}

function linesOf(paragraph: string): string[] {
  return paragraph.split(/(?<=\.) /)
}

function blocksOf({ title, sections }: Draft): Block[] {
  const blocks: Block[] = [{ heading: title, level: 1 }]
  for (const { heading, paragraphs } of sections) {
    blocks.push({ heading, level: 2 }, ...paragraphs.map((paragraph) => ({ paragraph })))
  }
  return blocks
}

function pdfOf(draft: Draft): Uint8Array {
  const pages = draft.sections.map(({ heading, paragraphs }) => [heading, ...paragraphs].join('\n\n'))
  return pdf({ title: draft.title, pages: [`${draft.title}\n\n${pages[0]}`, ...pages.slice(1)] })
}

function docxOf(draft: Draft): Uint8Array {
  return docx({ title: draft.title, blocks: blocksOf(draft), header: draft.topic.file, footer: 'Internal' })
}

function xlsxOf({ title }: Draft, random: Random): Uint8Array {
  const rows = tableOf(random).map(({ number, ...rest }) => [number, ...Object.values(rest)])
  return xlsx({ title, sheets: [{ name: 'Sheet1', rows: [[title], COLUMNS, ...rows] }] })
}

function pptxOf({ title, sections }: Draft): Uint8Array {
  const slides = sections.map(({ heading, paragraphs }) => ({
    title: heading,
    lines: linesOf(paragraphs[0]!),
    notes: paragraphs.at(-1)!,
  }))
  return pptx({ title, slides: [{ title, lines: [] }, ...slides] })
}

function junkOf(random: Random): Uint8Array {
  const seed = Math.floor(random() * 2 ** 31)
  return hostile.junk({ bytes: 2_000 + Math.floor(seededRandom(seed)() * 20_000), seed })
}

function colorOf(random: Random): number {
  return Math.floor(random() * 256)
}

export function pick<Value>(list: readonly Value[], random: Random): Value {
  return list[Math.floor(random() * list.length)]!
}
