/**
 * Docs, Sheets and Slides: kept as plain source (Markdown, CSV; sheets and slides divided by a line of dashes) and exported
 * from there, of Sheets as CSV the first sheet only, as Google does. What a conversion loses is not the point; that there is one, and what it is refused for, is.
 */
import { escapeHtml } from '../../base/escape-html.ts'
import { type Block, docx } from '../documents/docx.ts'
import { pdf } from '../documents/pdf.ts'
import { pptx } from '../documents/pptx.ts'
import { xlsx } from '../documents/xlsx.ts'
import { badRequest, forbidden } from './errors.ts'
import { type Item, isNative, mimeTypes } from './item.ts'

type Convert = (source: string, name: string) => string | Uint8Array

export const EXPORT_BYTES_MAX = 10 * 2 ** 20

const OFFICE = 'application/vnd.openxmlformats-officedocument'

const conversions: Record<string, Record<string, Convert>> = {
  [mimeTypes.document]: {
    'text/plain': plainText,
    'text/markdown': (source) => source,
    'text/html': htmlPage,
    'application/pdf': pdfFile,
    [`${OFFICE}.wordprocessingml.document`]: (source, title) => docx({ title, blocks: blocksOf(source) }),
  },
  [mimeTypes.spreadsheet]: {
    'text/csv': (source) => sheetsOf(source)[0]!,
    'text/tab-separated-values': (source) => sheetsOf(source)[0]!.replaceAll(',', '\t'),
    'application/pdf': pdfFile,
    [`${OFFICE}.spreadsheetml.sheet`]: (source, title) =>
      xlsx({
        title,
        sheets: sheetsOf(source).map((sheet, at) => ({
          name: `Sheet${at + 1}`,
          rows: sheet.split('\n').map((line) => line.split(',')),
        })),
      }),
  },
  [mimeTypes.presentation]: {
    'text/plain': plainText,
    'application/pdf': pdfFile,
    [`${OFFICE}.presentationml.presentation`]: (source, title) => pptx({ title, slides: slidesOf(source) }),
  },
}

export function exportFormats(mimeType: string): string[] {
  return Object.keys(conversions[mimeType] ?? {})
}

/** Comments come with a page, behind the text, for whoever may see them. */
export function exportItem(item: Item, to: string, { withComments }: { withComments: boolean }): Buffer {
  const known = isNative(item) ? conversions[item.mimeType] : undefined
  if (!known) throw forbidden('fileNotExportable')
  const convert = Object.hasOwn(known, to) ? known[to] : undefined
  if (!convert) throw badRequest('The requested conversion is not supported.')
  const converted = convert(item.content?.text() ?? '', item.name)
  const hasComments = withComments && to === 'text/html' && item.comments.length > 0
  const made = Buffer.from(hasComments ? commented(String(converted), item.comments) : converted)
  if (made.length > EXPORT_BYTES_MAX) throw forbidden('exportSizeLimitExceeded')
  return made
}

/** The type that an export is sent with: texts name their charset. */
export function exportType(to: string): string {
  return to.startsWith('text/') ? `${to}; charset=utf-8` : to
}

/** Google's exports of Docs begin with a byte order mark and end lines as Windows does. */
function plainText(source: string): string {
  const lines = source.split('\n').map((line) => line.replace(/^#{1,6} /, '').replace(/^- /, '* '))
  return `\u{feff}${lines.join('\r\n')}`
}

function htmlPage(source: string, name: string): string {
  const blocks = source.split(/\n{2,}/).map(htmlBlock)
  return `<html><head><meta content="text/html; charset=UTF-8" http-equiv="content-type"><title>${escapeHtml(name)}</title></head><body>${blocks.join('')}</body></html>`
}

function commented(page: string, comments: readonly string[]): string {
  const marks = comments.map((_, at) => `<sup><a href="#cmnt${at + 1}" id="cmnt_ref${at + 1}">[a]</a></sup>`)
  const blocks = comments.map(
    (text, at) =>
      `<div><p><a href="#cmnt_ref${at + 1}" id="cmnt${at + 1}">[a]</a><span>${escapeHtml(text)}</span></p></div>`,
  )
  return page.replace('</body>', () => `<p>${marks.join('')}</p>${blocks.join('')}</body>`)
}

function htmlBlock(block: string): string {
  const heading = /^(#{1,6}) (.*)$/.exec(block)
  if (heading) return `<h${heading[1]!.length}>${escapeHtml(heading[2]!)}</h${heading[1]!.length}>`
  if (block.startsWith('- ')) {
    const items = block.split('\n').map((line) => `<li>${escapeHtml(line.replace(/^- /, ''))}</li>`)
    return `<ul>${items.join('')}</ul>`
  }
  return `<p>${escapeHtml(block)}</p>`
}

function pdfFile(source: string, title: string): Uint8Array {
  return pdf({ title, pages: source.split(/\n\n---\n\n/) })
}

function blocksOf(source: string): Block[] {
  return source.split(/\n{2,}/).map((text) => {
    const heading = /^(#{1,6}) (.*)$/.exec(text)
    return heading ? { heading: heading[2]!, level: heading[1]!.length } : { paragraph: text }
  })
}

function sheetsOf(source: string): string[] {
  return source.split(/\n\n---\n\n/)
}

function slidesOf(source: string): { title: string; lines: string[] }[] {
  return source.split(/\n\n---\n\n/).map((slide) => {
    const [title = '', ...lines] = slide.split('\n').filter((line) => line !== '')
    return { title, lines }
  })
}
