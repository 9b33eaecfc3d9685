import assert from 'node:assert/strict'
import { ANN, BOB, onEachDatabase } from './index.suite.ts'

const SWAPS = 25

onEachDatabase('while the index is written to', (withIndex) => {
  withIndex('no search sees half of a swapped document', async (index) => {
    await index.put({ ref: 'a', title: 'v0', text: ['common v0', 'tail v0'], to_: [ANN] })
    let isOver = false
    const swapping = (async () => {
      for (let n = 1; n <= SWAPS; n++) {
        await index.put({
          ref: 'a',
          title: `v${n}`,
          text: ['common', 'tail'].map((w) => `${w} v${n}`),
          to_: [],
        })
      }
      isOver = true
    })()
    let looks = 0
    while (!isOver) {
      const { hits, total } = await index.ask('common', { mode: 'auto' })
      const [hit] = hits
      assert.deepEqual([total, hits.length], [1, 1])
      const title = hit!.title.map(({ text }) => text).join('')
      assert.equal(hit!.snippet.map(({ text }) => text).join(''), `common ${title}`)
      const read = await index.search.read(hit!.id, { principals: [ANN] })
      assert.deepEqual(
        read!.chunks.map(({ text }) => text),
        ['common', 'tail'].map((w) => `${w} ${read!.title}`),
      )
      looks += 1
    }
    await swapping
    assert.ok(looks > 0)
    assert.equal(await index.count('search_contents'), 1)
  })

  withIndex('what was unshared is in no answer that is asked for afterwards', async (index) => {
    const refs = Array.from({ length: 12 }, (_, i) => `d${i}`)
    for (const ref of refs)
      await index.put({ ref, title: `Plan ${ref}`, text: `words of ${ref}`, to_: [ANN, BOB] })
    const gone = new Set<string>()
    const unsharing = (async () => {
      for (const ref of refs) {
        await index.site.ledger.transaction((tx) => index.search.revoke(tx, { source: 'drive', ref }, ANN))
        gone.add(ref)
      }
    })()
    while (gone.size < refs.length) {
      const before = new Set(gone)
      const answer = await index.ask('words plan', { facets: true, limit: 50 })
      const seen = answer.hits.map(({ ref }) => ref)
      assert.deepEqual(
        seen.filter((ref) => before.has(ref)),
        [],
      )
      // One state of the database: what is counted is what is listed, and each hit has the access by which it is seen.
      assert.equal(answer.total, seen.length)
      assert.deepEqual(
        answer.facets.source ?? [],
        seen.length === 0 ? [] : [{ value: 'drive', count: seen.length }],
      )
      assert.ok(answer.hits.every(({ why }) => why.access.length === 1))
    }
    await unsharing
    assert.equal((await index.ask('words', { as: BOB })).total, refs.length)
  })

  withIndex(
    'of two that take the last accesses away at once, the document goes with the later',
    async (index) => {
      for (let n = 0; n < 10; n++) {
        await index.put({ ref: 'a', title: 'Plan', text: 'words', to_: [ANN, BOB] })
        await index.put({ ref: 'b', title: 'Plan', text: 'words', to_: [ANN] })
        const document = { source: 'drive', ref: 'a' }
        await Promise.all([
          index.site.ledger.transaction((tx) => index.search.revoke(tx, document, ANN)),
          index.site.ledger.transaction((tx) => index.search.revoke(tx, document, BOB)),
          index.site.ledger.transaction((tx) => index.search.remove(tx, { source: 'drive', ref: 'b' })),
        ])
        for (const table of ['documents', 'contents', 'chunks', 'access'])
          assert.equal(await index.count(`search_${table}`), 0, table)
      }
    },
  )

  withIndex('a query at its limits costs no more than it may', async (index) => {
    for (let i = 0; i < 30; i++) await index.put({ ref: `d${i}`, text: `word${i} alpha beta`, to_: [ANN] })
    const hostile = [
      'a '.repeat(100),
      `${'('.repeat(20)}alpha${')'.repeat(20)}`,
      Array.from({ length: 100 }, (_, i) => `w${i}*`).join(' OR '),
      `-(${Array.from({ length: 99 }, (_, i) => `-x${i}`).join(' ')})`,
      `"${'alpha '.repeat(100)}"`,
      'x'.repeat(2_000),
      `a* ${'b* '.repeat(99)}`,
    ]
    for (const text of hostile) {
      const { total, hits } = await index.ask(text, { mode: 'auto', facets: true })
      assert.ok(total <= 30 && hits.length <= 30)
    }
    await assert.rejects(index.ask('x'.repeat(2_001)), { code: 'bad-query' })
    await assert.rejects(index.ask('a '.repeat(101)), { code: 'bad-query' })
  })
})
