/**
 * Address lists as people and programs write them (RFC 5322 and worse). A quote or comment that is opened and
 * never closed counts as a plain character from there on, so that it hides no address; that is found out once
 * per kind, which keeps the whole linear.
 */
import type { Address } from '../message.ts'
import { decodeWords } from './encoded-words.ts'
import { ADDRESSES_MAX, clip, NAME_CHARS_MAX, type Problems, plainLine } from './limits.ts'

/** `text` with raw bytes decoded and encoded words as they are: those may hide commas. */
export function parseAddresses(text: string, problems: Problems): Address[] {
  const list: Address[] = []
  const entry = newEntry()
  const closes = { '"': true, '(': true }
  /** Of the group that is open: its name, until somebody is in it. */
  let emptyGroup: string | null = null
  const add = (address: Address | null): void => {
    if (address && list.length < ADDRESSES_MAX) list.push(address)
  }
  const finish = (): void => {
    const found = takeEntry(entry)
    if (found) emptyGroup = null
    add(found)
  }
  /** `undisclosed-recipients:;` is to nobody, and is found by its name all the same. */
  const finishGroup = (): void => {
    finish()
    if (emptyGroup !== null) add(address(emptyGroup, ''))
    emptyGroup = null
  }
  let at = 0
  while (at < text.length && list.length < ADDRESSES_MAX) {
    const char = text[at]!
    if ((char === '"' || char === '(') && closes[char]) {
      const end = char === '"' ? quoteEnd(text, at) : commentEnd(text, at)
      if (end === -1) {
        closes[char] = false
        continue
      }
      if (char === '"') addQuoted(entry, text.slice(at, end))
      else entry.comments.push(text.slice(at + 1, end - 1))
      at = end
      continue
    }
    const angleClose = char === '<' ? angleEnd(text, at) : -1
    if (angleClose !== -1) {
      entry.angle ??= text.slice(at + 1, angleClose)
      at = angleClose + 1
      continue
    }
    if (char === ',') finish()
    else if (char === ';') finishGroup()
    else if (char === ':' && entry.angle === null && !entry.hasAt) {
      emptyGroup = shownName(entry)
      resetEntry(entry)
    } else if (char === '<')
      endWord(entry) // Never closed: what follows is the address.
    else if (char <= ' ') endWord(entry)
    else {
      const end = plainEnd(text, at, closes)
      addPlain(entry, text.slice(at, end))
      at = end
      continue
    }
    at++
  }
  finishGroup()
  if (list.length >= ADDRESSES_MAX) problems.add(`a header has more than ${ADDRESSES_MAX} addresses`)
  return list
}

/** `raw` with its quotes, for an address; `shown` without, for a name. */
type Word = { raw: string; shown: string; hasAt: boolean }
type Entry = { words: Word[]; open: boolean; hasAt: boolean; comments: string[]; angle: string | null }

function newEntry(): Entry {
  return { words: [], open: false, hasAt: false, comments: [], angle: null }
}

function resetEntry(entry: Entry): void {
  entry.words = []
  entry.open = false
  entry.hasAt = false
  entry.comments = []
  entry.angle = null
}

function endWord(entry: Entry): void {
  entry.open = false
}

function addPlain(entry: Entry, text: string): void {
  addPiece(entry, { raw: text, shown: text, hasAt: text.includes('@') })
}

function addQuoted(entry: Entry, quoted: string): void {
  addPiece(entry, { raw: quoted, shown: quoted.slice(1, -1).replace(/\\(.)/gs, '$1'), hasAt: false })
}

/** Pieces without a blank between them are one word: `"john doe"@example.com`. */
function addPiece(entry: Entry, piece: Word): void {
  const last = entry.words.at(-1)
  if (entry.open && last) {
    last.raw += piece.raw
    last.shown += piece.shown
    last.hasAt ||= piece.hasAt
  } else entry.words.push(piece)
  entry.open = true
  entry.hasAt ||= piece.hasAt
}

function shownName({ words }: Entry): string {
  return words.map((word) => word.shown).join(' ')
}

function takeEntry(entry: Entry): Address | null {
  const { words, comments, angle } = entry
  resetEntry(entry)
  if (angle !== null) {
    const shown = words.map((word) => word.shown).join(' ')
    return address(shown === '' ? comments.join(' ') : shown, bareAddress(angle))
  }
  if (words.length === 0) return comments.length > 0 ? address(comments.join(' '), '') : null
  let place = words.findLastIndex((word) => word.hasAt)
  if (place === -1) place = words.findLastIndex((word) => word.shown.includes('@'))
  if (place === -1) return address(words.map((word) => word.shown).join(' '), '')
  const [found] = words.splice(place, 1)
  const shown = words.map((word) => word.shown).join(' ')
  return address(shown === '' ? comments.join(' ') : shown, found!.hasAt ? found!.raw : found!.shown)
}

function address(name: string, bare: string): Address | null {
  const decodedName = clip(plainLine(decodeWords(name)).trim(), NAME_CHARS_MAX)
  const decoded = clip(plainLine(bare.includes('=?') ? decodeWords(bare) : bare).trim(), NAME_CHARS_MAX)
  return decodedName === '' && decoded === '' ? null : { name: decodedName, address: decoded }
}

/** What is in angle brackets, without a route (`@a,@b:c@d`), a `mailto:` and stray blanks. */
function bareAddress(inside: string): string {
  let text = inside.trim()
  if (text.startsWith('@') && text.includes(':')) text = text.slice(text.indexOf(':') + 1)
  if (/^mailto:/i.test(text)) text = text.slice('mailto:'.length)
  return text.includes('"') ? text : text.replace(/\s+/g, '')
}

function plainEnd(text: string, from: number, closes: { '"': boolean; '(': boolean }): number {
  let at = from + 1
  for (; at < text.length; at++) {
    const char = text[at]!
    if (char <= ' ' || char === ',' || char === ';' || char === ':' || char === '<') break
    if ((char === '"' || char === '(') && closes[char]) break
  }
  return at
}

function quoteEnd(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  return -1
}

function commentEnd(text: string, open: number): number {
  let depth = 0
  for (let at = open; at < text.length; at++) {
    const char = text[at]
    if (char === '\\') at++
    else if (char === '(') depth++
    else if (char === ')' && --depth === 0) return at + 1
  }
  return -1
}

/** The closing bracket, unless another one is opened before: looks no further, so that all calls together are linear. */
function angleEnd(text: string, open: number): number {
  for (let at = open + 1; at < text.length && text[at] !== '<'; at++) if (text[at] === '>') return at
  return -1
}
