import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LeftCode } from '../left-code.ts'
import type { Plan } from '../plan.ts'
import type { NodeKey } from '../trees.ts'
import { endGone, endLeft, writePlan } from './ends.ts'
import { PAIR, withStore } from './file-store.suite.ts'
import { freeAllWaiting, freeUnfound, leaveNode, openNode, waitForNode } from './open-nodes.ts'

function waiting(wasOpen: boolean): Plan {
  const one = {
    node: 'i:file' as const,
    version: 1,
    waitsFor: 'i:folder' as const,
    because: 'its folder',
    wasOpen,
  }
  return { actions: [], bookkeeping: [], waiting: [one], reported: [], heldDeletes: undefined }
}

test('a node waits for one that is open', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await openNode(tx, PAIR, 'i:folder')
      await writePlan(tx, PAIR, { cycle: 1, plan: waiting(true), atMs: 0 })
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 1, reported: 0 })
  }))

test('a node does not wait for one that has ended while it was planned: nobody would wake it', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await writePlan(tx, PAIR, { cycle: 1, plan: waiting(true), atMs: 0 })
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 0, reported: 0 })
  }))

test('what was in step already when it was planned is waited for: planning again would change nothing', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await writePlan(tx, PAIR, { cycle: 1, plan: waiting(false), atMs: 0 })
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 0, inWork: 0, waiting: 1, reported: 0 })
  }))

function left(wasOpen: boolean): Plan {
  const one = { node: 'i:file' as const, version: 1, because: 'its name is taken', until: 'i:other' as const }
  return {
    actions: [],
    bookkeeping: [],
    waiting: [],
    reported: [{ ...one, wasOpen }],
    heldDeletes: undefined,
  }
}

test('a node is left alone until another has ended', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await openNode(tx, PAIR, 'i:other')
      await writePlan(tx, PAIR, { cycle: 1, plan: left(true), atMs: 0 })
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 0, reported: 1 })
    await store.write((tx) => endGone(tx, PAIR, { node: 'i:other', version: 1 }))
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 0, reported: 0 })
  }))

test('a folder that is left until what is in it has ended is planned again when that is left until the folder has', () =>
  withStore(async (store) => {
    const report = (node: NodeKey, until: NodeKey, code: LeftCode): Plan => ({
      actions: [],
      bookkeeping: [],
      waiting: [],
      heldDeletes: undefined,
      reported: [{ node, version: 1, code, because: 'a text', until, wasOpen: true }],
    })
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await openNode(tx, PAIR, 'i:folder')
      const folder = report('i:folder', 'i:file', 'content-left')
      await writePlan(tx, PAIR, { cycle: 1, plan: folder, atMs: 0 })
      await writePlan(tx, PAIR, { cycle: 2, plan: report('i:file', 'i:folder', 'folder-left'), atMs: 0 })
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 0, reported: 1 })
  }))

test('a node is not left alone until another has ended that did so while it was planned', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await writePlan(tx, PAIR, { cycle: 1, plan: left(true), atMs: 0 })
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 0, reported: 0 })
  }))

test('a node that is given up wakes those that wait for it, and is itself looked at again with the folder', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      await openNode(tx, PAIR, 'i:file')
      await openNode(tx, PAIR, 'i:folder')
      await writePlan(tx, PAIR, { cycle: 1, plan: waiting(true), atMs: 0 })
      const end = { node: 'i:folder' as const, version: 1, because: 'no way', until: 'i:folder' as const }
      assert.equal(await endLeft(tx, PAIR, end), true)
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 0, reported: 1 })
    await store.write((tx) => freeAllWaiting(tx, PAIR))
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 2, inWork: 0, waiting: 0, reported: 0 })
  }))

test('what waits for a look to find it tries again after any look, unless it has a reason of its own', () =>
  withStore(async (store) => {
    await store.write(async (tx) => {
      for (const node of ['i:moved', 'i:left'] as const) await openNode(tx, PAIR, node)
      await waitForNode(tx, PAIR, { node: 'i:moved', version: 1, waitsFor: 'i:moved' })
      await leaveNode(tx, PAIR, { node: 'i:left', version: 1, because: 'not given', until: 'i:left' })
      assert.equal(await freeUnfound(tx, PAIR), 1)
    })
    assert.deepEqual(await store.openCounts(PAIR), { unplanned: 1, inWork: 0, waiting: 0, reported: 1 })
  }))
