import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { GmailClient, Pace } from './client.ts'
import {
  clientOf,
  errorJson,
  messageJson,
  type Request,
  type ScriptedServer,
  sendJson,
  startServer,
} from './scripted-server.suite.ts'

let server: ScriptedServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

/** Makes the call against a server that answers with `value`. */
async function made<T>(
  value: unknown,
  run: (client: GmailClient) => Promise<T>,
): Promise<{ result: T; request: Request; paced: { method: string; units: number } }> {
  server = await startServer((_request, answer) =>
    value === undefined ? void answer.writeHead(204).end() : sendJson(answer, value),
  )
  const paced: { method: string; units: number }[] = []
  const pace: Pace = ({ method, units }, fn) => {
    paced.push({ method, units })
    return fn()
  }
  const result = await run(clientOf(server.url, { pace }))
  assert.equal(server.requests.length, 1)
  assert.equal(paced.length, 1)
  return { result, request: server.requests[0]!, paced: paced[0]! }
}

describe('reading', () => {
  test('a page of ids says what it wants and gets what there is', async () => {
    const value = { messages: [{ id: 'a', threadId: 't' }], nextPageToken: 'n', resultSizeEstimate: 201 }
    const { result, request, paced } = await made(value, (client) =>
      client.listIds({
        query: 'after:1 before:2',
        labelIds: ['A', 'B'],
        includeSpamTrash: true,
        pageToken: 'p+/=',
      }),
    )
    assert.deepEqual(result, { ids: [{ id: 'a', threadId: 't' }], nextPageToken: 'n', estimate: 201 })
    const url = new URL(request.path, 'http://x')
    assert.deepEqual(Object.fromEntries(url.searchParams), {
      q: 'after:1 before:2',
      labelIds: 'B',
      includeSpamTrash: 'true',
      pageToken: 'p+/=',
      maxResults: '500',
    })
    assert.deepEqual(url.searchParams.getAll('labelIds'), ['A', 'B'])
    assert.deepEqual(paced, { method: 'messages.list', units: 5 })
  })

  test('an empty page has no ids', async () => {
    const { result } = await made({ resultSizeEstimate: 0 }, (client) =>
      client.listIds({ includeSpamTrash: false }),
    )
    assert.deepEqual(result, { ids: [], nextPageToken: undefined, estimate: 0 })
  })

  test('a page with an id that is none is damaged', async () => {
    const run = made({ messages: [{ id: '../x', threadId: 't' }] }, (client) =>
      client.listIds({ includeSpamTrash: false }),
    )
    await assert.rejects(run, (error) => error instanceof TidemarkError && error.code === 'damaged-answer')
  })

  test('a page whose token cannot be read is damaged, and not the last one', async () => {
    for (const nextPageToken of [7, { n: 1 }, 'x'.repeat(5_000)]) {
      const run = made({ messages: [], nextPageToken }, (client) =>
        client.listIds({ includeSpamTrash: false }),
      )
      await assert.rejects(run, (error) => error instanceof TidemarkError && error.code === 'damaged-answer')
      await server?.close()
    }
    const { result } = await made({ nextPageToken: '' }, (client) =>
      client.listIds({ includeSpamTrash: false }),
    )
    assert.equal(result.nextPageToken, undefined)
  })

  test('history becomes records in their order', async () => {
    const message = { id: 'a', threadId: 't', labelIds: ['INBOX'] }
    const value = {
      history: [
        { id: '11', messages: [message], messagesAdded: [{ message }] },
        { id: '13', messages: [message], labelsAdded: [{ message, labelIds: ['X'] }] },
        {
          id: '14',
          labelsRemoved: [{ message, labelIds: ['X'] }],
          messagesDeleted: [{ message: { id: 'b' } }],
        },
        { id: '18446744073709551615', messages: [message] },
      ],
      historyId: '18446744073709551615',
    }
    const { result, request, paced } = await made(value, (client) =>
      client.history({ startHistoryId: '10', pageToken: 'p' }),
    )
    const ids = { id: 'a', threadId: 't' }
    const nothing = { added: [], labelsAdded: [], labelsRemoved: [], deleted: [], touched: [] }
    assert.deepEqual(result, {
      records: [
        { ...nothing, id: '11', added: [{ ...ids, labelIds: ['INBOX'] }] },
        { ...nothing, id: '13', labelsAdded: [{ ...ids, labelIds: ['X'] }] },
        {
          ...nothing,
          id: '14',
          labelsRemoved: [{ ...ids, labelIds: ['X'] }],
          deleted: [{ id: 'b', threadId: undefined }],
        },
        { ...nothing, id: '18446744073709551615', touched: [ids] },
      ],
      historyId: '18446744073709551615',
      nextPageToken: undefined,
    })
    assert.equal(request.path, '/gmail/v1/users/me/history?maxResults=500&startHistoryId=10&pageToken=p')
    assert.deepEqual(paced, { method: 'history.list', units: 2 })
  })

  test('an empty page of history may have a next one', async () => {
    const { result } = await made({ historyId: '12', nextPageToken: 'n' }, (client) =>
      client.history({ startHistoryId: '10' }),
    )
    assert.deepEqual(result, { records: [], historyId: '12', nextPageToken: 'n' })
  })

  test('history that has expired is told apart from everything else', async () => {
    server = await startServer((_request, answer) => {
      answer.writeHead(404, { 'content-type': 'application/json' }).end(errorJson(404, 'notFound'))
    })
    await assert.rejects(clientOf(server.url).history({ startHistoryId: '1' }), (error) => {
      return error instanceof TidemarkError && error.code === 'history-expired' && error.kind === 'gone'
    })
  })

  test('one message comes with its bytes', async () => {
    const { result, request, paced } = await made(JSON.parse(messageJson('a')), (client) => client.get('a'))
    assert.equal(Buffer.from(result.raw).toString(), 'Subject: a\r\n\r\n')
    assert.equal(request.path, '/gmail/v1/users/me/messages/a?format=raw')
    assert.deepEqual(paced, { method: 'messages.get', units: 20 })
  })

  test('labels have an id, a name and a type', async () => {
    const labels = [{ id: 'INBOX', name: 'INBOX', type: 'system', color: {} }]
    const { result } = await made({ labels }, (client) => client.labels())
    assert.deepEqual(result, [{ id: 'INBOX', name: 'INBOX', type: 'system' }])
  })
})

