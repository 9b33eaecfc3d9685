import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { HistoryRecord } from '../../cloud/gmail/client.ts'
import { DEFAULT_STYLE } from './account.ts'
import { LABELS } from './contract.ts'
import { afterWorkingDays, draftKeyOf, netChanges, newsOf, relabelled, styleFor, textHashOf } from './plan.ts'
import type { LabelIds } from './store/accounts.ts'
import type { ThreadRecord } from './store/records.ts'

const labels = Object.fromEntries(LABELS.map((role) => [role, `L-${role}`])) as LabelIds
const NONE: HistoryRecord = {
  id: '1',
  added: [],
  labelsAdded: [],
  labelsRemoved: [],
  deleted: [],
  touched: [],
}
const context = { labels, records: new Map<string, ThreadRecord>(), drafts: new Map<string, string>() }

function recordWith(change: Partial<ThreadRecord>): ReadonlyMap<string, ThreadRecord> {
  return new Map([
    ['t', { label: null, labelWas: null, isApplied: true, order: null, ...change } as ThreadRecord],
  ])
}

describe('a history', () => {
  test('a label that was set and taken away again is no change', () => {
    const at = { id: 'm', threadId: 't', labelIds: ['L-needs_response'] }
    const [change] = netChanges([
      { ...NONE, labelsAdded: [at] },
      { ...NONE, labelsRemoved: [at] },
    ])
    assert.deepEqual([...change!.added, ...change!.removed], [])
  })

  test('mail that came into the inbox is news; drafts, spam and what is sent are not', () => {
    const added = (id: string, ...labelIds: string[]) => ({ id, threadId: 't', labelIds })
    const changes = netChanges([
      { ...NONE, added: [added('a', 'INBOX'), added('b', 'DRAFT'), added('c', 'SPAM'), added('d', 'SENT')] },
    ])
    assert.deepEqual(newsOf(changes, context).arrivals, [{ id: 'a', threadId: 't' }])
  })

  test('a label that the record has is our own, and one that it has not is the user’s', () => {
    const changes = netChanges([{ ...NONE, labelsAdded: [{ id: 'm', threadId: 't', labelIds: ['L-fyi'] }] }])
    const own = newsOf(changes, { ...context, records: recordWith({ label: 'fyi' }) })
    const theirs = newsOf(changes, { ...context, records: recordWith({ label: 'waiting' }) })
    const moving = newsOf(changes, {
      ...context,
      records: recordWith({ label: 'outbox', labelWas: 'fyi', isApplied: false }),
    })
    assert.equal(own.wishes.size, 0)
    assert.deepEqual([...theirs.wishes.get('t')!], ['cleanup'])
    assert.equal(moving.wishes.size, 0)
  })

  test('Needs Response by hand wants a draft, Rework a rework, a deleted draft of ours a look', () => {
    const of = (label: string) =>
      newsOf(netChanges([{ ...NONE, labelsAdded: [{ id: 'm', threadId: 't', labelIds: [label] }] }]), context)
    assert.deepEqual([...of('L-needs_response').wishes.get('t')!], ['manual-draft'])
    assert.deepEqual([...of('L-rework').wishes.get('t')!], ['rework'])
    const gone = netChanges([{ ...NONE, deleted: [{ id: 'd', threadId: undefined }] }])
    const news = newsOf(gone, { ...context, drafts: new Map([['d', 't']]) })
    assert.deepEqual([...news.wishes.get('t')!], ['cleanup'])
  })
})

test('a style is that of the contact, then of the domain, then what the model said, then the default', () => {
  const style = (name: string) => ({ ...DEFAULT_STYLE, name })
  const settings = {
    styles: [style('a'), style('b'), style('c'), style('d')],
    contacts: { 'Bob@example.net': 'a' },
    domains: { 'example.net': 'b' },
    defaultStyle: 'd',
  }
  const named = (sender: string, said: string) => styleFor(sender, said, settings, DEFAULT_STYLE).name
  assert.equal(named('bob@example.net', 'c'), 'a')
  assert.equal(named('eve@example.net', 'c'), 'b')
  assert.equal(named('eve@example.org', 'c'), 'c')
  assert.equal(named('eve@example.org', 'unknown'), 'd')
})

test('working days leave out Saturday and Sunday', () => {
  const friday = Date.UTC(2026, 10, 13, 12)
  assert.equal(new Date(afterWorkingDays(friday, 1)).toISOString().slice(0, 10), '2026-11-16')
  assert.equal(new Date(afterWorkingDays(friday, 3)).toISOString().slice(0, 10), '2026-11-18')
})

test('the same wish has the same key, and another one another', () => {
  const wish = { account: 'a', thread: 't', answered: 'm', reworks: 0, wish: null }
  assert.equal(draftKeyOf(wish), draftKeyOf({ ...wish }))
  assert.notEqual(draftKeyOf(wish), draftKeyOf({ ...wish, reworks: 1 }))
  assert.notEqual(draftKeyOf(wish), draftKeyOf({ ...wish, answered: 'n' }))
})

test('white space at the ends of lines is nobody’s edit, and a word is', () => {
  assert.equal(textHashOf('a \r\nb\n'), textHashOf('a\nb'))
  assert.notEqual(textHashOf('a\nb'), textHashOf('a\nc'))
})

test('a label that is taken back before it is set in Gmail is still known to be ours, should it be set there yet', () => {
  type Labels = Pick<ThreadRecord, 'label' | 'labelWas' | 'isApplied'>
  const set: Labels = { label: 'action_required', labelWas: null, isApplied: true }
  const moved = relabelled(set, 'waiting')
  assert.deepEqual(moved, { label: 'waiting', labelWas: 'action_required', isApplied: false })
  assert.deepEqual(relabelled(moved, 'action_required'), {
    label: 'action_required',
    labelWas: 'waiting',
    isApplied: false,
  })
  assert.equal(relabelled(moved, 'fyi').labelWas, 'action_required')
})
