import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseSearch } from '../../src/search/query/parse.ts'
import { GROUPS, readEvaluation } from './evaluation.ts'
import { indexingLines, qualityLines } from './explanation.ts'
import { EMBEDDED } from './indexing-case.ts'
import { halfLines, halfOf, type Outcome, qualityRows } from './quality-case.ts'
import { queryRows } from './query-case.ts'

describe('the evaluation set', () => {
  const { documents, queries, tuning, heldOut } = readEvaluation()
  const ids = new Set(documents.map(({ id }) => id))

  test('has 300 documents or more, each once, and 120 queries or more in all groups', () => {
    assert.ok(documents.length >= 300)
    assert.equal(ids.size, documents.length)
    assert.equal(new Set(documents.map(({ text }) => text)).size, documents.length)
    assert.ok(queries.length >= 120)
    assert.equal(new Set(queries.map(({ text }) => text)).size, queries.length)
    assert.deepEqual(new Set(queries.map(({ group }) => group)), new Set(GROUPS))
  })

  test('judges every query by documents that are there, and those that nothing answers by none', () => {
    for (const { group, text, relevant } of [...queries, ...tuning, ...heldOut]) {
      assert.equal(relevant.length === 0, group === 'unanswerable', text)
      for (const id of relevant) assert.ok(ids.has(id), `${id} of ${text}`)
    }
  })

  test('chooses limits on other queries than it reports', () => {
    const reported = new Set([...queries, ...heldOut].map(({ text }) => text.toLowerCase()))
    assert.equal(reported.size, queries.length + heldOut.length)
    for (const { text } of tuning) assert.ok(!reported.has(text.toLowerCase()), text)
    assert.ok(tuning.filter(({ group }) => group === 'unanswerable').length >= 50)
  })

  test('holds queries that can be read', () => {
    for (const { text } of [...queries, ...tuning, ...heldOut]) parseSearch(text, { now: 1_800_000_000_000 })
  })
})

describe('the numbers of the search bench', () => {
  const outcome = (group: Outcome['group'], rank: number | null, hits = 5, answered = hits > 0): Outcome => ({
    group,
    text: 'q',
    rank,
    hits,
    answered,
    first: 'a',
  })

  test('recall counts the first right hit, and silence where nothing answers', () => {
    const rows = qualityRows('hybrid', [
      outcome('lexical', 1),
      outcome('lexical', 2),
      outcome('lexical', 10),
      outcome('lexical', null),
      outcome('unanswerable', null, 0),
      outcome('unanswerable', null, 3),
      outcome('unanswerable', null, 3, false),
      outcome('unanswerable', null, 0),
    ])
    assert.deepEqual(
      rows.map(({ value }) => value),
      [0.25, 0.5, 0.4, 0.5, 0.5, 0.75],
    )
  })

  test('both together are held against the better of words and meaning', () => {
    const name = 'quality: lexical, recall@1'
    const row = (subject: string, value: number) => ({ case: name, subject, value, unit: 'share' })
    const rows = [row('words alone', 0.9), row('meaning alone', 0.5), row('tidemark', 0.9)]
    assert.match(qualityLines(rows)[0]!, /0\.90 beside 0\.90 .*met/)
    rows[2]!.value = 0.8
    assert.match(qualityLines(rows)[0]!, /missed/)
  })

  test('a query is in the same half whatever others there are, and both halves have many', () => {
    const { queries } = readEvaluation()
    const second = queries.filter(({ text }) => halfOf(text) === 1).length
    assert.ok(second > queries.length / 3 && second < (queries.length * 2) / 3)
    assert.equal(halfOf('remote access over VPN'), halfOf('remote access over VPN'))
    const row = (subject: string, value: number) => ({
      case: 'quality: lexical, MRR',
      subject,
      value,
      unit: 'share',
    })
    const rows = [row('words alone', 0.9), row('meaning alone', 0.5), row('tidemark', 0.8)]
    assert.deepEqual(halfLines(rows, 0), ['half 1, lexical, MRR: 0.8 (words 0.9, meaning 0.5): not the best'])
  })

  test('searches are summed up by what the reader sees', () => {
    const times = { ms: [5, 1, 2, 3, 4], wholeMs: [7, 3, 4, 5, 6], processorMs: [1, 2, 2, 2, 9] }
    const visible = [{ visible: 1_000, ...times, hits: 9 }]
    const rows = queryRows('sqlite', 10_000, { visible, embedMs: [2, 1, 3], peakMb: 80, ownMb: 50 })
    assert.deepEqual(
      rows.map(({ case: name, value }) => [name, value]),
      [
        ['query: sqlite, 10,000 chunks, 1,000 visible, p50', 3],
        ['query: sqlite, 10,000 chunks, 1,000 visible, p95', 5],
        ['query: sqlite, 10,000 chunks, 1,000 visible, with embedding, p50', 5],
        ['query: sqlite, 10,000 chunks, 1,000 visible, with embedding, p95', 7],
        ['query: sqlite, 10,000 chunks, 1,000 visible, processor p50', 2],
        ['query: sqlite, 10,000 chunks, 1,000 visible, processor p95', 9],
        ['query: sqlite, 10,000 chunks, embedding the query, p50', 2],
        ['memory: sqlite, 10,000 chunks, searching', 80],
        ['memory: sqlite, 10,000 chunks, without pages of files', 50],
      ],
    )
  })

  test('indexing is held against the embedder alone', () => {
    const row = (subject: string, value: number) => ({ case: EMBEDDED, subject, value, unit: 'chunks/s' })
    assert.match(indexingLines([row('tidemark', 9), row('limit embedder', 10)])[0]!, /0\.90 × .*met/)
    assert.match(indexingLines([row('tidemark', 8), row('limit embedder', 10)])[0]!, /missed/)
    assert.deepEqual(indexingLines([]), [])
  })
})
