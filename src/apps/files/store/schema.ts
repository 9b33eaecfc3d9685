/**
 * The tables of the file sync, in the ledger's database. What they mean is in ../README.md and ../trees.ts.
 *
 * Not WITHOUT ROWID, and keys begin with what tells rows apart and not with the folder pair, of which there are few: without
 * statistics SQLite takes an equality on part of a clustered key for about ten rows, and reads the whole pair instead
 * of using an index (with 100,000 files: 465 s for a first scan).
 */
import type { Tx } from '../../../ledger/contract.ts'

/** A libSQL server lets nobody write the planner's statistics: there the keys above have to do. */
export function fileSchema(
  dialect: Tx['dialect'],
  { hasStatistics = dialect === 'sqlite' }: { hasStatistics?: boolean } = {},
): string[][] {
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
    // The statistics of before; those of now come below.
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
    hasStatistics ? statistics() : [],
    [
      // Deletions that nobody was asked about, by the time at which they were done.
      `CREATE TABLE file_deletes (
        drive TEXT NOT NULL, at ${integer} NOT NULL, items ${integer} NOT NULL, files ${integer} NOT NULL,
        PRIMARY KEY (drive, at))`,
      `ALTER TABLE file_drives DROP COLUMN recent_deletes`,
      `ALTER TABLE file_drives DROP COLUMN recent_since`,
    ],
    // What passed through a name that is left out stayed so for ever: it is decided anew.
    [`UPDATE file_open SET because = NULL WHERE because LIKE 'left out: %'`],
    // Changes that the watch has seen, and of which no look was asked for yet: when the last of them was.
    [`ALTER TABLE file_drives ADD COLUMN stirred_at ${integer}`],
    [
      // Not known of what is there: '0' and NULL say so.
      `ALTER TABLE file_local ADD COLUMN ctime_ns TEXT NOT NULL DEFAULT '0'`,
      `ALTER TABLE file_local ADD COLUMN sha256 TEXT`,
      `ALTER TABLE file_base ADD COLUMN sha256 TEXT`,
      `DELETE FROM file_seen`,
      ...(dialect === 'sqlite'
        ? [`DROP TRIGGER file_local_changed`, changedTrigger([...DIGESTED, 'ctime_ns'])]
        : []),
    ],
    [
      // Time that was seen to pass, and since when what is in the trash of a day is there: see trash-ages.ts.
      `ALTER TABLE file_drives ADD COLUMN lived_ms ${integer} NOT NULL DEFAULT 0`,
      `ALTER TABLE file_drives ADD COLUMN lived_at ${integer}`,
      `CREATE TABLE file_trash (
        drive TEXT NOT NULL, day TEXT NOT NULL, digest TEXT NOT NULL, since_ms ${integer} NOT NULL,
        PRIMARY KEY (day, drive))`,
    ],
    // Edits of files that were empty when both sides agreed, which had no hash to differ from: they are looked at now.
    [
      `INSERT INTO file_open(drive, node, version)
       SELECT drive, 'i:' || item_id, 1 FROM file_local
       WHERE type = 'file' AND size > 0 AND hash IS NULL AND is_missing = 0 AND item_id IS NOT NULL
       ON CONFLICT DO NOTHING`,
    ],
    [
      // Files that got another content although nobody was asked: when, and whether it was older than what it replaced.
      `CREATE TABLE file_overwrites (
        drive TEXT NOT NULL, item_id TEXT NOT NULL, at ${integer} NOT NULL, is_older ${integer} NOT NULL,
        PRIMARY KEY (item_id, drive))`,
      `CREATE INDEX file_overwrites_at ON file_overwrites(drive, at)`,
      `ALTER TABLE file_drives ADD COLUMN forced_overwrites ${integer} NOT NULL DEFAULT 0`,
      `ALTER TABLE file_base ADD COLUMN is_unsure ${integer} NOT NULL DEFAULT 0`,
    ],
    codeStatements(),
    asideStatements(),
    // The top is a folder of somebody else.
    [`ALTER TABLE file_drives ADD COLUMN shared_by TEXT`],
    // Conflicts whose node had ended otherwise waited for a decision for ever; with each end they are looked for now.
    [
      `UPDATE file_conflicts SET state = 'dismissed' WHERE state = 'open' AND NOT EXISTS (SELECT 1 FROM file_open
         WHERE file_open.drive = file_conflicts.drive AND file_open.node = file_conflicts.node)`,
      `CREATE INDEX file_conflicts_open ON file_conflicts(node, drive) WHERE state = 'open'`,
    ],
  ]
}

