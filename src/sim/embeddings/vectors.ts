/**
 * Vectors without a model: words, pairs of words and threes of letters are hashed into a few places each, so that
 * texts with the same words are near, similar words are a little near, and the same text is always the same vector.
 */
const WEIGHTS = { word: 1, pair: 0.5, letters: 0.25 } as const
const WORDS_MAX = 20_000

export function embedText(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions)
  const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).slice(0, WORDS_MAX)
  const counts = new Map<string, number>()
  const add = (feature: string, weight: number): void => {
    counts.set(feature, (counts.get(feature) ?? 0) + weight)
  }
  for (const [at, word] of words.entries()) {
    // Very short words say little.
    add(word, word.length <= 3 ? WEIGHTS.word / 4 : WEIGHTS.word)
    const after = words[at + 1]
    if (after !== undefined) add(`${word} ${after}`, WEIGHTS.pair)
    for (let from = 0; from + 3 <= word.length; from++) add(`#${word.slice(from, from + 3)}`, WEIGHTS.letters)
  }
  // A word that comes ten times does not say ten times as much.
  for (const [feature, weight] of counts) scatter(vector, hash(feature), Math.sqrt(weight))
  return normalized(vector)
}

/** Four places for each feature: collisions of two features in all of them are rare. */
function scatter(vector: Float32Array, seed: number, weight: number): void {
  let state = seed
  for (let place = 0; place < 4; place++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) >>> 0
    state = Math.imul(state ^ (state >>> 12), 0x297a2d39) >>> 0
    const at = state % vector.length
    vector[at] = vector[at]! + (state & 0x80000000 ? -weight : weight)
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let state = 0x811c9dc5
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193) >>> 0
  return state
}

function normalized(vector: Float32Array): Float32Array {
  let sum = 0
  for (const value of vector) sum += value * value
  const length = Math.sqrt(sum)
  // A text without words points somewhere, too: a vector of zeroes has no direction.
  if (length === 0) vector[0] = 1
  else for (let at = 0; at < vector.length; at++) vector[at] = vector[at]! / length
  return vector
}
