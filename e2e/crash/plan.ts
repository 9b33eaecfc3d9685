/** When to kill: at every commit point, early and late, and at random instants; several kills in the life of a ledger. */

import type { Random } from '../../src/base/random.ts'
import { COMMIT_POINTS } from '../../src/ledger/cycle.ts'
import { CYCLES_PER_TICK } from './child-options.ts'
import type { Kill, Reference } from './life.ts'

/** Before that a process has not even loaded its code. */
const SOONEST_MS = 100
/** Every so many random instants, one is within the time that a process needs to open the ledger and start. */
const STARTING_EVERY = 5
const STARTING_MS = 300
/** About as long as the cycles between two ticks take. */
const TICK_MS = 25

/**
 * Each commit point `hitsEach` times, at places spread over the first `reach` of a life; `perLife` kills share a
 * ledger. A slow machine needs fewer cycles, because more is committed at once: far on, a kill may come too late.
 */
export function pointLives(
  reference: Reference,
  o: { random: Random; hitsEach: number; perLife: number; reach: number },
): Kill[][] {
  const kills = Array.from({ length: o.hitsEach }, () =>
    COMMIT_POINTS.map((point): Kill => {
      const hitMax = ((reference.hits[point] ?? 1) * o.reach) / o.perLife
      return { point, hit: 1 + Math.floor(o.random() * hitMax) }
    }),
  )
  return inLives(shuffled(kills.flat(), o.random), o.perLife)
}

/**
 * Mostly while it works, some while it is starting. Counted in the process's own cycles and not in time alone: the
 * machine may be twice as slow by then.
 */
export function instantLives(
  reference: Reference,
  o: { random: Random; kills: number; perLife: number },
): Kill[][] {
  const ticks = (reference.hits.begin ?? 1) / CYCLES_PER_TICK
  const kills = Array.from({ length: o.kills }, (_, n): Kill => {
    if (n % STARTING_EVERY === STARTING_EVERY - 1)
      return { afterMs: Math.round(SOONEST_MS + o.random() * STARTING_MS) }
    return { tick: Math.floor((o.random() * ticks) / o.perLife), afterMs: o.random() * TICK_MS }
  })
  return inLives(kills, o.perLife)
}

function inLives(kills: readonly Kill[], perLife: number): Kill[][] {
  return Array.from({ length: Math.ceil(kills.length / perLife) }, (_, n) =>
    kills.slice(n * perLife, (n + 1) * perLife),
  )
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  return list
    .map((value) => ({ value, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value)
}
