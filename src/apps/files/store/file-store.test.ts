import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { ReusedDatabase } from '../../../ledger/home.suite.ts'
import { openLedger } from '../../../ledger/open.ts'
import { type Plan, plan } from '../plan.ts'
import type { NodeKey } from '../trees.ts'
import type { LocalObservation } from './contract.ts'
import { endInStep, endLeft, endSetAside, endStale, writePlan } from './ends.ts'
import { openStore, PAIR, ROOT_ITEM, remote, stat } from './file-store.suite.ts'
import { type FileStore, setFolderPair } from './file-store.ts'
import { freeHeld } from './guard.ts'
import { recordLocal } from './local-tree.ts'
import { openNode, releaseSettled } from './open-nodes.ts'
import { deleteUnlisted, recordRemote } from './remote-tree.ts'

const NO_DELETES = { baseItems: 0, baseFiles: 0, deletes: { local: 0, remote: 0 }, deletedFiles: 0 }
const GUARD = { ...NO_DELETES, forced: 0 }

function storeOn(name: string, open: () => Promise<string>): void {
  const withStore = (run: (store: TestStore) => Promise<void>) => async (): Promise<void> => {
    const ledger = await openLedger(await open())
    try {
      await run(new TestStore(await openStore(ledger)))
    } finally {
      await ledger.close()
    }
  }

  describe(`the trees of the file sync on ${name}`, () => {
    test(
      'what is heard opens its node, and hearing the same again opens nothing',
      withStore(async (desk) => {
        assert.equal(await desk.hear([ROOT_ITEM, remote('a')]), 1)
        assert.equal(await desk.hear([ROOT_ITEM, remote('a')]), 0)
        assert.deepEqual(await desk.open(), ['i:a'])
        assert.equal(await desk.hear([remote('a', { cTag: 'c2', hash: 'h2' })]), 1)
        assert.equal(await desk.hear([remote('a', { cTag: 'c2', hash: 'h2', eTag: 'shared' })]), 0)
      }),
    )

    test(
      'of several rows for an item the last one counts, and what is deleted unheard is nothing',
      withStore(async (desk) => {
        const rows = [ROOT_ITEM, remote('a', { name: 'one' }), remote('a', { name: 'two' })]
        await desk.hear([...rows, remote('b', { isDeleted: true, name: '' })])
        assert.deepEqual(await desk.paths(), ['two'])
      }),
    )

    test(
      'a deleted folder takes along what is in it, but not what left it before',
      withStore(async (desk) => {
        const folder = remote('f', { type: 'folder', hash: null })
        const inside = { parentId: 'f' }
        await desk.hear([
          ROOT_ITEM,
          folder,
          remote('a', inside),
          remote('b', inside),
          remote('g', { ...inside, type: 'folder' }),
        ])
        await desk.hear([remote('c', { parentId: 'g' })])
        await desk.settle()
        await desk.hear([remote('f', { isDeleted: true, name: '' }), remote('b')])
        const gone = (await desk.rows()).filter((row) => row.remote?.isDeleted).map(({ node }) => node)
        assert.deepEqual(gone.sort(), ['i:a', 'i:c', 'i:f', 'i:g'])
      }),
    )

    test(
      'what a whole reading did not name is deleted; the root never is',
      withStore(async (desk) => {
        await desk.hear([ROOT_ITEM, remote('a'), remote('b')], 1)
        await desk.hear([remote('b')], 2)
        assert.equal(await desk.store.write((tx) => deleteUnlisted(tx, PAIR, 2)), 1)
      }),
    )

    test(
      'a new file is a node of its own; a missing one that was never synced is forgotten',
      withStore(async (desk) => {
        const id = await desk.see({ seen: 'new', name: 'a' })
        assert.deepEqual(await desk.open(), [`l:${id}`])
        await desk.see({ seen: 'missing', id, parentId: 1, name: 'a' })
        const planned = await desk.plan()
        assert.equal(planned.bookkeeping[0]?.decision.do, 'forget')
        assert.deepEqual(await desk.open(), [])
        assert.equal(await desk.store.localRow(PAIR, id), undefined)
      }),
    )

    test(
      'what is new on both sides under one name is one node, and equal content is adopted',
      withStore(async (desk) => {
        await desk.hear([ROOT_ITEM, remote('X', { name: 'A.txt' })])
        const id = await desk.see({ seen: 'new', name: 'a.txt' })
        const first = await desk.plan()
        assert.deepEqual(
          first.actions.map(({ node, verb }) => [node, verb]),
          [['i:X', 'check']],
        )
        await desk.hash(id, 'h-X')
        await desk.store.write((tx) => endStale(tx, PAIR, { node: 'i:X' }))
        await desk.plan()
        const { base } = await desk.store.nodeCase(PAIR, 'i:X')
        assert.equal(base?.hash, 'h-X')
        // Its name here has another case: it gets OneDrive's.
        const next = await desk.plan()
        assert.deepEqual(
          next.actions.map(({ node, verb }) => [node, verb]),
          [['i:X', 'move-local']],
        )
      }),
    )

    test(
      'a file that an action entered meanwhile is not entered twice by a scan',
      withStore(async (desk) => {
        await desk.inStep('X', 'a.txt')
        const [before] = await desk.store.localChildren(PAIR, 1)
        const id = await desk.see({ seen: 'new', name: 'a.txt' }, stat(99, { size: 5 }))
        assert.equal(id, before!.id)
        assert.deepEqual((await desk.store.localRow(PAIR, id))?.hash, null)
        assert.deepEqual(await desk.open(), ['i:X'])
      }),
    )

    test(
      'a missing folder opens what was in it, and one that our own move took away is not missing',
      withStore(async (desk) => {
        await desk.inStep('F', 'dir', { type: 'folder', hash: null })
        const [folder] = await desk.store.localChildren(PAIR, 1)
        await desk.inStep('X', 'a.txt', { parentId: 'F' }, folder!.id)
        await desk.see({ seen: 'missing', id: folder!.id, parentId: 1, name: 'another' })
        assert.deepEqual(await desk.open(), [])
        await desk.see({ seen: 'missing', id: folder!.id, parentId: 1, name: 'dir' })
        assert.deepEqual(await desk.open(), ['i:F', 'i:X'])
        await desk.store.write((tx) => setFolderPair(tx, PAIR, { forcedDeletes: 2 }))
        const planned = await desk.plan()
        const order = planned.actions.map(({ node, verb, after }) => [node, verb, after])
        assert.deepEqual(order, [
          ['i:X', 'delete-remote', []],
          ['i:F', 'delete-remote', ['i:X']],
        ])
      }),
    )

    test(
      'an action closes its node only where nothing has changed since the plan',
      withStore(async (desk) => {
        await desk.hear([ROOT_ITEM, remote('X')])
        await desk.plan()
        await desk.hear([remote('X', { cTag: 'c2' })])
        assert.equal(await desk.endX(1), true)
        assert.deepEqual(await desk.open(), ['i:X'])
        const [node] = (await desk.store.unplanned(PAIR, 10)).nodes
        assert.equal(node?.version, 2)
      }),
    )

    test(
      'a plan of nodes that changed meanwhile is refused',
      withStore(async (desk) => {
        await desk.hear([ROOT_ITEM, remote('X')])
        const view = await desk.store.unplanned(PAIR, 10)
        const nodes = view.nodes.map((node) => ({ ...node, path: view.pathOf(node.node) }))
        const made = plan(nodes, view.around, { mode: 'two-way', guard: GUARD })
        await desk.hear([remote('X', { cTag: 'c2' })])
        const writing = desk.store.write((tx) => writePlan(tx, PAIR, { cycle: 1, plan: made, atMs: 0 }))
        await assert.rejects(writing, { code: 'plan-outdated' })
      }),
    )

    test(
      'what waits for a node is planned when that has ended',
      withStore(async (desk) => {
        await desk.hear([ROOT_ITEM, remote('F', { type: 'folder', hash: null })])
        await desk.plan()
        await desk.hear([remote('X', { parentId: 'F' })])
        const planned = await desk.plan()
        assert.deepEqual(
          planned.waiting.map(({ node, waitsFor }) => [node, waitsFor]),
          [['i:X', 'i:F']],
        )
        await desk.inStep('F', 'F', { type: 'folder', hash: null }, 1, 1)
        assert.deepEqual(
          (await desk.plan()).actions.map(({ node, verb }) => [node, verb]),
          [['i:X', 'download']],
        )
      }),
    )

    test(
      'folders that are inside of each other are left alone, and made when a later change says where they are',
      withStore(async (desk) => {
        const folder = (id: string, parentId: string) => remote(id, { type: 'folder', hash: null, parentId })
        await desk.hear([ROOT_ITEM, folder('A', 'B'), folder('B', 'A'), remote('X', { parentId: 'A' })])
        const planned = await desk.plan()
        assert.deepEqual([planned.actions, planned.waiting], [[], []])
        const counts = { unplanned: 0, inWork: 0, waiting: 0, reported: 3 }
        assert.deepEqual(await desk.store.openCounts(PAIR), counts)
        const reported = await desk.store.reported(PAIR, { limit: 10 })
        assert.deepEqual(
          reported.map(({ path }) => path),
          ['B/A', 'A/B', 'B/A/X'],
        )
        await desk.hear([folder('B', 'root')])
        const verbs = async () => (await desk.plan()).actions.map(({ node, verb }) => [node, verb])
        assert.deepEqual(await verbs(), [['i:B', 'mkdir-local']])
        await desk.inStep('B', 'B', { type: 'folder', hash: null }, 1, 2)
        assert.deepEqual(await verbs(), [['i:A', 'mkdir-local']])
        await desk.inStep('A', 'A', { type: 'folder', hash: null, parentId: 'B' }, 2, 1)
        assert.deepEqual(await verbs(), [['i:X', 'download']])
      }),
    )

    test(
      'given up, a node is left with its reason until something changes',
      withStore(async (desk) => {
        await desk.hear([ROOT_ITEM, remote('X')])
        await desk.plan()
        await desk.store.write((tx) => endLeft(tx, PAIR, { node: 'i:X', version: 1, because: 'no room' }))
        assert.deepEqual((await desk.plan()).actions, [])
        assert.deepEqual(await desk.store.openCounts(PAIR), {
          unplanned: 0,
          inWork: 0,
          waiting: 0,
          reported: 1,
        })
        await desk.hear([remote('X', { cTag: 'c2' })])
        assert.equal((await desk.plan()).actions.length, 1)
      }),
    )

    test(
      'what a settled plan still holds is planned again',
      withStore(async (desk) => {
        await desk.hear([ROOT_ITEM, remote('X')])
        await desk.plan()
        assert.deepEqual((await desk.plan()).actions, [])
        await desk.store.write((tx) => releaseSettled(tx, PAIR, 1))
        assert.equal((await desk.plan()).actions.length, 1)
      }),
    )

    test(
      'set aside, both versions go on as nodes of their own, and the conflict is on record',
      withStore(async (desk) => {
        await desk.inStep('X', 'a.txt')
        const [row] = await desk.store.localChildren(PAIR, 1)
        await desk.store.write((tx) => openNode(tx, PAIR, 'i:X'))
        const conflict = {
          kind: 'edit-edit' as const,
          path: 'a.txt',
          node: 'i:X' as NodeKey,
          copyPath: 'a.conflict.txt',
          localHash: 'h1',
          remoteHash: 'h2',
          at: 5,
          state: 'kept-both' as const,
        }
        const end = {
          node: 'i:X' as NodeKey,
          version: 1,
          localId: row!.id,
          from: row!,
          copyName: 'a.conflict.txt',
          isDetached: true,
        }
        await desk.store.write((tx) => endSetAside(tx, PAIR, { ...end, conflict }))
        const planned = await desk.plan()
        const verbs = planned.actions.map(({ node, verb }) => [node, verb])
        assert.deepEqual(verbs.sort(), [
          ['i:X', 'download'],
          [`l:${row!.id}`, 'upload'],
        ])
        assert.equal((await desk.store.conflicts(PAIR))[0]?.copyPath, 'a.conflict.txt')
      }),
    )

    test(
      'many deletions at once are held until someone says yes',
      withStore(async (desk) => {
        for (let n = 0; n < 12; n++) await desk.inStep(`X${n}`, `a${n}`)
        for (const row of await desk.store.localChildren(PAIR, 1)) {
          await desk.see({ seen: 'missing', id: row.id, parentId: 1, name: row.name })
        }
        const held = await desk.plan()
        assert.deepEqual([held.actions.length, held.heldDeletes], [0, { local: 0, remote: 12 }])
        assert.deepEqual(JSON.parse((await desk.store.folderPair(PAIR)).heldDeletes!), {
          local: 0,
          remote: 12,
        })
        await desk.store.write((tx) => setFolderPair(tx, PAIR, { forcedDeletes: 12 }))
        assert.equal(await desk.store.write((tx) => freeHeld(tx, PAIR)), 12)
        assert.equal((await desk.plan()).actions.length, 12)
      }),
    )

    test(
      'paths are found by names and told by names',
      withStore(async (desk) => {
        await desk.inStep('F', 'dir', { type: 'folder', hash: null })
        const [folder] = await desk.store.localChildren(PAIR, 1)
        await desk.inStep('X', 'a.txt', { parentId: 'F' }, folder!.id)
        const row = await desk.store.localAt(PAIR, ['dir', 'a.txt'])
        assert.equal(row?.itemId, 'X')
        assert.deepEqual(await desk.store.localPath(PAIR, row!.id), ['dir', 'a.txt'])
        assert.equal(await desk.store.localAt(PAIR, ['dir', 'b']), undefined)
      }),
    )
  })
}

