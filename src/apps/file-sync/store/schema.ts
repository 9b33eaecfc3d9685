/**
 * The tables of the file sync, in the ledger's database. What they mean is in ../README.md and ../trees.ts.
 *
 * Not WITHOUT ROWID, and keys begin with what tells rows apart and not with the drive, of which there are few: without
 * statistics SQLite takes an equality on part of a clustered key for about ten rows, and reads the whole drive instead
 * of using an index (with 100,000 files: 465 s for a first scan).
 */
import type { Tx } from '../../../ledger/contract.ts'

export function schemaOf(dialect: Tx['dialect']): string[][] {
  const integer = dialect === 'sqlite' ? 'INTEGER' : 'BIGINT'
  return [
    [
      `CREATE TABLE file_drives (
        name TEXT PRIMARY KEY, account TEXT NOT NULL, drive_id TEXT NOT NULL, drive_type TEXT NOT NULL,
        root_item_id TEXT NOT NULL, root TEXT NOT NULL, marker_id TEXT NOT NULL, machine TEXT NOT NULL,
        settings TEXT NOT NULL, link TEXT, generation ${integer} NOT NULL DEFAULT 1,
        is_enumerating ${integer} NOT NULL DEFAULT 1, is_reading ${integer} NOT NULL DEFAULT 0, scanned_at ${integer}, heard_at ${integer},
        forced_deletes ${integer} NOT NULL DEFAULT 0, held_deletes TEXT, filter_key TEXT NOT NULL DEFAULT '',
        planned ${integer} NOT NULL DEFAULT 0, next_local_id ${integer} NOT NULL DEFAULT 2)`,
      `CREATE TABLE file_remote (
        drive TEXT NOT NULL, item_id TEXT NOT NULL, parent_id TEXT, name TEXT NOT NULL, name_key TEXT NOT NULL,
        type TEXT NOT NULL, size ${integer} NOT NULL, hash TEXT, etag TEXT, ctag TEXT, modified_ms ${integer},
        is_deleted ${integer} NOT NULL, generation ${integer} NOT NULL,
        PRIMARY KEY (item_id, drive))`,
      `CREATE INDEX file_remote_place ON file_remote(parent_id, drive, name_key)`,
      `CREATE TABLE file_base (
        drive TEXT NOT NULL, item_id TEXT NOT NULL, parent_id TEXT NOT NULL, name TEXT NOT NULL,
        type TEXT NOT NULL, hash TEXT, size ${integer} NOT NULL, remote_hash TEXT, remote_size ${integer} NOT NULL,
        etag TEXT, ctag TEXT, PRIMARY KEY (item_id, drive))`,
      `CREATE TABLE file_local (
        drive TEXT NOT NULL, id ${integer} NOT NULL, parent_id ${integer}, name TEXT NOT NULL, name_key TEXT NOT NULL,
        type TEXT NOT NULL, dev TEXT NOT NULL, ino TEXT NOT NULL, birth_ns TEXT NOT NULL, mtime_ns TEXT NOT NULL,
        size ${integer} NOT NULL, hash TEXT, item_id TEXT, is_missing ${integer} NOT NULL, unreadable TEXT,
        PRIMARY KEY (id, drive))`,
      `CREATE UNIQUE INDEX file_local_place ON file_local(parent_id, drive, name) WHERE is_missing = 0`,
      `CREATE INDEX file_local_children ON file_local(parent_id, drive, name_key)`,
      `CREATE UNIQUE INDEX file_local_item ON file_local(item_id, drive) WHERE item_id IS NOT NULL`,
      `CREATE INDEX file_local_ino ON file_local(ino, drive)`,
      `CREATE TABLE file_open (
        drive TEXT NOT NULL, node TEXT NOT NULL, version ${integer} NOT NULL, planned ${integer}, waits_for TEXT,
        because TEXT, PRIMARY KEY (node, drive))`,
      `CREATE INDEX file_open_unplanned ON file_open(drive, node)
        WHERE planned IS NULL AND waits_for IS NULL AND because IS NULL`,
      `CREATE INDEX file_open_waiting ON file_open(waits_for, drive) WHERE waits_for IS NOT NULL`,
      `CREATE INDEX file_open_planned ON file_open(drive, planned) WHERE planned IS NOT NULL`,
      `CREATE TABLE file_conflicts (
        drive TEXT NOT NULL, id ${integer} NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, node TEXT NOT NULL,
        copy_path TEXT, local_hash TEXT, remote_hash TEXT, at ${integer} NOT NULL, state TEXT NOT NULL,
        resolved_at ${integer}, PRIMARY KEY (drive, id))`,
    ],
    // The statistics of before; the last step has those of now.
    [],
    [
      `ALTER TABLE file_drives ADD COLUMN recent_deletes ${integer} NOT NULL DEFAULT 0`,
      `ALTER TABLE file_drives ADD COLUMN recent_since ${integer} NOT NULL DEFAULT 0`,
    ],
    [
      `CREATE TABLE file_seen (
        drive TEXT NOT NULL, folder ${integer} NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (folder, drive))`,
      ...(dialect === 'sqlite' ? seenTriggers() : []),
    ],
    dialect === 'sqlite' ? statistics() : [],
  ]
}

