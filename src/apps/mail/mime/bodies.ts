/**
 * What a message says, out of its text parts. Of the alternatives of one text, the one that says more is shown, the
 * plain one where they say about the same; what only the other one says is searched as well.
 */
import { clip, TEXT_CHARS_MAX } from './limits.ts'
import type { Part } from './structure.ts'
import { htmlToText } from './text.ts'

/** The text of a part, as it came. */
export type TextPiece = { part: Part; isHtml: boolean; text: string }

/** `unshown`: lines of alternatives that are not shown, those with a word that is in nothing shown. */
export type Bodies = { text: string; unshown: string; isCut: boolean }

/** Of one multipart/alternative. */
type Versions = { plain: string[]; html: string[] }

export function readBodies(pieces: readonly TextPiece[]): Bodies {
  const found: (string | Versions)[] = []
  const versionsOf = new Map<Part, Versions>()
  // One for what is certainly shown or plain, one for HTML beside it: both are bounded, and neither takes from the other.
  const rooms = { plain: TEXT_CHARS_MAX + 1, html: TEXT_CHARS_MAX + 1 }
  for (const { part, isHtml, text } of pieces) {
    const { alternative } = part
    const kind = isHtml && alternative ? 'html' : 'plain'
    if (rooms[kind] <= 0) continue
    const clean = cleanText(isHtml ? htmlToText(text, rooms[kind]) : text.slice(0, rooms[kind]))
    if (clean === '') continue
    rooms[kind] -= clean.length + 2
    if (!alternative) {
      found.push(clean)
      continue
    }
    let versions = versionsOf.get(alternative)
    if (!versions) {
      versions = { plain: [], html: [] }
      versionsOf.set(alternative, versions)
      found.push(versions)
    }
    versions[kind].push(clean)
  }
  return joined(found)
}

function joined(found: readonly (string | Versions)[]): Bodies {
  const shown: string[] = []
  const unshown: string[] = []
  for (const one of found) {
    const { better, rest } = typeof one === 'string' ? { better: one, rest: '' } : compared(one)
    shown.push(better)
    if (rest !== '') unshown.push(rest)
  }
  const text = shown.join('\n\n')
  return {
    text: clip(text, TEXT_CHARS_MAX),
    unshown: clip(unshown.join('\n'), TEXT_CHARS_MAX),
    isCut: text.length > TEXT_CHARS_MAX,
  }
}

/** Below this share of words that the plain text does not have, HTML says about the same. */
const NEW_SHARE_MIN = 0.25
/** Beyond this, texts are not compared: 700,000 words on either side took most of a second. */
const COMPARED_CHARS_MAX = 200_000

function compared(versions: Versions): { better: string; rest: string } {
  const [plain, html] = [versions.plain.join('\n\n'), versions.html.join('\n\n')]
  if (plain === '' || html === '') return { better: plain || html, rest: '' }
  // In much mail they are the same but for their lines, which is seen without taking them apart.
  if (inOneLine(plain) === inOneLine(html)) return { better: plain, rest: '' }
  const setOf = (text: string): Set<string> => new Set(wordsIn(text.slice(0, COMPARED_CHARS_MAX)))
  const [inPlain, inHtml] = [setOf(plain), setOf(html)]
  const onlyHtml = inHtml.difference(inPlain).size
  const onlyPlain = inPlain.difference(inHtml).size
  return onlyHtml > onlyPlain && onlyHtml > inHtml.size * NEW_SHARE_MIN
    ? { better: html, rest: newLines(plain, inHtml) }
    : { better: plain, rest: newLines(html, inPlain) }
}

/**
 * Whole lines, so that words in a row are found; each line for a word that was in none before it. What is beyond
 * comparing is searched as it is.
 */
function newLines(text: string, known: Set<string>): string {
  const end = text.length > COMPARED_CHARS_MAX ? text.lastIndexOf('\n', COMPARED_CHARS_MAX) : text.length
  const lines = text
    .slice(0, Math.max(0, end))
    .split('\n')
    .filter((line) => {
      const words = wordsIn(line)
      const isNew = words.some((word) => !known.has(word))
      if (isNew) for (const word of words) known.add(word)
      return isNew
    })
  return `${lines.join('\n')}${text.slice(Math.max(0, end))}`
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}

/** Without those of addresses of the web, which plain text has in place of links. */
function wordsIn(text: string): string[] {
  const spoken = text.replace(/https?:\/\/\S+/gi, ' ').toLowerCase()
  // Most mail is ASCII, and is read faster as such.
  const words = /[^\p{ASCII}]/u.test(spoken) ? /[\p{L}\p{N}]+/gu : /[a-z0-9]+/g
  return spoken.match(words) ?? []
}

/**
 * Lines end in line feeds; no control characters but tabs, no halves of characters. Nothing that only says where a word
 * may be broken: it would be searched as two.
 */
function cleanText(text: string): string {
  const plain = text
    .replace(/\r\n?/g, '\n')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must go
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f\u00ad\u200b\u2060\ufeff]/g, '')
  return plain.toWellFormed().trim()
}
