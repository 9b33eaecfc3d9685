/**
 * A softmax regression over a few dozen features: cues, words seen in examples (naive Bayes), and the nearest examples
 * by their vectors. Each example's features are made without itself, as those of a mail that nobody has seen.
 */
import { CATEGORIES, type Category } from '../contract.ts'
import { CUES } from './cues.ts'

export type Example = { text: string; category: Category; weight: number; features: number[] }

export type LinearModel = {
  isEmbedded: boolean
  shares(asked: {
    features: readonly number[]
    vector: Float32Array | undefined
    text: string
  }): Record<Category, number>
}

const NEAREST = 4
const ROUNDS = 250
const RATE = 0.4
const DECAY = 0.004
/** Cosines of mails lie close together: they are spread over the size of the other features. */
const COSINE_SCALE = 12
const BAYES_SCALE = 0.5
/** From where on two mails are alike, and where they are as good as the same. */
const WORDS_ALIKE = [0.3, 0.6] as const
const VECTORS_ALIKE = [0.85, 0.95] as const
const MONEY = /(?:[€$£]|\b(?:eur|euros?|usd|gbp|chf|zł))\s?\d|\d\s?(?:[€$£]|(?:eur|euros?|usd|gbp|chf|zł)\b)/i

export function textFeatures(text: string, { isAutomated }: { isAutomated: boolean | undefined }): number[] {
  const small = text.toLowerCase()
  const padded = ` ${small.replace(/[^\p{L}\p{N}¿'’-]+/gu, ' ')} `
  const cues = CATEGORIES.map((category) => {
    const hits = CUES[category].filter((cue) => padded.includes(cue === '¿' ? cue : ` ${cue}`)).length
    return Math.min(4, hits) / 2
  })
  const questions = text.split('?').length - 1
  const sentences = text.split(/[.!?\n]+/).filter((one) => one.trim() !== '').length
  return [
    ...cues,
    Math.min(3, questions) / 2,
    questions / Math.max(1, sentences),
    MONEY.test(text) ? 1 : 0,
    isAutomated === undefined ? 0 : isAutomated ? 1 : -1,
    /(?:^|\n)re:/i.test(text) ? 1 : 0,
    text.length < 160 ? 1 : 0,
  ]
}

/** `vectors` in the order of the examples, or none. */
export function fit(examples: readonly Example[], vectors: readonly Float32Array[] | undefined): LinearModel {
  const bayes = new Bayes(examples)
  const rowOf = (at: number): number[] => [
    ...examples[at]!.features,
    ...bayes.features(examples[at]!.text, examples[at]),
    ...(vectors ? nearest(vectors[at]!, examples, vectors, at) : []),
    1,
  ]
  // Our own examples hold the cues that were written beside them, and a stranger's mail fewer: each is shown once more
  // without its cues, so that the model learns what else tells.
  const rows = examples.flatMap((_, at) => [rowOf(at), withoutCues(rowOf(at))])
  const weights = descend(
    rows,
    examples.flatMap(({ category, weight }) => {
      const wanted = { of: CATEGORIES.indexOf(category), weight }
      return [wanted, wanted]
    }),
  )
  const bare = vectors ? fit(examples, undefined) : undefined
  return {
    isEmbedded: vectors !== undefined,
    shares: (asked) => {
      if (vectors && !asked.vector) return bare!.shares(asked)
      const row = [
        ...asked.features,
        ...bayes.features(asked.text, undefined),
        ...(vectors ? nearest(asked.vector!, examples, vectors, -1) : []),
        1,
      ]
      const shares = softmax(weights.map((line) => dot(line, row)))
      return Object.fromEntries(CATEGORIES.map((category, at) => [category, shares[at]!])) as Record<
        Category,
        number
      >
    },
  }
}

function withoutCues(row: readonly number[]): number[] {
  return row.map((value, at) => (at < CATEGORIES.length ? 0 : value))
}

/** From 0 to 1: how much two mails are the same, by their words and, where there are any, by their vectors. */
export function likeness(
  one: { text: string; vector: Float32Array | undefined },
  other: { text: string; vector: Float32Array | undefined },
): number {
  const [words, others] = [wordsOf(one.text), wordsOf(other.text)]
  const both = words.intersection(others).size
  const byWords = both / Math.max(1, words.size + others.size - both)
  const byVector = one.vector && other.vector ? cosine(one.vector, other.vector) : 0
  const share = (value: number, [none, all]: readonly [number, number]): number =>
    Math.min(1, Math.max(0, (value - none) / (all - none)))
  return Math.max(share(byWords, WORDS_ALIKE), share(byVector, VECTORS_ALIKE))
}

