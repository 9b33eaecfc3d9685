/**
 * What a message says, out of its text parts. Of the alternatives of one text, the one that says more is shown, the
 * plain one where they say about the same; what only the other one says is searched as well.
 */
import { clip, TEXT_CHARS_MAX } from './limits.ts'
import type { Part } from './structure.ts'
import { htmlToText } from './text.ts'
import { addWords, WordSet } from './word-set.ts'

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
  // Beyond comparing, they may still be the same but for their lines.
  const isLong = html.length > COMPARED_CHARS_MAX
  if (isLong && inOneLine(plain) === inOneLine(html)) return { better: plain, rest: '' }
  const [inPlain, inHtml] = [wordSet(plain), wordSet(html)]
  const shared = inPlain.sharedWith(inHtml)
  const [onlyHtml, onlyPlain] = [inHtml.size - shared, inPlain.size - shared]
  if (onlyHtml === 0 && !isLong) return { better: plain, rest: '' }
  return onlyHtml > onlyPlain && onlyHtml > inHtml.size * NEW_SHARE_MIN
    ? { better: html, rest: newLines(plain, inHtml) }
    : { better: plain, rest: newLines(html, inPlain) }
}

function wordSet(text: string): WordSet {
  const known = new WordSet()
  const spoken = spokenText(text.slice(0, COMPARED_CHARS_MAX))
  addWords(spoken, known)
  return known
}

/**
 * Whole lines, so that words in a row are found; each line for a word that was in none before it. What is beyond
 * comparing is searched as it is.
 */
function newLines(text: string, known: WordSet): string {
  const end = text.length > COMPARED_CHARS_MAX ? text.lastIndexOf('\n', COMPARED_CHARS_MAX) : text.length
  const lines = text
    .slice(0, Math.max(0, end))
    .split('\n')
    .filter((line) => {
      const spoken = spokenText(line)
      return addWords(spoken, known) > 0
    })
  return `${lines.join('\n')}${text.slice(Math.max(0, end))}`
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}

/** Without addresses of the web, which plain text has in place of links. */
function spokenText(text: string): string {
  return (text.includes('://') ? text.replace(/https?:\/\/\S+/gi, ' ') : text).toLowerCase()
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
