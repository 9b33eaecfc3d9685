import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom, systemRandom } from '../../src/base/random.ts'
import { CliWorld } from './cli-world.ts'
import { WATCH_ENV, watchHistory } from './watch-history.ts'

test('folders renamed and moved on both sides under a watch end up the same, and the status never says so before', async (context) => {
  const seed = Math.floor(systemRandom() * 2 ** 31)
  context.diagnostic(`the random seed is ${seed}`)
  const world = await CliWorld.start({ env: WATCH_ENV })
  try {
    const calm = { workMs: 6_000, gapMsMax: 500, settleMsMax: 240_000 }
    const { acts } = await watchHistory(world, { random: seededRandom(seed), ...calm })
    assert.ok(acts > 0)
  } finally {
    await world.close()
  }
})
