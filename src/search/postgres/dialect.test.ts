import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresHome } from '../../ledger/home.suite.ts'
import { ALWAYS } from '../index/dialect.ts'
import { ANN, BOB, IndexFixture, WordEmbedder } from '../index.suite.ts'
import { wordLeaf } from '../query/query.ts'
import { accessOf } from '../query/search-index.ts'
import { newPostgresDialect } from './dialect.ts'

const WORDS = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta']

test('how many documents have a word is known from the statistics where many do, and counted where few do', async () => {
  const home = postgresHome()
  const site = await home.fresh()
  const index = new IndexFixture(site, new WordEmbedder())
  try {
    for (let n = 1; n <= 30; n++) {
      await index.put({ ref: `d${n}`, text: n === 7 ? 'common rare' : 'common', to_: [ANN] })
    }
    const count = (word: string) => {
      const dialect = newPostgresDialect()
      return site.ledger.driver.snapshot((tx) => dialect.frequency(tx, wordLeaf(word)))
    }
    const expected = [30, 1, 0]
    const counted = async () => [await count('common'), await count('rare'), await count('none')]
    assert.deepEqual(await counted(), expected)
    await site.ledger.driver.transaction((tx) => tx.run('ANALYZE search_words'))
    // What is known is not counted again.
    await site.ledger.driver.transaction((tx) => tx.run('DELETE FROM search_words WHERE doc_id > 10'))
    assert.deepEqual(await counted(), expected)
  } finally {
    await index.search.close()
    await site.leave()
    await home.remove()
  }
})

test('the nearest are the same whether they are compared here or by the server, and of nothing hidden', async () => {
  const home = postgresHome()
  const site = await home.fresh()
  const index = new IndexFixture(site, new WordEmbedder())
  try {
    for (const [at, word] of WORDS.entries()) {
      for (const [to, more] of [
        [ANN, 'one'],
        [BOB, 'two'],
      ] as const) {
        const text = [`${word} ${more}`, `${WORDS[(at + 1) % WORDS.length]} ${more}`]
        await index.put({ ref: `${word}-${more}`, text, to_: [to] })
      }
    }
    await index.put({ ref: 'shared', text: 'alpha gamma', to_: [ANN, BOB] })
    const [query] = await index.embedder.embed(['alpha'])
    const [here, there] = await Promise.all(
      [undefined, 0].map((comparedMax) =>
        site.ledger.driver.snapshot(async (tx) => {
          const model = await tx.get<{ id: number }>('SELECT id FROM search_models')
          const dialect = newPostgresDialect(comparedMax === undefined ? {} : { comparedMax })
          const access = await accessOf(tx, [ANN], index.now)
          return dialect.nearest(tx, {
            access,
            where: ALWAYS,
            modelId: model!.id,
            query: query!,
            rescored: 200,
          })
        }),
      ),
    )
    assert.equal(here?.length, 2 * WORDS.length + 1)
    assert.deepEqual(there, here)
    const seen = new Set(here.flatMap(({ docIds }) => docIds))
    for (const id of seen) assert.ok(await index.search.read(id, { principals: [ANN] }))
  } finally {
    await index.search.close()
    await site.leave()
    await home.remove()
  }
})
