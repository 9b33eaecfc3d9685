import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { onLibsql } from '../home.suite.ts'
import { Notes } from './lossy-proxy.suite.ts'

onLibsql(() => {
  describe('a COMMIT on libSQL whose answer is lost', () => {
    const notes = new Notes()
    const isDown = (thrown: unknown): boolean =>
      thrown instanceof TidemarkError && thrown.code === 'ledger-down'

    test('is known to have happened, where the server did it', async () => {
      void notes.proxy.lose('answer', /COMMIT/)
      assert.equal(await notes.add('done'), 1)
      assert.equal(await notes.count('done'), 1)
    })

    test('is known not to have happened, where it never arrived, and can be tried again', async () => {
      void notes.proxy.lose('request', /COMMIT/)
      await assert.rejects(notes.add('lost'), isDown)
      assert.equal(await notes.count('lost'), 0)
      assert.equal(await notes.add('lost'), 1)
    })

    test('changes nothing when it arrives after it was asked about', async () => {
      void notes.proxy.lose('late', /COMMIT/)
      await assert.rejects(notes.add('late'), isDown)
      await notes.add('late')
      await notes.proxy.deliver()
      assert.equal(await notes.count('late'), 1)
    })

    test('is a whole transaction in one request, too, that changes nothing when it comes late', async () => {
      const raise = (): Promise<number> =>
        notes.ledger.driver.transaction(async (tx) => {
          tx.run(`INSERT INTO notes VALUES ('whole')`).catch(() => {})
          return 1
        })
      void notes.proxy.lose('late', /COMMIT/)
      await assert.rejects(raise(), isDown)
      await notes.proxy.deliver()
      assert.equal(await notes.count('whole'), 0)
    })

    test('is asked about until a server that was taken away is back', async () => {
      const lost = notes.proxy.lose('answer', /COMMIT/)
      const writing = notes.add('away')
      await lost
      await notes.server.restart()
      assert.equal(await writing, 1)
      assert.equal(await notes.count('away'), 1)
    })

    for (const [what, status, body] of [
      ['that it took too long', 408, 'Request Timeout'],
      ['that it was sent twice', 400, 'Received a baton that has already been used'],
      ['a page of its own', 200, '<html>Welcome</html>'],
      ['nothing', 204, ''],
    ] as const)
      test(`is asked about, where somebody on the way answers ${what}`, async () => {
        notes.proxy.replace(/COMMIT/, { status, body })
        assert.equal(await notes.add(what), 1)
        assert.equal(await notes.count(what), 1)
      })

    test('of a transaction that only looked is not asked about', async () => {
      void notes.proxy.lose('answer', /COMMIT/)
      await assert.rejects(
        notes.ledger.driver.transaction((tx) => tx.get(`SELECT 1 AS n`)),
        isDown,
      )
    })
  })
})
