/** Chance that can be repeated: every message has its own stream, given by the seed and its position. */
import { type Random, seededRandom } from '../../base/random.ts'

/** Three numbers into one that has nothing visibly to do with them (the finish of murmur3). */
export function mixed(a: number, b: number, c = 0): number {
  let hash =
    Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35) ^ Math.imul(c, 0x27d4eb2f)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

export function streamOf(seed: number, position: number, purpose = 0): Random {
  return seededRandom(mixed(seed, position, purpose))
}

export function below(random: Random, count: number): number {
  return Math.floor(random() * count)
}

export function oneOf<T>(random: Random, list: readonly T[]): T {
  return list[below(random, list.length)]!
}

/** Position 0 most often, the others ever more rarely: the way of senders and of words. */
export function zipf(random: Random, count: number): number {
  return Math.min(count - 1, Math.floor(count ** random()) - 1)
}

/** Most near the median, a few far above; bounded. */
export function skewed(random: Random, options: { median: number; spread: number; max: number }): number {
  // Twelve would be closer to a normal distribution; four are close enough and three times as fast.
  const normal = (random() + random() + random() + random() - 2) * 1.73
  return Math.min(options.max, options.median * Math.exp(options.spread * normal))
}

export function weighted<T>(random: Random, choices: readonly (readonly [T, number])[]): T {
  let total = 0
  for (const [, weight] of choices) total += weight
  let left = random() * total
  for (const [choice, weight] of choices) {
    left -= weight
    if (left < 0) return choice
  }
  return choices.at(-1)![0]
}
