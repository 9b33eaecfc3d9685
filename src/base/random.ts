/** Randomness is passed in, so that a test (or a replay) can repeat what chance decided. */
export type Random = () => number

export const systemRandom: Random = () => Math.random()

/** A small generator with good enough spread for tests and simulations (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
