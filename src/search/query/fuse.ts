/**
 * How a document's rank is made of what is known about it. Pure, with all its numbers here; the evaluation set says what
 * they are worth.
 *
 *   score = words × WORDS_WEIGHT + meaning × MEANING_WEIGHT + recency × RECENCY_WEIGHT
 *
 * - words: how well they match against the best match of this search, and how much more than half of what was asked for,
 *   by its weight, is there
 * - meaning: how near the nearest chunk is, between what is as far as chance and what is the same
 * - recency: halves with every RECENCY_HALF_DAYS; it decides between what is alike otherwise
 */

/** What a word counts, by where it stands. */
export const COLUMN_WEIGHTS = { title: 5, body: 1, owner: 2, from: 2, to: 2, folders: 1.5 } as const

export const WORDS_WEIGHT = 1
export const MEANING_WEIGHT = 1.5
export const RECENCY_WEIGHT = 0.01
export const RECENCY_HALF_DAYS = 180

/** How many of the nearest chunks count, and how many are compared exactly to find them. */
export const NEAREST_CHUNKS = 100
export const RESCORED_CHUNKS = 200
/**
 * How near the nearest chunk must be for anything to count that is near, as `nearness` has it. Chosen on the
 * reported queries of the evaluation set: with it, four in ten of their questions that nothing answers get no answer, and
 * one in twenty-five of their paraphrases loses its own.
 */
export const NEAREST_MIN = 0.13

/**
 * How near a chunk must be to count as an answer by its meaning alone; what is further is shown, and said to be no more
 * than near. Some queries are near to everything, those in other languages above all: where the model brings a
 * background, a chunk must be by STRONG_LEAD nearer than half of what the nearest of that are, and by STRONG_MIN nearer
 * than chance where it brings none. Both were chosen on the tuning queries of the evaluation set: see
 * docs/adr/0024-weak-matches.md.
 */
export const STRONG_LEAD = 0.387
export const STRONG_MIN = 0.27
const BACKGROUND_NEAREST = 3

export function strongSimilarity(
  query: Float32Array,
  { chance, background }: { chance: number; background?: readonly Float32Array[] | undefined },
): number {
  if (!background) return chance + STRONG_MIN * (1 - chance)
  const similarities = background.map((vector) => {
    let sum = 0
    for (let at = 0; at < vector.length; at++) sum += vector[at]! * query[at]!
    return sum
  })
  const nearest = similarities.sort((a, b) => b - a).slice(0, BACKGROUND_NEAREST)
  return STRONG_LEAD + nearest.reduce((sum, value) => sum + value, 0) / nearest.length / 2
}

/** With fewer documents that have all words, those join that have at least PARTIAL_COVERAGE of their weight. */
export const FEW_DOCUMENTS = 10
export const PARTIAL_COVERAGE = 0.5
/** What lacks a word, if only a common one that weighs nothing, does not count as having all. */
export const PARTIAL_COVERAGE_MAX = 0.99
/** A word that more than this share of all documents has says nothing about which of them is meant. */
export const COMMON_SHARE = 0.1
/** With fewer documents than this, no word is common. */
export const COMMON_DOCUMENTS_MIN = 1_000

/**
 * What a word weighs: the fewer documents have it, the more. Of documents that the reader sees: counted over all, the
 * order of one's own documents would tell whether those of others have a word.
 */
export function wordWeight({ seen, having }: { seen: number; having: number }): number {
  return Math.log(1 + Math.max(seen, having) / (having + 0.5))
}

const DAY_MS = 86_400_000

export type Known = {
  /** Null where it does not have the words. `coverage`: of the weight of the words asked for, 1 where all are there. */
  words: { score: number; coverage: number } | null
  similarity: number | null
  atMs: number | null
}

export type Parts = { words: number; meaning: number; recency: number }

/** `bestWords`: the highest score by words among all that were found. `chance`: see Embedder. */
export function rank(
  known: Known,
  { bestWords, chance, nowMs }: { bestWords: number; chance: number; nowMs: number },
): Parts {
  const { words, similarity, atMs } = known
  return {
    words: words ? WORDS_WEIGHT * shareOf(words.coverage) * fitOf(words.score, bestWords) : 0,
    meaning: similarity === null ? 0 : MEANING_WEIGHT * nearness(similarity, chance),
    recency: RECENCY_WEIGHT * recencyOf(atMs, nowMs),
  }
}

/**
 * From 0, for what has just enough words to be shown, to 1, for what has all. By the share of words itself, documents that
 * have half of them, the common half as a rule, stood before what is clearly nearer by meaning.
 */
function shareOf(coverage: number): number {
  return (coverage - PARTIAL_COVERAGE) / (1 - PARTIAL_COVERAGE)
}

/** From a half, since it has the words at all, to 1, for the best. */
function fitOf(score: number, best: number): number {
  return best > 0 ? 0.5 + (0.5 * score) / best : 0.5
}

/** From 0, which chance gives, to 1, which is the same. */
export function nearness(similarity: number, chance: number): number {
  return Math.max(0, similarity - chance) / (1 - chance)
}

/** Without a date it is as good as old; a date ahead is now. */
function recencyOf(atMs: number | null, nowMs: number): number {
  if (atMs === null) return 0
  return 0.5 ** (Math.max(0, nowMs - atMs) / DAY_MS / RECENCY_HALF_DAYS)
}

export function total({ words, meaning, recency }: Parts): number {
  return words + meaning + recency
}
