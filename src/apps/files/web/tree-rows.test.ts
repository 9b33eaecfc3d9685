import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TreeItem } from '../api/schemas.ts'
import { type LoadedFolder, parentRow, rowAfterKey, TOP, treeRows } from './tree-rows.ts'

function item(node: string, type: TreeItem['type'] = 'file'): TreeItem {
  return {
    node,
    name: node,
    type,
    size: 0,
    modifiedMs: null,
    state: 'in-step',
    isActive: false,
    text: '',
    here: null,
    there: null,
    conflict: null,
  }
}

const folders = new Map<string, LoadedFolder>([
  [TOP, { items: [item('F', 'folder'), item('a')], next: null }],
  ['F', { items: [item('F', 'folder'), item('b')], next: 'more' }],
])

describe('the rows of a tree', () => {
  test('are those of the open folders, with a place for what is not loaded yet', () => {
    const closed = treeRows(folders, new Set())
    assert.deepEqual(
      closed.map((row) => (row.kind === 'item' ? row.item.node : 'more')),
      ['F', 'a'],
    )
    const open = treeRows(folders, new Set(['F']))
    assert.deepEqual(
      open.map((row) => [row.kind === 'item' ? row.item.node : 'more', row.depth]),
      [
        ['F', 0],
        ['F', 1],
        ['b', 1],
        ['more', 1],
        ['a', 0],
      ],
    )
    assert.deepEqual(
      open.map((row) => (row.kind === 'item' ? row.siblings : 0)),
      [2, -1, -1, 0, 2],
    )
    assert.deepEqual(
      treeRows(new Map(), new Set()).map(({ kind }) => kind),
      ['more'],
    )
  })

  test('are walked through with keys', () => {
    const rows = treeRows(folders, new Set(['F']))
    assert.equal(rowAfterKey(rows, 0, 'ArrowDown'), 1)
    assert.equal(rowAfterKey(rows, 0, 'ArrowUp'), 0)
    assert.equal(rowAfterKey(rows, 0, 'End'), 4)
    assert.equal(rowAfterKey(rows, 4, 'PageUp'), 0)
    assert.equal(rowAfterKey(rows, 0, 'x'), undefined)
    assert.equal(parentRow(rows, 2), 0)
    assert.equal(parentRow(rows, 4), undefined)
  })
})
