import assert from 'node:assert/strict'
import { ANN, BOB, DAY_MS, onEachDatabase, WordEmbedder } from './index.suite.ts'
import { postgresDialect } from './postgres/dialect.ts'
import { sqliteDialect } from './sqlite/dialect.ts'

onEachDatabase('the index', (withIndex) => {
  withIndex(
    "words of others fill no places of one's own: they are suggested and offered, theirs are not",
    async (index) => {
      const others = Array.from({ length: 400 }, (_, i) => `plan${String.fromCharCode(97 + (i % 26))}${i}`)
      await index.put({ ref: 'bobs', title: 'list', text: others.join(' '), to_: [BOB] })
      await index.put({ ref: 'anns', title: 'note', text: 'the planxyzw is here', to_: [ANN] })
      const suggested = await index.search.suggest('plan', { principals: [ANN] }, 5)
      assert.deepEqual(suggested, [{ text: 'planxyzw', kind: 'word' }])
      assert.equal((await index.ask('planxyzq')).didYouMean, 'planxyzw')
      // One slip from a word of his, two from hers.
      assert.equal((await index.ask(`${others[0]}0`)).didYouMean, null)
    },
  )

  withIndex('a word goes from the vocabulary with the last document that has it', async (index) => {
    for (let i = 0; i < 5; i++) await index.put({ ref: `d${i}`, text: `zebra only${i}`, to_: [ANN] })
    const dialect = index.site.ledger.driver.dialect === 'sqlite' ? sqliteDialect : postgresDialect
    const words = (from: string) =>
      index.site.ledger.driver.read((tx) =>
        dialect.vocabulary(tx, { from, to: `${from}\u{10ffff}`, limit: 50 }),
      )
    assert.deepEqual(await words('only'), ['only0', 'only1', 'only2', 'only3', 'only4'])
    for (let i = 0; i < 4; i++) {
      await index.site.ledger.transaction((tx) => index.search.remove(tx, { source: 'drive', ref: `d${i}` }))
      assert.deepEqual(await words('zebra'), ['zebra'])
    }
    assert.deepEqual(await words('only'), ['only4'])
    await index.put({ ref: 'd4', text: 'horse', to_: [ANN] })
    assert.deepEqual(
      [...(await words('only')), ...(await words('zebra')), ...(await words('horse'))],
      ['horse'],
    )
  })

  withIndex('who only looks makes no tables, and finds nothing', async (index) => {
    const answer = await index.ask('budget')
    assert.deepEqual([answer.total, answer.hits], [0, []])
    assert.equal(await index.search.read(1, { principals: [ANN] }), undefined)
    assert.deepEqual(await index.search.coverage({ principals: [ANN] }), [])
    await assert.rejects(index.count('search_documents'))
  })

  withIndex(
    'a document is found by words of its title, its text, its people and its folders',
    async (index) => {
      await index.put({
        ref: 'a',
        title: 'Quarterly Bücher.pdf',
        text: ['The budget grows.', 'Naïve plans fail.'],
        owner: 'carol@example.com',
        people: [{ role: 'from', name: 'Dora Öz <dora@example.com>' }],
        folders: ['Finance', 'Straße 7'],
        to_: [ANN],
      })
      for (const text of [
        'budget',
        'quarterly bucher',
        'naive plans',
        'dora',
        'carol budget',
        'finance',
        'strasse',
      ])
        assert.deepEqual(await index.refs(text), ['a'], text)
      for (const text of ['budgets', 'budget missing', '-budget', 'quarterly -naive'])
        assert.deepEqual(await index.refs(text), [], text)
      assert.deepEqual(await index.refs('"budget grows"'), ['a'])
      assert.deepEqual(await index.refs('"grows budget"'), [])
      // No phrase goes from one chunk, or one folder, to the next.
      assert.deepEqual(await index.refs('"grows naive"'), [])
      assert.deepEqual(await index.refs('"finance strasse"'), [])
    },
  )

  withIndex('only who has access finds, reads and counts a document, until it expires', async (index) => {
    const id = await index.put({ ref: 'a', title: 'Secret', text: 'budget', to_: [ANN] })
    assert.deepEqual(await index.refs('budget', { as: BOB }), [])
    assert.equal(await index.search.read(id, { principals: [BOB] }), undefined)
    assert.equal(await index.search.find({ source: 'drive', ref: 'a' }, { principals: [BOB] }), undefined)
    assert.deepEqual(await index.search.suggest('sec', { principals: [BOB] }, 5), [])
    assert.deepEqual(await index.search.coverage({ principals: [BOB] }), [])
    assert.deepEqual(await index.refs('budget', { reader: { principals: [] } }), [])
    const expiresAtMs = index.now + DAY_MS
    await index.site.ledger.transaction((tx) =>
      index.search.grant(tx, { source: 'drive', ref: 'a' }, BOB, index.grant({ expiresAtMs })),
    )
    assert.deepEqual(await index.refs('budget', { as: BOB }), ['a'])
    assert.equal((await index.search.read(id, { principals: [BOB] }))?.title, 'Secret')
    index.site.clock.pass(DAY_MS)
    assert.deepEqual(await index.refs('budget', { as: BOB }), [])
    assert.equal(await index.search.read(id, { principals: [BOB] }), undefined)
    assert.deepEqual(await index.refs('budget'), ['a'])
  })

  withIndex('a document that is published again is swapped as a whole', async (index) => {
    const first = await index.put({ ref: 'a', text: 'old words', to_: [ANN] })
    const second = await index.put({ ref: 'a', text: ['new', 'words'], to_: [] })
    assert.equal(first, second)
    assert.deepEqual([await index.refs('old'), await index.refs('new')], [[], ['a']])
    assert.deepEqual([await index.count('search_contents'), await index.count('search_chunks')], [1, 2])
  })

  withIndex(
    'documents with the same bytes and name share chunks and vectors, and are one hit',
    async (index) => {
      const sketch = { title: 'Plan.docx', text: 'shared words', to_: [ANN] }
      await index.put({ ...sketch, ref: 'a' })
      await index.put({ ...sketch, ref: 'b', title: 'Copy of Plan (1).docx', to_: [ANN, BOB] })
      await index.put({ ...sketch, ref: 'c', title: 'Layoffs.docx' })
      assert.equal(await index.count('search_contents'), 2)
      const answer = await index.ask('shared', { facets: true })
      assert.deepEqual([answer.total, answer.facets.type], [2, [{ value: 'document', count: 2 }]])
      const plan = answer.hits.find(({ ref }) => ref !== 'c')!
      assert.deepEqual(plan.alsoIn.length, 1)
      assert.equal((await index.ask('shared', { copies: 'apart' })).total, 3)
      const [bobs] = (await index.ask('shared', { as: BOB })).hits
      assert.deepEqual([bobs?.ref, bobs?.alsoIn], ['b', []])
    },
  )

  withIndex('with the last access a document goes, and with the last document its content', async (index) => {
    await index.put({ ref: 'a', title: 'Plan', text: 'shared words', folders: ['X'], to_: [ANN, BOB] })
    await index.put({ ref: 'b', title: 'Plan', text: 'shared words', to_: [ANN] })
    const { ledger } = index.site
    const writer = index.search
    await ledger.transaction((tx) => writer.revoke(tx, { source: 'drive', ref: 'a' }, ANN))
    assert.deepEqual([await index.refs('shared', { as: BOB }), await index.refs('shared')], [['a'], ['b']])
    await ledger.transaction((tx) => writer.revoke(tx, { source: 'drive', ref: 'a' }, BOB))
    assert.deepEqual(await index.refs('shared', { as: BOB }), [])
    assert.equal(await index.count('search_contents'), 1)
    await ledger.transaction((tx) => writer.remove(tx, { source: 'drive', ref: 'b' }))
    for (const table of [
      'documents',
      'contents',
      'chunks',
      'access',
      'folders',
      'codes',
      'vectors',
      'embedded',
    ])
      assert.equal(await index.count(`search_${table}`), 0, table)
  })

  withIndex('a sweep takes what only an older listing found, of one principal and source', async (index) => {
    const writer = index.search
    for (const ref of ['a', 'b', 'c'])
      await index.put({ ref, text: 'words', folders: [`F ${ref}`], to_: [ANN, BOB] })
    await index.put({ ref: 'm', source: 'mail', text: 'words', to_: [ANN] })
    const swept = await index.site.ledger.transaction(async (tx) => {
      await writer.grant(tx, { source: 'drive', ref: 'a' }, ANN, index.grant({ generation: 2 }))
      return writer.sweep(tx, { principal: ANN, source: 'drive', before: 2, folder: 'F b' })
    })
    assert.equal(swept, 1)
    assert.deepEqual((await index.refs('words')).sort(), ['a', 'c', 'm'])
    const rest = await index.site.ledger.transaction((tx) =>
      writer.sweep(tx, { principal: ANN, source: 'drive', before: 2 }),
    )
    assert.equal(rest, 1)
    assert.deepEqual((await index.refs('words')).sort(), ['a', 'm'])
    assert.deepEqual((await index.refs('words', { as: BOB })).sort(), ['a', 'b', 'c'])
  })

  withIndex(
    'what means the same is found by meaning, under the same filters, and says why',
    async (index) => {
      await index.put({ ref: 'a', text: 'the car is red', type: 'pdf', to_: [ANN] })
      await index.put({ ref: 'b', text: 'cooking with salt', to_: [ANN] })
      await index.put({ ref: 'c', text: 'the car is blue', to_: [BOB] })
      const answer = await index.ask('automobile', { mode: 'auto' })
      assert.deepEqual(answer.by, ['words', 'meaning'])
      assert.deepEqual(
        answer.hits.map(({ ref }) => ref),
        ['a'],
      )
      const { why, citation } = answer.hits[0]!
      assert.equal(why.words, null)
      assert.ok(why.meaning!.similarity > 0.3)
      assert.equal(why.score, why.meaning!.score + why.recency)
      assert.deepEqual(why.access, [{ principal: ANN, kind: 'reader', via: 'shared by hand' }])
      assert.deepEqual(citation, { chunk: 0, place: { kind: 'page', page: 1 }, headings: [] })
      assert.deepEqual(await index.refs('automobile -red', { mode: 'auto' }), [])
      assert.deepEqual(await index.refs('automobile', { mode: 'auto', filters: { type: ['text'] } }), [])
    },
    new WordEmbedder({ car: 'auto', automobile: 'auto' }),
  )

  withIndex(
    'what is near by meaning must hold no more than the query without its bare words',
    async (index) => {
      await index.put({ ref: 'a', text: 'the pump offer and its budget', type: 'document', to_: [ANN] })
      await index.put({ ref: 'b', text: 'the pump offer and its price', type: 'document', to_: [ANN] })
      const asked = '"pump offer" (type:pdf OR budget)'
      for (const mode of ['auto', 'meaning'] as const) {
        assert.deepEqual((await index.refs(asked, { mode })).sort(), ['a', 'b'], mode)
        assert.deepEqual(await index.refs('"pump offer" (type:pdf OR "its price")', { mode }), ['b'], mode)
      }
      assert.deepEqual(await index.refs(asked), ['a'])
    },
  )

  withIndex('contents without vectors are listed with their context, and get them later', async (index) => {
    const writer = index.search
    const document = index.document({ ref: 'a', title: 'Plan', text: ['one', 'two'], to_: [] })
    await writer.prepare()
    await index.site.ledger.transaction(async (tx) => {
      await writer.publish(tx, {
        ...document,
        content: { ...document.content!, vectors: undefined } as never,
      })
      await writer.grant(tx, document, ANN, index.grant())
    })
    const [todo, ...more] = await writer.withoutVectors(index.embedder.model, 10)
    assert.deepEqual([todo!.texts, more], [['Plan\none', 'Plan\ntwo'], []])
    assert.deepEqual(await index.search.coverage({ principals: [ANN] }), [
      { source: 'drive', documents: 1, byWords: 1, byMeaning: 0, unread: [] },
    ])
    const of = await index.embedder.embed(todo!.texts)
    await index.site.ledger.transaction((tx) =>
      writer.addVectors(tx, todo!.contentId, { model: index.embedder.model, of }),
    )
    assert.deepEqual(await writer.withoutVectors(index.embedder.model, 10), [])
    assert.equal((await index.search.coverage({ principals: [ANN] }))[0]!.byMeaning, 1)
  })

  withIndex('pages neither repeat nor skip, and belong to who asked', async (index) => {
    for (let i = 0; i < 25; i++) await index.put({ ref: `d${i}`, text: `word number${i}`, to_: [ANN, BOB] })
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const answer = await index.ask('word', { limit: 7, cursor })
      assert.equal(answer.total, 25)
      seen.push(...answer.hits.map(({ ref }) => ref))
      cursor = answer.nextCursor ?? undefined
    } while (cursor)
    assert.deepEqual([seen.length, new Set(seen).size], [25, 25])
    const { nextCursor } = await index.ask('word', { limit: 7 })
    await assert.rejects(index.ask('word', { limit: 7, cursor: nextCursor!, as: BOB }), {
      code: 'bad-cursor',
    })
    await assert.rejects(index.ask('other', { limit: 7, cursor: nextCursor! }), { code: 'bad-cursor' })
  })

  withIndex('a misspelt word is helped with words of what the reader may see only', async (index) => {
    await index.put({ ref: 'a', title: 'Marketing plan', text: 'the quarterly forecast', to_: [ANN] })
    await index.put({ ref: 'b', title: 'Layoffs', text: 'redundancy marketplace', to_: [BOB] })
    assert.equal((await index.ask('quartrely forecast')).didYouMean, 'quarterly forecast')
    assert.equal((await index.ask('layofs')).didYouMean, null)
    assert.equal((await index.ask('layofs', { as: BOB })).didYouMean, 'Layoffs'.toLowerCase())
    assert.equal((await index.ask('quarterly')).didYouMean, null)
  })

  withIndex('a word in documents of others changes nothing about one’s own hits', async (index) => {
    await index.put({ ref: 'a', text: 'alpha alpha alpha secret one', to_: [ANN] })
    await index.put({ ref: 'b', text: 'alpha secret secret secret two', to_: [ANN] })
    await index.put({ ref: 'c', text: 'alpha three four five six', to_: [ANN] })
    const hide = async (text: string): Promise<void> => {
      for (let n = 0; n < 12; n++) await index.put({ ref: `hidden${n}`, text, to_: [BOB] })
    }
    const told = async () => {
      const answers = []
      for (const query of ['alpha secret', 'secret OR alpha', 'alpha secret one zeta', 'three four zeta'])
        answers.push(await index.ask(query))
      return answers.map(({ hits, total }) => [total, hits.map(({ ref, why }) => [ref, why.words?.score])])
    }
    await hide('other words that are long')
    const before = await told()
    assert.deepEqual(
      before.map(([total]) => total),
      [2, 3, 1, 1],
    )
    // As many words as before: how long documents are on average stays the same.
    await hide('secret zeta four secret long')
    assert.deepEqual(await told(), before)
  })

  withIndex('a filter that is none is refused', async (index) => {
    await index.put({ ref: 'a', text: 'words', to_: [ANN] })
    for (const name of ['constructor', 'id = 1 OR d.id'])
      await assert.rejects(index.ask('words', { filters: { [name]: ['x'] } as never }), {
        code: 'bad-filter',
      })
    assert.deepEqual(await index.refs('words', { filters: { owner: ["' OR 1=1 --"] } }), [])
  })

  withIndex('suggestions are words and titles of what the reader may see', async (index) => {
    await index.put({ ref: 'a', title: 'Marketing plan', text: 'market research', to_: [ANN] })
    await index.put({ ref: 'b', title: 'Markdown secrets', text: 'marked', to_: [BOB] })
    assert.deepEqual(await index.search.suggest('the mar', { principals: [ANN] }, 5), [
      { text: 'the market', kind: 'word' },
      { text: 'the marketing', kind: 'word' },
    ])
    assert.deepEqual(await index.search.suggest('mark', { principals: [BOB] }, 5), [
      { text: 'markdown', kind: 'word' },
      { text: 'marked', kind: 'word' },
      { text: 'Markdown secrets', kind: 'title' },
    ])
  })

  withIndex(
    'contents to embed come without those that are left out, however long they are',
    async (index) => {
      const writer = index.search
      await writer.prepare()
      const long = Array.from({ length: 600 }, (_, n) => `long ${n}`)
      for (const [ref, text] of [
        ['old', 'short'],
        ['longer', long],
      ] as const) {
        const document = index.document({ ref, text, to_: [] })
        const content = { ...document.content!, vectors: undefined } as never
        await index.site.ledger.transaction((tx) => writer.publish(tx, { ...document, content }))
      }
      const { model } = index.embedder
      const [first, ...behind] = await writer.withoutVectors(model, 10)
      assert.deepEqual([first!.texts.length, behind], [600, []])
      const others = await writer.withoutVectors(model, 10, new Set([first!.contentId]))
      assert.deepEqual(
        others.map(({ texts }) => texts),
        [['old\nshort']],
      )
    },
  )
})
