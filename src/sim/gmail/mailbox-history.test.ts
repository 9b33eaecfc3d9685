import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type HistoryPage, type HistoryRecord, type HistoryRequest, Mailbox } from './mailbox.ts'

type State = Map<string, string>

function mailboxWith(count: number): Mailbox {
  const mailbox = new Mailbox({ address: 'me@example.com', now: () => 1_750_000_000_000 })
  for (let at = 0; at < count; at += 1) add(mailbox)
  return mailbox
}

function add(mailbox: Mailbox): string {
  return mailbox.insert({ raw: Buffer.from('Subject: x\r\n\r\ny'), labelIds: ['INBOX'] }).id
}

/** All labels of all messages. */
function stateOf(mailbox: Mailbox): State {
  const state: State = new Map()
  for (const { id, labels, deleted } of mailbox.dump()) if (!deleted) state.set(id, labels.toSorted().join())
  return state
}

function page(mailbox: Mailbox, request: HistoryRequest): HistoryPage {
  const answer = mailbox.history(request)
  assert.notEqual(answer, 'expired')
  return answer as HistoryPage
}

function allRecords(
  mailbox: Mailbox,
  request: HistoryRequest,
): { records: HistoryRecord[]; emptyPages: number } {
  const records: HistoryRecord[] = []
  let emptyPages = 0
  let pageToken: string | undefined
  do {
    const answer = page(mailbox, { ...request, pageToken })
    records.push(...answer.history)
    if (answer.history.length === 0) emptyPages += 1
    pageToken = answer.nextPageToken
  } while (pageToken)
  return { records, emptyPages }
}

function replay(state: State, records: readonly HistoryRecord[]): State {
  const labels = new Map([...state].map(([id, text]) => [id, new Set(text ? text.split(',') : [])]))
  for (const record of records) {
    for (const { message } of record.messagesAdded ?? []) labels.set(message.id, new Set(message.labelIds))
    for (const { message, labelIds } of record.labelsAdded ?? []) {
      for (const id of labelIds) labels.get(message.id)?.add(id)
    }
    for (const { message, labelIds } of record.labelsRemoved ?? []) {
      for (const id of labelIds) labels.get(message.id)?.delete(id)
    }
    for (const { message } of record.messagesDeleted ?? []) labels.delete(message.id)
  }
  return new Map([...labels].map(([id, set]) => [id, [...set].sort().join()]))
}

type Step = { what: number; which: number; label: number }

const LABELS = ['STARRED', 'UNREAD', 'INBOX', 'TRASH', 'SPAM', 'Label_1']

function act(mailbox: Mailbox, step: Step): void {
  const ids = [...stateOf(mailbox).keys()]
  const id = ids[step.which % Math.max(1, ids.length)]
  const label = LABELS[step.label % LABELS.length]!
  if (step.what === 0 || id === undefined) add(mailbox)
  else if (step.what === 1) mailbox.delete(id)
  else if (step.what === 2) mailbox.modify(id, { add: [label] })
  else if (step.what === 3) mailbox.modify(id, { remove: [label] })
  else if (step.what === 4) mailbox.batchModify(ids.slice(0, 5), { add: [label] })
  else if (step.what === 5) mailbox.batchDelete(ids.slice(-2))
  else if (step.what === 6)
    mailbox.updateDraft(mailbox.createDraft({ raw: Buffer.from('a: b') }).id, { raw: Buffer.from('c: d') })
  else if (step.what === 7) mailbox.sendDraft(mailbox.createDraft({ raw: Buffer.from('a: b') }).id)
  else mailbox.modifyThread(mailbox.get(id)!.threadId, { remove: [label] })
}

const steps = fc.array(fc.record({ what: fc.nat(8), which: fc.nat(40), label: fc.nat(5) }), { maxLength: 40 })

