import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Query } from '../query/query.ts'
import {
  ARCHIVE_ACTIONS,
  changeOf,
  cloudRefusal,
  hasHappened,
  indexRefusal,
  isConcerned,
  labelsOfQuery,
  mayDecide,
  type Purpose,
  proofRefusal,
  restoringChange,
} from './verdict.ts'

const UNLABEL: Purpose = { action: 'unlabel', label: 'INBOX', queryLabels: [] }
const TRASH: Purpose = { action: 'trash', label: null, queryLabels: [] }
const DELETE: Purpose = { action: 'delete', label: null, queryLabels: [] }

const now = (...labelIds: string[]) => ({ labelIds, historyId: '7' })
const classOf = (refusal: { class: string } | null) => refusal?.class ?? null

test('a message at the second of the watermark is above it, and the millisecond before is below', () => {
  const about = { isBad: false, deletedAtMs: null, isImported: false, markS: 100 }
  assert.equal(classOf(indexRefusal({ ...about, internalMs: 100_000 })), 'above-watermark')
  assert.equal(indexRefusal({ ...about, internalMs: 99_999 }), null)
})

test('without a watermark nothing is below it', () => {
  const about = { isBad: false, deletedAtMs: null, isImported: false, markS: null, internalMs: -1 }
  assert.equal(classOf(indexRefusal(about)), 'above-watermark')
})

test('bad, imported and deleted messages are refused by what the index says', () => {
  const about = { isBad: false, deletedAtMs: null, isImported: false, markS: 100, internalMs: 5 }
  assert.equal(classOf(indexRefusal({ ...about, isBad: true })), 'bad')
  assert.equal(classOf(indexRefusal({ ...about, isImported: true })), 'imported')
  assert.equal(classOf(indexRefusal({ ...about, deletedAtMs: 3 })), 'deleted')
})

test('only the proof "proven" of a message that is not marked as deleted passes', () => {
  const proof = { id: 'a', bytes: 1, internalMs: 1, deletedAtMs: null, labelIds: [] }
  assert.equal(proofRefusal({ ...proof, state: 'proven' }), null)
  assert.equal(classOf(proofRefusal({ ...proof, state: 'proven', deletedAtMs: 5 })), 'deleted')
  for (const state of ['imported', 'absent', 'mismatch', 'unreadable'] as const) {
    assert.equal(classOf(proofRefusal({ ...proof, state })), state)
  }
})

test('a message that is as it was planned passes, whatever the action', () => {
  for (const purpose of [UNLABEL, TRASH, DELETE]) {
    assert.equal(cloudRefusal(purpose, ['INBOX', 'UNREAD'], now('UNREAD', 'INBOX')), null)
  }
})

test('a label that may not decide makes no difference, whatever Gmail says of it', () => {
  const ids = [
    'INBOX',
    'SENT',
    'DRAFT',
    'TRASH',
    'SPAM',
    'STARRED',
    'UNREAD',
    'IMPORTANT',
    'CATEGORY_FORUMS',
    'Label_1',
  ]
  const labels = fc.subarray(ids)
  const purpose = fc.record({
    action: fc.constantFrom(...ARCHIVE_ACTIONS),
    label: fc.option(fc.constantFrom(...ids)),
    queryLabels: fc.option(labels),
  })
  fc.assert(
    fc.property(purpose, labels, labels, (purpose, planned, seen) => {
      const deciding = seen.filter((id) => mayDecide(purpose, id))
      const known = [...deciding, ...planned.filter((id) => !mayDecide(purpose, id))]
      assert.equal(
        classOf(cloudRefusal(purpose, planned, now(...known))),
        classOf(cloudRefusal(purpose, planned, now(...seen))),
      )
    }),
  )
  assert.ok(!mayDecide({ action: 'trash', label: null, queryLabels: [] }, 'CATEGORY_FORUMS'))
})

