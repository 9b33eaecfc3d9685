/**
 * Where two texts differ: by lines, and by words within lines that stand for each other. Bounded: beyond so many edits
 * or steps what lies between the common beginning and the common end counts as different, which is true, if coarse.
 */
import { formatPlural } from '../../../../web/src/format.ts'

export type DiffPart = { text: string; isDifferent: boolean }
export type DiffLine = { parts: readonly DiffPart[]; isDifferent: boolean }
export type TextDiff = {
  here: readonly DiffLine[]
  there: readonly DiffLine[]
  /** What it has cost: diagonals that were followed, and words or lines that were compared on them. */
  steps: number
}

/** Each costs a pass over as many diagonals: 1,000 take about half a million steps. */
export const LINE_EDITS_MAX = 1_000
const WORD_EDITS_MAX = 200
const LINE_CHARS_MAX = 2_000
/** For one text, since this runs where the page is drawn: of a million steps, about 10 ms. */
export const LINE_STEPS_MAX = 2_000_000
export const WORD_STEPS_MAX = 1_000_000

type Effort = { editsMax: number; stepsLeft: number }

export function textDiff(here: string, there: string): TextDiff {
  const [a, b] = [linesOf(here), linesOf(there)]
  const byLines: Effort = { editsMax: LINE_EDITS_MAX, stepsLeft: LINE_STEPS_MAX }
  const byWords: Effort = { editsMax: WORD_EDITS_MAX, stepsLeft: WORD_STEPS_MAX }
  const kept = common(a, b, byLines)
  const lines: { here: DiffLine[]; there: DiffLine[] } = { here: [], there: [] }
  for (const { fromA, toA, fromB, toB, isCommon } of stretches(kept)) {
    if (isCommon) {
      for (const text of a.slice(fromA, toA)) lines.here.push(sameLine(text))
      for (const text of b.slice(fromB, toB)) lines.there.push(sameLine(text))
      continue
    }
    const [left, right] = [a.slice(fromA, toA), b.slice(fromB, toB)]
    // As many on both sides: each was changed into the one beside it.
    const arePairs = left.length === right.length
    left.forEach((text, at) => {
      const pair = arePairs ? wordDiff(text, right[at]!, byWords) : undefined
      lines.here.push(pair?.here ?? differentLine(text))
      if (arePairs) lines.there.push(pair?.there ?? differentLine(right[at]!))
    })
    if (!arePairs) for (const text of right) lines.there.push(differentLine(text))
  }
  return { ...lines, steps: LINE_STEPS_MAX + WORD_STEPS_MAX - byLines.stepsLeft - byWords.stepsLeft }
}

const linesOf = (text: string): string[] => text.replaceAll('\r\n', '\n').split('\n')
const sameLine = (text: string): DiffLine => ({ parts: [{ text, isDifferent: false }], isDifferent: false })
const differentLine = (text: string): DiffLine => ({
  parts: [{ text, isDifferent: true }],
  isDifferent: true,
})

/** Undefined where they have too little in common for words to say more. */
function wordDiff(
  here: string,
  there: string,
  effort: Effort,
): { here: DiffLine; there: DiffLine } | undefined {
  if (effort.stepsLeft <= 0 || here.length > LINE_CHARS_MAX || there.length > LINE_CHARS_MAX) return undefined
  const [a, b] = [wordsOf(here), wordsOf(there)]
  const kept = common(a, b, effort)
  const sameChars = a.reduce((sum, word, at) => sum + (kept.a[at] && word.trim() !== '' ? word.length : 0), 0)
  if (sameChars * 3 < Math.max(here.length, there.length)) return undefined
  return {
    here: { parts: joined(a, kept.a), isDifferent: true },
    there: { parts: joined(b, kept.b), isDifferent: true },
  }
}

const wordsOf = (line: string): string[] => line.match(/[\p{L}\p{N}_]+|\s+|./gu) ?? []

function joined(words: readonly string[], kept: readonly boolean[]): DiffPart[] {
  const parts: DiffPart[] = []
  words.forEach((text, at) => {
    const last = parts.at(-1)
    if (last && last.isDifferent === !kept[at]) last.text += text
    else parts.push({ text, isDifferent: !kept[at] })
  })
  return parts
}

type Kept = { a: boolean[]; b: boolean[] }

/** Which of both are in a longest common sequence, by Myers' greedy way as far as the effort goes. */
function common(a: readonly string[], b: readonly string[], effort: Effort): Kept {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  const isOuter = (length: number) => (_: unknown, at: number) => at < start || at >= length - end
  const kept = {
    a: Array.from(a, isOuter(a.length)),
    b: Array.from(b, isOuter(b.length)),
  }
  const numbers = new Map<string, number>()
  const inner = (of: readonly string[]): Int32Array => numbered(of.slice(start, of.length - end), numbers)
  for (const [x, y] of matches(inner(a), inner(b), effort)) {
    kept.a[start + x] = true
    kept.b[start + y] = true
  }
  return kept
}

