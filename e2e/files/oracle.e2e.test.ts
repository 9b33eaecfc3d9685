import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../src/base/clock.ts'
import { seededRandom, systemRandom } from '../../src/base/random.ts'
import { onLibsql } from '../../src/ledger/home.suite.ts'
import { makeHistory, pasted } from './history.ts'
import { type RunOptions, runHistory } from './run.ts'

/** Fewer on a machine that is busy: each is a proof of its own. */
type Extent = { budgetMs: number; historiesMin: number; historiesMax: number }

const ACTS = 14

async function prove(
  context: TestContext,
  { budgetMs, historiesMin, historiesMax }: Extent,
  options: Omit<RunOptions, 'seed'> = {},
): Promise<void> {
  const own = Math.floor(systemRandom() * 2 ** 31)
  context.diagnostic(`the random seed is ${own}`)
  const startedMs = systemClock.monotonicMs()
  let ran = 0
  for (const seed of [own, ...Array.from({ length: historiesMax }, (_, index) => index + 1)]) {
    if (ran >= historiesMin && systemClock.monotonicMs() - startedMs > budgetMs) break
    const lines = makeHistory(seededRandom(seed), { acts: ACTS, crashes: 5 })
    const { failure } = await runHistory(lines, { ...options, seed })
    assert.equal(failure, undefined, `seed ${seed}: ${failure}\n${pasted(lines)}`)
    ran += 1
  }
  context.diagnostic(`${ran} histories`)
}

test('whatever people do on both sides, both end up the same and nothing is lost', (context) =>
  prove(context, { budgetMs: 40_000, historiesMin: 8, historiesMax: 120 }))

test('the same with the ledger on PostgreSQL', (context) =>
  prove(context, { budgetMs: 12_000, historiesMin: 3, historiesMax: 20 }, { database: 'postgres' }))

onLibsql(() => {
  test('the same with the ledger on libSQL', (context) =>
    prove(context, { budgetMs: 5_000, historiesMin: 1, historiesMax: 3 }, { database: 'libsql' }))
})
