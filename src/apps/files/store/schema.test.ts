import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openLedger } from '../../../ledger/open.ts'
import { ASIDE, isAside } from '../trees.ts'
import { FileStore } from './file-store.ts'
import { recordLocal } from './local-tree.ts'
import { fileSchema } from './schema.ts'

/** As they stand in the store; each is asked for every file. */
const LOOK_UPS = [
  `SELECT 1 FROM file_remote WHERE drive = ? AND parent_id = ? AND is_deleted = 0`,
  `SELECT id FROM file_local WHERE drive = ? AND parent_id = ? AND name_key = ? AND is_missing = 0`,
  `SELECT id FROM file_local WHERE drive = ? AND ino = ? AND dev = ?`,
  `SELECT id FROM file_local WHERE drive = ? AND item_id = ?`,
  `UPDATE file_open SET waits_for = NULL WHERE drive = ? AND waits_for IN (SELECT value FROM json_each(?))`,
  `SELECT node FROM file_open WHERE drive = ? AND planned IS NULL AND waits_for IS NULL AND because IS NULL
   ORDER BY node LIMIT ?`,
  `UPDATE file_conflicts SET state = 'dismissed', resolved_at = ? WHERE drive = ? AND node = ? AND state = 'open'`,
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

test('a home from before deletions were counted by their time opens, and keeps its drives', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    await ledger.migrateApp('file-sync', fileSchema('sqlite').slice(0, 5))
    await ledger.transaction((tx) =>
      tx.run(
        `INSERT INTO file_drives(name, account, drive_id, drive_type, root_item_id, root, marker_id, machine, settings,
           recent_deletes, recent_since) VALUES ('home', 'ann', 'd', 'personal', 'r', '/r', 'm', 'here', '{}', 7, 8)`,
      ),
    )
    const store = await FileStore.open(ledger)
    assert.equal((await store.folderPair('home')).root, '/r')
    assert.deepEqual(await store.recentDeletes('home', 9), { lately: 0, items: 0, files: 0 })
  } finally {
    await ledger.close()
  }
})

test('a home from before ctime and SHA-256 were kept opens, and neither reads nor sends anything for it', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    await ledger.migrateApp('file-sync', fileSchema('sqlite').slice(0, 6))
    await ledger.transaction(async (tx) => {
      await tx.run(
        `INSERT INTO file_drives(name, account, drive_id, drive_type, root_item_id, root, marker_id, machine, settings)
         VALUES ('home', 'ann', 'd', 'personal', 'r', '/r', 'm', 'here', '{}')`,
      )
      await tx.run(
        `INSERT INTO file_local(drive, id, parent_id, name, name_key, type, dev, ino, birth_ns, mtime_ns, size, hash,
           item_id, is_missing) VALUES ('home', 2, 1, 'a', 'a', 'file', '1', '2', '3', '4', 5, 'h', 'A', 0)`,
      )
      await tx.run(`INSERT INTO file_seen(drive, folder, digest) VALUES ('home', 1, 'of before')`)
    })
    const store = await FileStore.open(ledger)
    assert.equal(await store.seenFolder('home', 1), undefined)
    const row = (await store.localRow('home', 2))!
    assert.deepEqual([row.ctimeNs, row.sha256], ['0', null])
    const stat = { dev: '1', ino: '2', birthNs: '3', mtimeNs: '4', ctimeNs: '9', size: 5 }
    await store.write((tx) => recordLocal(tx, 'home', [{ seen: 'changed', id: 2, stat }]))
    const { hash, ctimeNs } = (await store.localRow('home', 2))!
    assert.deepEqual([hash, ctimeNs], ['h', '9'])
    assert.deepEqual(await store.openNodes('home', { limit: 1 }), [])
    // From now on it counts.
    await store.write((tx) =>
      recordLocal(tx, 'home', [{ seen: 'changed', id: 2, stat: { ...stat, ctimeNs: '10' } }]),
    )
    assert.equal((await store.localRow('home', 2))!.hash, null)
  } finally {
    await ledger.close()
  }
})

