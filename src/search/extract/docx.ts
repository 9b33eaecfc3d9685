/**
 * Word documents: paragraphs by sections, tables row by row, then headers, footers, footnotes, endnotes and comments.
 * What was deleted, moved away or hidden is left out, and so are the codes of fields.
 */
import type { ExtractLimits } from './contract.ts'
import type { Attributes } from './markup.ts'
import { mainMember, readProperties, relationsOf } from './office-container.ts'
import { Sections } from './sections.ts'
import type { TextOutput } from './text-output.ts'
import { attributeOf, ZipReader } from './zip.ts'

const MARGINS = ['header', 'footer', 'footnotes', 'endnotes', 'comments']
/** Old copies of what stands beside them, and what was moved elsewhere. */
const LEFT_OUT = new Set(['Fallback', 'moveFrom', 'del'])
const STYLES_MAX = 10_000
const TITLE_LEVEL = 0

export async function readDocx(bytes: Uint8Array, output: TextOutput, limits: ExtractLimits): Promise<void> {
  const zip = new ZipReader(bytes, limits)
  const main = await mainMember(zip)
  await readProperties(zip, 'docProps/core.xml', output)
  const related = await relationsOf(zip, main)
  const styles = related.find(({ type }) => type === 'styles')
  const levels = await headingLevels(zip, styles?.target ?? 'word/styles.xml')
  const body = new WordBody(output, levels)
  await zip.xml(main, body)
  body.end()
  const margins = related.filter(({ type }) => MARGINS.includes(type))
  for (const { target } of margins.sort((a, b) => MARGINS.indexOf(a.type) - MARGINS.indexOf(b.type))) {
    const margin = new WordBody(output, new Map())
    await zip.xml(target, margin)
    margin.end()
  }
}

/** Styles are known by their outline, or by their English name, which every language's Word writes. */
async function headingLevels(zip: ZipReader, member: string): Promise<Map<string, number>> {
  const levels = new Map<string, number>()
  let style: string | undefined
  await zip.xml(member, {
    open(name, attributes) {
      const value = attributeOf(attributes, 'val')
      if (name === 'style') style = attributeOf(attributes, 'styleId')
      if (style === undefined || levels.size > STYLES_MAX) return
      if (name === 'outlineLvl' && isLevel(value)) levels.set(style, Number(value) + 1)
      const named = name === 'name' ? /^heading ([1-9])$/i.exec(value ?? '')?.[1] : undefined
      if (named !== undefined) levels.set(style, Number(named))
      if (name === 'name' && value?.toLowerCase() === 'title') levels.set(style, TITLE_LEVEL)
    },
    close(name) {
      if (name === 'style') style = undefined
    },
    text() {},
  })
  return levels
}

/** Nine is for what is no heading. */
function isLevel(value: string | undefined): boolean {
  return value !== undefined && /^[0-8]$/.test(value)
}

type Paragraph = { text: string; level: number | undefined }

class WordBody {
  readonly #output: TextOutput
  readonly #sections: Sections
  readonly #levels: Map<string, number>
  /** Text boxes have paragraphs within paragraphs, and cells have tables. */
  readonly #paragraphs: Paragraph[] = []
  readonly #rows: string[][] = []
  #leftOutDepth = 0
  #isText = false
  #isHidden = false

  constructor(output: TextOutput, levels: Map<string, number>) {
    this.#output = output
    this.#sections = new Sections(output)
    this.#levels = levels
  }

  open = (name: string, attributes: Attributes): void => {
    if (LEFT_OUT.has(name)) this.#leftOutDepth += 1
    if (this.#leftOutDepth > 0) return
    const paragraph = this.#paragraphs.at(-1)
    switch (name) {
      case 'p':
        this.#paragraphs.push({ text: '', level: undefined })
        break
      case 'pStyle':
        if (paragraph) paragraph.level ??= this.#levels.get(attributeOf(attributes, 'val') ?? '')
        break
      case 'outlineLvl': {
        const value = attributeOf(attributes, 'val')
        if (paragraph && isLevel(value)) paragraph.level = Number(value) + 1
        break
      }
      case 'r':
        this.#isHidden = false
        break
      case 'vanish':
        this.#isHidden = !/^(?:0|false|off)$/.test(attributeOf(attributes, 'val') ?? '')
        break
      case 't':
        this.#isText = true
        break
      case 'tab':
      case 'ptab':
        this.#write(' ')
        break
      case 'br':
      case 'cr':
        this.#write('\n')
        break
      case 'noBreakHyphen':
        this.#write('-')
        break
      case 'tr':
        this.#rows.push([])
        break
      case 'tc':
        this.#rows.at(-1)?.push('')
    }
  }

  close = (name: string): void => {
    if (LEFT_OUT.has(name)) this.#leftOutDepth -= 1
    if (this.#leftOutDepth > 0) return
    if (name === 't') this.#isText = false
    if (name === 'p') this.#endParagraph()
    if (name === 'tr') this.#endRow()
  }

  text = (text: string): void => {
    if (this.#isText && !this.#isHidden && this.#leftOutDepth === 0) this.#write(text)
  }

  end(): void {
    this.#sections.end()
  }

  #write(text: string): void {
    const paragraph = this.#paragraphs.at(-1)
    if (!paragraph) return
    paragraph.text += text
    // More than is taken is not held.
    if (paragraph.text.length > this.#output.charsWanted) this.#endParagraph()
  }

  #endParagraph(): void {
    const paragraph = this.#paragraphs.pop()
    if (!paragraph || paragraph.text.trim() === '') return
    const row = this.#rows.at(-1)
    if (row && row.length > 0) row[row.length - 1] += ` ${paragraph.text}`
    else if (paragraph.level === undefined) this.#sections.paragraph(paragraph.text)
    else {
      this.#sections.heading(paragraph.level, paragraph.text.trim())
      if (paragraph.level === TITLE_LEVEL) this.#output.setTitle(paragraph.text)
    }
  }

  #endRow(): void {
    const row = this.#rows.pop()
    if (!row) return
    const outer = this.#rows.at(-1)
    if (outer && outer.length > 0) outer[outer.length - 1] += ` ${row.join(' ')}`
    else this.#sections.row(row)
  }
}
