/** The server's write lock, for which all processes wait: one that cannot have it at once is late, and nothing else. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type LibsqlServer, startLibsql } from '../../../scripts/libsql.ts'
import { createEngine } from '../../engine/engine.ts'
import { onLibsql } from '../home.suite.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger } from '../open.ts'
import { Connection, parseTarget } from './connection.ts'
import type { LibsqlDriver } from './driver.ts'
import { LossyProxy } from './lossy-proxy.suite.ts'

onLibsql(() => {
  describe('the write lock of a libSQL server', () => {
    let server: LibsqlServer
    let proxy: LossyProxy
    let ledger: Ledger
    before(async () => {
      server = await startLibsql()
      proxy = await LossyProxy.start(server.url)
      ledger = await openLedger(proxy.url)
      await ledger.driver.transaction((tx) => tx.run(`CREATE TABLE notes (text TEXT PRIMARY KEY)`))
    })
    after(async () => {
      await ledger.close()
      await proxy.close()
      await server.stop()
    })

    const note = (text: string): Promise<number> =>
      ledger.driver.transaction((tx) => tx.run(`INSERT INTO notes VALUES (?)`, [text]))
    const count = async (text: string): Promise<number> => {
      const row = await ledger.driver.read((tx) =>
        tx.get<{ n: number }>(`SELECT count(*) AS n FROM notes WHERE text = ?`, [text]),
      )
      return row!.n
    }
    const requests = (): number => (ledger.driver as LibsqlDriver).usage.requests

    for (const code of ['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'TRANSACTION_TIMEOUT'])
      test(`is asked for again, where BEGIN is refused with ${code}`, async () => {
        const before = requests()
        proxy.refuse(/BEGIN IMMEDIATE/, { code, times: 3 })
        assert.equal(await note(code), 1)
        assert.equal(await count(code), 1)
        // Three that were refused, the statement, COMMIT, and the look.
        assert.equal(requests() - before, 6)
      })

    test('is asked for again with a whole transaction in one request, which is run once', async () => {
      proxy.refuse(/BEGIN IMMEDIATE.*COMMIT/, { code: 'SQLITE_BUSY', times: 2 })
      await ledger.driver.transaction(async (tx) => {
        tx.run(`INSERT INTO notes VALUES ('whole')`).catch(() => {})
      })
      assert.equal(await count('whole'), 1)
    })

    test('is not asked for any longer once the ledger is closed', async () => {
      const other = await openLedger(proxy.url)
      proxy.refuse(/BEGIN IMMEDIATE/, { code: 'SQLITE_BUSY', times: Number.POSITIVE_INFINITY })
      const writing = other.driver.transaction((tx) => tx.run(`INSERT INTO notes VALUES ('closed')`))
      const ended = assert.rejects(writing, /The ledger is closed/)
      await other.close()
      await ended
      proxy.refuse(/BEGIN IMMEDIATE/, { code: 'SQLITE_BUSY', times: 0 })
      assert.equal(await count('closed'), 0)
    })

    test('is refused to nobody who starts while it is held by a process that has died', async () => {
      const dead = new Connection(parseTarget(server.url, undefined))
      const begun = await dead
        .stream()
        .batch([{ sql: 'BEGIN IMMEDIATE' }, { sql: `INSERT INTO notes VALUES ('dead')` }], { isFirst: true })
      assert.equal(begun.isOpen, true)
      dead.close()
      proxy.refuse(/BEGIN IMMEDIATE/, { code: 'SQLITE_BUSY', times: 3 })
      const engine = await createEngine({ ledger: proxy.url, jobs: [] })
      try {
        await engine.start()
        assert.notEqual(engine.owner, 0)
        const { usage } = engine.ledger.driver as LibsqlDriver
        assert.ok(usage.requests <= 40, `${usage.requests} requests`)
      } finally {
        await engine.stop()
      }
      assert.equal(await count('dead'), 0)
    })
  })
})
