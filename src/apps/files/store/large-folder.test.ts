import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startLibsql } from '../../../../scripts/libsql.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { onLibsql } from '../../../ledger/home.suite.ts'
import { openLedger } from '../../../ledger/open.ts'
import { openStore, PAIR } from './file-store.suite.ts'

const FILES = 30_000
/** As large as rows are of files that are in step. */
const FILL = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${FILES})
  INSERT INTO file_local(drive, id, parent_id, name, name_key, type, dev, ino, birth_ns, mtime_ns, ctime_ns, size, hash, item_id, sha256, is_missing)
  SELECT ?, 1000 + i, 1, 'a picture of a summer ' || i, 'a picture of a summer ' || i, 'file', '2049', '1300000' || i,
    '1763400000000000000', '1763400000000000000', '1763400000000000000', 4000000, hex(zeroblob(10)),
    'ABCDEF0123456789!s' || hex(zeroblob(14)) || i, hex(zeroblob(32)), 0 FROM n`

/** A server ends a transaction of which it hears nothing for ten seconds: on a busy machine it takes another try. */
async function tried<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (thrown) {
      if (!(thrown instanceof TidemarkError) || thrown.code !== 'ledger-down') throw thrown
    }
  }
}

onLibsql(() => {
  test('a folder with so many files that no answer of a libSQL server holds them is read whole', async () => {
    const server = await startLibsql()
    const ledger = await openLedger(server.url)
    try {
      const store = await openStore(ledger)
      await store.write((tx) => tx.run(FILL, [PAIR]))
      const rows = await tried(() => store.localChildren(PAIR, 1))
      assert.equal(new Set(rows.map(({ name }) => name)).size, FILES)
      const all = await tried(() => store.write((tx) => tx.all(`SELECT * FROM file_local`)))
      assert.equal(all.length, FILES + 1)
    } finally {
      await ledger.close()
      await server.stop()
    }
  })
})
