import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { getTypeParser, parseTarget } from './connection.ts'

const SECRET = 'hunter2'

describe('the URL of a PostgreSQL ledger', () => {
  test('is shown without its password', () => {
    const target = parseTarget(`postgres://anna:${SECRET}@db.example:6543/work?sslmode=disable`)
    assert.equal(target.where, 'postgres://anna@db.example:6543/work')
    assert.ok(target.connectionString.includes(SECRET))
    const inQuery = parseTarget(`postgresql:///work?host=/run/pg&user=anna&password=${SECRET}`)
    assert.equal(inQuery.where, 'postgres://anna@/run/pg/work')
  })

  test('may name a schema, which is not passed on to the server', () => {
    assert.equal(parseTarget('postgres://h/d').schema, 'tidemark')
    const target = parseTarget('postgres://h/d?schema=team_a')
    assert.equal(target.schema, 'team_a')
    assert.equal(target.where, 'postgres://h/d (schema team_a)')
    assert.ok(!target.connectionString.includes('schema'))
  })

  for (const schema of ['', 'Team', '1st', 'a b', 'a"b', 'pg_temp', 'information_schema', 'x'.repeat(49)]) {
    test(`is refused with the schema ${JSON.stringify(schema.slice(0, 20))}`, () => {
      assert.throws(() => parseTarget(`postgres://h/d?schema=${encodeURIComponent(schema)}`), /schema/)
    })
  }

  for (const [name, url] of [
    ['a slash in the password', `postgres://anna:12/${SECRET}@h/d`],
    ['a hash in the password', `postgres://anna:12#${SECRET}@h/d`],
    ['a question mark in the password', `postgres://anna:12?${SECRET}@h/d`],
    ['a broken percent code', `postgres://anna%zz:${SECRET}@h/d`],
    ['no sense at all', `postgres://:${SECRET}`],
  ] as const) {
    test(`with ${name} is refused without repeating any of it`, () => {
      assert.throws(
        () => parseTarget(url),
        (error: unknown) => {
          assert.ok(error instanceof TidemarkError)
          assert.match(error.message, /URL/)
          assert.match(error.hint ?? '', /percent-encoded/)
          assert.ok(!`${error.stack} ${error.hint} ${JSON.stringify(error.cause)}`.includes(SECRET))
          return true
        },
      )
    })
  }
})

describe('values from PostgreSQL', () => {
  const parse = (oid: number, text: string): unknown => getTypeParser(oid)(text)

  test('are numbers, text and bytes, as on SQLite', () => {
    assert.equal(parse(20, '9007199254740991'), Number.MAX_SAFE_INTEGER)
    assert.equal(parse(1700, '12.5'), 12.5)
    assert.equal(parse(701, '1e3'), 1000)
    assert.equal(parse(16, 't'), 1)
    assert.equal(parse(16, 'f'), 0)
    assert.equal(parse(25, '007'), '007')
    assert.equal(parse(3802, '{"a": 1}'), '{"a": 1}')
    assert.deepEqual(parse(17, '\\x00ff'), Buffer.from([0, 255]))
  })

  test('that no number can hold exactly are an error, not another number', () => {
    assert.throws(() => parse(20, '9007199254740993'), /too large/)
  })
})
