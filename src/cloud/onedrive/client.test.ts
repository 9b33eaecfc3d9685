import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { Pace } from '../pace.ts'
import { sendJson } from '../scripted-server.suite.ts'
import { OneDriveClient } from './client.ts'
import { ResyncError } from './errors.ts'
import { cleanUp, clientOf, DRIVE, ITEM, itemJson, scripted, sendError } from './scripted-client.suite.ts'

cleanUp()

async function failure(work: Promise<unknown>): Promise<TidemarkError> {
  const error = await work.then(
    () => assert.fail('It should have failed.'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof TidemarkError, String(error))
  return error
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

describe('a call', () => {
  test('carries the token, and its path is encoded name by name', async () => {
    const { client, server } = await scripted((_request, answer) => sendJson(answer, itemJson()))
    await client.item(DRIVE, ITEM)
    await client.itemByPath(DRIVE, '/a b/é#?%/x+y')
    await client.itemByPath(DRIVE, '/')
    await client.childByName('b!xY', { parentId: 'P', name: 'a:b.txt' })
    assert.deepEqual(
      server.requests.map(({ verb, path }) => `${verb} ${path}`),
      [
        `GET /v1.0/drives/${DRIVE}/items/01AB!7`,
        `GET /v1.0/drives/${DRIVE}/root:/a%20b/%C3%A9%23%3F%25/x%2By`,
        `GET /v1.0/drives/${DRIVE}/root`,
        'GET /v1.0/drives/b!xY/items/P:/a%3Ab.txt',
      ],
    )
    for (const { headers } of server.requests) assert.equal(headers.authorization, 'Bearer token-1')
  })

  test('never leaves the place it is meant for, whatever ids, names and tags hold', async () => {
    const { client, server } = await scripted((_request, answer) => sendJson(answer, itemJson()))
    for (const id of ['', '.', '..', '../me', 'a/b', 'a?b', 'a#b', 'a\r\nb', 'a:b', 'a%2fb']) {
      await assert.rejects(async () => client.item(DRIVE, id), UsageError, id)
      await assert.rejects(async () => client.remove(id, ITEM), UsageError, id)
    }
    for (const name of ['', '.', '..', 'a/b', 'a\\b', 'a\0b', '\ud800']) {
      const target = { parentId: 'P', name }
      await assert.rejects(async () => client.childByName(DRIVE, target), { code: 'invalid-name' })
      await assert.rejects(async () => client.putContent(DRIVE, target, new Uint8Array()), TidemarkError)
      await assert.rejects(async () => client.update(DRIVE, ITEM, { name }), TidemarkError)
      const folder = { ...target, conflict: 'fail' as const }
      await assert.rejects(async () => client.createFolder(DRIVE, folder), TidemarkError)
    }
    await assert.rejects(async () => client.itemByPath(DRIVE, 'a/../b'), TidemarkError)
    await assert.rejects(async () => client.remove(DRIVE, ITEM, { ifMatch: 'a\r\nx: y' }), UsageError)
    assert.equal(server.requests.length, 0)
  })

  test('with a token that was refused is made once more with a new one', async () => {
    const refused: string[] = []
    let number = 1
    const token = {
      access: async () => `token-${number}`,
      refused: (text: string) => {
        refused.push(text)
        number += 1
      },
    }
    const { client, server } = await scripted(
      ({ headers }, answer) => {
        if (headers.authorization === 'Bearer token-2') return sendJson(answer, itemJson())
        sendError(answer, 401, 'InvalidAuthenticationToken')
      },
      { token },
    )
    assert.equal((await client.item(DRIVE, ITEM)).id, ITEM)
    assert.deepEqual([refused, server.requests.length], [['token-1'], 2])
    number = 7
    assert.deepEqual((await failure(client.item(DRIVE, ITEM))).code, 'token-refused')
    assert.deepEqual(refused, ['token-1', 'token-7', 'token-8'])
  })

  test('goes through the pace by its name, and ends with the pace', async () => {
    const seen: string[] = []
    const pace: Pace = async ({ method, units }, fn) => {
      seen.push(`${method} ${units}`)
      return await fn()
    }
    const { client } = await scripted(
      ({ verb }, answer) => {
        if (verb === 'DELETE') return void answer.writeHead(204).end()
        sendJson(answer, itemJson())
      },
      { pace },
    )
    await client.item(DRIVE, ITEM)
    await client.remove(DRIVE, ITEM)
    assert.deepEqual(seen, ['item.get 1', 'item.delete 1'])
    const stopped = new Error('paused')
    const closed = clientOf('http://127.0.0.1:9', { pace: () => Promise.reject(stopped) })
    await assert.rejects(closed.me(), stopped)
  })

  test('whose answer is zipped is read, and a bomb is not', async () => {
    const bomb = gzipSync(Buffer.alloc(70 * 1024 * 1024))
    const { client } = await scripted(({ path, headers }, answer) => {
      assert.equal(headers['accept-encoding'], 'gzip')
      const zipped = path.endsWith('!7') ? gzipSync(JSON.stringify(itemJson())) : bomb
      answer.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(zipped)
    })
    assert.equal((await client.item(DRIVE, ITEM)).name, 'a.txt')
    assert.equal((await failure(client.item(DRIVE, 'bomb'))).code, 'answer-too-large')
  })

  test('that is answered by something else than OneDrive may be tried again', async () => {
    const answers: Record<string, [status: number, type: string, body: string]> = {
      page: [200, 'text/html', '<html>'],
      broken: [200, 'application/json', '{"id":'],
      other: [200, 'application/json', '{"hello":1}'],
      empty: [200, 'application/json', ''],
      lost: [404, 'text/html', '<html>'],
    }
    const { client } = await scripted(({ path }, answer) => {
      const [status, type, body] = answers[path.split('/').at(-1)!]!
      answer.writeHead(status, { 'content-type': type }).end(body)
    })
    const codes = ['wrong-content-type', 'damaged-answer', 'damaged-answer', 'cut-short', 'not-onedrive']
    for (const [at, id] of Object.keys(answers).entries()) {
      const error = await failure(client.item(DRIVE, id))
      assert.deepEqual([error.kind, error.code], ['transient', codes[at]], id)
    }
  })

  test('that hears nothing ends in time, and one that is aborted ends at once', async () => {
    const { client } = await scripted(() => undefined, { timeoutMs: 50 })
    const error = await failure(client.me())
    assert.deepEqual([error.kind, error.code], ['transient', 'timeout'])
    const { client: patient } = await scripted(() => undefined)
    const stop = new AbortController()
    const reason = new Error('enough')
    const asked = patient.me({ signal: stop.signal })
    stop.abort(reason)
    await assert.rejects(asked, reason)
  })

  test('to nowhere is a failed connection', async () => {
    const error = await failure(clientOf('http://127.0.0.1:9').me())
    assert.deepEqual([error.kind, error.code], ['transient', 'connection-failed'])
    assert.throws(() => new OneDriveClient({ apiUrl: 'graph' } as never), UsageError)
  })

  test('about something that was just made looks again where it is told to', async () => {
    let left = 2
    const { client, server } = await scripted((_request, answer) => {
      left -= 1
      if (left >= 0) return sendError(answer, 404, 'itemNotFound')
      sendJson(answer, itemJson())
    })
    assert.equal((await client.item(DRIVE, ITEM, { missingTries: 3 })).id, ITEM)
    assert.equal(server.requests.length, 3)
    left = 1
    assert.deepEqual((await failure(client.item(DRIVE, ITEM))).code, 'not-found')
    assert.equal(server.requests.length, 4)
  })
})

describe('listings', () => {
  test('follow their pages, which stay with OneDrive', async () => {
    let foreign = ''
    const { client, server } = await scripted(({ path, headers }, answer) => {
      const next = `http://${foreign || headers.host}/v1.0/more?page=2`
      if (path.startsWith('/v1.0/more')) return sendJson(answer, { value: [itemJson({ id: 'B' })] })
      sendJson(answer, { value: [itemJson({ id: 'A' })], '@odata.nextLink': next })
    })
    const found = await all(client.children(DRIVE, ITEM))
    assert.deepEqual(
      found.map(({ id }) => id),
      ['A', 'B'],
    )
    assert.match(server.requests[0]!.path, /\/items\/01AB!7\/children\?\$top=200$/)
    foreign = 'evil.example'
    assert.equal((await failure(all(client.children(DRIVE, ITEM)))).code, 'strange-address')
  })

  test('give items that know their drive', async () => {
    const { client } = await scripted((_request, answer) =>
      sendJson(answer, {
        value: [{ id: 'A', deleted: {} }, itemJson({ parentReference: { driveId: 'ABC', id: 'P' } })],
        '@odata.deltaLink': 'http://x/',
      }),
    )
    const { items } = await client.delta('0ABC')
    assert.deepEqual(
      items.map(({ driveId }) => driveId),
      ['0000000000000abc', '0000000000000abc'],
    )
  })

  test('have true names though the service encodes them', async () => {
    const { client, server } = await scripted(({ path }, answer) => {
      if (path.includes('/items/')) return sendJson(answer, itemJson({ name: 'a b.txt' }))
      const value = [itemJson({ name: 'a%20b.txt' }), itemJson({ id: 'C', name: '%C3%A9' })]
      sendJson(answer, { value, '@odata.deltaLink': 'http://x/' })
    })
    const { items } = await client.delta(DRIVE)
    assert.deepEqual(
      items.map(({ name }) => name),
      ['a b.txt', 'é'],
    )
    assert.equal(server.requests.length, 2)
  })
})

describe('delta', () => {
  test('begins, goes on from a link and from now', async () => {
    const { client, server } = await scripted(({ path, headers }, answer) => {
      const link = `http://${headers.host}/v1.0/drives/1/root/delta(token='a%2Fb')?x=1`
      const key = path.includes('latest') ? '@odata.deltaLink' : '@odata.nextLink'
      sendJson(answer, { value: [], [key]: link })
    })
    const first = await client.delta(DRIVE, { pageSize: 1_000 })
    assert.ok(first.nextLink && !first.deltaLink)
    await client.delta(DRIVE, { link: first.nextLink })
    assert.ok((await client.delta(DRIVE, { latest: true })).deltaLink)
    assert.deepEqual(
      server.requests.map(({ path }) => path),
      [
        `/v1.0/drives/${DRIVE}/root/delta?$top=1000`,
        "/v1.0/drives/1/root/delta(token='a%2Fb')?x=1",
        `/v1.0/drives/${DRIVE}/root/delta?token=latest`,
      ],
    )
  })

  test('sends no token after a link that leads elsewhere', async () => {
    const { client, server } = await scripted((_request, answer) => sendJson(answer, { value: [] }))
    const links = [
      'https://evil.example/v1.0/delta',
      `${server.url}/beta/delta`,
      `${server.url.replace('http:', 'https:')}/v1.0/delta`,
      'file:///etc/passwd',
      'nonsense',
      '',
    ]
    for (const link of links) {
      assert.equal((await failure(client.delta(DRIVE, { link }))).code, 'strange-address', link)
    }
    assert.equal(server.requests.length, 0)
  })

  test('says resync with the place to begin anew', async () => {
    const location = 'http://127.0.0.1/v1.0/drives/1/root/delta?token=new'
    const { client } = await scripted((_request, answer) => {
      answer.writeHead(410, { location, 'content-type': 'application/json' })
      answer.end(JSON.stringify({ error: { code: 'resyncChangesUploadDifferences', message: 'Again' } }))
    })
    const error = await failure(client.delta(DRIVE))
    assert.ok(error instanceof ResyncError)
    assert.deepEqual([error.code, error.location, error.differences], ['resync', location, 'upload'])
  })
})

describe('a new folder', () => {
  test('whose answer says nothing is read by its name', async () => {
    let missing = 1
    const { client, server } = await scripted(({ verb }, answer) => {
      if (verb === 'POST') return void answer.writeHead(201).end()
      if (missing-- > 0) return sendError(answer, 404, 'itemNotFound')
      sendJson(answer, itemJson({ name: 'new', file: undefined, folder: {} }))
    })
    const folder = await client.createFolder(DRIVE, { parentId: 'P', name: 'new', conflict: 'fail' })
    assert.deepEqual([folder.id, folder.type], [ITEM, 'folder'])
    assert.deepEqual(JSON.parse(server.requests[0]!.body), {
      name: 'new',
      folder: {},
      '@microsoft.graph.conflictBehavior': 'fail',
    })
    const renamed = client.createFolder(DRIVE, { parentId: 'P', name: 'new', conflict: 'rename' })
    assert.equal((await failure(renamed)).code, 'cut-short')
  })
})

describe('changes', () => {
  test('say only what changes, and of which version', async () => {
    const { client, server } = await scripted(({ verb }, answer) => {
      if (verb === 'DELETE') return void answer.writeHead(204).end()
      sendJson(answer, itemJson())
    })
    await client.update(DRIVE, ITEM, { name: 'b', parentId: 'Q' }, { ifMatch: '"{1},2"' })
    await client.update(DRIVE, ITEM, { modifiedMs: 1_700_000_000_123 })
    await client.remove(DRIVE, ITEM, { ifMatch: 'aX.1' })
    await client.restore(DRIVE, ITEM, { parentId: 'Q' })
    const [move, touch, removal, restore] = server.requests
    assert.deepEqual(JSON.parse(move!.body), { name: 'b', parentReference: { id: 'Q' } })
    assert.equal(move!.headers['if-match'], '"{1},2"')
    assert.deepEqual(JSON.parse(touch!.body), {
      fileSystemInfo: { lastModifiedDateTime: '2023-11-14T22:13:20.123Z' },
    })
    assert.equal(touch!.headers['if-match'], undefined)
    assert.deepEqual([removal!.verb, removal!.headers['if-match']], ['DELETE', 'aX.1'])
    assert.match(restore!.path, /\/restore$/)
  })

  test('a copy is followed at its monitor, without a token', async () => {
    const { client, server } = await scripted(({ path, headers }, answer) => {
      if (path === '/monitor/1') {
        return sendJson(answer, { status: 'completed', percentageComplete: 100, resourceId: 'NEW' })
      }
      answer.writeHead(202, { location: `http://${headers.host}/monitor/1` }).end()
    })
    const { monitorUrl } = await client.copy(DRIVE, ITEM, { driveId: DRIVE, parentId: 'P' })
    assert.deepEqual(await client.copyState(monitorUrl), { state: 'done', percent: 100, itemId: 'NEW' })
    assert.equal(server.requests[1]!.headers.authorization, undefined)
  })

  test('subscriptions are made, renewed and ended', async () => {
    const { client, server } = await scripted(({ verb }, answer) => {
      if (verb === 'DELETE') return void answer.writeHead(204).end()
      sendJson(answer, { id: 'S-1', expirationDateTime: '2026-02-01T00:00:00Z' })
    })
    const expiresAtMs = Date.UTC(2026, 1, 1)
    const made = await client.createSubscription(DRIVE, {
      notificationUrl: 'https://x.example/',
      expiresAtMs,
    })
    assert.deepEqual(made, { id: 'S-1', expiresAtMs })
    await client.renewSubscription('S-1', { expiresAtMs })
    await client.removeSubscription('S-1')
    assert.deepEqual(
      server.requests.map(({ verb, path }) => `${verb} ${path}`),
      ['POST /v1.0/subscriptions', 'PATCH /v1.0/subscriptions/S-1', 'DELETE /v1.0/subscriptions/S-1'],
    )
  })
})
