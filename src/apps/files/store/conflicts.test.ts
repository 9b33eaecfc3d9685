import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import type { Tx } from '../../../ledger/contract.ts'
import { openLedger } from '../../../ledger/open.ts'
import { decide } from '../decide.ts'
import { folderPairSettings } from '../folder-pair.ts'
import type { Plan } from '../plan.ts'
import type { LocalRow, NodeKey, RemoteRow } from '../trees.ts'
import { decidedState, endKeptLocal, endKeptRemote, endOpenConflict, resolveConflict } from './conflicts.ts'
import type { ConflictRow } from './contract.ts'
import { dismissConflicts, endGone, endSetAside, writePlan } from './ends.ts'
import { openStore, PAIR, ROOT_ITEM, remote, stat } from './file-store.suite.ts'
import type { FileStore } from './file-store.ts'
import { changeSettings } from './filter-change.ts'
import { recordLocal, setLocalHash } from './local-tree.ts'
import { openNode, waitForNode } from './open-nodes.ts'
import { recordRemoteNow, remoteAtName } from './remote-tree.ts'

const NODE: NodeKey = 'i:A'

type Clash = { store: FileStore; local: LocalRow; item: RemoteRow }

/** A file here and an item of the same name and another content. */
async function withClash(url: string, run: (clash: Clash) => Promise<void>): Promise<void> {
  const ledger = await openLedger(url)
  try {
    const store = await openStore(ledger)
    const item = remote('A', { name: 'a.txt', hash: 'theirs' })
    await store.write(async (tx) => {
      await recordRemoteNow(tx, PAIR, [ROOT_ITEM, item])
      const id = 2
      await recordLocal(tx, PAIR, [
        { seen: 'new', id, parentId: 1, name: 'a.txt', type: 'file', stat: stat(7) },
      ])
      await setLocalHash(tx, PAIR, { id, stat: stat(7), hash: 'ours', sha256: 'ours' })
    })
    const local = (await store.localRow(PAIR, 2))!
    assert.equal(local.hash, 'ours')
    await run({ store, local, item })
  } finally {
    await ledger.close()
  }
}

function record(change: Partial<ConflictRow> = {}): Omit<ConflictRow, 'id' | 'resolvedAt'> {
  return {
    kind: 'create-create',
    path: 'a.txt',
    node: NODE,
    copyPath: null,
    localHash: 'ours',
    remoteHash: 'theirs',
    at: 1,
    state: 'open',
    ...change,
  }
}

async function decisionOf(store: FileStore): Promise<string> {
  const { version: _, ...rows } = await store.nodeCase(PAIR, NODE)
  return decide(rows, 'two-way').do
}

const EMPTY: Plan = { actions: [], bookkeeping: [], waiting: [], reported: [], heldDeletes: undefined }

/** Without a decision. */
const ENDS: [title: string, end: (tx: Tx, clash: Clash & { version: number }) => Promise<unknown>][] = [
  ['it is gone', (tx, { version }) => endGone(tx, PAIR, { node: NODE, version, atMs: 7 })],
  ['a plan forgets it', (tx, { version }) => keepBooks(tx, version, { do: 'forget', row: 'EF10' })],
  [
    'OneDrive has deleted it and what is here stays',
    (tx, { version }) => keepBooks(tx, version, { do: 'detach', row: 'EF9', conflict: 'edit-delete' }),
  ],
  [
    'both sides have come to the same',
    async (tx, { version }) => {
      await setLocalHash(tx, PAIR, { id: 2, stat: stat(7), hash: 'theirs', sha256: 'theirs' })
      await keepBooks(tx, version, { do: 'adopt', row: 'EF11' })
    },
  ],
  [
    'a plan leaves it alone for another reason',
    (tx, { version }) => {
      const left = { node: NODE, version, code: 'left-out' as const, because: 'left out' }
      return writePlan(tx, PAIR, { cycle: 1, plan: { ...EMPTY, reported: [left] }, atMs: 7 })
    },
  ],
  [
    'the policy has decided since',
    (tx, { local, item }) => {
      const row = record({ state: 'kept-remote', at: 7 })
      const here = { hash: 'ours', sha256: 'ours' }
      return endKeptRemote(tx, PAIR, { node: NODE, local, remote: item, record: row, here })
    },
  ],
]