describe('history', () => {
  test('replayed on an older state gives the present one, in pages of any size, with empty pages or not', () => {
    fc.assert(
      fc.property(
        steps,
        steps,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        (before, after, maxResults, empty) => {
          const mailbox = mailboxWith(3)
          mailbox.createLabel({ name: 'Mine' })
          mailbox.switches.emptyHistoryPages = empty
          for (const step of before) act(mailbox, step)
          const old = stateOf(mailbox)
          const startHistoryId = mailbox.historyId
          for (const step of after) act(mailbox, step)
          const { records } = allRecords(mailbox, { startHistoryId, maxResults })
          assert.deepEqual(replay(old, records), stateOf(mailbox))
          for (const [at, record] of records.entries()) {
            assert.ok(record.id > (records[at - 1]?.id ?? startHistoryId) && record.id <= mailbox.historyId)
          }
        },
      ),
      { numRuns: 150 },
    )
  })

  test('the loss of a label is recorded when the label is deleted', () => {
    const mailbox = mailboxWith(2)
    const label = mailbox.createLabel({ name: 'Mine' })
    for (const id of stateOf(mailbox).keys()) mailbox.modify(id, { add: [label.id] })
    const [old, startHistoryId] = [stateOf(mailbox), mailbox.historyId]
    mailbox.deleteLabel(label.id)
    assert.deepEqual(replay(old, allRecords(mailbox, { startHistoryId }).records), stateOf(mailbox))
  })

  test('ids have gaps and are beyond what a number holds', () => {
    const mailbox = mailboxWith(50)
    const { records } = allRecords(mailbox, { startHistoryId: 18_014_398_509_000_000n, maxResults: 500 })
    const gaps = records.map(({ id }, at) => id - (records[at - 1]?.id ?? 18_014_398_509_000_000n))
    assert.ok(gaps.some((gap) => gap > 1n))
    assert.ok(mailbox.historyId > BigInt(Number.MAX_SAFE_INTEGER))
  })

  test('an unchanged mailbox answers with nothing and its present id', () => {
    const mailbox = mailboxWith(2)
    const { historyId } = mailbox
    assert.deepEqual(mailbox.history({ startHistoryId: historyId }), { history: [], historyId })
  })

  test('empty pages have a token that leads on', () => {
    const mailbox = mailboxWith(0)
    const startHistoryId = mailbox.historyId
    for (let at = 0; at < 5; at += 1) add(mailbox)
    mailbox.switches.emptyHistoryPages = true
    const { records, emptyPages } = allRecords(mailbox, { startHistoryId, maxResults: 2 })
    assert.equal(records.length, 5)
    assert.equal(emptyPages, 3)
  })

  test('filters by type and by label', () => {
    const mailbox = mailboxWith(1)
    const startHistoryId = mailbox.historyId
    const id = add(mailbox)
    mailbox.modify(id, { add: ['STARRED'] })
    mailbox.modify(id, { remove: ['STARRED', 'INBOX'] })
    mailbox.delete(id)
    const kinds = (request: Partial<HistoryRequest>): number =>
      allRecords(mailbox, { startHistoryId, ...request }).records.length
    assert.equal(kinds({}), 4)
    assert.equal(kinds({ historyTypes: ['messageAdded'] }), 1)
    assert.equal(kinds({ historyTypes: ['messageDeleted', 'labelAdded'] }), 2)
    assert.equal(kinds({ labelId: 'STARRED' }), 2)
    assert.equal(kinds({ labelId: 'SPAM' }), 0)
  })

  test('after it expired, every id given out before is too old, and the present one is not', () => {
    const mailbox = mailboxWith(3)
    const { historyId } = mailbox
    mailbox.expireHistory()
    assert.equal(mailbox.history({ startHistoryId: historyId }), 'expired')
    const fresh = mailbox.profile().historyId
    const id = add(mailbox)
    assert.deepEqual(
      page(mailbox, { startHistoryId: fresh }).history.map(({ messages }) => messages[0]!.id),
      [id],
    )
  })

  test('history that expires between two pages is not answered in part', () => {
    const mailbox = mailboxWith(0)
    const startHistoryId = mailbox.historyId
    for (let at = 0; at < 5; at += 1) add(mailbox)
    const { nextPageToken } = page(mailbox, { startHistoryId, maxResults: 2 })
    mailbox.expireHistory()
    assert.equal(mailbox.history({ startHistoryId, pageToken: nextPageToken }), 'expired')
  })

  test('an id from the future is no start, and a broken token is refused', () => {
    const mailbox = mailboxWith(1)
    assert.equal(mailbox.history({ startHistoryId: mailbox.historyId + 1n }), 'expired')
    assert.throws(
      () => mailbox.history({ startHistoryId: mailbox.historyId, pageToken: 'nonsense' }),
      /pageToken/,
    )
  })
})
