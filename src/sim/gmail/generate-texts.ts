/**
 * Paragraphs that are already in their charset and transfer encoding, plain and as HTML: a body is put
 * together by joining, which is what makes generating fast. They are made on first use and shared by all
 * mailboxes of the process.
 */
import type { Random } from '../../base/random.ts'
import { below, oneOf, streamOf } from './generate-chance.ts'
import { bytesIn, type TransferEncoding, transferred } from './generate-charsets.ts'
import { type Language, WORDINGS } from './generate-words.ts'

const PARAGRAPHS = 40
const LINE_CHARS = 72
const WIDE_LINE_CHARS = 34

export type TextForm = { language: Language; charset: string; encoding: TransferEncoding }

export type PreparedText = { start: string; paragraphs: readonly string[]; closing: string; end: string }

const prepared = new Map<string, PreparedText>()

export function preparedText(form: TextForm, as: 'plain' | 'html'): PreparedText {
  const key = `${form.language} ${form.charset} ${form.encoding} ${as}`
  let text = prepared.get(key)
  if (!text) {
    const isHtml = as === 'html'
    const piece = (content: string): string => flat(textPiece(content, form))
    const shown = (content: string): string => piece(isHtml ? asHtml(content) : content)
    const { greeting, closing } = WORDINGS[form.language]
    text = {
      start: (isHtml ? piece(HTML_TOP) : '') + shown(`${greeting}\r\n\r\n`),
      paragraphs: paragraphsOf(form.language).map((paragraph) => shown(`${paragraph}\r\n\r\n`)),
      closing: shown(`${closing}\r\n`),
      end: isHtml ? piece('</body></html>\r\n') : '',
    }
    prepared.set(key, text)
  }
  return text
}

const HTML_TOP =
  '<!DOCTYPE html><html><head><meta http-equiv="Content-Type" content="text/html">\r\n<style>body{font-family:sans-serif;color:#222}p{line-height:1.4}</style></head>\r\n<body>\r\n'

/** A string that was put together stays a tree of pieces; through a Buffer it becomes one piece. */
function flat(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('latin1')
}

/** A line of plain ASCII, such as a reference number, is the same in most encodings. */
export function asciiLine(line: string, form: TextForm): string {
  return form.encoding === 'base64' ? transferred(line, 'base64') : line
}

function textPiece(text: string, form: TextForm): string {
  return transferred(bytesIn(text, form.charset), form.encoding)
}

/** A charset that mail in this language uses, and an encoding that can carry it. */
export function formFor(random: Random, language: Language): TextForm {
  const charset = oneOf(random, WORDINGS[language].charsets)
  return { language, charset, encoding: encodingFor(random, charset) }
}

export function encodingFor(random: Random, charset: string): TransferEncoding {
  if (charset === 'us-ascii' || charset === 'iso-2022-jp') return '7bit'
  return oneOf(random, ['quoted-printable', 'quoted-printable', 'base64', '8bit'] as const)
}

const plainParagraphs = new Map<Language, string[]>()

function paragraphsOf(language: Language): string[] {
  let paragraphs = plainParagraphs.get(language)
  if (!paragraphs) {
    const random = streamOf(0x7ea1, language.charCodeAt(0), language.charCodeAt(1))
    paragraphs = Array.from({ length: PARAGRAPHS }, () => paragraph(random, language))
    plainParagraphs.set(language, paragraphs)
  }
  return paragraphs
}

function paragraph(random: Random, language: Language): string {
  const { sentences, things, places } = WORDINGS[language]
  const chosen = Array.from({ length: 3 + below(random, 4) }, () =>
    oneOf(random, sentences)
      .replaceAll('{thing}', () => oneOf(random, things))
      .replaceAll('{place}', () => oneOf(random, places)),
  )
  const isWide = language === 'ja' || language === 'zh'
  return isWide ? wideLines(chosen.join('')) : wordLines(chosen.join(' '))
}

function wordLines(text: string): string {
  return text.replaceAll(new RegExp(`(.{1,${LINE_CHARS}})(?: |$)`, 'g'), '$1\r\n').trimEnd()
}

function wideLines(text: string): string {
  return text.replaceAll(new RegExp(`.{${WIDE_LINE_CHARS}}(?=.)`, 'gu'), '$&\r\n')
}

function asHtml(text: string): string {
  const escaped = text.trim().replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<p style="margin:0 0 12px">${escaped}</p>\r\n`
}