describe('writing', () => {
  const ref = { id: 'a', threadId: 't', labelIds: ['X'] }
  const calls: [
    what: string,
    value: unknown,
    run: (client: GmailClient) => Promise<unknown>,
    path: string,
    body: unknown,
    paced: [string, number],
  ][] = [
    [
      'many labels',
      undefined,
      (client) => client.batchModify({ ids: ['a', 'b'], add: ['TRASH'] }),
      '/messages/batchModify',
      { ids: ['a', 'b'], addLabelIds: ['TRASH'], removeLabelIds: [] },
      ['messages.batchModify', 50],
    ],
    [
      'many deletions',
      undefined,
      (client) => client.batchDelete(['a']),
      '/messages/batchDelete',
      { ids: ['a'] },
      ['messages.batchDelete', 50],
    ],
    [
      'labels of one message',
      ref,
      (client) => client.modify({ id: 'a', remove: ['INBOX'] }),
      '/messages/a/modify',
      { addLabelIds: [], removeLabelIds: ['INBOX'] },
      ['messages.modify', 5],
    ],
    [
      'labels of a thread',
      { id: 't', messages: [] },
      (client) => client.modifyThread({ threadId: 't', add: ['X'] }),
      '/threads/t/modify',
      { addLabelIds: ['X'], removeLabelIds: [] },
      ['threads.modify', 10],
    ],
    ['trash', ref, (client) => client.trash('a'), '/messages/a/trash', undefined, ['messages.trash', 20]],
    [
      'untrash',
      ref,
      (client) => client.untrash('a'),
      '/messages/a/untrash',
      undefined,
      ['messages.untrash', 5],
    ],
    [
      'a label',
      { id: 'L1', name: 'Kept' },
      (client) => client.createLabel({ name: 'Kept' }),
      '/labels',
      { name: 'Kept', labelListVisibility: 'labelShow', messageListVisibility: 'show' },
      ['labels.create', 5],
    ],
    [
      'notifications',
      { historyId: '5', expiration: '1700000000000' },
      (client) => client.watch({ topicName: 'projects/p/topics/t', labelIds: ['INBOX'] }),
      '/watch',
      { topicName: 'projects/p/topics/t', labelIds: ['INBOX'], labelFilterBehavior: 'include' },
      ['watch', 100],
    ],
    ['no more notifications', undefined, (client) => client.stop(), '/stop', undefined, ['stop', 50]],
    [
      'a message',
      ref,
      (client) =>
        client.insert({ raw: Buffer.from('A: b\n\n'), labelIds: ['X'], internalMs: 1, threadId: 't' }),
      '/messages?internalDateSource=dateHeader',
      { labelIds: ['X'], threadId: 't', raw: Buffer.from('A: b\n\n').toString('base64url') },
      ['messages.insert', 25],
    ],
  ]
  for (const [what, value, run, path, body, [method, units]] of calls) {
    test(`${what}: one call at its price`, async () => {
      const { request, paced } = await made(value, run)
      assert.equal(`${request.verb} ${request.path}`, `POST /gmail/v1/users/me${path}`)
      assert.deepEqual(request.body === '' ? undefined : JSON.parse(request.body), body)
      assert.deepEqual(paced, { method, units })
    })
  }

  test('a large message goes beside its labels', async () => {
    const raw = Buffer.concat([Buffer.from('A: b\n\ntidemark_upload_0 '), Buffer.alloc(5_000_000, 'x')])
    const { result, request } = await made(ref, (client) =>
      client.insert({ raw, labelIds: ['X'], internalMs: Date.UTC(2020, 0), dating: 'internal' }),
    )
    assert.deepEqual(result, { ...ref, altered: true })
    assert.equal(
      request.path,
      '/upload/gmail/v1/users/me/messages?uploadType=multipart&internalDateSource=dateHeader',
    )
    const boundary = /boundary=(\S+)/.exec(request.headers['content-type'] ?? '')?.[1]
    const [, json, message] = request.body.split(`--${boundary}`)
    assert.match(json ?? '', /\r\n\r\n\{"labelIds":\["X"\]\}\r\n$/)
    assert.match(
      message ?? '',
      /^\r\nContent-Type: message\/rfc822\r\n\r\nDate: Wed, 01 Jan 2020 00:00:00 \+0000\nA: b\n\n/,
    )
    assert.ok(message?.endsWith('xxx\r\n'))
  })

  test('nothing to do is no call', async () => {
    const client = clientOf('http://127.0.0.1:1')
    await client.batchModify({ ids: [], add: ['X'] })
    await client.batchDelete([])
  })

  test('more than a thousand at once, and ids that are none, are refused', async () => {
    const client = clientOf('http://127.0.0.1:1')
    const ids = Array.from({ length: 1_001 }, (_, n) => `${n}`)
    await assert.rejects(client.batchModify({ ids, add: ['X'] }), UsageError)
    await assert.rejects(client.batchDelete(ids), UsageError)
    await assert.rejects(client.get('a/b'), UsageError)
    await assert.rejects(client.modifyThread({ threadId: 'a?b' }), UsageError)
  })
})
