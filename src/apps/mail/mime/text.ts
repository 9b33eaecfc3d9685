/** HTML made plain: what a person would read, in lines. One pass; nothing is rendered, fetched or trusted. */
import { decodeEntities } from './entities.ts'
import { clip, plainLine, SNIPPET_CHARS_MAX } from './limits.ts'

/** Their content is not for reading; each is skipped up to what ends it. */
const SKIPPED = new Map<string, RegExp>([
  ['script', /<\/script/gi],
  ['style', /<\/style/gi],
  ['head', /<\/head|<body/gi],
  ['title', /<\/title/gi],
  ['template', /<\/template/gi],
  ['svg', /<\/svg/gi],
])

/** How many line breaks stand before and after. */
const BREAKS = new Map<string, number>()
for (const name of 'div tr li ul ol dl dt dd section article header footer main aside nav address center form fieldset figure figcaption caption thead tbody tfoot title option legend summary details'.split(
  ' ',
)) {
  BREAKS.set(name, 1)
}
for (const name of 'p h1 h2 h3 h4 h5 h6 blockquote pre table hr'.split(' ')) BREAKS.set(name, 2)

/** No entity is longer. */
const ENTITY_CHARS_MAX = 20

/** At most `charsMax` of text. */
export function htmlToText(html: string, charsMax: number): string {
  const lines = new Lines()
  const tags = tagReader(html)
  const skips = skipper(html)
  let at = 0
  let preformatted = 0
  while (at < html.length && lines.length < charsMax) {
    const open = html.indexOf('<', at)
    const textEnd = open === -1 ? html.length : open
    if (textEnd > at) {
      // No more than is wanted: a text of 50 MB between two tags is not worked through for its first part.
      const text = decodeEntities(html.slice(at, Math.min(textEnd, at + charsMax * ENTITY_CHARS_MAX)))
      if (preformatted > 0) lines.addPreformatted(text)
      else lines.add(text)
    }
    if (open === -1) break
    const tag = tags(open)
    if (tag.name === '' && tag.end === open) {
      lines.add('<')
      at = open + 1
      continue
    }
    at = tag.end
    if (tag.name === 'pre') preformatted = Math.max(0, preformatted + (tag.isClosing ? -1 : 1))
    lines.tag(tag)
    if (!tag.isClosing && !tag.isEmpty) at = skips(tag.name, at)
  }
  return clip(lines.text(), charsMax)
}

/** Past the content of an element that is not for reading; `from` for any other. */
function skipper(html: string): (name: string, from: number) => number {
  let headEnds = true
  return (name, from) => {
    const end = SKIPPED.get(name)
    if (!end || (name === 'head' && !headEnds)) return from
    end.lastIndex = from
    const found = end.exec(html)
    if (found) return found.index
    // A head without an end must not hide the whole mail; a script may.
    if (name !== 'head') return html.length
    headEnds = false
    return from
  }
}

type Tag = { name: string; isClosing: boolean; isEmpty: boolean; end: number }

const TAG_NAME_CHARS_MAX = 20

/** Reads the tag at a `<`. An end equal to the place means: this is no tag. */
function tagReader(html: string): (open: number) => Tag {
  /** Set when a quote within a tag is never closed: from then on quotes mean nothing. */
  let quotesClose = true
  const none = (end: number): Tag => ({ name: '', isClosing: false, isEmpty: true, end })
  return (open) => {
    const next = html[open + 1]
    if (next === '!' || next === '?') {
      if (html.startsWith('<!--', open)) {
        const end = html.indexOf('-->', open + 4)
        return none(end === -1 ? html.length : end + 3)
      }
      const end = html.indexOf('>', open)
      return none(end === -1 ? html.length : end + 1)
    }
    const isClosing = next === '/'
    const nameStart = open + (isClosing ? 2 : 1)
    if (!isLetter(html.charCodeAt(nameStart))) return none(open)
    let nameEnd = nameStart + 1
    const stop = Math.min(html.length, nameStart + TAG_NAME_CHARS_MAX)
    while (nameEnd < stop && isNameChar(html.charCodeAt(nameEnd))) nameEnd++
    let end = quotesClose ? tagEnd(html, nameEnd) : -1
    if (end === -1) {
      quotesClose = false
      const close = html.indexOf('>', nameEnd)
      end = close === -1 ? html.length : close + 1
    }
    const name = html.slice(nameStart, nameEnd).toLowerCase()
    return { name, isClosing, isEmpty: html[end - 2] === '/', end }
  }
}

