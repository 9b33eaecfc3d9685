import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FolderSettings, FolderView, TransfersView } from '../api/schemas.ts'
import { changedSettings, folderNeeds, transfersOf, workText } from './folder-state.ts'

const OPEN = { unplanned: 0, inWork: 0, waiting: 0, reported: 0 }
const NONE = { count: 0, doneBytes: 0, totalBytes: 0 }

describe('a folder in words', () => {
  test('says what is on the way in each direction, and what waits', () => {
    assert.equal(workText({ open: OPEN }, { upload: NONE, download: NONE }), '')
    const busy = {
      download: { count: 3, doneBytes: 0, totalBytes: 2_100_000_000 },
      upload: { count: 1, doneBytes: 60_000, totalBytes: 400_000 },
    }
    assert.equal(
      workText({ open: { ...OPEN, inWork: 10, waiting: 6 } }, busy),
      'Downloading 3 files (2.1 GB left), uploading 1 file (340 kB left), 12 changes waiting',
    )
    assert.equal(
      workText({ open: { ...OPEN, unplanned: 1 } }, { upload: NONE, download: NONE }),
      '1 change waiting',
    )
  })

  test('has the transfers that are its own', () => {
    const one = { node: 'i:1', path: 'a', bytesPerSecond: null, startedAt: 0, doneBytes: 1, totalBytes: 4 }
    const all: TransfersView = {
      items: [
        { ...one, folder: 'docs', direction: 'upload' },
        { ...one, folder: 'other', direction: 'download' },
      ],
      upload: NONE,
      download: NONE,
    }
    const own = transfersOf(all, 'docs')
    assert.deepEqual([own.items.length, own.upload.count, own.download.count], [1, 1, 0])
    assert.equal(own.upload.totalBytes, 4)
  })

  test('needs somebody for deletions and conflicts', () => {
    const folder = { name: 'docs', heldDeletes: { local: 1, remote: 2 }, conflicts: 1 } as FolderView
    assert.deepEqual(
      folderNeeds(folder).map(({ text }) => text),
      ['3 deletions at once: yours to allow', '1 conflict to decide'],
    )
    assert.deepEqual(folderNeeds({ ...folder, heldDeletes: null, conflicts: 0 }), [])
  })
})

test('a form of settings sends what was changed in it, and nothing that may have been changed elsewhere', () => {
  const began: FolderSettings = {
    mode: 'two-way',
    policy: 'keep-both',
    only: [],
    skip: ['*.iso'],
    skipDotfiles: false,
    sizeMbMax: 0,
    followLinks: false,
  }
  assert.deepEqual(changedSettings(began, { ...began, skip: ['*.iso'] }), {})
  assert.deepEqual(changedSettings(began, { ...began, skip: [], sizeMbMax: 5 }), { skip: [], sizeMbMax: 5 })
})
