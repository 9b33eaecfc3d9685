import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import type { NodeKey } from '../trees.ts'
import {
  type BrowsedChild,
  browsedChildren,
  browsedFolder,
  browsedNode,
  type ChildPlace,
  conflictById,
  conflictPage,
  heldDeletes,
  namesLike,
} from './browse.ts'
import { addConflict, endInStep } from './ends.ts'
import { openStore, PAIR, ROOT_ITEM, remote, stat } from './file-store.suite.ts'
import type { FileStore } from './file-store.ts'
import { recordLocal } from './local-tree.ts'
import { leaveNode } from './open-nodes.ts'
import { recordRemote } from './remote-tree.ts'

class TestTrees {
  readonly ledger: Ledger
  readonly store: FileStore
  #ino = 100

  constructor(ledger: Ledger, store: FileStore) {
    this.ledger = ledger
    this.store = store
  }

  hear(...items: Parameters<typeof recordRemote>[2]): Promise<number> {
    return this.store.write((tx) => recordRemote(tx, PAIR, [ROOT_ITEM, ...items], 1))
  }

  async see(name: string, parentId = 1, type: 'file' | 'folder' = 'file'): Promise<number> {
    const id = await this.store.takeLocalIds(PAIR, 1)
    this.#ino += 1
    await this.store.write((tx) =>
      recordLocal(tx, PAIR, [{ seen: 'new', id, parentId, name, type, stat: stat(this.#ino) }]),
    )
    return id
  }

  async lose(id: number, name: string): Promise<void> {
    await this.store.write((tx) => recordLocal(tx, PAIR, [{ seen: 'missing', id, parentId: 1, name }]))
  }

  async inStep(itemId: string, name: string, change: Parameters<typeof remote>[1] = {}, parentId = 1) {
    const row = remote(itemId, { name, ...change })
    this.#ino += 1
    await this.store.write((tx) =>
      endInStep(tx, PAIR, {
        node: `i:${itemId}`,
        version: 1,
        remote: row,
        local: { parentId },
        localName: name,
        type: row.type as 'file' | 'folder',
        stat: stat(this.#ino),
        hash: row.hash,
        sha256: null,
      }),
    )
    return (await this.store.localOfItem(PAIR, itemId))!.id
  }

  async children(node?: NodeKey, limit = 100): Promise<BrowsedChild[]> {
    const folder = await browsedFolder(this.ledger, { name: PAIR, rootItemId: 'root' }, node)
    assert.ok(folder)
    const all: BrowsedChild[] = []
    let after: ChildPlace | undefined
    for (;;) {
      const page = await browsedChildren(this.ledger, PAIR, folder, { after, limit })
      all.push(...page)
      if (page.length < limit) return all
      after = page.at(-1)!.place
    }
  }
}

const nodesOf = (rows: readonly { node: NodeKey }[]): string[] => rows.map(({ node }) => node)

function browseOn(name: string, open: () => Promise<{ url: string; drop(): Promise<void> }>): void {
  const withTrees = (run: (trees: TestTrees) => Promise<void>) => async (): Promise<void> => {
    const { url, drop } = await open()
    const ledger = await openLedger(url)
    try {
      await run(new TestTrees(ledger, await openStore(ledger)))
    } finally {
      await ledger.close()
      await drop()
    }
  }

  describe(`walking through the trees on ${name}`, () => {
    test(
      'a folder lists folders first, then by name, and every child once whatever the size of a page',
      withTrees(async (trees) => {
        await trees.inStep('F', 'zoo', { type: 'folder', hash: null })
        await trees.inStep('B', 'b.txt')
        await trees.hear(remote('C', { name: 'C.txt' }))
        const local = await trees.see('a_local.txt')
        const wanted = ['i:F', `l:${local}`, 'i:B', 'i:C']
        for (const limit of [1, 2, 3, 100])
          assert.deepEqual(nodesOf(await trees.children(undefined, limit)), wanted)
        const [folder, , both, there] = await trees.children()
        assert.equal(folder?.local?.type, 'folder')
        assert.deepEqual([both?.open, both?.base?.name], [undefined, 'b.txt'])
        assert.deepEqual(
          [there?.local, there?.open],
          [undefined, { planned: false, waits: false, because: null, code: null }],
        )
      }),
    )

    test(
      'what is new on both sides under one name is one child, and what is missing here is where OneDrive has it',
      withTrees(async (trees) => {
        await trees.see('Both.txt')
        await trees.hear(remote('X', { name: 'both.txt' }))
        const id = await trees.inStep('Y', 'gone.txt')
        await trees.lose(id, 'gone.txt')
        const children = await trees.children()
        assert.deepEqual(nodesOf(children), ['i:X', 'i:Y'])
        assert.equal(children[0]?.local?.name, 'Both.txt')
        assert.equal(children[1]?.local?.isMissing, true)
      }),
    )

    test(
      'a folder that only one side has can be opened, and one that nobody has cannot',
      withTrees(async (trees) => {
        const here = await trees.see('mine', 1, 'folder')
        const inside = await trees.see('x.txt', here)
        await trees.hear(
          remote('T', { name: 'theirs', type: 'folder', hash: null }),
          remote('U', { parentId: 'T', name: 'u.txt' }),
        )
        assert.deepEqual(nodesOf(await trees.children(`l:${here}`)), [`l:${inside}`])
        assert.deepEqual(nodesOf(await trees.children('i:T')), ['i:U'])
        const pair = { name: PAIR, rootItemId: 'root' }
        assert.equal((await browsedFolder(trees.ledger, pair, 'i:T'))?.path, 'theirs')
        assert.equal(await browsedFolder(trees.ledger, pair, 'i:nobody'), undefined)
        assert.equal(await browsedFolder(trees.ledger, pair, `l:${inside}`), undefined)
        assert.equal(await browsedNode(trees.ledger, PAIR, 'i:nobody'), undefined)
        assert.equal((await browsedNode(trees.ledger, PAIR, 'i:U'))?.remote?.name, 'u.txt')
      }),
    )

    test(
      'names are found by a part of them, signs of the database included',
      withTrees(async (trees) => {
        await trees.inStep('F', 'Reports', { type: 'folder', hash: null })
        const folder = (await trees.store.localOfItem(PAIR, 'F'))!.id
        await trees.inStep('A', '100%_done.txt', { parentId: 'F' }, folder)
        await trees.hear(remote('B', { name: 'Übersicht report.md' }))
        const found = async (text: string) =>
          (await namesLike(trees.ledger, PAIR, { text, limit: 10 })).map(({ path }) => path)
        assert.deepEqual(await found('REPORT'), ['Reports', 'Übersicht report.md'])
        assert.deepEqual(await found('%_'), ['Reports/100%_done.txt'])
        assert.deepEqual(await found('ÜBER'), ['Übersicht report.md'])
        assert.deepEqual(await found('100_'), [])
      }),
    )

    test(
      'deletions that wait are told with the side on which they would happen',
      withTrees(async (trees) => {
        const id = await trees.inStep('A', 'a.txt')
        await trees.inStep('B', 'b.txt')
        await trees.lose(id, 'a.txt')
        await trees.hear(remote('B', { name: 'b.txt', isDeleted: true }))
        const reason = { code: 'held-delete', because: 'a text' } as const
        for (const { node, version } of await trees.store.openNodes(PAIR, { limit: 10 })) {
          await trees.store.write((tx) => leaveNode(tx, PAIR, { node, version, ...reason }))
        }
        const held = await heldDeletes(trees.ledger, PAIR, 10)
        assert.deepEqual(
          held.map(({ path, side }) => [path, side]),
          [
            ['a.txt', 'there'],
            ['b.txt', 'here'],
          ],
        )
        assert.equal((await heldDeletes(trees.ledger, PAIR, 1)).length, 1)
      }),
    )

    test(
      'conflicts come newest first, by pages, and an open one marks its node',
      withTrees(async (trees) => {
        await trees.inStep('A', 'a.txt')
        const about = { kind: 'edit-edit', path: 'a.txt', node: 'i:A', copyPath: null, at: 5 } as const
        for (const state of ['kept-both', 'open'] as const) {
          await trees.store.write((tx) =>
            addConflict(tx, PAIR, { ...about, localHash: 'l', remoteHash: 'r', state }),
          )
        }
        const ids = async (options: Parameters<typeof conflictPage>[2]) =>
          (await conflictPage(trees.ledger, PAIR, options)).map(({ id }) => id)
        assert.deepEqual(await ids({ limit: 10 }), [2, 1])
        assert.deepEqual(await ids({ limit: 10, before: 2 }), [1])
        assert.deepEqual(await ids({ limit: 10, state: 'open' }), [2])
        assert.deepEqual(await ids({ limit: 10, state: 'settled' }), [1])
        assert.equal((await conflictById(trees.ledger, PAIR, 2))?.state, 'open')
        assert.equal(await conflictById(trees.ledger, PAIR, 3), undefined)
        assert.equal((await trees.children())[0]?.conflictId, 2)
      }),
    )
  })
}

browseOn('SQLite', async () => ({ url: 'sqlite::memory:', drop: async () => {} }))
browseOn('PostgreSQL', freshDatabase)
