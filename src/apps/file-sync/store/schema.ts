/** The tables of the file sync, in the ledger's database. What they mean is in ../README.md and ../trees.ts. */
import type { Tx } from '../../../ledger/contract.ts'

export function schemaOf(dialect: Tx['dialect']): string[][] {
  const integer = dialect === 'sqlite' ? 'INTEGER' : 'BIGINT'
  const withoutRowid = dialect === 'sqlite' ? ' WITHOUT ROWID' : ''
  return [
    [
      `CREATE TABLE file_drives (
        name TEXT PRIMARY KEY, account TEXT NOT NULL, drive_id TEXT NOT NULL, drive_type TEXT NOT NULL,
        root_item_id TEXT NOT NULL, root TEXT NOT NULL, marker_id TEXT NOT NULL, machine TEXT NOT NULL,
        settings TEXT NOT NULL, link TEXT, generation ${integer} NOT NULL DEFAULT 1,
        is_enumerating ${integer} NOT NULL DEFAULT 1, scanned_at ${integer}, heard_at ${integer},
        forced_deletes ${integer} NOT NULL DEFAULT 0, held_deletes TEXT, filter_key TEXT NOT NULL DEFAULT '',
        planned ${integer} NOT NULL DEFAULT 0, next_local_id ${integer} NOT NULL DEFAULT 2)`,
      `CREATE TABLE file_remote (
        drive TEXT NOT NULL, item_id TEXT NOT NULL, parent_id TEXT, name TEXT NOT NULL, name_key TEXT NOT NULL,
        type TEXT NOT NULL, size ${integer} NOT NULL, hash TEXT, etag TEXT, ctag TEXT, modified_ms ${integer},
        is_deleted ${integer} NOT NULL, generation ${integer} NOT NULL,
        PRIMARY KEY (drive, item_id))${withoutRowid}`,
      `CREATE INDEX file_remote_place ON file_remote(drive, parent_id, name_key)`,
      `CREATE TABLE file_base (
        drive TEXT NOT NULL, item_id TEXT NOT NULL, parent_id TEXT NOT NULL, name TEXT NOT NULL,
        type TEXT NOT NULL, hash TEXT, size ${integer} NOT NULL, remote_hash TEXT, remote_size ${integer} NOT NULL,
        etag TEXT, ctag TEXT, PRIMARY KEY (drive, item_id))${withoutRowid}`,
      `CREATE TABLE file_local (
        drive TEXT NOT NULL, id ${integer} NOT NULL, parent_id ${integer}, name TEXT NOT NULL, name_key TEXT NOT NULL,
        type TEXT NOT NULL, dev TEXT NOT NULL, ino TEXT NOT NULL, birth_ns TEXT NOT NULL, mtime_ns TEXT NOT NULL,
        size ${integer} NOT NULL, hash TEXT, item_id TEXT, is_missing ${integer} NOT NULL, unreadable TEXT,
        PRIMARY KEY (drive, id))${withoutRowid}`,
      `CREATE UNIQUE INDEX file_local_place ON file_local(drive, parent_id, name) WHERE is_missing = 0`,
      `CREATE INDEX file_local_children ON file_local(drive, parent_id, name_key)`,
      `CREATE UNIQUE INDEX file_local_item ON file_local(drive, item_id) WHERE item_id IS NOT NULL`,
      `CREATE INDEX file_local_ino ON file_local(drive, ino)`,
      `CREATE TABLE file_open (
        drive TEXT NOT NULL, node TEXT NOT NULL, version ${integer} NOT NULL, planned ${integer}, waits_for TEXT,
        because TEXT, PRIMARY KEY (drive, node))${withoutRowid}`,
      `CREATE INDEX file_open_unplanned ON file_open(drive, node)
        WHERE planned IS NULL AND waits_for IS NULL AND because IS NULL`,
      `CREATE INDEX file_open_waiting ON file_open(drive, waits_for) WHERE waits_for IS NOT NULL`,
      `CREATE INDEX file_open_planned ON file_open(drive, planned) WHERE planned IS NOT NULL`,
      `CREATE TABLE file_conflicts (
        drive TEXT NOT NULL, id ${integer} NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, node TEXT NOT NULL,
        copy_path TEXT, local_hash TEXT, remote_hash TEXT, at ${integer} NOT NULL, state TEXT NOT NULL,
        resolved_at ${integer}, PRIMARY KEY (drive, id))`,
    ],
  ]
}
