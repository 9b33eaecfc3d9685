/** The server's write lock, for which all processes wait: one that cannot have it at once is late, and nothing else. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createEngine } from '../../engine/engine.ts'
import { onLibsql } from '../home.suite.ts'
import { openLedger } from '../open.ts'
import { Connection, parseTarget } from './connection.ts'
import type { LibsqlDriver } from './driver.ts'
import { Notes } from './lossy-proxy.suite.ts'

onLibsql(() => {
  describe('the write lock of a libSQL server', () => {
    const notes = new Notes()
    const requests = (): number => (notes.ledger.driver as LibsqlDriver).usage.requests

    for (const code of ['SQLITE_BUSY', 'SQLITE_BUSY_SNAPSHOT', 'TRANSACTION_TIMEOUT'])
      test(`is asked for again, where BEGIN is refused with ${code}`, async () => {
        const before = requests()
        notes.proxy.refuse(/BEGIN IMMEDIATE/, { code, times: 3 })
        assert.equal(await notes.add(code), 1)
        assert.equal(await notes.count(code), 1)
        // Three that were refused, the statement, COMMIT, and the look.
        assert.equal(requests() - before, 6)
      })

    test('is asked for again with a whole transaction in one request, which is run once', async () => {
      notes.proxy.refuse(/BEGIN IMMEDIATE.*COMMIT/, { code: 'SQLITE_BUSY', times: 2 })
      await notes.ledger.driver.transaction(async (tx) => {
        tx.run(`INSERT INTO notes VALUES ('whole')`).catch(() => {})
      })
      assert.equal(await notes.count('whole'), 1)
    })

    test('is not asked for any longer once the ledger is closed', async () => {
      const other = await openLedger(notes.proxy.url)
      notes.proxy.refuse(/BEGIN IMMEDIATE/, { code: 'SQLITE_BUSY', times: Number.POSITIVE_INFINITY })
      const writing = other.driver.transaction((tx) => tx.run(`INSERT INTO notes VALUES ('closed')`))
      const ended = assert.rejects(writing, /The ledger is closed/)
      await other.close()
      await ended
      notes.proxy.refuse(/BEGIN IMMEDIATE/, { code: 'SQLITE_BUSY', times: 0 })
      assert.equal(await notes.count('closed'), 0)
    })

    test('is asked for again by a heartbeat, which is not missed for it', async () => {
      const { ledger, proxy } = notes
      const owner = await ledger.register({ host: 'here', pid: 1, pidStart: 'then', name: 'one' }, 60_000)
      const beatAt = async (): Promise<number> =>
        (await ledger.driver.read((tx) => tx.get<{ at: number }>(`SELECT heartbeat_at AS at FROM workers`)))!
          .at
      const first = await beatAt()
      const errors: unknown[] = []
      proxy.refuse(/UPDATE workers/, { code: 'SQLITE_BUSY', times: 3 })
      const heartbeat = await ledger.driver.startHeartbeat({
        owner,
        leaseMs: 60_000,
        everyMs: 50,
        blockedMaxMs: 600_000,
        onLost: () => errors.push('lost'),
        onError: (thrown) => errors.push(thrown),
      })
      while ((await beatAt()) === first) await new Promise((resolve) => setTimeout(resolve, 20))
      await heartbeat.stop()
      assert.deepEqual(errors, [])
    })

    test('is refused to nobody who starts while it is held by a process that has died', async () => {
      const dead = new Connection(parseTarget(notes.server.url, undefined))
      const begun = await dead
        .stream()
        .batch([{ sql: 'BEGIN IMMEDIATE' }, { sql: `INSERT INTO notes VALUES ('dead')` }], { isFirst: true })
      assert.equal(begun.isOpen, true)
      dead.close()
      notes.proxy.refuse(/BEGIN IMMEDIATE/, { code: 'SQLITE_BUSY', times: 3 })
      const engine = await createEngine({ ledger: notes.proxy.url, jobs: [] })
      try {
        await engine.start()
        assert.notEqual(engine.owner, 0)
        const { usage } = engine.ledger.driver as LibsqlDriver
        assert.ok(usage.requests <= 40, `${usage.requests} requests`)
      } finally {
        await engine.stop()
      }
      assert.equal(await notes.count('dead'), 0)
    })
  })
})
