/** Whoever waits for another is woken, whatever becomes of that one: see open-nodes.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import type { Tx } from '../../../ledger/contract.ts'
import type { LeftCode } from '../left-code.ts'
import type { NodeState, Plan } from '../plan.ts'
import type { NodeKey } from '../trees.ts'
import { endOpenConflict, waitForNamesake } from './conflicts.ts'
import { endGone, endLeft, writePlan } from './ends.ts'
import { PAIR, withStore } from './file-store.suite.ts'
import type { FileStore } from './file-store.ts'
import {
  freeAllWaiting,
  freeStranded,
  freeUnfound,
  hasStranded,
  leaveNode,
  openNode,
  waitForNode,
} from './open-nodes.ts'

const EMPTY: Plan = { actions: [], bookkeeping: [], waiting: [], reported: [], heldDeletes: undefined }

/** `i:file` is to wait for `i:folder`, which stood so when the rows were read. */
function waiting(was: NodeState): Plan {
  const one = { node: 'i:file' as const, version: 1, waitsFor: 'i:folder' as const, because: 'its folder' }
  return { ...EMPTY, waiting: [{ ...one, was }] }
}

function action(node: NodeKey): Plan {
  const one = {
    node,
    version: 1,
    verb: 'conflict' as const,
    row: 'EF12',
    path: 'folder',
    bytes: 0,
    after: [],
  }
  return { ...EMPTY, actions: [one] }
}

const writes = (tx: Tx, cycle: number, plan: Plan) => writePlan(tx, PAIR, { cycle, plan, atMs: 0 })

const undecided = (node: NodeKey) => ({
  node,
  version: 1,
  local: { id: 9 },
  code: 'undecided' as const,
  because: 'somebody is to decide',
  record: {
    kind: 'create-create' as const,
    path: 'folder',
    node,
    copyPath: null,
    localHash: 'a',
    remoteHash: 'b',
    at: 0,
    state: 'open' as const,
  },
})

const counts = (store: FileStore) => store.openCounts(PAIR)
const NONE = { unplanned: 0, inWork: 0, waiting: 0, reported: 0 }

/** On either database: what ends a node and what waits for it are transactions of their own. */
function onBoth(title: string, run: (store: FileStore) => Promise<void>): void {
  test(`${title}, on SQLite`, () => withStore(run))
  test(`${title}, on PostgreSQL`, () => onServer(run))
}

async function onServer(run: (store: FileStore) => Promise<void>): Promise<void> {
  const { url, drop } = await freshDatabase()
  try {
    await withStore(run, { ledgerUrl: url })
  } finally {
    await drop()
  }
}

/** Whether somebody waits for a lock; on this database, since others on the same server have theirs. */
async function isHeldUp(tx: Tx): Promise<boolean> {
  const found = await tx.get(
    `SELECT 1 AS yes FROM pg_locks waiting JOIN pg_locks held USING (pid) WHERE NOT waiting.granted
       AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1`,
  )
  return found !== undefined
}