/** Small verbs over the store, as jobs would use it. */
class TestStore {
  readonly store: FileStore
  #cycle = 0

  constructor(store: FileStore) {
    this.store = store
  }

  hear(items: Parameters<typeof recordRemote>[2], generation = 1): Promise<number> {
    return this.store.write((tx) => recordRemote(tx, PAIR, items, generation))
  }

  async see(
    seen: { seen: 'new'; name: string } | Extract<LocalObservation, { seen: 'missing' }>,
    as = stat(50),
  ): Promise<number> {
    const id = await this.store.takeLocalIds(PAIR, 1)
    const observation: LocalObservation =
      seen.seen === 'missing' ? seen : { ...seen, id, parentId: 1, type: 'file', stat: as }
    const { otherIds } = await this.store.write((tx) => recordLocal(tx, PAIR, [observation]))
    return otherIds.get(id) ?? id
  }

  async hash(id: number, hash: string): Promise<void> {
    await this.store.write((tx) =>
      tx.run(`UPDATE file_local SET hash = ? WHERE drive = ? AND id = ?`, [hash, PAIR, id]),
    )
  }

  inStep(
    itemId: string,
    name: string,
    change: Parameters<typeof remote>[1] = {},
    parentId = 1,
    version = 0,
  ): Promise<boolean> {
    const row = remote(itemId, { name, ...change })
    return this.store.write((tx) =>
      endInStep(tx, PAIR, {
        node: `i:${itemId}`,
        version,
        remote: row,
        local: { parentId },
        localName: name,
        type: row.type as 'file' | 'folder',
        stat: stat(1000 + itemId.length),
        hash: row.hash,
        sha256: row.hash,
      }),
    )
  }

