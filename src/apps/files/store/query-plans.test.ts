/** What is asked for every file of a large drive must be found by an index: one scan of 100,000 rows takes 30 ms. */
import assert from 'node:assert/strict'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { test } from 'node:test'
import { withFileWorld } from '../sync.suite.ts'

/**
 * The tables of the trees, and the names that statements give them. An automatic index is made of the whole tree, and
 * in a recursive statement anew with every row: 4,000 files of a deleted folder took 7 s.
 */
const TREE_SCAN =
  /AUTOMATIC|^SCAN (?:file_(?:local|remote|base)|found|child|folder|parent|up|here|there|base|remote|local)\b/

/** Asked once after a reading from the start, once by a person, once a plan that deletes, and once by a new version. */
const OF_EVERYTHING: readonly RegExp[] = [
  /^UPDATE file_remote SET is_deleted = 1 WHERE drive = \? AND is_deleted = 0 AND generation < \?/,
  /^SELECT type, count\(\*\) AS n, sum\(size\) AS bytes FROM file_base/,
  /^SELECT count\(\*\) AS n FROM file_base WHERE drive = \?$/,
  /^UPDATE file_local SET unreadable = 'aside-/,
  /^INSERT INTO file_open\(drive, node, version\) SELECT drive, 'i:' \|\| item_id, 1 FROM file_local\b/,
]

test('no action, look or plan reads a whole tree to find a few rows', async () => {
  const asked = new Map<string, DatabaseSync>()
  const prepare = DatabaseSync.prototype.prepare
  DatabaseSync.prototype.prepare = function (
    this: DatabaseSync,
    sql: string,
    ...rest: never[]
  ): StatementSync {
    if (/\bfile_(?:local|remote|base)\b/.test(sql)) asked.set(sql, this)
    return prepare.call(this, sql, ...rest)
  }
  try {
    await withFileWorld({}, async (world) => {
      for (let n = 0; n < 12; n++) world.write(`d/f${n}`, String(n))
      world.there.device.write('there/x', 'x')
      await world.sync()
      world.write('d/f0', 'edited here')
      world.there.device.write('d/f0', 'edited there')
      world.there.device.write('d/f1', 'edited there')
      world.write('d/f2', 'edited')
      world.move('d/f3', 'moved-here')
      world.there.device.move('d/f4', 'moved-there')
      world.remove('d/f5')
      world.there.device.delete('d/f6')
      world.there.device.delete('there')
      await world.sync()
      world.remove('d')
      await world.sync()
      await world.files.store.totals('home')
      await world.files.store.reported('home', { limit: 10 })
      const scans = [...asked].flatMap(([sql, db]) => scansOf(prepare, db, sql))
      assert.deepEqual(scans, [])
    })
  } finally {
    DatabaseSync.prototype.prepare = prepare
  }
})

function scansOf(prepare: DatabaseSync['prepare'], db: DatabaseSync, sql: string): string[] {
  const text = sql.replace(/\s+/g, ' ').trim()
  if (!/^(?:SELECT|WITH|UPDATE|DELETE|INSERT)/.test(text) || OF_EVERYTHING.some((known) => known.test(text)))
    return []
  const steps = prepare.call(db, `EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]
  return steps
    .filter(({ detail }) => TREE_SCAN.test(detail))
    .map(({ detail }) => `${detail} in: ${text.slice(0, 160)}`)
}
