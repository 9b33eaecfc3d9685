import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { runSharingHistory } from './access-oracle.suite.ts'

describe('after each sync everybody finds exactly what Drive lets them find', () => {
  test('through random histories of sharing', async () => {
    for (const seed of [2, 5]) {
      assert.equal(await runSharingHistory(seed, { acts: 40, syncEvery: 10 }), undefined)
    }
  })

  test('while Drive fails, throttles and cuts answers short', async () => {
    assert.equal(await runSharingHistory(22, { acts: 24, syncEvery: 12, faults: true }), undefined)
  })

  test('on PostgreSQL, too', async () => {
    const database = await freshDatabase()
    try {
      const ledgerUrl = database.url
      assert.equal(await runSharingHistory(7, { acts: 30, syncEvery: 10, ledgerUrl }), undefined)
    } finally {
      await database.drop()
    }
  })
})
