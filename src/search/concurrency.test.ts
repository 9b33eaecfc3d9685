import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import { postgresHome } from '../ledger/home.suite.ts'
import type { SearchAnswer } from './contract.ts'
import { ANN, BOB, IndexFixture, onEachDatabase, WordEmbedder } from './index.suite.ts'
import { postgresDialect } from './postgres/dialect.ts'
import { type SearchInput, searchIndex } from './query/search-index.ts'
import { openSearch } from './search.ts'
import { sqliteDialect } from './sqlite/dialect.ts'

const SWAPS = 25

/** Each look at it is a step later. */
class SteppingClock extends FakeClock {
  readonly #stepMs: number
  #looks = 0

  constructor(stepMs: number) {
    super()
    this.#stepMs = stepMs
  }

  override monotonicMs(): number {
    this.#looks += 1
    return this.#looks * this.#stepMs
  }
}

const EARLY_S = 1
const LATE_S = 5

/** For `alpha`, by a clock of which each look is a step later. */
async function askStepping(
  index: IndexFixture,
  { stepS, ...more }: { stepS: number } & Partial<SearchInput>,
): Promise<SearchAnswer> {
  const [query] = await index.embedder.embed(['alpha'])
  const { model, chance } = index.embedder
  const { driver } = index.site.ledger
  const dialect = driver.dialect === 'sqlite' ? sqliteDialect : postgresDialect
  const input: SearchInput = {
    text: 'alpha',
    reader: { principals: [ANN] },
    limit: 10,
    nowMs: index.now,
    accessNowMs: index.now,
    meaning: { model, chance, strong: 1, query: query! },
    ...more,
  }
  return driver.snapshot((tx) => searchIndex(tx, dialect, input, new SteppingClock(stepS * 1_000)))
}

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

  withIndex('a search whose words took long leaves meaning out, and says so', async (index) => {
    await index.put({ ref: 'a', text: 'alpha beta', to_: [ANN] })
    const late = await askStepping(index, { stepS: LATE_S })
    assert.deepEqual([late.by, late.total, late.fellBack?.code], [['words'], 1, 'took-too-long'])
    const early = await askStepping(index, { stepS: EARLY_S })
    assert.deepEqual([early.by, early.total, early.fellBack], [['words', 'meaning'], 1, null])
  })

  withIndex(
    'pages are by what the first was by, whichever of them is late, and repeat nothing',
    async (index) => {
      for (let i = 0; i < 3; i++) await index.put({ ref: `w${i}`, text: `alpha n${i}`, to_: [ANN] })
      for (let i = 0; i < 3; i++) await index.put({ ref: `m${i}`, text: `beginning n${i}`, to_: [ANN] })
      for (const [steps, total] of [
        [[EARLY_S, LATE_S, EARLY_S], 6],
        [[LATE_S, EARLY_S, EARLY_S], 3],
      ] as const) {
        const seen: string[] = []
        let cursor: string | undefined
        for (const stepS of steps) {
          const answer = await askStepping(index, { stepS, cursor, limit: total / 3 })
          assert.equal(answer.total, total)
          assert.equal(answer.by.includes('meaning'), total === 6)
          assert.equal(answer.fellBack === null, total === 6)
          seen.push(...answer.hits.map(({ ref }) => ref))
          cursor = answer.nextCursor ?? undefined
        }
        assert.deepEqual([seen.length, new Set(seen).size, cursor], [total, total, undefined])
      }
      const { nextCursor } = await askStepping(index, { stepS: EARLY_S, limit: 2 })
      const missing = { missing: { code: 'embedder-failed', text: '' } }
      const without = askStepping(index, { stepS: EARLY_S, limit: 2, cursor: nextCursor!, meaning: missing })
      await assert.rejects(without, { code: 'search-changed' })
    },
    new WordEmbedder({ beginning: 'alpha' }),
  )
})

test('on PostgreSQL a search that takes too long is ended by the server, and refused with that reason', async () => {
  const home = postgresHome()
  const site = await home.fresh()
  try {
    const index = new IndexFixture(site, new WordEmbedder())
    await index.put({ ref: 'a', text: 'alpha', to_: [ANN] })
    const search = openSearch({ ledger: site.ledger, questionMsMax: 50 })
    const ask = () =>
      search.search({
        text: 'alpha',
        reader: { principals: [ANN] },
        limit: 10,
        mode: 'words',
        nowMs: index.now,
        signal: new AbortController().signal,
      })
    const other = await site.connect()
    try {
      await other.exec('BEGIN; LOCK TABLE tidemark.search_documents IN ACCESS EXCLUSIVE MODE')
      await assert.rejects(ask(), { code: 'search-took-too-long' })
    } finally {
      await other.exec('ROLLBACK')
      await other.close()
    }
    assert.equal((await index.ask('alpha')).total, 1)
  } finally {
    await site.leave()
    await home.remove()
  }
})
