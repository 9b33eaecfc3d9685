import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import { itemNode } from '../trees.ts'
import { endInStep } from './ends.ts'
import { openStore, PAIR, ROOT_ITEM, remote, stat } from './file-store.suite.ts'
import { FileStore } from './file-store.ts'
import { copyFolderPair } from './folder-pair-copy.ts'
import { agreedPage, continuePlans, leftAlone, localNames, newHerePage } from './folder-rows.ts'
import { recordLocal } from './local-tree.ts'
import { leaveNode } from './open-nodes.ts'
import { recordRemote } from './remote-tree.ts'

const databases: [name: string, open: () => Promise<{ ledger: Ledger; drop: () => Promise<void> }>][] = [
  ['SQLite', async () => ({ ledger: await openLedger('sqlite::memory:'), drop: async () => {} })],
  [
    'PostgreSQL',
    async () => {
      const database = await freshDatabase()
      return { ledger: await openLedger(database.url), drop: () => database.drop() }
    },
  ],
]

/** Two files that are agreed on, a folder that is new here with a file in it, and one that is new there. */
async function fill(store: FileStore): Promise<void> {
  const ids = await store.takeLocalIds(PAIR, 4)
  await store.write(async (tx) => {
    await recordRemote(tx, PAIR, [ROOT_ITEM, remote('a'), remote('b'), remote('c')], 1)
    await recordLocal(tx, PAIR, [
      { seen: 'new', id: ids, parentId: 1, name: 'a', type: 'file', stat: stat(10) },
      { seen: 'new', id: ids + 1, parentId: 1, name: 'b', type: 'file', stat: stat(11) },
      { seen: 'new', id: ids + 2, parentId: 1, name: 'new', type: 'folder', stat: stat(12) },
      { seen: 'new', id: ids + 3, parentId: ids + 2, name: 'inner', type: 'file', stat: stat(13) },
    ])
    for (const [at, id] of ['a', 'b'].entries()) {
      await endInStep(tx, PAIR, {
        node: itemNode(id),
        version: 1,
        remote: remote(id),
        local: { id: ids + at },
        localName: id,
        type: 'file',
        stat: stat(10 + at),
        hash: `h-${id}`,
        sha256: null,
      })
    }
    await leaveNode(tx, PAIR, { node: 'i:c', version: 1, code: 'left-out', because: 'a pattern in skip' })
  })
}

for (const [name, open] of databases) {
  describe(`what a check compares, on ${name}`, () => {
    async function withStore(use: (ledger: Ledger, store: FileStore) => Promise<void>): Promise<void> {
      const { ledger, drop } = await open()
      try {
        const store = await openStore(ledger)
        await fill(store)
        await use(ledger, store)
      } finally {
        await ledger.close()
        await drop()
      }
    }

    test('comes page by page: what was agreed on, and what is new here with its names', async () => {
      await withStore(async (ledger) => {
        const first = await ledger.driver.read((tx) => agreedPage(tx, PAIR, { after: '', limit: 1 }))
        assert.deepEqual(
          first.map(({ base, local }) => [base.itemId, base.hash, local?.name]),
          [['a', 'h-a', 'a']],
        )
        const rest = await ledger.driver.read((tx) => agreedPage(tx, PAIR, { after: 'a', limit: 10 }))
        assert.deepEqual(
          rest.map(({ base }) => base.itemId),
          ['b'],
        )
        const fresh = await ledger.driver.read((tx) => newHerePage(tx, PAIR, { after: 0, limit: 10 }))
        const names = await ledger.driver.read((tx) =>
          localNames(
            tx,
            PAIR,
            fresh.map(({ id }) => id),
          ),
        )
        assert.deepEqual([...names.values()], [['new'], ['new', 'inner']])
      })
    })

    test('tells why things are left alone, and how often', async () => {
      await withStore(async (ledger) => {
        assert.deepEqual(await ledger.driver.read((tx) => leftAlone(tx, PAIR, 10)), [
          { because: 'a pattern in skip', code: 'left-out', count: 1 },
        ])
      })
    })

    test('a folder that is added again goes on counting plans, and never backwards', async () => {
      await withStore(async (_, store) => {
        await store.write((tx) => continuePlans(tx, PAIR, 7))
        await store.write((tx) => continuePlans(tx, PAIR, 3))
        assert.equal((await store.folderPair(PAIR)).planned, 7)
      })
    })

    test('all that is known of a drive can be copied into another database, and nothing of others', async () => {
      await withStore(async (ledger, store) => {
        const other = { ...(await store.folderPair(PAIR)), name: 'other', markerId: 'x' }
        await store.addFolderPair(other, stat(1))
        const scratch = await openLedger('sqlite::memory:')
        try {
          const copy = await FileStore.open(scratch)
          await copyFolderPair(ledger, scratch, PAIR)
          assert.deepEqual(await copy.folderPairs(), [await store.folderPair(PAIR)])
          assert.deepEqual(
            await copy.openNodes(PAIR, { limit: 100 }),
            await store.openNodes(PAIR, { limit: 100 }),
          )
          assert.deepEqual(await copy.localChildren(PAIR, 1), await store.localChildren(PAIR, 1))
          assert.deepEqual(await copy.totals(PAIR), await store.totals(PAIR))
          assert.deepEqual(await copy.nodeCase(PAIR, 'i:a'), await store.nodeCase(PAIR, 'i:a'))
        } finally {
          await scratch.close()
        }
      })
    })
  })
}
