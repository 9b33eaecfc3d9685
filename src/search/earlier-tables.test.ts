import assert from 'node:assert/strict'
import type { Tx } from '../ledger/contract.ts'
import { SEARCH_APP, searchTables } from './index/tables.ts'
import { ANN, BOB, type IndexFixture, onEachDatabase } from './index.suite.ts'

/** The tables as the first version made them, with a document `old` that Ann may see. */
async function fillFirstTables({ site: { ledger } }: IndexFixture): Promise<void> {
  await ledger.migrateApp(SEARCH_APP, searchTables(ledger.dialect).slice(0, 1))
  await ledger.transaction(async (tx) => {
    await tx.run(`INSERT INTO search_principals(id, name) VALUES (1000, ?)`, [ANN])
    await tx.run(
      `INSERT INTO search_contents(id, key, title, chunk_count, is_truncated) VALUES (1000, 'k', 'Old plan', 1, 0)`,
    )
    await tx.run(
      `INSERT INTO search_chunks(content_id, n, text, headings, place)
       VALUES (1000, 0, 'the zebra grazes', '[]', '{"kind":"page","page":1}')`,
    )
    await tx.run(
      `INSERT INTO search_documents(id, source, ref, content_id, type, at, title, owner, folders, people, mime_type,
       url, version) VALUES (1000, 'drive', 'old', 1000, 'document', 1, 'Old plan', '', '[]', '[]', 'text/plain', '', '1')`,
    )
    await tx.run(
      `INSERT INTO search_access(principal_id, doc_id, generation, kind, via) VALUES (1000, 1000, 1, 'reader', '')`,
    )
    await putFirstWords(tx)
  })
}

async function putFirstWords(tx: Tx): Promise<void> {
  if (tx.dialect === 'sqlite') {
    await tx.run(
      `INSERT INTO search_words(rowid, title, body, owner, sender, receiver, folders)
       VALUES (1000, 'old plan', 'the zebra grazes', '', '', '', '')`,
    )
    return
  }
  await tx.run(
    `INSERT INTO search_words(doc_id, part, words)
     VALUES (1000, 0, '''old'':1A ''plan'':2A ''the'':5 ''zebra'':6 ''grazes'':7'::tsvector)`,
  )
  for (const word of ['old', 'plan', 'the', 'zebra', 'grazes'])
    await tx.run(`INSERT INTO search_vocabulary(word) VALUES (?)`, [word])
}

onEachDatabase('an index whose tables the first version made', (withIndex) => {
  withIndex('is searched before anybody writes to it', async (index) => {
    await fillFirstTables(index)
    assert.deepEqual(await index.refs('zebra'), ['old'])
    assert.deepEqual(await index.refs('"zebra grazes"'), ['old'])
    assert.equal((await index.ask('grazse')).didYouMean, 'grazes')
  })

  withIndex('is written to, and what was in it is found, swapped and taken out', async (index) => {
    await fillFirstTables(index)
    await index.put({ ref: 'new', title: 'New plan', text: 'a zebra and a giraffe', to_: [ANN, BOB] })
    assert.deepEqual((await index.refs('zebra')).sort(), ['new', 'old'])
    assert.deepEqual(await index.refs('zebra', { as: BOB }), ['new'])
    assert.equal((await index.ask('grazse')).didYouMean, 'grazes')
    assert.deepEqual(await index.search.suggest('gir', { principals: [ANN] }, 5), [
      { text: 'giraffe', kind: 'word' },
    ])
    assert.equal(await index.put({ ref: 'old', text: 'an okapi', to_: [] }), 1_000)
    assert.deepEqual([await index.refs('zebra'), await index.refs('okapi')], [['new'], ['old']])
    for (const ref of ['old', 'new'])
      await index.site.ledger.transaction((tx) => index.search.remove(tx, { source: 'drive', ref }))
    for (const table of ['documents', 'contents', 'chunks', 'access'])
      assert.equal(await index.count(`search_${table}`), 0, table)
    // What is left of the earlier words is offered to nobody.
    assert.deepEqual(await index.search.suggest('zeb', { principals: [ANN] }, 5), [])
  })

  withIndex('is written to by processes of that version beside those of this one', async (index) => {
    await fillFirstTables(index)
    await index.search.prepare()
    const { ledger } = index.site
    await ledger.transaction(async (tx) => {
      await tx.run(
        tx.dialect === 'sqlite' ? `DELETE FROM search_words WHERE rowid = 1000` : `DELETE FROM search_words`,
      )
      await putFirstWords(tx)
    })
    await index.put({ ref: 'new', text: 'zebra', to_: [ANN] })
    assert.deepEqual((await index.refs('zebra')).sort(), ['new', 'old'])
  })
})
