import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../src/clock.ts'
import { seededRandom, systemRandom } from '../../src/random.ts'
import { makeHistory, pasted } from './history.ts'
import { runHistory } from './run.ts'

/** Fewer on a machine that is busy: each is a proof of its own. */
const BUDGET_MS = 40_000
const ACTS = 14
const HISTORIES_MIN = 8
const SEEDS = Array.from({ length: 120 }, (_, index) => index + 1)

test('whatever people do on both sides, both end up the same and nothing is lost', async (context) => {
  const own = Math.floor(systemRandom() * 2 ** 31)
  context.diagnostic(`the random seed is ${own}`)
  const startedMs = systemClock.monotonicMs()
  let ran = 0
  for (const seed of [own, ...SEEDS]) {
    if (ran >= HISTORIES_MIN && systemClock.monotonicMs() - startedMs > BUDGET_MS) break
    const lines = makeHistory(seededRandom(seed), { acts: ACTS, crashes: 5 })
    const { failure } = await runHistory(lines, { seed })
    assert.equal(failure, undefined, `seed ${seed}: ${failure}\n${pasted(lines)}`)
    ran += 1
  }
  context.diagnostic(`${ran} histories`)
})
