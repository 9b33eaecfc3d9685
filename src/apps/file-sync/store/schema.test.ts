import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLedger } from '../../../ledger/open.ts'
import { FileStore } from './file-store.ts'

/** As they stand in the store; each is asked for every file. */
const LOOK_UPS = [
  `SELECT 1 FROM file_remote WHERE drive = ? AND parent_id = ? AND is_deleted = 0`,
  `SELECT id FROM file_local WHERE drive = ? AND parent_id = ? AND name_key = ? AND is_missing = 0`,
  `SELECT id FROM file_local WHERE drive = ? AND ino = ? AND dev = ?`,
  `SELECT id FROM file_local WHERE drive = ? AND item_id = ?`,
  `UPDATE file_open SET waits_for = NULL WHERE drive = ? AND waits_for IN (SELECT value FROM json_each(?))`,
  `SELECT node FROM file_open WHERE drive = ? AND planned IS NULL AND waits_for IS NULL AND because IS NULL
   ORDER BY node LIMIT ?`,
]

test('on SQLite, no look-up reads all rows of a drive', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    await FileStore.open(ledger)
    for (const sql of LOOK_UPS) {
      const steps = await ledger.driver.read((tx) => tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`))
      const [first] = steps
      assert.match(first!.detail, /USING (?:COVERING )?INDEX/, `${sql}: ${first!.detail}`)
    }
  } finally {
    await ledger.close()
  }
})