/** The same number for the same text: numbers are compared at one go. */
function numbered(texts: readonly string[], numbers: Map<string, number>): Int32Array {
  return Int32Array.from(texts, (text) => {
    const known = numbers.get(text) ?? numbers.size
    numbers.set(text, known)
    return known
  })
}

function matches(a: Int32Array, b: Int32Array, effort: Effort): [number, number][] {
  const most = Math.min(effort.editsMax, a.length + b.length)
  /** How far each diagonal was followed, from -most - 1 on. */
  const furthest = new Int32Array(2 * most + 3)
  const zero = most + 1
  const trace: Int32Array[] = []
  for (let edits = 0; edits <= most; edits++) {
    // No more than this is in use yet.
    trace.push(furthest.slice(zero - edits, zero + edits + 1))
    for (let k = -edits; k <= edits; k += 2) {
      if (effort.stepsLeft <= 0) return []
      const begin = isDown(furthest, zero, k, edits) ? furthest[zero + k + 1]! : furthest[zero + k - 1]! + 1
      let x = begin
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1
      effort.stepsLeft -= 1 + x - begin
      furthest[zero + k] = x
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length)
    }
  }
  return []
}

function isDown(furthest: Int32Array, zero: number, k: number, edits: number): boolean {
  return k === -edits || (k !== edits && furthest[zero + k - 1]! < furthest[zero + k + 1]!)
}

function walkBack(trace: readonly Int32Array[], endX: number, endY: number): [number, number][] {
  const found: [number, number][] = []
  let [x, y] = [endX, endY]
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const furthest = trace[edits]!
    const k = x - y
    const before = isDown(furthest, edits, k, edits) ? k + 1 : k - 1
    const beforeX = edits === 0 ? 0 : furthest[edits + before]!
    const beforeY = edits === 0 ? 0 : beforeX - before
    while (x > beforeX && y > beforeY) {
      x -= 1
      y -= 1
      found.push([x, y])
    }
    ;[x, y] = [beforeX, beforeY]
  }
  return found
}

type Range = { fromA: number; toA: number; fromB: number; toB: number; isCommon: boolean }

/** Runs of what both have, and of what lies between. */
function* stretches({ a, b }: Kept): Generator<Range> {
  let [x, y] = [0, 0]
  while (x < a.length || y < b.length) {
    const [fromA, fromB] = [x, y]
    while (x < a.length && y < b.length && a[x] && b[y]) {
      x += 1
      y += 1
    }
    if (x > fromA) yield { fromA, toA: x, fromB, toB: y, isCommon: true }
    const [nextA, nextB] = [x, y]
    while (x < a.length && !a[x]) x += 1
    while (y < b.length && !b[y]) y += 1
    if (x > nextA || y > nextB) yield { fromA: nextA, toA: x, fromB: nextB, toB: y, isCommon: false }
  }
}

export type DiffSide = { text: string; isWhole: boolean; lines: readonly DiffLine[] }

/**
 * What one side has that the other has not, in words. Of a text that is cut nobody knows what stands behind: lines after
 * the last one that both have may well be there, and the last line of all may be half a line.
 */
export function differenceText(side: DiffSide, other: DiffSide): string {
  const lines = side.isWhole ? side.lines : side.lines.slice(0, -1)
  const lastSame = lines.findLastIndex(({ isDifferent }) => !isDifferent)
  const sure = other.isWhole ? lines : lines.slice(0, lastSame + 1)
  const different = sure.filter(({ isDifferent }) => isDifferent).length
  const unsure = lines.length - sure.length
  const parts: string[] = []
  if (different > 0)
    parts.push(`${formatPlural(different, 'line')} that the other has not, or not like this.`)
  else if (haveSameLines(side, other) && side.text !== other.text) parts.push('Only the line ends differ.')
  else if (unsure === 0) parts.push('Nothing is here that the other has not.')
  const said = parts.map((part) => (side.isWhole && other.isWhole ? part : inTheBeginning(part)))
  if (unsure > 0) {
    const last = unsure === 1 ? 'last line' : `last ${formatPlural(unsure, 'line')}`
    said.push(`Whether the other has the ${last} is not seen here: it is not shown whole.`)
  }
  return said.join(' ')
}

function haveSameLines(side: DiffSide, other: DiffSide): boolean {
  return [...side.lines, ...other.lines].every(({ isDifferent }) => !isDifferent)
}

const inTheBeginning = (said: string): string =>
  `In the beginning that is shown, ${said.slice(0, 1).toLowerCase()}${said.slice(1)}`
