/** PDF: a part for each page. The one pdf.js of the process, and only ever in a thread that may be ended. */
import type { ExtractLimits } from './contract.ts'
import { SkipDocument } from './contract.ts'
import { encrypted } from './office-container.ts'
import type { TextOutput } from './text-output.ts'

/** What pdf.js says of a line or a part of one. */
type TextItem = { str: string; hasEOL: boolean; height: number; transform: number[] }

/** A step down that is larger than this many times the letters' height begins a paragraph. */
const PARAGRAPH_STEP = 1.9
const TITLE_CHARS_MAX = 1_000

export async function readPdf(bytes: Uint8Array, output: TextOutput, limits: ExtractLimits): Promise<void> {
  const { getDocument } = await import('unpdf/pdfjs')
  const task = getDocument({
    data: new Uint8Array(bytes),
    disableFontFace: true,
    useSystemFonts: false,
    useWorkerFetch: false,
    enableXfa: false,
    verbosity: 0,
  })
  try {
    const document = await task.promise
    const { info } = await document.getMetadata()
    setTitle(info as { Title?: unknown; Language?: unknown }, output)
    if (document.numPages > limits.pagesMax) output.isCut = true
    const pages = Math.min(document.numPages, limits.pagesMax)
    let damaged = 0
    for (let page = 1; page <= pages; page++) {
      const text = await pageText(document, page)
      if (text === undefined) damaged += 1
      else output.add({ text, place: { kind: 'page', page } })
    }
    if (damaged === pages) throw new SkipDocument('damaged', 'none of its pages can be read')
    if (damaged > 0) output.isCut = true
  } catch (thrown) {
    throw asSkip(thrown)
  } finally {
    await task.destroy()
  }
}

type PdfDocument = Awaited<ReturnType<typeof import('unpdf/pdfjs').getDocument>['promise']>

/** Undefined where the page is damaged: the others may be whole. */
async function pageText(document: PdfDocument, number: number): Promise<string | undefined> {
  try {
    const page = await document.getPage(number)
    const { items } = await page.getTextContent()
    page.cleanup()
    return linesOf(items.filter((item): item is typeof item & TextItem => 'str' in item))
  } catch (thrown) {
    if (thrown instanceof Error && thrown.name === 'PasswordException') throw thrown
    return undefined
  }
}

function linesOf(items: readonly TextItem[]): string {
  let text = ''
  let lastY: number | undefined
  let isLineStart = true
  for (const { str, hasEOL, height, transform } of items) {
    const y = transform[5] ?? 0
    if (isLineStart && str !== '') {
      const step = lastY === undefined ? 0 : Math.abs(lastY - y)
      if (height > 0 && step > height * PARAGRAPH_STEP) text += '\n'
      else text = withoutHyphen(text, str)
      lastY = y
      isLineStart = false
    }
    text += str
    if (hasEOL) {
      text += '\n'
      isLineStart = true
    }
  }
  return text
}

/** A word that is cut at the end of a line becomes one again. */
function withoutHyphen(text: string, next: string): string {
  return /\p{Ll}-\n$/u.test(text.slice(-4)) && /^\p{Ll}/u.test(next) ? text.slice(0, -2) : text
}

function setTitle(
  { Title: title, Language: language }: { Title?: unknown; Language?: unknown },
  output: TextOutput,
): void {
  if (typeof title === 'string') output.setTitle(title.slice(0, TITLE_CHARS_MAX))
  if (typeof language === 'string') output.setLanguage(language)
}

function asSkip(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown
  if (thrown.name === 'PasswordException') return encrypted()
  if (thrown.name === 'InvalidPDFException' || thrown.name === 'FormatError') {
    return new SkipDocument('damaged', 'it is damaged or not complete', thrown)
  }
  return thrown
}
