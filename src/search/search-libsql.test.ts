import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { libsqlHome, onLibsql } from '../ledger/home.suite.ts'
import { ANN, BOB, IndexFixture, WordEmbedder } from './index.suite.ts'

onLibsql(() => {
  describe('the index on libSQL', () => {
    const home = libsqlHome()
    after(() => home.remove())

    test('finds by words and by meaning what the reader may see, and what was removed no more', async () => {
      const site = await home.fresh()
      const index = new IndexFixture(site, new WordEmbedder({ automobile: 'car' }))
      assert.deepEqual(await index.refs('budget'), [])
      await index.put({ ref: 'hers', title: 'Plans', text: 'The budget of the automobile grows', to_: [ANN] })
      await index.put({ ref: 'his', title: 'Plans', text: 'The budget of the car shrinks', to_: [BOB] })
      await index.put({ ref: 'both', title: 'Notes', text: 'Nothing about money here', to_: [ANN, BOB] })
      assert.deepEqual(await index.refs('budget'), ['hers'])
      assert.deepEqual(await index.refs('budget', { as: BOB }), ['his'])
      await index.put({ ref: 'wheels', text: 'automobile', to_: [ANN] })
      assert.equal((await index.refs('car', { mode: 'meaning' }))[0], 'wheels')
      assert.deepEqual(await index.search.suggest('bud', { principals: [ANN] }, 5), [
        { text: 'budget', kind: 'word' },
      ])
      await site.ledger.transaction((tx) => index.search.remove(tx, { source: 'drive', ref: 'hers' }))
      assert.deepEqual(await index.refs('budget'), [])
      await index.search.close()
      await site.leave()
    })
  })
})