test('an edit that was missed because its file had no hash is looked at when its home is opened', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    await ledger.migrateApp('file-sync', fileSchema('sqlite').slice(0, 10))
    await ledger.transaction(async (tx) => {
      const rows = [`2, 1, 'empty', 'empty', 0, NULL, 'A'`, `3, 1, 'edited', 'edited', 9, NULL, 'B'`]
      for (const row of [...rows, `4, 1, 'known', 'known', 9, 'h', 'C'`]) {
        await tx.run(
          `INSERT INTO file_local(drive, id, parent_id, name, name_key, size, hash, item_id, type, dev, ino, birth_ns,
             mtime_ns, is_missing) VALUES ('home', ${row}, 'file', '1', '2', '3', '4', 0)`,
        )
      }
    })
    const store = await FileStore.open(ledger)
    const open = await store.openNodes('home', { limit: 10 })
    assert.deepEqual(
      open.map(({ node }) => node),
      ['i:B'],
    )
  } finally {
    await ledger.close()
  }
})

test('reasons and notes of a home from before codes were kept get theirs when it is opened', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    await ledger.migrateApp('file-sync', fileSchema('sqlite').slice(0, 12))
    const reasons = {
      'i:a': 'left out: a pattern in skip',
      'i:b': 'left out: its folder is on its way to another name',
      'i:c': 'only uploads are on',
      'i:d': 'another version of it waits for a yes',
      'i:e': 'something in it is left alone',
      'i:f': 'OneDrive does not take names with ?',
    }
    await ledger.transaction(async (tx) => {
      for (const [node, because] of Object.entries(reasons)) {
        const sql = `INSERT INTO file_open(drive, node, version, because) VALUES ('home', ?, 1, ?)`
        await tx.run(sql, [node, because])
      }
      const notes = [
        'waits: The OneDrive is full',
        'waits: the disk is full',
        'left alone: no',
        'in step already',
      ]
      for (const note of notes) {
        const sql = `INSERT INTO jobs(kind, lane, payload, note, created_at) VALUES ('files.upload', 'bulk', '{}', ?, 1)`
        await tx.run(sql, [note])
      }
    })
    const store = await FileStore.open(ledger)
    assert.deepEqual(
      (await store.openNodes('home', { limit: 10 })).map(({ code }) => code),
      ['left-out', 'in-exchange', 'uploads-only', 'held-overwrite', 'content-left', null],
    )
    assert.deepEqual(
      (await ledger.jobs({})).reverse().map(({ note_code: code }) => code),
      ['quota-full', 'waits', 'left-alone', null],
    )
  } finally {
    await ledger.close()
  }
})

test('things that were not at their place in a home from before codes were kept are still known to be so', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    await ledger.migrateApp('file-sync', fileSchema('sqlite').slice(0, 13))
    await ledger.transaction(async (tx) => {
      for (const [id, reason] of [
        ['2', 'it is in a folder here that is left out'],
        ['3', 'it may not be read'],
      ]) {
        const sql = `INSERT INTO file_local(drive, id, parent_id, name, name_key, type, dev, ino, birth_ns, mtime_ns, size,
             is_missing, unreadable) VALUES ('home', ${id}, 1, ?, ?, 'file', '1', ?, '3', '4', 5, 0, ?)`
        await tx.run(sql, [id!, id!, id!, reason!])
      }
    })
    const store = await FileStore.open(ledger)
    const rows = [(await store.localRow('home', 2))!, (await store.localRow('home', 3))!]
    assert.deepEqual(
      rows.map(({ unreadable }) => unreadable),
      [ASIDE.moved, 'it may not be read'],
    )
    assert.deepEqual(rows.map(isAside), [true, false])
  } finally {
    await ledger.close()
  }
})

test('a home in which a conflict waits for a decision although its node has ended opens, and asks no more', async () => {
  const ledger = await openLedger('sqlite::memory:')
  try {
    await ledger.migrateApp('file-sync', fileSchema('sqlite').slice(0, -1))
    await ledger.transaction(async (tx) => {
      await tx.run(`INSERT INTO file_open(drive, node, version) VALUES ('home', 'i:A', 1)`)
      for (const [id, node] of [
        [1, 'i:A'],
        [2, 'i:B'],
      ] as const)
        await tx.run(
          `INSERT INTO file_conflicts(drive, id, kind, path, node, at, state)
           VALUES ('home', ?, 'edit-edit', 'a', ?, 1, 'open')`,
          [id, node],
        )
    })
    const store = await FileStore.open(ledger)
    const states = (await store.conflicts('home')).map(({ id, state }) => [id, state])
    assert.deepEqual(states, [
      [2, 'dismissed'],
      [1, 'open'],
    ])
  } finally {
    await ledger.close()
  }
})
