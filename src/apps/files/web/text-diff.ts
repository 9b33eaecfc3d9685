/**
 * Where two texts differ: by lines, and by words within lines that stand for each other. Bounded: beyond so many edits
 * what lies between the common beginning and the common end counts as different, which is true, if coarse.
 */

export type DiffPart = { text: string; isDifferent: boolean }
export type DiffLine = { parts: readonly DiffPart[]; isDifferent: boolean }
export type TextDiff = { here: readonly DiffLine[]; there: readonly DiffLine[] }

/** Each costs a pass over as many diagonals: 1,000 take about a million steps. */
export const LINE_EDITS_MAX = 1_000
const WORD_EDITS_MAX = 200
const LINE_CHARS_MAX = 2_000

export function textDiff(here: string, there: string): TextDiff {
  const [a, b] = [linesOf(here), linesOf(there)]
  const kept = common(a, b, LINE_EDITS_MAX)
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
      const pair = arePairs ? wordDiff(text, right[at]!) : undefined
      lines.here.push(pair?.here ?? differentLine(text))
      if (arePairs) lines.there.push(pair?.there ?? differentLine(right[at]!))
    })
    if (!arePairs) for (const text of right) lines.there.push(differentLine(text))
  }
  return lines
}

const linesOf = (text: string): string[] => text.replaceAll('\r\n', '\n').split('\n')
const sameLine = (text: string): DiffLine => ({ parts: [{ text, isDifferent: false }], isDifferent: false })
const differentLine = (text: string): DiffLine => ({
  parts: [{ text, isDifferent: true }],
  isDifferent: true,
})

/** Undefined where they have too little in common for words to say more. */
function wordDiff(here: string, there: string): { here: DiffLine; there: DiffLine } | undefined {
  if (here.length > LINE_CHARS_MAX || there.length > LINE_CHARS_MAX) return undefined
  const [a, b] = [wordsOf(here), wordsOf(there)]
  const kept = common(a, b, WORD_EDITS_MAX)
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

/** Which of both are in a longest common sequence, by Myers' greedy way with at most so many edits. */
function common(a: readonly string[], b: readonly string[], editsMax: number): Kept {
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1
  const isOuter = (length: number) => (_: unknown, at: number) => at < start || at >= length - end
  const kept = {
    a: Array.from(a, isOuter(a.length)),
    b: Array.from(b, isOuter(b.length)),
  }
  const inner = { a: a.slice(start, a.length - end), b: b.slice(start, b.length - end) }
  for (const [x, y] of matches(inner.a, inner.b, editsMax)) {
    kept.a[start + x] = true
    kept.b[start + y] = true
  }
  return kept
}

function matches(a: readonly string[], b: readonly string[], editsMax: number): [number, number][] {
  const most = Math.min(editsMax, a.length + b.length)
  const furthest = new Map<number, number>([[1, 0]])
  const trace: Map<number, number>[] = []
  for (let edits = 0; edits <= most; edits++) {
    trace.push(new Map(furthest))
    for (let k = -edits; k <= edits; k += 2) {
      let x = isDown(furthest, k, edits) ? furthest.get(k + 1)! : furthest.get(k - 1)! + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1
      furthest.set(k, x)
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a.length, b.length)
    }
  }
  return []
}

const isDown = (furthest: ReadonlyMap<number, number>, k: number, edits: number): boolean =>
  k === -edits || (k !== edits && furthest.get(k - 1)! < furthest.get(k + 1)!)

function walkBack(trace: readonly Map<number, number>[], endX: number, endY: number): [number, number][] {
  const found: [number, number][] = []
  let [x, y] = [endX, endY]
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const furthest = trace[edits]!
    const k = x - y
    const before = isDown(furthest, k, edits) ? k + 1 : k - 1
    const beforeX = edits === 0 ? 0 : furthest.get(before)!
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