describe('a node that is to wait for another', () => {
  test('waits for one that is open', () =>
    withStore(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await openNode(tx, PAIR, 'i:folder')
        await writes(tx, 1, waiting('open'))
      })
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1, waiting: 1 })
    }))

  test('is planned again where that one has ended since the rows were read', () =>
    withStore(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await writes(tx, 1, waiting('open'))
      })
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1 })
    }))

  onBoth(
    'is planned again where that one was left undecided since the rows were read: nobody would wake it',
    async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await openNode(tx, PAIR, 'i:folder')
        await writes(tx, 1, action('i:folder'))
      })
      // The plan has read that it is in work; then its action ends, before the plan is written.
      await store.write((tx) => endOpenConflict(tx, PAIR, undecided('i:folder')))
      await store.write((tx) => writes(tx, 2, waiting('in work')))
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1, reported: 1 })
    },
  )

  onBoth('is left alone until that one has ended, where that was left alone already', async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await openNode(tx, PAIR, 'i:folder')
      await leaveNode(tx, PAIR, { node: 'i:folder', version: 1, because: 'a text' })
      await writes(tx, 1, waiting('stuck'))
    })
    assert.deepEqual(await counts(store), { ...NONE, reported: 2 })
    const [file] = await store.openNodes(PAIR, { limit: 1 })
    assert.deepEqual([file!.because, file!.code, file!.waitsFor], ['its folder', 'other-left', 'i:folder'])
    await store.write((tx) => endGone(tx, PAIR, { node: 'i:folder', version: 1, atMs: 0 }))
    assert.deepEqual(await counts(store), { ...NONE, unplanned: 1 })
  })

  test('is left alone and told where that one was in step already: planning again would change nothing', () =>
    withStore(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await writes(tx, 1, waiting('in step'))
      })
      assert.deepEqual(await counts(store), { ...NONE, reported: 1 })
      const [file] = await store.openNodes(PAIR, { limit: 1 })
      assert.deepEqual([file!.because, file!.code], ['its folder', null])
    }))

  test('is left alone where that one waits for it, and so that one is planned again', () =>
    withStore(async (store) => {
      const others: Plan['waiting'] = [
        { node: 'i:folder', version: 1, waitsFor: 'i:third', because: 'a text', was: 'open' },
        { node: 'i:third', version: 1, waitsFor: 'i:file', because: 'a text', was: 'open' },
      ]
      await store.write(async (tx) => {
        for (const node of ['i:file', 'i:folder', 'i:third'] as const) await openNode(tx, PAIR, node)
        await writes(tx, 1, { ...EMPTY, waiting: others })
        await writes(tx, 2, waiting('open'))
      })
      const open = await store.openNodes(PAIR, { limit: 10 })
      const stands = open.map(({ node, because, waitsFor }) => [node, because, waitsFor])
      assert.deepEqual(stands, [
        ['i:file', 'its folder', 'i:folder'],
        ['i:folder', null, 'i:third'],
        ['i:third', null, null],
      ])
    }))

  test('by what its own action has found is left alone like that one', () =>
    withStore(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await openNode(tx, PAIR, 'i:folder')
        await leaveNode(tx, PAIR, { node: 'i:folder', version: 1, because: 'a text', code: 'withheld' })
        assert.equal(await waitForNode(tx, PAIR, { node: 'i:file', version: 1, waitsFor: 'i:folder' }), false)
      })
      const [file] = await store.openNodes(PAIR, { limit: 1 })
      assert.deepEqual([file!.because, file!.code, file!.waitsFor], ['a text', 'withheld', 'i:folder'])
    }))

  test('is woken by an end that is being written just then by another process', () =>
    onServer(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await openNode(tx, PAIR, 'i:folder')
        await writes(tx, 1, action('i:folder'))
      })
      let isOver = false
      const written = Promise.withResolvers<void>()
      const ending = written.promise
        .then(() => store.write((tx) => endGone(tx, PAIR, { node: 'i:folder', version: 1, atMs: 0 })))
        .finally(() => {
          isOver = true
        })
      await store.write(async (tx) => {
        await writes(tx, 2, waiting('in work'))
        written.resolve()
        // It has to wait for this transaction; or it is over, and has found nobody.
        while (!isOver && !(await isHeldUp(tx)));
      })
      await ending
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1 })
    }))

  test('is planned again with the item of its name, whose conflict another process is leaving undecided just then', () =>
    onServer(async (store) => {
      const wait = { node: 'l:9' as const, version: 1, waitsFor: 'i:folder' as const }
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:folder')
        await openNode(tx, PAIR, 'l:9')
        await writes(tx, 1, action('i:folder'))
        await writes(tx, 2, action('l:9'))
      })
      let isOver = false
      const written = Promise.withResolvers<void>()
      const waits = written.promise
        .then(() => store.write((tx) => waitForNamesake(tx, PAIR, wait)))
        .finally(() => {
          isOver = true
        })
      await store.write(async (tx) => {
        await endOpenConflict(tx, PAIR, undecided('i:folder'))
        written.resolve()
        while (!isOver && !(await isHeldUp(tx)));
      })
      assert.equal(await waits, true)
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 2 })
    }))
})

