import assert from 'node:assert/strict'
import { ANN, type IndexFixture, onEachDatabase, WordEmbedder } from './index.suite.ts'

/** From here on documents have numbers as if there were so many already: by the highest, all are counted. */
async function countFrom({ site }: IndexFixture, n: number): Promise<void> {
  await site.ledger.transaction(async (tx) => {
    if (tx.dialect === 'sqlite')
      await tx.run(`INSERT INTO sqlite_sequence(name, seq) VALUES ('search_documents', ?)`, [n])
    else await tx.run(`ALTER TABLE search_documents ALTER COLUMN id RESTART WITH ${n}`)
  })
}

onEachDatabase('the rank of what is found', (withIndex) => {
  withIndex('what lacks a common word stands behind what has all, and is said to lack it', async (index) => {
    await index.search.prepare()
    await countFrom(index, 1_000)
    await index.site.ledger.transaction(async (tx) => {
      for (let i = 0; i < 120; i++)
        await index.search.publish(tx, index.document({ ref: `other${i}`, text: 'common', to_: [] }))
    })
    const long = Array.from({ length: 200 }, (_, i) => `filler${i}`).join(' ')
    await index.put({ ref: 'all', text: `zebra giraffe common ${long}`, to_: [ANN] })
    for (let i = 0; i < 10; i++)
      await index.put({ ref: `most${i}`, title: 'zebra giraffe', text: `zebra giraffe n${i}`, to_: [ANN] })
    const { hits } = await index.ask('zebra giraffe common')
    assert.equal(hits.length, 11)
    assert.equal(hits[0]!.ref, 'all')
    const words = hits.map(({ why }) => [why.words?.found, why.words?.missing])
    assert.deepEqual(words[0], [['zebra', 'giraffe', 'common'], []])
    for (const of of words.slice(1)) assert.deepEqual(of, [['zebra', 'giraffe'], ['common']])
  })

  withIndex(
    'with most of the words in many documents, a misspelt one is still helped with',
    async (index) => {
      await index.search.prepare()
      await countFrom(index, 1_000)
      await index.site.ledger.transaction(async (tx) => {
        for (let i = 0; i < 120; i++)
          await index.search.publish(tx, index.document({ ref: `other${i}`, text: 'quartrely', to_: [] }))
      })
      for (let i = 0; i < 10; i++)
        await index.put({ ref: `d${i}`, text: `zebra giraffe quarterly n${i}`, to_: [ANN] })
      const { didYouMean, hits } = await index.ask('zebra giraffe quartrely')
      assert.equal(hits.length, 10)
      assert.equal(didYouMean, 'zebra giraffe quarterly')
    },
  )

  withIndex(
    'a hit that has words is never weak, however far it is by meaning',
    async (index) => {
      await index.put({ ref: 'word', text: 'alpha one two three four', to_: [ANN] })
      await index.put({ ref: 'near', text: 'beginning one two three four', to_: [ANN] })
      const { hits, answered } = await index.ask('alpha', { mode: 'auto' })
      const weak = hits.map(({ ref, why }) => [ref, why.words !== null, why.meaning?.isWeak])
      assert.deepEqual(weak, [
        ['word', true, false],
        ['near', false, true],
      ])
      assert.equal(answered, true)
      assert.equal((await index.ask('alpha -beginning', { mode: 'meaning' })).answered, false)
    },
    new WordEmbedder({ beginning: 'alpha' }),
  )

  withIndex(
    'a number that nothing has is not answered by what is like it',
    async (index) => {
      await index.put({ ref: 'other', text: 'invoice 4711', to_: [ANN] })
      const { hits, answered } = await index.ask('inv-2025-0199', { mode: 'auto' })
      assert.deepEqual(
        hits.map(({ ref, why }) => [ref, why.meaning?.isWeak]),
        [['other', true]],
      )
      assert.equal(answered, false)
      assert.equal((await index.ask('4711')).answered, true)
    },
    new WordEmbedder({ inv: 'invoice', '2025': '4711', '0199': '4711' }),
  )

  withIndex('each chunk of a long document is as near as its own text', async (index) => {
    // On SQLite the vectors of 64 chunks lie in one row: the first, the last and those between, of three rows.
    const texts = Array.from({ length: 150 }, (_, n) => `chunk${n} about thing${n}`)
    await index.put({ ref: 'short', text: 'something else', to_: [ANN] })
    await index.put({ ref: 'long', text: texts, to_: [ANN] })
    for (const n of [0, 1, 63, 64, 65, 127, 128, 149]) {
      const { hits } = await index.ask(texts[n]!, { mode: 'meaning' })
      assert.deepEqual([hits[0]!.ref, hits[0]!.citation?.chunk], ['long', n])
      assert.ok(hits[0]!.why.meaning!.similarity > 0.98, `chunk ${n}: ${hits[0]!.why.meaning!.similarity}`)
    }
  })

  withIndex('help with spelling knows a word of one own document among many of others', async (index) => {
    await index.search.prepare()
    // Both are one slip away. The first by the alphabet is in documents of others only.
    const others = Array.from({ length: 250 }, (_, n) => ({
      ref: `o${n}`,
      text: 'quartealy quarterly',
      to_: [],
    }))
    const own = Array.from({ length: 101 }, (_, n) => ({ ref: `d${n}`, text: 'filler', to_: [ANN] }))
    await index.site.ledger.transaction(async (tx) => {
      for (const { to_, ...sketch } of [...others, ...own]) {
        const document = index.document({ ...sketch, to_ })
        await index.search.publish(tx, document)
        for (const principal of to_) await index.search.grant(tx, document, principal, index.grant())
      }
    })
    assert.equal((await index.ask('quartely')).didYouMean, null)
    await index.put({ ref: 'late', text: 'quarterly', to_: [ANN] })
    assert.equal((await index.ask('quartely')).didYouMean, 'quarterly')
  })
})