/** Past the `>` that is not within quotes; −1 where there is none. */
function tagEnd(html: string, from: number): number {
  let at = from
  while (at < html.length) {
    const char = html[at]
    if (char === '>') return at + 1
    // Only after `=` does a quote begin a value; elsewhere it is a stray one.
    if ((char === '"' || char === "'") && isAfterEquals(html, at)) {
      const close = html.indexOf(char, at + 1)
      if (close === -1) return -1
      at = close
    }
    at++
  }
  return -1
}

function isAfterEquals(html: string, at: number): boolean {
  return html[at - 1] === '=' || (html[at - 1] === ' ' && html[at - 2] === '=')
}

/** Text in lines, as it is put together: runs of blanks are one, and breaks wait until more text comes. */
class Lines {
  length = 0
  readonly #pieces: string[] = []
  #breaks = 0
  #blank = false

  add(text: string): void {
    const spaced = text.replace(/[ \t\r\n\f\u00a0]+/g, ' ')
    if (spaced === '') return
    if (spaced === ' ') {
      this.#blank = true
      return
    }
    const starts = spaced.startsWith(' ')
    const ends = spaced.endsWith(' ')
    this.#separate(starts)
    this.#push(spaced.slice(starts ? 1 : 0, ends ? -1 : undefined))
    this.#blank = ends
  }

  addPreformatted(text: string): void {
    if (text === '') return
    this.#separate(false)
    this.#push(text.replace(/\r\n?/g, '\n'))
  }

  tag(tag: Tag): void {
    if (tag.name === 'br') {
      if (!tag.isClosing) this.#breaks = Math.min(2, this.#breaks + 1)
    } else if (tag.name === 'td' || tag.name === 'th' || tag.name === 'img') this.#blank = true
    else this.#breaks = Math.max(this.#breaks, BREAKS.get(tag.name) ?? 0)
    if (tag.name === 'li' && !tag.isClosing) this.add('- ')
  }

  text(): string {
    return this.#pieces.join('')
  }

  #separate(blank: boolean): void {
    if (this.length > 0) {
      if (this.#breaks > 0) this.#push('\n'.repeat(this.#breaks))
      else if (blank || this.#blank) this.#push(' ')
    }
    this.#breaks = 0
    this.#blank = false
  }

  #push(piece: string): void {
    this.#pieces.push(piece)
    this.length += piece.length
  }
}

function isLetter(code: number): boolean {
  return (code >= 65 && code <= 90) || (code >= 97 && code <= 122)
}

function isNameChar(code: number): boolean {
  return isLetter(code) || (code >= 48 && code <= 58) || code === 45
}

/** Enough for a snippet in most mail, and in mail that begins with filler. */
const LOOKED_AT_CHARS = [600, 6_000]

/** Mail that wants a short preview fills it up with characters that cannot be seen. */
const INVISIBLE = /\u00ad|\u034f|\u061c|\u180e|\ufeff|[\u200b-\u200f\u202a-\u202e\u2060-\u206f]/g

/** The beginning of a text, in one line. */
export function snippet(text: string): string {
  let line = ''
  for (const chars of LOOKED_AT_CHARS) {
    line = plainLine(text.slice(0, chars)).replace(INVISIBLE, '').replace(/\s+/g, ' ').trim()
    if (line.length >= SNIPPET_CHARS_MAX || text.length <= chars) break
  }
  return clip(line, SNIPPET_CHARS_MAX)
}
