import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Told, told } from '../../../cli/told.suite.ts'
import { startSim } from '../../../sim/start.ts'
import { ANNS, openSearchWorld } from '../search-world.suite.ts'

async function tidemark(env: Record<string, string>, ...args: string[]): Promise<Told> {
  return told(args, env)
}

test('search --embed gives meaning to all that is found by words only, once each', async () => {
  const sim = await startSim({ embeddings: { models: { small: 32 } } })
  const world = await openSearchWorld()
  try {
    for (let n = 0; n < 5; n++) {
      await world.publish({
        ref: `d${n}`,
        title: `Note ${n}`,
        text: `the ${n}th of five notes`,
        seenBy: [ANNS],
      })
    }
    await world.runtime.close()
    const env = {
      TIDEMARK_HOME: world.home,
      TIDEMARK_SEARCH_EMBEDDING: 'openai',
      TIDEMARK_SEARCH_URL: sim.embeddings.baseUrl,
      TIDEMARK_SEARCH_MODEL: 'small',
      TIDEMARK_SEARCH_DIMS: '32',
    }
    const first = await tidemark(env, 'search', '--embed', '--json')
    assert.equal(first.code, 0, first.err)
    assert.deepEqual(JSON.parse(first.out), { model: 'openai:small', contents: 5, embedded: 5 })
    const again = await tidemark(env, 'search', '--embed')
    assert.equal(again.code, 0)
    assert.match(again.out, /^5 of 5 contents are found by meaning \(100 %\)\n$/)
    assert.equal(sim.embeddings.counts.texts, 5)
    const off = await tidemark({ ...env, TIDEMARK_SEARCH_EMBEDDING: 'off' }, 'search', '--embed')
    assert.equal(off.code, 2)
    assert.match(off.err, /search\.embedding is "off"/)
  } finally {
    await world.close().catch(() => {})
    await sim.close()
  }
})
