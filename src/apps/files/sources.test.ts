import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Transfers } from './act/transfers.ts'
import { type Facts, progressText, syncEta } from './sources.ts'

const none = { count: 0, doneBytes: 0, totalBytes: 0 }

function facts(change: Partial<Facts> = {}): Facts {
  return {
    looking: null,
    downloading: none,
    uploading: none,
    waiting: 0,
    bytesPerSecond: 0,
    etaMs: null,
    obstacle: null,
    uploadsWait: null,
    paused: null,
    ...change,
  }
}

const way = (count: number, totalBytes: number) => ({ count, doneBytes: 0, totalBytes })

describe('the line of a folder', () => {
  test('says what goes which way, how much waits, how fast and until when', () => {
    const busy = facts({
      downloading: way(3, 2_100_000_000),
      uploading: way(5, 340_000_000),
      waiting: 12,
      bytesPerSecond: 4_200_000,
      etaMs: 200_000,
    })
    assert.equal(
      progressText('docs', busy).text,
      'docs: downloading 3 files (2.1 GB), uploading 5 (340 MB), 12 waiting, 4.2 MB/s, ETA 3 min 20 s',
    )
  })

  test('says "files" of uploads where there are no downloads', () => {
    assert.equal(
      progressText('docs', facts({ uploading: way(1, 5_000) })).text,
      'docs: uploading 1 file (5 kB)',
    )
  })

  test('says how far the looks at both sides are', () => {
    const looking = facts({ looking: '1,204 changes heard, 5,000 files looked at' })
    assert.equal(
      progressText('docs', looking).text,
      'docs: looking: 1,204 changes heard, 5,000 files looked at',
    )
  })

  test('says why nothing moves, before anything else', () => {
    const waiting = facts({ obstacle: 'The disk is full.', waiting: 3 })
    assert.equal(progressText('docs', waiting).text, 'docs: waiting: The disk is full')
    assert.equal(progressText('docs', facts({ paused: 'by hand', waiting: 3 })).text, 'docs: paused: by hand')
  })

  test('says what keeps uploads waiting, beside all that goes on', () => {
    const downloading = { count: 1, doneBytes: 0, totalBytes: 10 }
    const full = facts({ downloading, waiting: 3, uploadsWait: 'The OneDrive is full' })
    const { text } = progressText('docs', full)
    assert.equal(text, 'docs: downloading 1 file (10 B), 3 waiting, no uploads: The OneDrive is full')
  })

  test('is no news where nothing is to be done', () => {
    assert.deepEqual(progressText('docs', facts()), { text: 'docs: nothing to do', isNews: false })
  })
})

describe('when a folder will be in step', () => {
  test('counts the bytes of small files that are over before anybody looks, and not what was kept', () => {
    const transfers = new Transfers()
    const input = { drive: 'docs', node: 'i:1', localId: 1, direction: 'upload', path: 'a' } as const
    for (let n = 0; n < 1_000; n++) {
      const small = transfers.begin({ ...input, totalBytes: 500, startedAtMs: 0 })
      small.moved(500)
      small.end()
    }
    const large = transfers.begin({ ...input, totalBytes: 10_000_000, startedAtMs: 0 })
    large.kept(9_000_000)
    large.moved(9_500_000)
    assert.equal(transfers.movedBytes('docs'), 1_000_000)
    // A second's work of ten: had only what is seen to run been counted, it would be hours.
    const left = { bytes: 5_000_000, files: 10_000 }
    assert.equal(syncEta(left, { bytes: transfers.movedBytes('docs'), files: 1_000 }), 10_000)
  })

  test('counts the files that wait as well as the bytes, whichever takes longer', () => {
    assert.equal(syncEta({ bytes: 2_000_000, files: 759 }, { bytes: 1_000_000, files: 15 }), 50_600)
    assert.equal(syncEta({ bytes: 90_000_000, files: 3 }, { bytes: 1_000_000, files: 15 }), 90_000)
    assert.equal(syncEta({ bytes: 0, files: 30 }, { bytes: 0, files: 15 }), 2_000)
  })

  test('is not told where something is left of which none was done lately', () => {
    assert.equal(syncEta({ bytes: 10, files: 2 }, { bytes: 0, files: 1 }), null)
    assert.equal(syncEta({ bytes: 10, files: 2 }, { bytes: 5, files: 0 }), null)
    assert.equal(syncEta({ bytes: 0, files: 0 }, { bytes: 5, files: 1 }), null)
  })
})
