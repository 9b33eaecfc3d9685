/** Large payloads: on the server a value has at most 5 MB, and an answer, all rows of its request together, 10. */
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import { libsqlHome, onLibsql } from '../home.suite.ts'
import { LedgerFixture } from '../ledger-fixture.suite.ts'

const MB = 1_000_000

/** A fifth of it are quotes, which JSON writes as two characters, as it does line ends. */
function quotes(bytes: number): string {
  return '"one\n'.repeat(bytes / 5)
}

onLibsql(() => {
  describe('large payloads on a libSQL server', () => {
    const home = libsqlHome()
    let fixture: LedgerFixture
    beforeEach(async () => {
      fixture = await LedgerFixture.open(home)
    })
    afterEach(async () => {
      await fixture.checkBooks()
      await fixture.close()
    })
    after(() => home.remove())

    test('of many quotes are claimed as they are, with what their job saved', async () => {
      const payload = quotes(3 * MB)
      const checkpoint = quotes(1.5 * MB)
      const first = await fixture.claimed({ payload, key: 'a "key"\nof two lines' })
      assert.deepEqual([first.payload === payload, first.checkpoint], [true, null])
      await fixture.settle(first, 'postpone', { checkpoint })
      const [again, ...more] = await fixture.claim()
      assert.deepEqual(more, [])
      assert.deepEqual([again!.key, again!.bytes], ['a "key"\nof two lines', 4.5 * MB])
      assert.ok(again!.payload === payload && again!.checkpoint === checkpoint, 'the texts differ')
    })

    test('of a thousand jobs that are enqueued at once are all stored, in their order', async () => {
      const payloads = Array.from({ length: 1_000 }, (_, n) => `${n} ${quotes(n === 500 ? 3 * MB : 10_000)}`)
      const added = await fixture.write({ jobs: payloads.map((payload) => ({ kind: 'job', payload })) })
      const stored = await fixture.sql<{ id: number; n: number; bytes: number }>(
        `SELECT id, CAST(payload AS INTEGER) AS n, octet_length(payload) AS bytes FROM jobs ORDER BY id`,
      )
      assert.deepEqual(
        stored.map(({ id, n, bytes }) => [id, n, bytes]),
        payloads.map((payload, n) => [added[n]!.id, n, payload.length]),
      )
    })

    for (const [mb, each] of [
      [0.26, 2],
      [0.6, 1],
      [1, 1],
    ] as const)
      test(`of ${mb} MB in sixteen queues, ${each} in each, are all claimed`, async () => {
        const payload = quotes(mb * MB)
        for (let n = 0; n < 16; n++) {
          const streamId = await fixture.stream(`stream ${n}`)
          for (let i = 0; i < each; i++) await fixture.add({ streamId, payload })
        }
        const claimed = new Set<number>()
        const count = 16 * each
        for (let n = 0; n < count && claimed.size < count; n++)
          for (const job of await fixture.claim()) {
            assert.ok(job.payload === payload, 'the payload differs')
            claimed.add(job.id)
          }
        assert.equal(claimed.size, count)
      })
  })
})