/** How near the nearest examples of each category are, against the mean of all categories. */
function nearest(
  vector: Float32Array,
  examples: readonly Example[],
  vectors: readonly Float32Array[],
  without: number,
): number[] {
  const best = CATEGORIES.map((): number[] => [])
  for (const [at, example] of examples.entries()) {
    if (at === without) continue
    best[CATEGORIES.indexOf(example.category)]!.push(
      cosine(vector, vectors[at]!) * (example.weight > 1 ? 1.03 : 1),
    )
  }
  const means = best.map((cosines) => {
    const top = cosines.sort((one, other) => other - one).slice(0, NEAREST)
    return top.length === 0 ? 0 : top.reduce((sum, one) => sum + one, 0) / top.length
  })
  const middle = means.reduce((sum, one) => sum + one, 0) / means.length
  return means.map((mean) => (mean - middle) * COSINE_SCALE)
}

function cosine(one: Float32Array, other: Float32Array): number {
  let sum = 0
  for (let at = 0; at < one.length; at++) sum += one[at]! * other[at]!
  return sum
}

/** Which words were in which category. */
class Bayes {
  readonly #counts = new Map<string, number[]>()
  readonly #totals = CATEGORIES.map(() => 0)

  constructor(examples: readonly Example[]) {
    for (const example of examples) this.#add(example, 1)
  }

  /** `without`: an example that must not be counted for itself. */
  features(text: string, without: Example | undefined): number[] {
    if (without) this.#add(without, -1)
    const sums = CATEGORIES.map(() => 0)
    const words = wordsOf(text)
    for (const word of words) {
      const counts = this.#counts.get(word)
      if (!counts || counts.every((count) => count < 0.5)) continue
      const logs = CATEGORIES.map((_, at) => Math.log((counts[at]! + 0.3) / (this.#totals[at]! + 0.3 * 200)))
      const middle = logs.reduce((sum, one) => sum + one, 0) / logs.length
      for (const [at, log] of logs.entries()) sums[at]! += log - middle
    }
    if (without) this.#add(without, 1)
    const length = Math.sqrt(Math.max(4, words.size))
    return sums.map((sum) => (sum / length) * BAYES_SCALE)
  }

  #add({ text, category, weight }: Example, sign: 1 | -1): void {
    const of = CATEGORIES.indexOf(category)
    for (const word of wordsOf(text)) {
      const counts = this.#counts.get(word) ?? CATEGORIES.map(() => 0)
      counts[of]! += sign * weight
      this.#counts.set(word, counts)
      this.#totals[of]! += sign * weight
    }
  }
}

/** Words by their beginnings, so that endings of grammar do not part them. */
function wordsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/\p{L}{3,40}/gu) ?? []
  return new Set(words.slice(0, 400).map((word) => word.slice(0, 7)))
}

function descend(rows: readonly number[][], wanted: readonly { of: number; weight: number }[]): number[][] {
  const size = rows[0]?.length ?? 0
  const weights = CATEGORIES.map(() => new Array<number>(size).fill(0))
  const total = wanted.reduce((sum, { weight }) => sum + weight, 0)
  for (let round = 0; round < ROUNDS; round++) {
    const slopes = CATEGORIES.map(() => new Array<number>(size).fill(0))
    for (const [at, row] of rows.entries()) {
      const shares = softmax(weights.map((line) => dot(line, row)))
      const { of, weight } = wanted[at]!
      for (const [category, share] of shares.entries()) {
        const slope = (share - (category === of ? 1 : 0)) * weight
        const line = slopes[category]!
        for (let column = 0; column < size; column++) line[column]! += slope * row[column]!
      }
    }
    for (const [category, line] of weights.entries()) {
      for (let column = 0; column < size; column++) {
        line[column]! -= RATE * (slopes[category]![column]! / total + DECAY * line[column]!)
      }
    }
  }
  return weights
}

function dot(line: readonly number[], row: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < line.length; at++) sum += line[at]! * row[at]!
  return sum
}

function softmax(scores: readonly number[]): number[] {
  const most = Math.max(...scores)
  const shares = scores.map((score) => Math.exp(score - most))
  const total = shares.reduce((sum, one) => sum + one, 0)
  return shares.map((share) => share / total)
}
