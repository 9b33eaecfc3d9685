/** HTML: what a reader sees, a part for each section, with the path of its headings. */
import type { ExtractLimits } from './contract.ts'
import { HeadingPath } from './heading-path.ts'
import { type Attributes, readMarkup } from './markup.ts'
import type { TextOutput } from './text-output.ts'

/** Their content is not shown, or not as text. */
const NOT_SHOWN = new Set([
  ...['script', 'style', 'template', 'noscript', 'head', 'svg', 'math', 'object', 'iframe', 'canvas'],
  ...['audio', 'video', 'datalist', 'noframes', 'noembed'],
])

const BLOCKS = new Set([
  ...['address', 'article', 'aside', 'blockquote', 'body', 'center', 'dd', 'details', 'dialog', 'dir', 'div'],
  ...[
    'dl',
    'dt',
    'fieldset',
    'figcaption',
    'figure',
    'footer',
    'form',
    'header',
    'hr',
    'html',
    'legend',
    'li',
  ],
  ...[
    'main',
    'menu',
    'nav',
    'ol',
    'optgroup',
    'option',
    'p',
    'pre',
    'search',
    'section',
    'select',
    'summary',
  ],
  ...['table', 'tbody', 'tfoot', 'thead', 'caption', 'tr', 'ul', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'br'],
])

/** These stand apart from what is around them. */
const PARAGRAPHS = new Set([
  'p',
  'pre',
  'table',
  'ul',
  'ol',
  'dl',
  'blockquote',
  'section',
  'article',
  'figure',
])
const HEADING = /^h([1-6])$/
const HIDDEN_STYLE = /(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)/i
const NOTHING_BEFORE = 1
/**
 * Google Docs puts the comments on a document behind it, each in a block that begins with a link back to where it stands,
 * if whoever exports may see comments. Others who read the document may not, and it is read once for all of them. What
 * tells them from other HTML is that each leads to its mark, each mark to it, and that marks come first.
 */
const COMMENT = { id: /^cmnt(\d+)$/, href: '#cmnt_ref' }
const COMMENT_MARK = { id: /^cmnt_ref(\d+)$/, href: '#cmnt' }

export function readHtml(bytes: Uint8Array, output: TextOutput, limits: ExtractLimits): void {
  const page = new Page(output)
  readMarkup(bytes, { kind: 'html', depthMax: limits.depthMax }, page)
  page.end()
}

class Page {
  readonly #output: TextOutput
  readonly #path = new HeadingPath()
  #depth = 0
  /** The depth of the element that hides all within. */
  #hiddenAt: number | undefined
  /** Those that are open; `from`: how often something was written before. */
  readonly #blocks: { depth: number; from: number }[] = []
  #written = 0
  #hasCommentMarks = false
  #preAt: number | undefined
  #title: string | undefined
  #isInTitle = false
  #heading: { level: number; from: number } | undefined
  #cells = 0
  #text = ''
  /** How many line ends stand at the end of the text; none where a space does. */
  #lineEnds = NOTHING_BEFORE
  #hasSpace = false

  constructor(output: TextOutput) {
    this.#output = output
  }

  open(name: string, attributes: Attributes): void {
    this.#depth += 1
    if (name === 'html') this.#output.setLanguage(attributes.lang)
    if (name === 'title' && this.#title === undefined) this.#isInTitle = true
    const isMark = isLink(name, attributes, COMMENT_MARK)
    if (isMark) this.#hasCommentMarks = true
    if (this.#hiddenAt !== undefined) return
    if (name === 'div' || name === 'p') this.#blocks.push({ depth: this.#depth, from: this.#written })
    if (NOT_SHOWN.has(name) || isHidden(attributes) || isMark) {
      this.#hiddenAt = this.#depth
      return
    }
    if (this.#hasCommentMarks && isLink(name, attributes, COMMENT)) {
      this.#hiddenAt = this.#commentAt()
      return
    }
    if (name === 'pre') this.#preAt ??= this.#depth
    if (BLOCKS.has(name)) this.#breakLine(PARAGRAPHS.has(name) ? 2 : 1)
    if (name === 'tr') this.#cells = 0
    if ((name === 'td' || name === 'th') && this.#cells++ > 0) this.#write(' | ')
    if (name === 'img' && attributes.alt) this.#write(` ${attributes.alt} `)
    const level = HEADING.exec(name)?.[1]
    if (level !== undefined) this.#openHeading(Number(level))
  }

  close(name: string): void {
    if (this.#isInTitle && name === 'title') {
      this.#isInTitle = false
      this.#output.setTitle(this.#title)
    }
    if (this.#blocks.at(-1)?.depth === this.#depth) this.#blocks.pop()
    if (this.#hiddenAt === this.#depth) this.#hiddenAt = undefined
    else if (this.#hiddenAt === undefined) {
      if (HEADING.test(name)) this.#closeHeading()
      if (BLOCKS.has(name)) this.#breakLine(PARAGRAPHS.has(name) || HEADING.test(name) ? 2 : 1)
      if (this.#preAt === this.#depth) this.#preAt = undefined
    }
    this.#depth -= 1
  }

  text(text: string): void {
    if (this.#isInTitle) this.#title = (this.#title ?? '') + text
    if (this.#hiddenAt === undefined) this.#write(text)
  }

  end(): void {
    this.#endPart()
  }

  /** A comment of several paragraphs is one block around them: the outer of two that begin with it. */
  #commentAt(): number {
    const begun = this.#blocks.slice(-2).find(({ from }) => from === this.#written)
    return begun?.depth ?? this.#depth
  }

  #openHeading(level: number): void {
    this.#endPart()
    this.#heading = { level, from: this.#text.length }
  }

  #closeHeading(): void {
    if (!this.#heading) return
    this.#path.enter(this.#heading.level, this.#text.slice(this.#heading.from))
    this.#heading = undefined
  }

  #endPart(): void {
    this.#closeHeading()
    this.#output.add({ text: this.#text, headings: this.#path.headings, place: { kind: 'none' } })
    this.#text = ''
    this.#lineEnds = NOTHING_BEFORE
    this.#hasSpace = false
  }

  #breakLine(lineEnds: number): void {
    this.#hasSpace = false
    if (this.#lineEnds >= lineEnds || this.#text === '') return
    this.#text += '\n'.repeat(lineEnds - this.#lineEnds)
    this.#lineEnds = lineEnds
  }

  #write(text: string): void {
    // More than is taken need not be held.
    if (this.#text.length > this.#output.charsWanted) this.#endPart()
    if (this.#preAt !== undefined) {
      this.#written += 1
      this.#text += text
      this.#lineEnds = text.endsWith('\n') ? 1 : 0
      return
    }
    const words = text.replace(/\s+/g, ' ')
    if (words === '') return
    if (words === ' ') {
      this.#hasSpace = true
      return
    }
    this.#written += 1
    const isSpaced = (this.#hasSpace || words.startsWith(' ')) && this.#lineEnds === 0
    this.#text += (isSpaced ? ' ' : '') + words.trim()
    this.#hasSpace = words.endsWith(' ')
    this.#lineEnds = 0
  }
}

function isLink(
  name: string,
  { id, name: older, href }: Attributes,
  of: { id: RegExp; href: string },
): boolean {
  const number = name === 'a' ? of.id.exec(id ?? older ?? '')?.[1] : undefined
  return number !== undefined && href === `${of.href}${number}`
}

function isHidden(attributes: Attributes): boolean {
  return (
    (attributes.hidden !== undefined && attributes.hidden !== 'until-found') ||
    HIDDEN_STYLE.test(attributes.style ?? '')
  )
}
