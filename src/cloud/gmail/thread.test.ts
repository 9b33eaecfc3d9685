/** Conversations and drafts, as the simulated Gmail shows them. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { GmailClient } from './client.ts'
import { pricesOf } from './prices.ts'

const ANN = 'ann@example.com'
let sim: Sim
let client: GmailClient
const paced: string[] = []

before(async () => {
  sim = await startSim({
    gmail: { accounts: [{ address: ANN, messages: 0 }], quota: { unitsPerMinute: null } },
  })
  const { accessToken } = sim.gmail.accounts[0]!
  client = new GmailClient({
    fetch: globalThis.fetch,
    clock: systemClock,
    apiUrl: sim.gmail.baseUrl,
    token: { access: async () => accessToken, refused: () => {} },
    pace: ({ method, units }, fn) => {
      paced.push(`${method} ${units}`)
      return fn()
    },
    prices: pricesOf('current'),
  })
})
after(() => sim.close())

const LETTER = [
  'From: =?utf-8?q?J=C3=B6rg?= <j@example.net>',
  'Subject: =?utf-8?b?R3LDvMOfZQ==?=',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: multipart/alternative; boundary=c',
  '',
  '--c',
  'Content-Type: text/plain; charset=iso-8859-1',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  'Gr=FC=DFe',
  '--c',
  'Content-Type: text/html; charset=utf-8',
  '',
  '<p>Hello</p>',
  '--c--',
  '--b',
  'Content-Type: application/pdf; name=a.pdf',
  'Content-Disposition: attachment; filename=a.pdf',
  'Content-Transfer-Encoding: base64',
  '',
  'AAAA',
  '--b--',
].join('\r\n')

describe('a conversation', () => {
  test('has its messages with decoded headers, its leaf parts in order, and no bytes of attachments', async () => {
    const mailbox = sim.gmail.mailbox(ANN)
    const { id, threadId } = mailbox.insert({ raw: Buffer.from(LETTER), labelIds: ['INBOX'] })
    mailbox.createDraft({ raw: Buffer.from('Subject: Re\r\n\r\nyes'), threadId })
    const thread = await client.thread(threadId)
    assert.deepEqual(
      thread.messages.map(({ labelIds }) => labelIds),
      [['INBOX'], ['DRAFT']],
    )
    const [message] = thread.messages
    assert.deepEqual(await client.message(id), message)
    assert.equal(message!.headers.find(([name]) => name === 'Subject')?.[1], 'Grüße')
    const parts = message!.parts.map(({ mimeType, fileName, bytes }) => [
      mimeType,
      fileName,
      bytes && Buffer.from(bytes).toString('utf8').trim(),
    ])
    assert.deepEqual(parts, [
      ['text/plain', '', 'Grüße'],
      ['text/html', '', '<p>Hello</p>'],
      ['application/pdf', 'a.pdf', undefined],
    ])
    assert.deepEqual(paced.splice(0), ['threads.get 40', 'messages.get 20'])
  })

  test('that is gone says so', async () => {
    await assert.rejects(
      client.thread('1a1a1a1a'),
      (error: unknown) => error instanceof TidemarkError && error.code === 'not-found',
    )
    await assert.rejects(client.thread('a/b'), UsageError)
    paced.splice(0)
  })
})

test('a draft is made, found, changed under its id, and read, each at its price', async () => {
  const { threadId } = sim.gmail.mailbox(ANN).insert({ raw: Buffer.from('Subject: x\r\n\r\nhello') })
  const made = await client.createDraft({ raw: Buffer.from('Subject: Re: x\r\n\r\none'), threadId })
  assert.equal(made.threadId, threadId)
  const { drafts } = await client.drafts()
  assert.ok(drafts.some(({ id, messageId }) => id === made.id && messageId === made.messageId))
  const changed = await client.updateDraft({
    id: made.id,
    raw: Buffer.from('Subject: Re: x\r\n\r\ntwo'),
    threadId,
  })
  assert.equal(changed.id, made.id)
  assert.notEqual(changed.messageId, made.messageId)
  const read = await client.draft(made.id)
  assert.equal(Buffer.from(read.message.parts[0]!.bytes!).toString('utf8').trim(), 'two')
  assert.deepEqual(paced.splice(0), ['drafts.create 10', 'drafts.list 5', 'drafts.update 15', 'drafts.get 5'])
})

test('the only call that sends takes a draft that is there', () => {
  const names = Object.getOwnPropertyNames(GmailClient.prototype)
  assert.deepEqual(
    names.filter((name) => /send/i.test(name)),
    ['sendDraft'],
  )
})
