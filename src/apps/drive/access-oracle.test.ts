import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { type HistoryOptions, runSharingHistory } from './access-oracle.suite.ts'

async function wrongIn(seed: number, options: HistoryOptions): Promise<string | undefined> {
  return (await runSharingHistory(seed, options)).wrong
}

describe('after each sync everybody finds exactly what Drive lets them find', () => {
  test('through random histories of sharing', async () => {
    for (const seed of [2, 5]) {
      assert.equal(await wrongIn(seed, { acts: 40, syncEvery: 10 }), undefined)
    }
  })

  test('while Drive fails, throttles and cuts answers short', async () => {
    assert.equal(await wrongIn(22, { acts: 24, syncEvery: 12, faults: true }), undefined)
  })

  test('on PostgreSQL, too', async () => {
    const database = await freshDatabase()
    try {
      const ledgerUrl = database.url
      assert.equal(await wrongIn(7, { acts: 30, syncEvery: 10, ledgerUrl }), undefined)
    } finally {
      await database.drop()
    }
  })

  test('while processes that sync are killed in the middle of their work, on both databases', async () => {
    const database = await freshDatabase()
    try {
      const options = { acts: 16, syncEvery: 8, kills: 2 }
      const here = await runSharingHistory(31, options)
      const there = await runSharingHistory(32, { ...options, ledgerUrl: database.url })
      assert.deepEqual([here.wrong, there.wrong], [undefined, undefined])
      assert.ok(here.kills.working > 0, JSON.stringify(here.kills))
      assert.ok(there.kills.working > 0, JSON.stringify(there.kills))
    } finally {
      await database.drop()
    }
  })
})