/** Whoever changes a row of a folder takes away what was noted of the folder: see seen-folders.ts. */
function seenTriggers(): string[] {
  const forget = (row: 'OLD' | 'NEW', column = 'parent_id'): string =>
    `DELETE FROM file_seen WHERE folder = ${row}.${column} AND drive = ${row}.drive;`
  const digested = ['parent_id', 'name', 'type', 'dev', 'ino', 'birth_ns', 'mtime_ns', 'size', 'is_missing']
  const isOther = [...digested, 'unreadable']
    .map((column) => `NEW.${column} IS NOT OLD.${column}`)
    .join(' OR ')
  return [
    `CREATE INDEX file_local_folders ON file_local(parent_id, drive) WHERE type = 'folder' AND is_missing = 0`,
    `CREATE TRIGGER file_local_added AFTER INSERT ON file_local BEGIN ${forget('NEW')} END`,
    `CREATE TRIGGER file_local_changed AFTER UPDATE ON file_local WHEN ${isOther}
     BEGIN ${forget('OLD')} ${forget('NEW')} END`,
    `CREATE TRIGGER file_local_removed AFTER DELETE ON file_local
     BEGIN ${forget('OLD')} ${forget('OLD', 'id')} END`,
  ]
}

/**
 * How many rows share the first columns of each index, for SQLite's planner. It never looks by itself, and without
 * them takes what begins with the drive for a handful of rows, or what does not for a crowd: look-ups then read the
 * whole drive. PostgreSQL finds out by itself.
 */
function statistics(): string[] {
  const rows: [table: string, index: string, stat: string][] = [
    // The name of a table stands for its primary key.
    ['file_remote', 'file_remote', '1000000 1 1'],
    ['file_remote', 'file_remote_place', '1000000 50 50 1'],
    ['file_base', 'file_base', '1000000 1 1'],
    ['file_local', 'file_local', '1000000 2 1'],
    ['file_local', 'file_local_place', '1000000 50 50 1'],
    ['file_local', 'file_local_children', '1000000 50 50 1'],
    ['file_local', 'file_local_folders', '20000 10 10'],
    ['file_local', 'file_local_item', '1000000 1 1'],
    ['file_local', 'file_local_ino', '1000000 1 1'],
    ['file_open', 'file_open', '100000 1 1'],
    ['file_open', 'file_open_unplanned', '2000 2000 1'],
    ['file_open', 'file_open_waiting', '1000 2 2'],
    ['file_open', 'file_open_planned', '10000 10000 1000'],
    ['file_seen', 'file_seen', '20000 1 1'],
  ]
  const values = rows.map((row) => `(${row.map((text) => `'${text}'`).join(', ')})`)
  const tables = [...new Set(rows.map(([table]) => `'${table}'`))].join(', ')
  return [
    // The first makes the table where there is none yet, the last has the planner read it.
    `ANALYZE sqlite_schema`,
    `DELETE FROM sqlite_stat1 WHERE tbl IN (${tables})`,
    `INSERT INTO sqlite_stat1(tbl, idx, stat) VALUES ${values.join(', ')}`,
    `ANALYZE sqlite_schema`,
  ]
}
