import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { paddedHistoryId, plainHistoryId } from './shard-row.ts'
import { changedState, type StoredView, upsertOf } from './upsert.ts'

const SHA = new Uint8Array(32).fill(1)
const OTHER_SHA = new Uint8Array(32).fill(2)

function view(options: Partial<StoredView> = {}): StoredView {
  return {
    threadId: 't',
    historyId: paddedHistoryId('100'),
    labelIds: ['INBOX'],
    internalMs: 5,
    sha256: SHA,
    source: 'gmail',
    deletedMs: null,
    problems: [],
    ...options,
  }
}

describe('a stored message that arrives again', () => {
  test('is kept when nothing is newer', () => {
    assert.deepEqual(upsertOf(view(), view(), true), { do: 'keep', tell: [] })
    const older = view({ historyId: paddedHistoryId('99'), labelIds: ['TRASH'] })
    assert.deepEqual(upsertOf(view(), older, true), { do: 'keep', tell: [] })
  })

  test('takes newer labels, comparing history ids as numbers', () => {
    const stored = view({ historyId: paddedHistoryId('999') })
    const upsert = upsertOf(stored, view({ historyId: paddedHistoryId('1000'), labelIds: ['A'] }), true)
    assert.equal(upsert.do, 'touch')
    assert.deepEqual(upsert.do === 'touch' && upsert.state.labelIds, ['A'])
  })

  test('is no longer deleted only when the fetch is newer than the deletion', () => {
    const stored = view({ deletedMs: 7 })
    assert.equal(upsertOf(stored, view(), true).do, 'keep')
    const upsert = upsertOf(stored, view({ historyId: paddedHistoryId('101') }), true)
    assert.equal(upsert.do === 'touch' && upsert.state.deletedMs, null)
  })

  test('becomes verified when the cloud has the same bytes as the import', () => {
    const stored = view({ source: 'import', historyId: paddedHistoryId('0'), threadId: 'import-t' })
    const upsert = upsertOf(stored, view(), true)
    assert.equal(upsert.do, 'touch')
    assert.equal(upsert.do === 'touch' && upsert.state.source, 'gmail')
    assert.equal(upsert.do === 'touch' && upsert.state.threadId, 't')
  })

  test('gives way to the cloud where an import differs, and says so', () => {
    const upsert = upsertOf(view({ source: 'import', sha256: OTHER_SHA }), view(), true)
    assert.equal(upsert.do, 'replace')
    assert.match(upsert.tell[0] ?? '', /imported copy differed/)
    assert.deepEqual(upsert.do === 'replace' && upsert.state.problems, upsert.tell)
  })

  test('keeps the first bytes of the cloud, and notes that there were others, once', () => {
    const other = view({ sha256: OTHER_SHA })
    const upsert = upsertOf(view(), other, true)
    assert.equal(upsert.do, 'touch')
    assert.equal(upsert.do === 'touch' && upsert.state.problems.length, 1)
    const problems = upsert.do === 'touch' ? upsert.state.problems : []
    assert.equal(upsertOf(view({ problems }), other, true).do, 'keep')
  })

  test('is not touched by an import that differs', () => {
    const upsert = upsertOf(view(), view({ source: 'import', sha256: OTHER_SHA }), true)
    assert.equal(upsert.do, 'keep')
    assert.match(upsert.tell[0] ?? '', /differs/)
  })

  test('is written again where its bytes were damaged', () => {
    assert.equal(upsertOf(view(), view(), false).do, 'replace')
    assert.equal(upsertOf(view(), view({ sha256: OTHER_SHA }), false).do, 'replace')
    // An unverified file is no better than what the cloud once gave.
    assert.equal(upsertOf(view(), view({ source: 'import', sha256: OTHER_SHA }), false).do, 'keep')
  })

  test('keeps the time of the cloud when an import mends it', () => {
    const upsert = upsertOf(view(), view({ source: 'import', internalMs: 99 }), false)
    assert.equal(upsert.do === 'replace' && upsert.state.internalMs, 5)
    assert.equal(upsert.do === 'replace' && upsert.state.source, 'gmail')
  })
})

describe('a change that the cloud reports', () => {
  test('adds, removes and replaces labels', () => {
    const change = { id: 'm', historyId: '101' }
    assert.deepEqual(changedState(view(), { ...change, addLabelIds: ['A'] })?.labelIds, ['A', 'INBOX'])
    assert.deepEqual(changedState(view(), { ...change, removeLabelIds: ['INBOX'] })?.labelIds, [])
    assert.deepEqual(changedState(view(), { ...change, setLabelIds: ['Z', 'B'] })?.labelIds, ['B', 'Z'])
  })

  test('changes nothing when it is older', () => {
    assert.equal(changedState(view(), { id: 'm', historyId: '99', addLabelIds: ['A'] }), undefined)
    assert.equal(changedState(view(), { id: 'm', historyId: '99', deletedAtMs: 5 }), undefined)
  })

  test('marks a deletion once, and takes the mark away', () => {
    const deleted = changedState(view(), { id: 'm', historyId: '101', deletedAtMs: 5 })
    assert.equal(deleted?.deletedMs, 5)
    const again = changedState(view({ ...deleted }), { id: 'm', historyId: '102', deletedAtMs: 9 })
    assert.equal(again?.deletedMs, 5)
    const restored = changedState(view({ ...deleted }), { id: 'm', historyId: '102', restored: true })
    assert.equal(restored?.deletedMs, null)
  })
})

test('history ids of up to 64 bits keep their value', () => {
  assert.equal(plainHistoryId(paddedHistoryId('18446744073709551615')), '18446744073709551615')
  assert.equal(plainHistoryId(paddedHistoryId('0')), '0')
  assert.equal(plainHistoryId(paddedHistoryId('not a number')), '0')
  assert.ok(paddedHistoryId('9') < paddedHistoryId('10'))
})

describe('a mark of deletion', () => {
  test('is taken off by whoever saw the message, even where it was the last word about it', () => {
    const stored = view({ deletedMs: 7, historyId: paddedHistoryId('18446744073709551615') })
    const state = changedState(stored, { id: 'm', historyId: '120', restored: true })
    assert.equal(state?.deletedMs, null)
    // So that what the history says afterwards counts again.
    assert.equal(state?.historyId, paddedHistoryId('120'))
    assert.equal(changedState(stored, { id: 'm', historyId: '120', addLabelIds: ['A'] }), undefined)
  })
})
