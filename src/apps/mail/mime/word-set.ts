/**
 * Which words a text has, without making a string of each: a word is known by two hashes of 32 bits, which no two words
 * of a mail share by chance. A set of strings took a quarter of all that storing a message costs.
 */
import { systemRandom } from '../../../base/random.ts'

const ROOM_MIN = 1_024

export class WordSet {
  size = 0
  /** Pairs of hashes, each at the first free place from where its first half points to; 0, 0 is free. */
  #pairs = new Int32Array(2 * ROOM_MIN)

  /** Whether it was new. */
  add(first: number, second: number): boolean {
    const at = this.#placeOf(first, second)
    if (this.#pairs[at + 1] !== 0) return false
    this.#pairs[at] = first
    this.#pairs[at + 1] = second
    this.size++
    if (this.size * 4 > this.#pairs.length) this.#grow()
    return true
  }

  /** How many words both have. */
  sharedWith(other: WordSet): number {
    let shared = 0
    for (let at = 0; at < this.#pairs.length; at += 2) {
      const second = this.#pairs[at + 1]!
      if (second !== 0 && other.#pairs[other.#placeOf(this.#pairs[at]!, second) + 1] !== 0) shared++
    }
    return shared
  }

  #placeOf(first: number, second: number): number {
    const pairs = this.#pairs
    const mask = pairs.length - 1
    let at = ((first ^ second) << 1) & mask
    while (pairs[at + 1] !== 0 && (pairs[at] !== first || pairs[at + 1] !== second)) at = (at + 2) & mask
    return at
  }

  #grow(): void {
    const before = this.#pairs
    this.#pairs = new Int32Array(2 * before.length)
    for (let from = 0; from < before.length; from += 2) {
      if (before[from + 1] === 0) continue
      const at = this.#placeOf(before[from]!, before[from + 1]!)
      this.#pairs[at] = before[from]!
      this.#pairs[at + 1] = before[from + 1]!
    }
  }
}

/** Runs of letters and digits, as they are written; how many of them were new. */
export function addWords(text: string, known: WordSet): number {
  let added = 0
  let [first, second] = [FIRST, SECOND]
  let isInWord = false
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : 0
    if (code < 0x80 ? PLAIN[code] === 1 : isWordUnit(text, at, code)) {
      isInWord = true
      first = Math.imul(first ^ code, 0x01000193)
      second = Math.imul(second + code, 0x5bd1e995) ^ (second >>> 15)
    } else if (isInWord) {
      // A free place is told by the second half.
      if (known.add(first, second === 0 ? 1 : second)) added++
      first = FIRST
      second = SECOND
      isInWord = false
    }
  }
  return added
}

/** Other in each process: whoever writes a mail cannot choose words that meet in one place. */
const FIRST = Math.floor(systemRandom() * 2 ** 32) | 0
const SECOND = Math.floor(systemRandom() * 2 ** 32) | 0

const PLAIN = Uint8Array.from({ length: 0x80 }, (_, code) =>
  /[a-z0-9]/i.test(String.fromCharCode(code)) ? 1 : 0,
)
/** What is known of other units: 0 nothing yet, 1 part of a word, 2 not. */
const OTHER = new Uint8Array(0x10000)

function isWordUnit(text: string, at: number, code: number): boolean {
  if (code >= 0xd800 && code < 0xe000) {
    // Either half of a pair stands for the whole; a half alone for nothing.
    const whole = text.codePointAt(code < 0xdc00 ? at : at - 1) ?? 0
    return whole > 0xffff && /[\p{L}\p{N}]/u.test(String.fromCodePoint(whole))
  }
  if (OTHER[code] === 0) OTHER[code] = /[\p{L}\p{N}]/u.test(String.fromCharCode(code)) ? 1 : 2
  return OTHER[code] === 1
}