  endX(version: number): Promise<boolean> {
    return this.inStep('X', 'X', {}, 1, version)
  }

  async plan(): Promise<Plan> {
    const view = await this.store.unplanned(PAIR, 1_000)
    const ahead = await this.store.deletesAhead(PAIR)
    const { forcedDeletes: forced } = await this.store.folderPair(PAIR)
    const nodes = view.nodes.map((node) => ({ ...node, path: view.pathOf(node.node) }))
    const made = plan(nodes, view.around, { mode: 'two-way', guard: { ...ahead, forced } })
    this.#cycle += 1
    await this.store.write((tx) => writePlan(tx, PAIR, { cycle: this.#cycle, plan: made, atMs: 0 }))
    return made
  }

  async settle(): Promise<void> {
    await this.store.write((tx) => tx.run(`DELETE FROM file_open WHERE drive = ?`, [PAIR]))
  }

  async open(): Promise<string[]> {
    return (await this.store.openNodes(PAIR, { limit: 100 })).map(({ node }) => node)
  }

  async rows() {
    return (await this.store.unplanned(PAIR, 100)).nodes
  }

  async paths(): Promise<string[]> {
    const view = await this.store.unplanned(PAIR, 100)
    return view.nodes.map(({ node }) => view.pathOf(node))
  }
}

storeOn('SQLite', async () => 'sqlite::memory:')

const reused = new ReusedDatabase()
after(() => reused.remove())
storeOn('PostgreSQL', () => reused.empty())
