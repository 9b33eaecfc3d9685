import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startPostgres } from '../../../scripts/postgres.ts'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { PostgresDriver } from './driver.ts'
import { FaultyProxy } from './faulty-proxy.suite.ts'
import { openPostgres } from './open.ts'

let database: TestDatabase
let proxy: FaultyProxy
/** Through the proxy, and around it. */
let driver: PostgresDriver
let witness: PostgresDriver

before(async () => {
  database = await freshDatabase()
  proxy = await FaultyProxy.before(database.url)
  driver = await openPostgres({ url: proxy.urlOf(database.url), clock: systemClock })
  witness = await openPostgres({ url: database.url, clock: systemClock })
})
after(async () => {
  await driver.close()
  await witness.close()
  await proxy.stop()
  await database.drop()
})

function write(name: string): Promise<string> {
  return driver.transaction(async (tx) => {
    await tx.run(`INSERT INTO meta(name, value) VALUES (?, 'x')`, [name])
    return `wrote ${name}`
  })
}

async function isWritten(name: string, at = witness): Promise<boolean> {
  return (await at.read((tx) => tx.get(`SELECT 1 FROM meta WHERE name = ?`, [name]))) !== undefined
}

const isOutage = (error: unknown): boolean =>
  error instanceof TidemarkError && error.code === 'ledger-down' && error.kind === 'transient'

describe('a connection that breaks during COMMIT', () => {
  test('after the server has committed: the transaction succeeds, once', async () => {
    const broken = proxy.breakNextCommit('after')
    assert.equal(await write('after'), 'wrote after')
    await broken
    assert.ok(await isWritten('after'))
  })

  test('before the server got it: the transaction fails as an outage, and nothing was written', async () => {
    const broken = proxy.breakNextCommit('before')
    await assert.rejects(write('before'), isOutage)
    await broken
    assert.equal(await isWritten('before'), false)
    assert.equal(await write('before'), 'wrote before')
  })

  test('a COMMIT that arrives after we were told no is refused by the fence', async () => {
    await write('warm-up')
    const broken = proxy.breakNextCommit('all-late')
    await assert.rejects(write('late'), isOutage)
    await broken
    await proxy.late.pop()!.deliver()
    assert.equal(await isWritten('late'), false)
  })

  test('while it is committing: the question waits for the outcome', async () => {
    const broken = proxy.breakNextCommit('late')
    const writing = write('slow')
    await broken
    const late = proxy.late.pop()!
    // Whichever comes first, the late COMMIT or the question: both agree afterwards.
    const [outcome] = await Promise.allSettled([writing, late.deliver()])
    assert.equal(await isWritten('slow'), outcome.status === 'fulfilled')
  })

  test('whatever the statement that wrote looks like', async () => {
    await driver.transaction((tx) => tx.run(`CREATE SEQUENCE steps`))
    const statements = [
      `WITH added AS (INSERT INTO meta(name, value) VALUES (?, 'x') RETURNING name) SELECT name FROM added`,
      `SELECT name FROM (SELECT nextval('steps') AS n, CAST(? AS TEXT) AS name) AS stepped`,
    ]
    for (const [at, sql] of statements.entries()) {
      const broken = proxy.breakNextCommit('after')
      const row = await driver.transaction((tx) => tx.get<{ name: string }>(sql, [`odd ${at}`]))
      await broken
      assert.deepEqual({ ...row }, { name: `odd ${at}` })
    }
    assert.ok(await isWritten('odd 0'))
  })

  test('a transaction that only looked leaves no witness', async () => {
    const seen = async (): Promise<unknown> =>
      witness.read((tx) => tx.all(`SELECT writer, n FROM commits ORDER BY writer`))
    const before = await seen()
    await driver.transaction((tx) => tx.get('SELECT 1 AS one'))
    assert.deepEqual(await seen(), before)
    const broken = proxy.breakNextCommit('before')
    await assert.rejects(
      driver.transaction((tx) => tx.get('SELECT 1 AS one')),
      isOutage,
    )
    await broken
  })

  test('leaves no rows behind when the ledger is closed', async () => {
    const brief = await openPostgres({ url: database.url, clock: systemClock })
    const count = async (): Promise<number> =>
      (await witness.read((tx) => tx.get<{ n: number }>(`SELECT count(*) AS n FROM commits`)))!.n
    const before = await count()
    await brief.transaction((tx) => tx.run(`UPDATE meta SET value = value`))
    assert.equal(await count(), before + 1)
    await brief.close()
    assert.equal(await count(), before)
  })
})

describe('a server that crashes during COMMIT', () => {
  test('is asked when it is back, and tells a lost transaction from one that took its id', async () => {
    const server = await startPostgres()
    const through = await FaultyProxy.before(server.url)
    const ledger = await openPostgres({ url: through.urlOf(server.url), clock: systemClock })
    const writeThere = (name: string, by = ledger): Promise<number> =>
      by.transaction((tx) => tx.run(`INSERT INTO meta(name, value) VALUES (?, 'x')`, [name]))
    try {
      await writeThere('warm-up')
      // The server never gets this COMMIT, and is gone before it can answer.
      const cut = through.breakNextCommit('late')
      const lost = writeThere('lost').then(
        () => 'committed',
        (error: unknown) => (isOutage(error) ? 'outage' : error),
      )
      await cut
      await server.stopServer('immediate')
      await server.startServer()
      // Others commit under the transaction ids that are free again.
      const other = await openPostgres({ url: server.url, clock: systemClock })
      for (let n = 0; n < 5; n++) await writeThere(`other ${n}`, other)
      assert.equal(await lost, 'outage')
      assert.equal(await isWritten('lost', other), false)
      assert.equal(await writeThere('again'), 1, 'work goes on')
      await other.close()
    } finally {
      await ledger.close()
      await through.stop()
      await server.stop()
    }
  })

  test('a question that gets no answer ends when the ledger is closed, without a guess', async () => {
    const server = await startPostgres()
    const through = await FaultyProxy.before(server.url)
    const ledger = await openPostgres({ url: through.urlOf(server.url), clock: systemClock })
    try {
      const cut = through.breakNextCommit('late')
      const doubtful = ledger
        .transaction((tx) => tx.run(`UPDATE meta SET value = value`))
        .then(
          () => assert.fail('it cannot know'),
          (error: unknown) => error,
        )
      await cut
      await server.stopServer('immediate')
      await ledger.close()
      const error = await doubtful
      assert.ok(error instanceof TidemarkError)
      assert.equal(error.code, 'ledger-in-doubt')
      assert.notEqual(error.kind, 'transient', 'nobody may try it again')
    } finally {
      await through.stop()
      await server.stop()
    }
  })
})
