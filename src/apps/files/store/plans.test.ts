import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { schemaStatements } from '../../../ledger/schema.ts'
import { fileSchema } from './schema.ts'

const db = new DatabaseSync(':memory:')
for (const step of [schemaStatements('sqlite', { from: 0 }), ...fileSchema('sqlite')])
  for (const sql of step) db.exec(sql)

/** How SQLite would go about it, with no other statistics than those of the schema. */
function planOf(sql: string): string {
  const rows = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]
  return rows.map(({ detail }) => detail).join('; ')
}

const STATEMENTS: [what: string, sql: string, how: RegExp][] = [
  ['a local row', `SELECT * FROM file_local WHERE drive = ? AND id = ?`, /\(id=\? AND drive=\?\)/],
  [
    'what is in a folder',
    `SELECT * FROM file_local WHERE drive = ? AND parent_id = ?`,
    /file_local_\w+ \(parent_id=\?/,
  ],
  [
    'a name in a folder',
    `SELECT * FROM file_local WHERE drive = ? AND parent_id = ? AND name = ? AND is_missing = 0`,
    /file_local_place \(parent_id=\? AND drive=\? AND name=\?/,
  ],
  [
    'what was noted of a folder, and the folders in it',
    `SELECT digest, (SELECT count(*) FROM file_local child WHERE child.drive = seen.drive
     AND child.parent_id = seen.folder AND child.type = 'folder' AND child.is_missing = 0)
     FROM file_seen seen WHERE drive = ? AND folder = ?`,
    /file_seen_1 \(folder=\? AND drive=\?\).*SEARCH child USING (?:COVERING )?INDEX file_local_folders \(parent_id=\?/,
  ],
  [
    'the way up from a row',
    `WITH RECURSIVE way(parent_id) AS (SELECT parent_id FROM file_local WHERE drive = ? AND id = ?
     UNION ALL SELECT folder.parent_id FROM way JOIN file_local folder ON folder.drive = ?
     AND folder.id = way.parent_id) SELECT * FROM way`,
    /SCAN way; SEARCH folder USING INDEX \w+ \(id=\? AND drive=\?\)/,
  ],
  ['an inode', `SELECT * FROM file_local WHERE drive = ? AND ino = ? AND dev = ?`, /file_local_ino \(ino=\?/],
  [
    'the local side of an item',
    `SELECT * FROM file_local WHERE drive = ? AND item_id = ?`,
    /file_local_item \(item_id=\?/,
  ],
  [
    'the local sides of items',
    `SELECT * FROM file_local WHERE drive = ? AND item_id IN (SELECT value FROM json_each(?))`,
    /file_local_item \(item_id=\?/,
  ],
  [
    'namesakes in folders of OneDrive',
    `SELECT * FROM file_remote WHERE drive = ? AND is_deleted = 0 AND parent_id IN (SELECT value FROM json_each(?))
     AND name_key IN (SELECT value FROM json_each(?))`,
    /file_remote_place \(parent_id=\?/,
  ],
  ['a base row', `SELECT * FROM file_base WHERE drive = ? AND item_id = ?`, /\(item_id=\? AND drive=\?\)/],
  [
    'what is to be planned',
    `SELECT node, version FROM file_open WHERE drive = ? AND node > '' AND planned IS NULL AND waits_for IS NULL
     AND because IS NULL ORDER BY node LIMIT ?`,
    /file_open_unplanned/,
  ],
  [
    'who waits for a node',
    `UPDATE file_open SET waits_for = NULL WHERE drive = ? AND waits_for IN (SELECT value FROM json_each(?))`,
    /file_open_waiting \(waits_for=\?/,
  ],
  [
    'what settled plans hold',
    `UPDATE file_open SET planned = NULL WHERE drive = ? AND planned <= ?`,
    /file_open_planned/,
  ],
]

for (const [what, sql, how] of STATEMENTS) {
  test(`SQLite finds ${what} without reading the whole drive`, () => {
    assert.match(planOf(sql), how)
    assert.doesNotMatch(planOf(sql), /SCAN file_/)
  })
}