describe('whoever waits for a node', () => {
  onBoth('is planned again when its conflict is left for somebody to decide', async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await openNode(tx, PAIR, 'i:folder')
      await writes(tx, 1, action('i:folder'))
      await writes(tx, 2, waiting('in work'))
    })
    assert.deepEqual(await counts(store), { ...NONE, inWork: 1, waiting: 1 })
    assert.equal(await store.write((tx) => endOpenConflict(tx, PAIR, undecided('i:folder'))), true)
    assert.deepEqual(await counts(store), { ...NONE, unplanned: 1, reported: 1 })
  })

  test('is planned again when it is given up, and that one is looked at again with the folder', () =>
    withStore(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await openNode(tx, PAIR, 'i:folder')
        await writes(tx, 1, waiting('open'))
        const end = { node: 'i:folder' as const, version: 1, because: 'no way', until: 'i:folder' as const }
        assert.equal(await endLeft(tx, PAIR, end), true)
      })
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1, reported: 1 })
      await store.write((tx) => freeAllWaiting(tx, PAIR))
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 2 })
    }))

  onBoth('and is stranded all the same is freed by the next plan, and nobody else is', async (store) => {
    const nodes = ['i:gone', 'i:left', 'i:moving', 'i:look', 'i:reported'] as const
    await store.write(async (tx) => {
      for (const node of [...nodes, 'i:stuck', 'i:open'] as const) await openNode(tx, PAIR, node)
      await leaveNode(tx, PAIR, { node: 'i:stuck', version: 1, because: 'a text' })
      await leaveNode(tx, PAIR, { node: 'i:reported', version: 1, because: 'a text', until: 'i:stuck' })
      const waits = { gone: 'i:nobody', left: 'i:stuck', moving: 'i:open', look: 'i:look' }
      for (const [name, other] of Object.entries(waits)) {
        await tx.run(`UPDATE file_open SET waits_for = ? WHERE node = ?`, [other, `i:${name}`])
      }
      assert.equal(await hasStranded(tx, PAIR), true)
      assert.equal(await freeStranded(tx, PAIR), 2)
      assert.equal(await hasStranded(tx, PAIR), false)
    })
    const open = await store.openNodes(PAIR, { limit: 10 })
    const waits = open.filter(({ waitsFor }) => waitsFor !== null).map(({ node }) => node)
    assert.deepEqual(waits.sort(), ['i:look', 'i:moving', 'i:reported'])
  })
})

describe('a node that is left alone until another has ended', () => {
  const left = (was: NodeState): Plan => {
    const one = { node: 'i:file' as const, version: 1, because: 'its name is taken', was }
    return { ...EMPTY, reported: [{ ...one, until: 'i:other' as const }] }
  }

  test('is planned again then', () =>
    withStore(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await openNode(tx, PAIR, 'i:other')
        await writes(tx, 1, left('open'))
      })
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1, reported: 1 })
      await store.write((tx) => endGone(tx, PAIR, { node: 'i:other', version: 1, atMs: 0 }))
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1 })
    }))

  test('is planned again at once where that one has ended while it was planned', () =>
    withStore(async (store) => {
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await writes(tx, 1, left('open'))
      })
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1 })
    }))

  test('is planned again when that is something in it which is left until the folder has ended', () =>
    withStore(async (store) => {
      const report = (node: NodeKey, until: NodeKey, code: LeftCode): Plan => ({
        ...EMPTY,
        reported: [{ node, version: 1, code, because: 'a text', until, was: 'open' }],
      })
      await store.write(async (tx) => {
        await openNode(tx, PAIR, 'i:file')
        await openNode(tx, PAIR, 'i:folder')
        await writes(tx, 1, report('i:folder', 'i:file', 'content-left'))
        await writes(tx, 2, report('i:file', 'i:folder', 'folder-left'))
      })
      assert.deepEqual(await counts(store), { ...NONE, unplanned: 1, reported: 1 })
    }))
})

test('what waits for a look to find it tries again after any look, unless it has a reason of its own', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      for (const node of ['i:moved', 'i:left'] as const) await openNode(tx, PAIR, node)
      await waitForNode(tx, PAIR, { node: 'i:moved', version: 1, waitsFor: 'i:moved' })
      await leaveNode(tx, PAIR, { node: 'i:left', version: 1, because: 'not given', until: 'i:left' })
      assert.equal(await freeUnfound(tx, PAIR), 1)
    })
    assert.deepEqual(await counts(store), { ...NONE, unplanned: 1, reported: 1 })
  }))
