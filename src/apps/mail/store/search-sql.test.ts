import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { parseQuery } from '../query/parse.ts'
import { compileQuery } from './compiled-query.ts'
import { generatedQuery } from './generated-query.suite.ts'
import { SHARD_SCHEMA } from './schema.ts'
import { countSql, pageSql, rankSql } from './search-sql.ts'
import { MESSAGE_COLUMNS } from './shard-row.ts'

const EVERYTHING = { first: Number.MIN_SAFE_INTEGER, last: Number.MAX_SAFE_INTEGER }

describe('statements', () => {
  let db: DatabaseSync
  before(() => {
    db = new DatabaseSync(':memory:')
    for (const sql of SHARD_SCHEMA) db.exec(sql)
  })
  after(() => db.close())

  const compiled = (text: string) => compileQuery(parseQuery(text, { now: 0 }))!
  const planOf = ({ sql, params }: { sql: string; params: readonly (string | number)[] }): string[] =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...params)
      .map(({ detail }) => String(detail))
  const pagePlan = (text: string, rareLabel?: string): string[] =>
    planOf(
      pageSql({
        compiled: compiled(text),
        posRange: EVERYTHING,
        rareLabel,
        columns: MESSAGE_COLUMNS,
        limit: 20,
      }),
    )

  const starts: [query: string, start: RegExp][] = [
    ['', /f USING COVERING INDEX messages_facts/],
    ['has:attachment larger:1M', /f USING COVERING INDEX messages_facts/],
    ['after:2020/01/01', /f USING COVERING INDEX messages_facts/],
    ['-budget', /f USING COVERING INDEX messages_facts/],
    ['{budget has:attachment}', /f USING COVERING INDEX messages_facts/],
    ['in:inbox', /d USING PRIMARY KEY \(label=\?/],
    ['in:inbox has:attachment', /d USING PRIMARY KEY \(label=\?/],
    ['budget', /w VIRTUAL TABLE/],
    ['budget from:amy -draft', /w VIRTUAL TABLE/],
    ['budget in:inbox has:attachment after:2020/01/01', /w VIRTUAL TABLE/],
    ['thread:t1', /f USING (?:COVERING )?INDEX messages_thread \(thread_id=\?/],
    ['rfc822msgid:a@b budget', /f USING (?:COVERING )?INDEX messages_message_id \(message_id=\? AND rowid>/],
    ['id:m1', /f USING (?:COVERING )?INDEX sqlite_autoindex_messages_1/],
  ]
  for (const [query, start] of starts) {
    test(`a page of "${query}" starts at its index`, () => assert.match(pagePlan(query)[0]!, start))
  }

  test('pages are read in order and never sorted, except where few messages can match', () => {
    for (const [query] of starts) {
      const sorts = pagePlan(query).filter((detail) => /TEMP B-TREE/.test(detail))
      if (!/^(?:id|rfc822msgid|thread):/.test(query)) assert.deepEqual(sorts, [], query)
    }
  })

  test('a rare label is read before text', () => {
    const plan = pagePlan('budget label:rare', 'rare')
    assert.match(plan[0]!, /d USING PRIMARY KEY \(label=\?/)
    assert.ok(plan.every((detail) => !/TEMP B-TREE|LIST SUBQUERY/.test(detail)))
  })

  test('counts and ranks read facts from their index alone', () => {
    const input = { compiled: compiled('budget larger:1M'), posRange: EVERYTHING }
    for (const sql of [countSql(input), rankSql({ ...input, limit: 20, after: null })]) {
      assert.ok(planOf(sql).some((detail) => /f USING COVERING INDEX messages_facts/.test(detail)))
    }
  })

  test('the full-text index is only ever read by MATCH, and no table as a whole, whatever the query', () => {
    fc.assert(
      fc.property(generatedQuery, (query) => {
        const ready = compileQuery(query)
        if (!ready) return
        const input = { compiled: ready, posRange: EVERYTHING }
        const page = { ...input, limit: 20 }
        const statements = [pageSql({ ...page, columns: MESSAGE_COLUMNS }), countSql(input)]
        if (ready.match !== null) {
          for (const after of [null, { score: -1, pos: 1 }]) statements.push(rankSql({ ...page, after }))
        }
        for (const statement of statements) {
          for (const detail of planOf(statement)) {
            assert.doesNotMatch(detail, /VIRTUAL TABLE INDEX \d+:(?!.*M)/, statement.sql)
            assert.doesNotMatch(detail, /^SCAN (?!w .*VIRTUAL TABLE)/, statement.sql)
          }
        }
      }),
      { numRuns: 300 },
    )
  })

  test('nothing of a query is part of the SQL', () => {
    const query = `from:o'brien "drop table" label:x';-- id:1' rfc822msgid:2' thread:3' larger:77123`
    const { sql, params } = pageSql({
      compiled: compiled(query),
      posRange: EVERYTHING,
      columns: MESSAGE_COLUMNS,
      limit: 20,
    })
    assert.doesNotMatch(sql, /brien|drop|'|77123/)
    assert.ok(params.includes('({sender} : "o brien" AND "drop table")'))
  })

  test('FTS5 is asked once for all the text that must be there', () => {
    const { match, conditions } = compiled('a (b OR "c d") -e subject:(f -g)')
    assert.equal(match, '(("a" AND ("b" OR "c d") AND {subject} : "f") NOT ("e" OR {subject} : "g"))')
    assert.deepEqual(conditions, [])
  })

  test('what cannot match anything is known without asking', () => {
    assert.equal(compileQuery({ is: 'not', of: { is: 'all' } }), null)
    assert.equal(compileQuery({ is: 'or', of: [] }), null)
    assert.notEqual(compileQuery({ is: 'and', of: [] }), null)
  })
})