/** Why things are not at their place was kept as the sentences that people are told. */
function asideStatements(): string[] {
  const codes: [code: string, reason: string][] = [
    ['aside-link', 'a link has taken its place here'],
    ['aside-special', 'something that is neither a file nor a folder has taken its place here'],
    ['aside-left-out', 'something that is left out has taken its place here'],
    ['aside-renamed', 'it has a name here that is left out'],
    ['aside-moved', 'it is in a folder here that is left out'],
    ['aside-emptied', 'something that was in it is in a folder here that is left out, or has a name that is'],
    ['aside-illegible', 'it has a name here that is not valid text'],
  ]
  return codes.map(
    ([code, reason]) => `UPDATE file_local SET unreadable = '${code}' WHERE unreadable = '${reason}'`,
  )
}

/** Codes beside the reasons and notes. Here, and nowhere else, the sentences of before say what their codes are. */
function codeStatements(): string[] {
  const codes: [code: string, reason: string][] = [
    ['in-exchange', 'left out: its folder is on its way to another name'],
    ['left-out', 'left out: %'],
    ['downloads-only', 'only downloads are on'],
    ['uploads-only', 'only uploads are on'],
    ['held-delete', 'its deletion waits for a yes'],
    ['held-overwrite', 'another version of it waits for a yes'],
    ['held-name', 'the deletion of what has its name on the other side waits for a yes'],
    ['undecided', 'changed on both sides: decide%'],
    ['folder-left', 'its folder is left alone'],
    ['content-left', 'something in it is left alone'],
    ['other-left', 'another that must be done first is left alone'],
  ]
  const cases = codes.map(([code, reason]) => `WHEN because LIKE '${reason}' THEN '${code}'`)
  return [
    `ALTER TABLE file_open ADD COLUMN code TEXT`,
    `UPDATE file_open SET code = CASE ${cases.join(' ')} END WHERE because IS NOT NULL`,
    `UPDATE jobs SET note_code = CASE WHEN note = 'waits: The OneDrive is full' THEN 'quota-full'
       WHEN note LIKE 'waits: %' THEN 'waits' ELSE 'left-alone' END
     WHERE note_code IS NULL AND (note LIKE 'waits: %' OR note LIKE 'left alone: %') AND kind LIKE 'files.%'`,
  ]
}

/** Whoever changes a row of a folder takes away what was noted of the folder: see seen-folders.ts. */
function seenTriggers(): string[] {
  return [
    `CREATE INDEX file_local_folders ON file_local(parent_id, drive) WHERE type = 'folder' AND is_missing = 0`,
    `CREATE TRIGGER file_local_added AFTER INSERT ON file_local BEGIN ${forget('NEW')} END`,
    changedTrigger(DIGESTED),
    `CREATE TRIGGER file_local_removed AFTER DELETE ON file_local
     BEGIN ${forget('OLD')} ${forget('OLD', 'id')} END`,
  ]
}

const DIGESTED = [
  'parent_id',
  'name',
  'type',
  'dev',
  'ino',
  'birth_ns',
  'mtime_ns',
  'size',
  'is_missing',
  'unreadable',
] as const

function changedTrigger(columns: readonly string[]): string {
  const isOther = columns.map((column) => `NEW.${column} IS NOT OLD.${column}`).join(' OR ')
  return `CREATE TRIGGER file_local_changed AFTER UPDATE ON file_local WHEN ${isOther}
     BEGIN ${forget('OLD')} ${forget('NEW')} END`
}

function forget(row: 'OLD' | 'NEW', column = 'parent_id'): string {
  return `DELETE FROM file_seen WHERE folder = ${row}.${column} AND drive = ${row}.drive;`
}

/**
 * How many rows share the first columns of each index, for SQLite's planner. It never looks by itself, and without
 * them takes what begins with the folder pair for a handful of rows, or what does not for a crowd: look-ups then read the
 * whole pair. PostgreSQL finds out by itself.
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
