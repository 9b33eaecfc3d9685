import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { Mailbox, type MailboxOptions, type SimMessage } from './mailbox.ts'

const NOW = Date.UTC(2026, 4, 1)

function mailboxAt(nowMs = NOW, options: Partial<MailboxOptions> = {}): Mailbox {
  return new Mailbox({ address: 'me@example.com', now: () => nowMs, ...options })
}

function mail(headers: Record<string, string>, body = 'Hello'): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}\r\n`)
}

function put(mailbox: Mailbox, subject: string, extra: Record<string, string> = {}): SimMessage {
  return mailbox.insert({
    raw: mail({ From: 'a@example.com', Subject: subject, ...extra }),
    labelIds: ['INBOX'],
  })
}

function refused(code: string, run: () => unknown): void {
  assert.throws(run, (thrown) => (thrown as { code?: string }).code === code)
}

describe('messages', () => {
  test('an inserted message keeps its bytes, labels and date, whatever becomes of the given buffer', () => {
    const mailbox = mailboxAt()
    const raw = mail({ Subject: 'x' })
    const expected = raw.toString()
    const { id } = mailbox.insert({ raw, labelIds: ['INBOX', 'UNREAD'], internalMs: 1234 })
    raw.fill(0)
    const message = mailbox.get(id)!
    assert.equal(message.raw().toString(), expected)
    assert.deepEqual([...message.labelIds].sort(), ['INBOX', 'UNREAD'])
    assert.equal(message.internalMs, 1234)
    assert.equal(message.sizeEstimate, expected.length)
    assert.equal(message.snippet, 'Hello')
  })

  test('ids are sixteen hex digits, a thread has the id of its first message', () => {
    const message = put(mailboxAt(), 'x')
    assert.match(message.id, /^[0-9a-f]{16}$/)
    assert.equal(message.threadId, message.id)
  })

  test('ids of the same millisecond differ', () => {
    const mailbox = mailboxAt(NOW, { random: cycling([0.1, 0.1, 0.1, 0.7]) })
    assert.notEqual(put(mailbox, 'a').id, put(mailbox, 'b').id)
  })

  test('what is trashed leaves the inbox, and is not in listings unless they ask for it', () => {
    const mailbox = mailboxAt()
    const { id } = put(mailbox, 'x')
    mailbox.trash(id)
    assert.deepEqual([...mailbox.get(id)!.labelIds], ['TRASH'])
    assert.deepEqual(mailbox.list().messages, [])
    assert.equal(mailbox.list({ includeSpamTrash: true }).messages.length, 1)
    assert.equal(mailbox.list({ q: 'in:trash' }).messages.length, 1)
    assert.equal(mailbox.list({ labelIds: ['TRASH'] }).messages.length, 1)
    mailbox.untrash(id)
    assert.deepEqual([...mailbox.get(id)!.labelIds], [])
  })

  test('a deleted message is gone, but what it was can still be asked', () => {
    const mailbox = mailboxAt()
    const { id } = put(mailbox, 'x')
    const sha = createHash('sha256').update(mailbox.get(id)!.raw()).digest('hex')
    mailbox.delete(id)
    assert.equal(mailbox.get(id), undefined)
    assert.equal(mailbox.deleted.get(id)?.message.id, id)
    const [dumped] = [...mailbox.dump()]
    assert.equal(dumped?.deleted, true)
    assert.equal(dumped?.sha256(), sha)
    refused('sim-not-found', () => mailbox.delete(id))
  })

  test('batch calls say nothing about unknown ids and refuse more than a thousand', () => {
    const mailbox = mailboxAt()
    const [a, b] = [put(mailbox, 'a').id, put(mailbox, 'b').id]
    mailbox.batchModify([a, '00000000000000ff'], { add: ['STARRED'] })
    assert.ok(mailbox.get(a)!.labelIds.has('STARRED'))
    mailbox.batchDelete([b, '00000000000000ff', b])
    assert.equal(mailbox.profile().messagesTotal, 1)
    refused('sim-invalid', () => mailbox.batchDelete(Array.from({ length: 1001 }, () => a)))
  })

  test('many deleted at once leave the rest in order', () => {
    const mailbox = mailboxAt()
    const ids = Array.from(
      { length: 60 },
      (_, at) => mailbox.insert({ raw: mail({}), internalMs: at * 1000 }).id,
    )
    mailbox.batchDelete(ids.filter((_, at) => at % 2 === 0))
    const left = mailbox.list({ maxResults: 500 }).messages.map(({ id }) => id)
    assert.deepEqual(left, ids.filter((_, at) => at % 2 === 1).reverse())
  })

  test('a message is given a Message-ID, a Date and a From when it is sent without', () => {
    const sent = mailboxAt().send({ raw: mail({ To: 'b@example.com', Subject: 'x' }) })
    assert.ok(sent.labelIds.has('SENT'))
    assert.match(sent.raw().toString(), /^Date: .*\r\nFrom: me@example\.com\r\nMessage-ID: <.+>\r\nTo: b@/)
  })

  test('every real change is announced once, with the new history id', () => {
    const mailbox = mailboxAt()
    const seen: bigint[] = []
    mailbox.onChange = (historyId) => seen.push(historyId)
    const { id } = put(mailbox, 'x')
    mailbox.trash(id)
    mailbox.trash(id)
    mailbox.delete(id)
    assert.equal(seen.length, 3)
    assert.equal(seen.at(-1), mailbox.historyId)
  })

  test('only ids given out by a listing or by the history count as listed', () => {
    const mailbox = mailboxAt()
    const start = mailbox.historyId
    const [a, b] = [put(mailbox, 'a'), put(mailbox, 'b')]
    assert.equal(mailbox.everListed.size, 0)
    mailbox.list({ q: 'subject:a' })
    assert.deepEqual([...mailbox.everListed], [a.id])
    mailbox.history({ startHistoryId: start })
    assert.deepEqual([...mailbox.everListed].sort(), [a.id, b.id].sort())
  })
})

describe('threads', () => {
  test('an answer joins the thread of what it names, if the subject agrees', () => {
    const mailbox = mailboxAt()
    const first = put(mailbox, 'Lunch', { 'Message-ID': '<1@x>' })
    const answer = put(mailbox, 'RE: Aw: lunch', { References: '<0@x>\r\n <1@x>' })
    const other = put(mailbox, 'Dinner', { 'In-Reply-To': '<1@x>' })
    assert.equal(answer.threadId, first.id)
    assert.equal(other.threadId, other.id)
    assert.deepEqual(
      mailbox
        .thread(first.id)!
        .messages.map(({ id }) => id)
        .sort(),
      [first.id, answer.id].sort(),
    )
  })

  test('a given thread is joined, an unknown one refused', () => {
    const mailbox = mailboxAt()
    const first = put(mailbox, 'a')
    assert.equal(mailbox.insert({ raw: mail({ Subject: 'b' }), threadId: first.id }).threadId, first.id)
    refused('sim-not-found', () => mailbox.insert({ raw: mail({}), threadId: '00000000000000ff' }))
  })

  test('thread-wide changes reach every message, and a thread goes with its last message', () => {
    const mailbox = mailboxAt()
    const first = put(mailbox, 'a')
    const second = mailbox.insert({ raw: mail({}), threadId: first.id })
    mailbox.modifyThread(first.id, { add: ['STARRED'] })
    assert.ok(mailbox.get(second.id)!.labelIds.has('STARRED'))
    mailbox.trashThread(first.id)
    assert.deepEqual(mailbox.listThreads().threads, [])
    mailbox.untrashThread(first.id)
    mailbox.deleteThread(first.id)
    assert.equal(mailbox.thread(first.id), undefined)
    assert.equal(mailbox.profile().threadsTotal, 0)
  })

  test('a listing of threads has each once, over all its pages', () => {
    const mailbox = mailboxAt()
    const roots = Array.from({ length: 7 }, (_, at) => mailbox.insert({ raw: mail({}), internalMs: at * 10 }))
    for (const [at, root] of roots.entries()) {
      for (let more = 0; more < at % 3; more += 1) {
        mailbox.insert({ raw: mail({}), threadId: root.id, internalMs: 1000 - at * 10 - more })
      }
    }
    const seen: string[] = []
    for (let pageToken: string | undefined, pages = 0; pages === 0 || pageToken; pages += 1) {
      const page = mailbox.listThreads({ maxResults: 2, pageToken })
      seen.push(...page.threads.map(({ id }) => id))
      pageToken = page.nextPageToken
    }
    assert.equal(seen.length, 7)
    assert.deepEqual(seen.toSorted(), roots.map(({ id }) => id).sort())
  })
})

describe('labels', () => {
  test('are created once per name, renamed, counted and deleted', () => {
    const mailbox = mailboxAt()
    const label = mailbox.createLabel({ name: 'Work/Projects' })
    assert.equal(label.id, 'Label_1')
    refused('sim-conflict', () => mailbox.createLabel({ name: 'work/projects' }))
    const { id, threadId } = put(mailbox, 'x')
    mailbox.insert({ raw: mail({}), labelIds: [label.id, 'UNREAD'], threadId })
    mailbox.modify(id, { add: [label.id] })
    const counts = { messagesTotal: 2, messagesUnread: 1, threadsTotal: 1, threadsUnread: 1 }
    assert.deepEqual(mailbox.label(label.id), { ...label, ...counts })
    assert.equal(mailbox.updateLabel(label.id, { name: 'Old' }).name, 'Old')
    mailbox.deleteLabel(label.id)
    assert.equal(mailbox.label(label.id), undefined)
    assert.ok(!mailbox.get(id)!.labelIds.has(label.id))
  })

  test('of the system can be neither changed nor put on by hand where Gmail forbids it', () => {
    const mailbox = mailboxAt()
    const { id } = put(mailbox, 'x')
    refused('sim-invalid', () => mailbox.updateLabel('INBOX', { name: 'In' }))
    refused('sim-invalid', () => mailbox.deleteLabel('INBOX'))
    refused('sim-not-found', () => mailbox.deleteLabel('Label_9'))
    refused('sim-invalid', () => mailbox.modify(id, { add: ['SENT'] }))
    refused('sim-invalid', () => mailbox.modify(id, { add: ['Label_9'] }))
    refused('sim-invalid', () => mailbox.modify(id, { add: ['STARRED'], remove: ['STARRED'] }))
    refused('sim-invalid', () => mailbox.insert({ raw: mail({}), labelIds: ['DRAFT'] }))
    refused('sim-invalid', () => mailbox.list({ labelIds: ['Label_9'] }))
  })

  test('a change that changes nothing leaves no trace', () => {
    const mailbox = mailboxAt()
    const { id } = put(mailbox, 'x')
    const before = mailbox.historyId
    mailbox.modify(id, { add: ['INBOX'], remove: ['STARRED'] })
    assert.equal(mailbox.historyId, before)
    assert.equal(mailbox.get(id)!.historyId, before)
  })
})

describe('drafts', () => {
  test('an update keeps the draft and its thread, and replaces its message', () => {
    const mailbox = mailboxAt()
    const draft = mailbox.createDraft({ raw: mail({ Subject: 'one' }) })
    const updated = mailbox.updateDraft(draft.id, { raw: mail({ Subject: 'two' }) })
    assert.equal(updated.id, draft.id)
    assert.notEqual(updated.message.id, draft.message.id)
    assert.equal(updated.message.threadId, draft.message.threadId)
    assert.equal(mailbox.get(draft.message.id), undefined)
    const { id, threadId } = updated.message
    assert.deepEqual(mailbox.listDrafts().drafts, [{ id: draft.id, message: { id, threadId } }])
    assert.equal(mailbox.draft(draft.id)!.message.id, id)
  })

  test('a sent draft is a sent message and no draft any more', () => {
    const mailbox = mailboxAt()
    const draft = mailbox.createDraft({ raw: mail({ Subject: 'one' }) })
    const sent = mailbox.sendDraft(draft.id)
    assert.deepEqual([...sent.labelIds], ['SENT'])
    assert.equal(mailbox.draft(draft.id), undefined)
    assert.equal(mailbox.profile().messagesTotal, 1)
    refused('sim-not-found', () => mailbox.sendDraft(draft.id))
  })

  test('deleting a draft or its message deletes both for good', () => {
    const mailbox = mailboxAt()
    const [a, b] = [mailbox.createDraft({ raw: mail({}) }), mailbox.createDraft({ raw: mail({}) })]
    mailbox.deleteDraft(a.id)
    mailbox.delete(b.message.id)
    assert.deepEqual(mailbox.listDrafts().drafts, [])
    assert.equal(mailbox.draft(b.id), undefined)
    assert.equal(mailbox.profile().messagesTotal, 0)
  })
})

function cycling(values: readonly number[]): () => number {
  let at = 0
  return () => {
    at += 1
    return values[(at - 1) % values.length]!
  }
}
