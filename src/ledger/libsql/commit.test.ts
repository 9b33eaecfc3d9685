import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type LibsqlServer, startLibsql } from '../../../scripts/libsql.ts'
import { TidemarkError } from '../../base/errors.ts'
import { onLibsql } from '../home.suite.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger } from '../open.ts'
import { LossyProxy } from './lossy-proxy.suite.ts'

onLibsql(() => {
  describe('a COMMIT on libSQL whose answer is lost', () => {
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
    const isDown = (thrown: unknown): boolean =>
      thrown instanceof TidemarkError && thrown.code === 'ledger-down'

    test('is known to have happened, where the server did it', async () => {
      void proxy.lose('answer', /COMMIT/)
      assert.equal(await note('done'), 1)
      assert.equal(await count('done'), 1)
    })

    test('is known not to have happened, where it never arrived, and can be tried again', async () => {
      void proxy.lose('request', /COMMIT/)
      await assert.rejects(note('lost'), isDown)
      assert.equal(await count('lost'), 0)
      assert.equal(await note('lost'), 1)
    })

    test('changes nothing when it arrives after it was asked about', async () => {
      void proxy.lose('late', /COMMIT/)
      await assert.rejects(note('late'), isDown)
      await note('late')
      await proxy.deliver()
      assert.equal(await count('late'), 1)
    })

    test('is a whole transaction in one request, too, that changes nothing when it comes late', async () => {
      const raise = (): Promise<number> =>
        ledger.driver.transaction(async (tx) => {
          tx.run(`INSERT INTO notes VALUES ('whole')`).catch(() => {})
          return 1
        })
      void proxy.lose('late', /COMMIT/)
      await assert.rejects(raise(), isDown)
      await proxy.deliver()
      assert.equal(await count('whole'), 0)
    })

    test('is asked about until a server that was taken away is back', async () => {
      const lost = proxy.lose('answer', /COMMIT/)
      const writing = note('away')
      await lost
      await server.restart()
      assert.equal(await writing, 1)
      assert.equal(await count('away'), 1)
    })

    test('of a transaction that only looked is not asked about', async () => {
      void proxy.lose('answer', /COMMIT/)
      await assert.rejects(
        ledger.driver.transaction((tx) => tx.get(`SELECT 1 AS n`)),
        isDown,
      )
    })
  })
})
