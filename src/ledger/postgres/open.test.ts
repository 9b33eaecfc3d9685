import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import pg from 'pg'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { assertRaised, firstVersionStatements } from '../first-version.suite.ts'
import { openLedger } from '../open.ts'
import { SCHEMA_VERSION } from '../schema.ts'
import { COMMITS_TABLE } from './commit.ts'
import { openPostgres } from './open.ts'

let database: TestDatabase
let passwordOf: string
before(async () => {
  database = await freshDatabase()
  passwordOf = new URL(database.url).password
})
after(() => database.drop())

async function sql(text: string, url = database.url): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const result: unknown = await client.query(text)
    return Array.isArray(result) ? [] : (result as pg.QueryResult).rows
  } finally {
    await client.end()
  }
}

function at(change: (url: URL) => void): string {
  const url = new URL(database.url)
  change(url)
  return url.href
}

async function refusal(url: string): Promise<TidemarkError> {
  const error = await openPostgres({ url, clock: systemClock }).then(
    () => assert.fail('it opened'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof TidemarkError, inspect(error))
  assert.ok(error.hint, 'it says what to do')
  for (const secret of [passwordOf, 'wrong-secret']) {
    assert.ok(!`${error.message} ${error.hint} ${inspect(error, { depth: 9 })}`.includes(secret))
  }
  return error
}

describe('opening a ledger on PostgreSQL', () => {
  test('creates the schema once, however many processes start together', async () => {
    const url = at((u) => u.searchParams.set('schema', 'together'))
    const drivers = await Promise.all(
      Array.from({ length: 4 }, () => openPostgres({ url, clock: systemClock })),
    )
    for (const driver of drivers) {
      const rows = await driver.read((tx) => tx.all(`SELECT value FROM meta WHERE name = 'schema_version'`))
      assert.deepEqual(rows, [{ value: String(SCHEMA_VERSION) }])
      await driver.close()
    }
  })

  test('keeps two ledgers in one database apart by their schemas', async () => {
    const one = await openPostgres({
      url: at((u) => u.searchParams.set('schema', 'one')),
      clock: systemClock,
    })
    const two = await openPostgres({
      url: at((u) => u.searchParams.set('schema', 'two')),
      clock: systemClock,
    })
    await one.transaction((tx) => tx.run(`INSERT INTO meta(name, value) VALUES ('mine', 'yes')`))
    assert.equal(await two.read((tx) => tx.get(`SELECT value FROM meta WHERE name = 'mine'`)), undefined)
    await one.close()
    await two.close()
  })

  test('refuses a schema that is newer, and changes nothing', async () => {
    const url = at((u) => u.searchParams.set('schema', 'newer'))
    await (await openPostgres({ url, clock: systemClock })).close()
    await sql(`UPDATE newer.meta SET value = '999' WHERE name = 'schema_version'`)
    const error = await refusal(url)
    assert.equal(error.code, 'ledger-newer')
    assert.match(error.message, /999/)
    assert.deepEqual(await sql(`SELECT value FROM newer.meta WHERE name = 'schema_version'`), [
      { value: '999' },
    ])
  })

  test('brings a schema that is older up to ours, with everything in it, however many start together', async () => {
    const statements = [...firstVersionStatements('postgres'), COMMITS_TABLE]
    await sql(`CREATE SCHEMA older; SET search_path TO older; ${statements.join(';')}`)
    const url = at((u) => u.searchParams.set('schema', 'older'))
    const ledgers = await Promise.all(Array.from({ length: 3 }, () => openLedger(url)))
    for (const ledger of ledgers) {
      await assertRaised(ledger)
      await ledger.close()
    }
    const rows = await sql(`SELECT value FROM older.meta WHERE name = 'schema_version'`)
    assert.deepEqual(rows, [{ value: String(SCHEMA_VERSION) }])
  })

  for (const [name, tables] of [
    ['other tables', 'CREATE TABLE foreign_a.orders (id int)'],
    ['a table that happens to be called meta', 'CREATE TABLE foreign_b.meta (x int)'],
  ] as const) {
    test(`refuses a schema with ${name}, and leaves it as it is`, async () => {
      const schema = /foreign_\w/.exec(tables)![0]
      await sql(`CREATE SCHEMA ${schema}; ${tables}`)
      const error = await refusal(at((u) => u.searchParams.set('schema', schema)))
      assert.equal(error.code, 'ledger-foreign')
      assert.match(error.message, new RegExp(schema))
      const count = await sql(`SELECT count(*)::int AS n FROM pg_tables WHERE schemaname = '${schema}'`)
      assert.deepEqual(count, [{ n: 1 }])
    })
  }

  test('says so when the host is unknown', async () => {
    const error = await refusal(at((u) => (u.hostname = 'nowhere.invalid')))
    assert.equal(error.code, 'ledger-down')
    assert.match(error.message, /nowhere\.invalid/)
  })

  test('says so when nothing listens at the port', async () => {
    const server = createServer().listen({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    server.close()
    await once(server, 'close')
    const error = await refusal(at((u) => (u.port = String(port))))
    assert.equal(error.code, 'ledger-down')
    assert.equal(error.kind, 'transient')
    assert.match(error.message, new RegExp(String(port)))
  })

  test('says so when the password is wrong', async () => {
    const error = await refusal(at((u) => (u.password = 'wrong-secret')))
    assert.equal(error.code, 'ledger-auth')
    assert.equal(error.kind, 'auth')
  })

  test('says so when there is no such user', async () => {
    const error = await refusal(at((u) => (u.username = 'nobody_here')))
    assert.equal(error.kind, 'auth')
    assert.match(error.message, /nobody_here/)
  })

  test('says so when there is no such database', async () => {
    const error = await refusal(at((u) => (u.pathname = '/no_such_database')))
    assert.equal(error.code, 'ledger-missing')
    assert.match(error.message, /no_such_database/)
  })

  test('says so when the server speaks no TLS but the URL asks for it', async () => {
    const error = await refusal(at((u) => u.searchParams.set('sslmode', 'verify-full')))
    assert.equal(error.code, 'ledger-tls')
  })

  test('says so when the user may not create the schema', async () => {
    await sql(
      `DROP ROLE IF EXISTS guest_${process.pid}; CREATE ROLE guest_${process.pid} LOGIN PASSWORD 'wrong-secret'`,
    )
    try {
      const guest = at((u) => {
        u.username = `guest_${process.pid}`
        u.password = 'wrong-secret'
        u.searchParams.set('schema', 'forbidden')
      })
      const error = await refusal(guest)
      assert.equal(error.code, 'ledger-denied')
      assert.match(error.hint ?? '', /GRANT/)
    } finally {
      await sql(`DROP ROLE guest_${process.pid}`)
    }
  })
})