function keepBooks(
  tx: Tx,
  version: number,
  decision: Plan['bookkeeping'][number]['decision'],
): Promise<void> {
  const plan = { ...EMPTY, bookkeeping: [{ node: NODE, version, decision }] }
  return writePlan(tx, PAIR, { cycle: 1, plan, atMs: 7 })
}

const CASES: [title: string, run: (clash: Clash) => Promise<void>][] = [
  [
    'kept local: the local version is an edit of what OneDrive has',
    async ({ store, local, item }) => {
      assert.equal(await decisionOf(store), 'conflict')
      const end = { node: NODE, local, remote: item, record: record({ state: 'kept-local' }) }
      await store.write((tx) =>
        endKeptLocal(tx, PAIR, { ...end, there: { hash: 'theirs', sha256: 'theirs' } }),
      )
      assert.equal(await decisionOf(store), 'upload')
      assert.equal((await store.localRow(PAIR, 2))!.itemId, 'A')
      assert.deepEqual(
        (await store.openNodes(PAIR, { limit: 9 })).map(({ node }) => node),
        [NODE],
      )
      assert.equal((await store.conflicts(PAIR))[0]!.state, 'kept-local')
    },
  ],
  [
    "kept remote: OneDrive's version is an edit of what is here, with or without tags and hashes",
    async ({ store, local, item }) => {
      for (const change of [{}, { cTag: null }, { cTag: null, hash: null }]) {
        const end = { node: NODE, local, remote: { ...item, ...change }, record: undefined }
        await store.write(async (tx) => {
          await recordRemoteNow(tx, PAIR, [end.remote])
          return endKeptRemote(tx, PAIR, { ...end, here: { hash: 'ours', sha256: 'ours' } })
        })
        assert.equal(await decisionOf(store), 'download')
      }
      assert.deepEqual(await store.conflicts(PAIR), [])
    },
  ],
  [
    'a decision does not cover an edit that was seen since',
    async ({ store, local, item }) => {
      const edit = { seen: 'changed' as const, id: 2, stat: stat(7, { mtimeNs: '9' }) }
      await store.write((tx) => recordLocal(tx, PAIR, [edit]))
      const end = { node: NODE, local, remote: item, record: undefined }
      await store.write((tx) => endKeptRemote(tx, PAIR, { ...end, here: { hash: 'ours', sha256: 'ours' } }))
      assert.equal((await store.localRow(PAIR, 2))!.hash, null)
      assert.equal(await decisionOf(store), 'check')
    },
  ],
  [
    'an open conflict is one record, however often it is met, until someone decides',
    async ({ store }) => {
      const about = { node: NODE, localHash: 'ours', remoteHash: 'theirs' }
      const { version } = (await store.openNodes(PAIR, { limit: 9 })).find(({ node }) => node === NODE)!
      for (const localHash of ['older', 'ours']) {
        const end = {
          node: NODE,
          version,
          local: { id: 2 },
          because: 'decide',
          record: record({ localHash }),
        }
        await store.write((tx) => endOpenConflict(tx, PAIR, end))
      }
      const [row] = await store.conflicts(PAIR, { state: 'open' })
      assert.equal(row!.localHash, 'ours')
      assert.equal((await store.conflicts(PAIR)).length, 1)
      assert.equal(await store.write((tx) => decidedState(tx, PAIR, about)), undefined)
      const choice = { id: row!.id, state: 'kept-both' as const, atMs: 5 }
      assert.equal(await store.write((tx) => resolveConflict(tx, PAIR, choice)), NODE)
      assert.equal(await store.write((tx) => resolveConflict(tx, PAIR, choice)), undefined)
      assert.equal(await store.write((tx) => decidedState(tx, PAIR, about)), 'kept-both')
      const other = { ...about, remoteHash: 'newer' }
      assert.equal(await store.write((tx) => decidedState(tx, PAIR, other)), undefined)
      const conflict = {
        ...record({ localHash: 'ours' }),
        state: 'kept-both' as const,
        copyPath: 'a.copy.txt',
      }
      const local = (await store.localRow(PAIR, 2))!
      const aside = { node: NODE, version, localId: 2, from: local, copyName: 'a.copy.txt', isDetached: true }
      await store.write((tx) => endSetAside(tx, PAIR, { ...aside, conflict }))
      const done = await store.conflicts(PAIR)
      assert.deepEqual(
        done.map(({ id, copyPath, resolvedAt }) => ({ id, copyPath, resolvedAt })),
        [{ id: row!.id, copyPath: 'a.copy.txt', resolvedAt: 5 }],
      )
      // Carried out: it decides nothing of what comes after it.
      assert.equal(await store.write((tx) => decidedState(tx, PAIR, about)), undefined)
    },
  ],
  [
    'an open conflict that solved itself is dismissed',
    async ({ store }) => {
      const end = { node: NODE, version: 1, local: { id: 2 }, because: 'decide', record: record() }
      await store.write((tx) => endOpenConflict(tx, PAIR, end))
      await store.write((tx) => dismissConflicts(tx, PAIR, NODE, 7))
      const [row] = await store.conflicts(PAIR)
      assert.deepEqual([row!.state, row!.resolvedAt], ['dismissed', 7])
    },
  ],
  ...ENDS.map(([title, end]): (typeof CASES)[number] => [
    `nothing is left to decide where ${title}`,
    async (clash) => {
      const { store } = clash
      const version = (await store.nodeCase(PAIR, NODE)).version!
      const open = { node: NODE, version, local: { id: 2 }, code: 'undecided' as const, because: 'decide' }
      await store.write((tx) => endOpenConflict(tx, PAIR, { ...open, record: record() }))
      await store.write((tx) => end(tx, { ...clash, version }))
      const rows = (await store.conflicts(PAIR)).filter(({ node }) => node === NODE)
      const states = rows.map(({ state, resolvedAt }) => [state, resolvedAt])
      assert.deepEqual(states.at(-1), ['dismissed', 7])
      assert.ok(!states.slice(0, -1).some(([state]) => state === 'open'))
    },
  ]),
  [
    'nothing is left to decide where the policy is another one from now on',
    async ({ store }) => {
      const end = { node: NODE, version: 1, local: { id: 2 }, because: 'decide', record: record() }
      await store.write((tx) => endOpenConflict(tx, PAIR, end))
      const row = await store.folderPair(PAIR)
      const states: string[] = []
      for (const conflicts of ['manual', 'keep-both'] as const) {
        const settings = folderPairSettings.parse({ conflicts })
        await store.write((tx) => changeSettings(tx, row, settings))
        states.push((await store.conflicts(PAIR))[0]!.state)
      }
      assert.deepEqual(states, ['open', 'dismissed'])
    },
  ],
  [
    'a name is found by the folder, whatever its case; a hash is kept only with its stat; a node waits for another',
    async ({ store, item }) => {
      const found = await store.write((tx) => remoteAtName(tx, PAIR, { parentId: 'root', name: 'A.TXT' }))
      assert.deepEqual(found, item)
      const old = { id: 2, stat: stat(7, { size: 99 }), hash: 'of another', sha256: 'of another' }
      assert.equal(await store.write((tx) => setLocalHash(tx, PAIR, old)), false)
      const [open] = await store.openNodes(PAIR, { limit: 1 })
      const wait = { node: open!.node, version: open!.version, waitsFor: 'l:99' as const }
      assert.equal(await store.write((tx) => waitForNode(tx, PAIR, wait)), true, 'nobody would wake it')
      assert.equal((await store.openNodes(PAIR, { limit: 1 }))[0]!.waitsFor, null)
      await store.write((tx) => openNode(tx, PAIR, 'l:99'))
      assert.equal(await store.write((tx) => waitForNode(tx, PAIR, wait)), false)
      assert.equal((await store.openNodes(PAIR, { limit: 1 }))[0]!.waitsFor, 'l:99')
    },
  ],
]

describe('conflicts on SQLite', () => {
  for (const [title, run] of CASES) test(title, () => withClash('sqlite::memory:', run))
})

describe('conflicts on PostgreSQL', () => {
  for (const [title, run] of CASES) {
    test(title, async () => {
      const database = await freshDatabase()
      try {
        await withClash(database.url, run)
      } finally {
        await database.drop()
      }
    })
  }
})