test('a message that is gone, starred, trashed or out of the inbox meanwhile is refused', () => {
  const planned = ['INBOX']
  assert.equal(classOf(cloudRefusal(UNLABEL, planned, 'gone')), 'gone')
  assert.equal(classOf(cloudRefusal(UNLABEL, planned, now('INBOX', 'STARRED'))), 'changed')
  assert.equal(classOf(cloudRefusal(UNLABEL, planned, now())), 'changed')
  assert.equal(classOf(cloudRefusal(TRASH, planned, now('TRASH'))), 'changed')
  assert.equal(classOf(cloudRefusal(DELETE, planned, now('TRASH'))), 'changed')
})

test('a label of somebody keeps a message from the trash, but not in the inbox', () => {
  assert.equal(classOf(cloudRefusal(TRASH, ['INBOX'], now('INBOX', 'Label_1'))), 'changed')
  assert.equal(classOf(cloudRefusal(DELETE, ['INBOX'], now('INBOX', 'Label_1'))), 'changed')
  assert.equal(cloudRefusal(UNLABEL, ['INBOX'], now('INBOX', 'Label_1')), null)
})

test('having been read, or sorted by Gmail itself, does not matter', () => {
  const planned = ['INBOX', 'UNREAD', 'CATEGORY_SOCIAL']
  for (const purpose of [UNLABEL, TRASH, DELETE]) {
    assert.equal(cloudRefusal(purpose, planned, now('INBOX', 'IMPORTANT', 'CATEGORY_UPDATES')), null)
  }
})

test('a label of which the query speaks must be as it was, put on or taken off', () => {
  const purpose = { ...DELETE, queryLabels: ['Label_1', 'UNREAD'] }
  assert.equal(classOf(cloudRefusal(purpose, ['Label_1'], now())), 'changed')
  assert.equal(classOf(cloudRefusal(purpose, ['UNREAD'], now())), 'changed')
  assert.equal(cloudRefusal(purpose, ['Label_2'], now()), null)
})

test('where a label of the query is not known, every change of a label matters', () => {
  const purpose = { ...UNLABEL, queryLabels: null }
  assert.equal(classOf(cloudRefusal(purpose, ['INBOX', 'Label_2'], now('INBOX'))), 'changed')
})

test('what a query says about labels is found at any depth, and a name without meaning is told', () => {
  const ids = new Map([['inbox', 'INBOX']])
  const label = (name: string): Query => ({ is: 'label', name })
  const query: Query = { is: 'and', of: [{ is: 'not', of: label('Inbox') }, { is: 'has-attachment' }] }
  assert.deepEqual(labelsOfQuery(query, ids), ['INBOX'])
  assert.equal(labelsOfQuery({ is: 'or', of: [query, label('nobody')] }, ids), null)
})

const labelSet = fc.uniqueArray(fc.constantFrom('INBOX', 'UNREAD', 'STARRED', 'Label_1', 'TRASH', 'SPAM'))

test('what a change does to labels shows that it has happened, and restoring brings exactly them back', () => {
  fc.assert(
    fc.property(fc.constantFrom(...ARCHIVE_ACTIONS), labelSet, (action, prior) => {
      const run = { action, label: 'INBOX' }
      if (action === 'delete' || !isConcerned(run, prior)) return
      assert.equal(hasHappened(run, now(...prior)), false)
      const { add, remove } = changeOf(run)
      // As Gmail does it: what goes to the trash leaves inbox and spam.
      const taken = action === 'trash' ? ['INBOX', 'SPAM'] : remove
      const after = [...prior.filter((id) => !taken.includes(id)), ...add]
      assert.equal(hasHappened(run, now(...after)), true)
      const back = restoringChange(run, prior, after)
      const restored = [...after.filter((id) => !back.remove.includes(id)), ...back.add]
      assert.deepEqual(restored.sort(), [...prior].sort())
      assert.deepEqual(restoringChange(run, prior, prior), { add: [], remove: [] })
    }),
  )
})

test('a deletion has happened when the message is gone, and nothing else has then', () => {
  assert.equal(hasHappened(DELETE, 'gone'), true)
  assert.equal(hasHappened(DELETE, now()), false)
  assert.equal(hasHappened(UNLABEL, 'gone'), false)
  assert.equal(hasHappened(TRASH, 'gone'), false)
})
