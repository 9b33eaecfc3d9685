import assert from 'node:assert/strict'
import { after, before, describe, mock, test } from 'node:test'
import pg from 'pg'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { systemClock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { seededRandom } from '../../base/random.ts'
import { Ledger } from '../ledger.ts'
import { parseTarget } from './connection.ts'
import { openPostgres } from './open.ts'
import { ConnectionPool } from './pool.ts'

let database: TestDatabase
before(async () => {
  database = await freshDatabase()
})
after(() => database.drop())

async function admin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('connections that are all in use', () => {
  test('are waited for in order, and never with the time limit of connecting', async () => {
    const pool = new ConnectionPool(parseTarget(database.url), 'reader', 1)
    const first = await pool.connect()
    const connect = mock.method(pg.Pool.prototype, 'connect')
    const order: number[] = []
    const others = [1, 2, 3].map(async (n) => {
      const client = await pool.connect()
      order.push(n)
      pool.release(client)
    })
    await turn()
    assert.equal(connect.mock.callCount(), 0, 'whoever waits here is timed by nobody')
    pool.release(first)
    await Promise.all(others)
    connect.mock.restore()
    assert.deepEqual(order, [1, 2, 3])
    await pool.close()
  })

  test('by apps leave some for what the engine commits', async () => {
    const driver = await openPostgres({ url: database.url, clock: systemClock })
    const ledger = new Ledger(driver, { random: seededRandom(1) })
    const end = Promise.withResolvers<void>()
    const held = Array.from({ length: 20 }, () =>
      ledger.transaction(async (tx) => {
        await tx.get('SELECT 1 AS n')
        await end.promise
      }),
    )
    await turn()
    const [job] = await ledger.write({ jobs: [{ kind: 'job', payload: '{}' }] })
    assert.equal(job!.outcome, 'added')
    end.resolve()
    await Promise.all(held)
    await ledger.close()
  })
})

describe('a connection that cannot be had', () => {
  test('is an outage, also when the login is refused', async () => {
    const role = `login_${process.pid}`
    await admin(`CREATE ROLE ${role} LOGIN SUPERUSER PASSWORD 'before'`)
    const url = new URL(database.url)
    url.username = role
    url.password = 'before'
    const driver = await openPostgres({ url: url.href, clock: systemClock })
    await admin(`ALTER ROLE ${role} PASSWORD 'after'`)
    const ask = (): Promise<unknown> => driver.transaction((tx) => tx.get('SELECT 1 AS n'))
    await assert.rejects(ask(), (thrown) => {
      const { code, kind, message } = asTidemarkError(thrown)
      assert.deepEqual([code, kind], ['ledger-auth', 'transient'])
      assert.match(message, /refused the login/)
      return true
    })
    await admin(`ALTER ROLE ${role} PASSWORD 'before'`)
    await ask()
    await driver.close()
    await admin(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  })
})

describe('an app that enqueues within its own long transaction', () => {
  test('keeps nobody else from enqueueing until it ends', async () => {
    const driver = await openPostgres({ url: database.url, clock: systemClock })
    const jobs = [{ kind: 'job', payload: '{}' }]
    // The same slot for all of them: with another it would be luck.
    const [first, second] = [1, 2].map(() => new Ledger(driver, { random: seededRandom(1) }))
    await first!.write({ jobs })
    const app = new pg.Client({ connectionString: database.url })
    await app.connect()
    await app.query('BEGIN')
    await first!.writeWithin(app, { jobs })
    await first!.write({ jobs })
    await second!.write({ jobs })
    await app.query('COMMIT')
    await app.end()
    assert.deepEqual(await first!.tallies(), await first!.countedTallies())
    await driver.close()
  })
})
