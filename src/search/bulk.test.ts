/** Many documents at once: found like those that were published one by one, and revealed, hidden and removed as a range. */
import assert from 'node:assert/strict'
import type { NewDocument } from './contract.ts'
import { ANN, BOB, type IndexFixture, onEachDatabase } from './index.suite.ts'

const RANGE = { source: 'drive', prefix: 'logs/1/' }
const TABLES = ['search_documents', 'search_contents', 'search_chunks', 'search_folders', 'search_access']

function records(index: IndexFixture, count: number): NewDocument[] {
  return Array.from({ length: count }, (_, at) => {
    const ref = `${RANGE.prefix}${String(at).padStart(6, '0')}`
    const document = index.document({
      ref,
      title: `Line ${at}`,
      text: `the tide rose at pier ${at}`,
      folders: ['logs', `level=${at % 2 === 0 ? 'info' : 'error'}`],
      type: 'record',
      to_: [],
    })
    const { content, ...rest } = document
    if (!content || !('chunks' in content)) throw new Error('a record without text')
    const { chunks, isTruncated } = content
    return { ...rest, content: { key: `r:${ref}`, chunks, isTruncated } }
  })
}

async function append(index: IndexFixture, count: number, principal: string | undefined, isEmbedded = false) {
  await index.search.prepare()
  const seenBy = principal === undefined ? {} : { principal, grant: index.grant() }
  await index.site.ledger.transaction((tx) =>
    index.search.append(tx, records(index, count), { ...seenBy, isEmbedded }),
  )
}

onEachDatabase('many documents', (withIndex) => {
  withIndex(
    'are found by their words, their titles and their folders, by who may see them',
    async (index) => {
      await append(index, 450, ANN)
      assert.equal((await index.ask('tide', { facets: true })).total, 450)
      assert.equal((await index.ask('title:"line 7"')).total, 1)
      const { facets, total } = await index.ask('type:record', { facets: true })
      assert.equal(total, 450)
      assert.deepEqual(facets.folder?.find(({ value }) => value === 'level=error')?.count, 225)
      assert.equal((await index.ask('tide', { as: BOB })).total, 0)
    },
  )

  withIndex('that are known already are refused, all of them', async (index) => {
    await append(index, 3, ANN)
    await assert.rejects(append(index, 5, ANN))
    assert.equal(await index.count('search_documents'), 3)
    assert.equal(await index.count('search_contents'), 3)
  })

  withIndex(
    'are seen by nobody until they are revealed, and by nobody after they are hidden',
    async (index) => {
      await append(index, 5, undefined)
      const { ledger } = index.site
      assert.equal((await index.ask('tide')).total, 0)
      await ledger.transaction((tx) => index.search.reveal(tx, RANGE, ANN, index.grant()))
      assert.equal((await index.ask('tide')).total, 5)
      await ledger.transaction((tx) => index.search.hide(tx, RANGE, ANN))
      assert.equal((await index.ask('tide')).total, 0)
      assert.equal(await index.search.countRange(RANGE), 5)
    },
  )

  withIndex('are removed some at a time, and nothing of them is left', async (index) => {
    await index.put({ ref: 'logs/2/000000', text: 'the tide fell', to_: [ANN] })
    const before = await Promise.all(TABLES.map((table) => index.count(table)))
    await append(index, 250, ANN)
    const steps: number[] = []
    for (;;) {
      const step = await index.site.ledger.transaction((tx) => index.search.removeRange(tx, RANGE, 100))
      steps.push(step)
      if (step === 0) break
    }
    assert.deepEqual(steps, [100, 100, 50, 0])
    assert.deepEqual(await Promise.all(TABLES.map((table) => index.count(table))), before)
    assert.deepEqual(await index.refs('tide'), ['logs/2/000000'])
  })

  withIndex('are embedded only where that is wanted', async (index) => {
    await append(index, 2, ANN)
    assert.deepEqual(await index.search.withoutVectors('m', 10), [])
    await index.put({ ref: 'other', text: 'something else', to_: [ANN] })
    assert.equal((await index.search.withoutVectors('m', 10)).length, 1)
  })

  withIndex('are known by how their refs begin', async (index) => {
    await append(index, 2, ANN)
    const known = await index.search.knownPrefixes('drive', [RANGE.prefix, 'logs/0/', 'logs/10/'])
    assert.deepEqual([...known], [RANGE.prefix])
  })
})
