import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { sendJson } from '../scripted-server.suite.ts'
import { FRAGMENT_BYTES_MAX, FRAGMENT_STEP_BYTES, type UploadSession } from './client.ts'
import { cleanUp, clientOf, DRIVE, ITEM, itemJson, scripted, sendError } from './scripted-client.suite.ts'

cleanUp()

const STEP = FRAGMENT_STEP_BYTES
const EXPIRES = '2026-05-01T00:00:00Z'

function codeOf(code: string): (error: unknown) => boolean {
  return (error) => error instanceof TidemarkError && error.code === code
}

function bytes(length: number, fill = 7): Uint8Array {
  return new Uint8Array(length).fill(fill)
}

async function* pieces(...lengths: number[]): AsyncGenerator<Uint8Array> {
  for (const length of lengths) yield bytes(length)
}

describe('a small upload', () => {
  test('is one call, new or in place of what is there', async () => {
    const { client, server } = await scripted((_request, answer) => sendJson(answer, itemJson(), 201))
    const body = Buffer.from('hello')
    await client.putContent(DRIVE, { parentId: 'P', name: 'ä.txt' }, body, { conflict: 'fail' })
    await client.putContent(DRIVE, { itemId: ITEM }, body, { ifMatch: '"c:{1},2"' })
    await client.putContent(DRIVE, { itemId: ITEM }, new Uint8Array())
    const [made, replaced, emptied] = server.requests
    assert.equal(
      `${made!.verb} ${made!.path}`,
      `PUT /v1.0/drives/${DRIVE}/items/P:/%C3%A4.txt:/content?@microsoft.graph.conflictBehavior=fail`,
    )
    assert.equal(made!.body, 'hello')
    assert.equal(replaced!.path, `/v1.0/drives/${DRIVE}/items/${ITEM}/content`)
    assert.equal(replaced!.headers['if-match'], '"c:{1},2"')
    assert.equal(emptied!.headers['content-length'], '0')
  })

  const refusals: [status: number, said: string, code: string][] = [
    [409, 'nameAlreadyExists', 'exists'],
    [412, 'resourceModified', 'precondition-failed'],
    [423, 'resourceLocked', 'locked'],
    [507, 'quotaLimitReached', 'quota-full'],
  ]
  for (const [status, said, code] of refusals) {
    test(`that is refused with ${status} says ${code}`, async () => {
      const { client } = await scripted((_request, answer) => sendError(answer, status, said))
      await assert.rejects(client.putContent(DRIVE, { itemId: ITEM }, bytes(9)), codeOf(code))
    })
  }
})

describe('a session', () => {
  const target = { parentId: 'P', name: 'big.bin' }

  test('is created with a name, a time and what to do about another of that name', async () => {
    const { client, server } = await scripted(({ headers }, answer) =>
      sendJson(answer, { uploadUrl: `http://${headers.host}/up/1`, expirationDateTime: EXPIRES }),
    )
    const options = { conflict: 'fail', modifiedMs: 1_700_000_000_000, size: 9 } as const
    const session = await client.createUploadSession(DRIVE, target, options)
    assert.deepEqual(session, { url: `${server.url}/up/1`, expiresAtMs: Date.parse(EXPIRES) })
    const [request] = server.requests
    assert.equal(request!.path, `/v1.0/drives/${DRIVE}/items/P:/big.bin:/createUploadSession`)
    assert.deepEqual(JSON.parse(request!.body), {
      item: {
        '@microsoft.graph.conflictBehavior': 'fail',
        name: 'big.bin',
        fileSystemInfo: { lastModifiedDateTime: '2023-11-14T22:13:20.000Z' },
      },
    })
    for (const size of [0, -1, 1.5, 2 ** 50]) {
      await assert.rejects(client.createUploadSession(DRIVE, target, { ...options, size }), UsageError)
    }
  })

  test('of an address that could be anybody’s is refused', async () => {
    let uploadUrl = ''
    const { client } = await scripted((_request, answer) => sendJson(answer, { uploadUrl }))
    for (uploadUrl of ['http://evil.example/up', 'ftp://x/', 'up/1', 'https://user:pass@x.example/']) {
      const asked = client.createUploadSession(DRIVE, target, { conflict: 'fail', size: 1 })
      await assert.rejects(asked, codeOf('strange-address'), uploadUrl)
      const put = client.uploadFragment(uploadUrl, { offset: 0, total: 1, length: 1, body: bytes(1) })
      await assert.rejects(put, codeOf('strange-address'), uploadUrl)
    }
    uploadUrl = 'https://host.sharepoint.example/up'
    const { url } = await client.createUploadSession(DRIVE, target, { conflict: 'fail', size: 1 })
    assert.equal(url, uploadUrl)
  })

  test('that refuses a tag which still holds is created without it; one that does not is refused', async () => {
    const { client, server } = await scripted(({ verb, headers }, answer) => {
      if (verb === 'GET') return sendJson(answer, itemJson())
      if (headers['if-match']) return sendError(answer, 412, 'resourceModified')
      sendJson(answer, { uploadUrl: `http://${headers.host}/up/1`, expirationDateTime: EXPIRES })
    })
    const session = (ifMatch: string): Promise<UploadSession> =>
      client.createUploadSession(DRIVE, { itemId: ITEM }, { conflict: 'replace', size: 9, ifMatch })
    assert.match((await session('"{1},2"')).url, /\/up\/1$/)
    assert.deepEqual(
      server.requests.map(({ verb }) => verb),
      ['POST', 'GET', 'POST'],
    )
    await assert.rejects(session('"{1},1"'), codeOf('precondition-failed'))
    assert.equal(server.requests.length, 5)
  })
})

describe('a fragment', () => {
  test('has its range and no token, and says where to go on', async () => {
    const total = 2 * STEP + 5
    const { client, server } = await scripted(({ headers }, answer) => {
      const end = Number(/-(\d+)\//.exec(headers['content-range']!)![1]) + 1
      if (end === total) return sendJson(answer, itemJson(), 201)
      sendJson(answer, { nextExpectedRanges: [`${end}-`], expirationDateTime: EXPIRES }, 202)
    })
    const url = `${server.url}/up/1`
    const first = await client.uploadFragment(url, { offset: 0, total, length: STEP, body: bytes(STEP) })
    assert.deepEqual(first, { nextOffset: STEP, expiresAtMs: Date.parse(EXPIRES) })
    const streamed = { offset: STEP, total, length: STEP, body: ReadableStream.from(pieces(1, STEP - 1)) }
    await client.uploadFragment(url, streamed)
    const last = { offset: 2 * STEP, total, length: 5, body: pieces(5) }
    const done = await client.uploadFragment(url, last)
    assert.ok('item' in done && done.item.id === ITEM)
    assert.deepEqual(
      server.requests.map(({ headers, bytes: sent }) => [headers['content-range'], sent.length]),
      [
        [`bytes 0-${STEP - 1}/${total}`, STEP],
        [`bytes ${STEP}-${2 * STEP - 1}/${total}`, STEP],
        [`bytes ${2 * STEP}-${total - 1}/${total}`, 5],
      ],
    )
    for (const { headers } of server.requests) assert.equal(headers.authorization, undefined)
  })

  test('of a size that OneDrive would refuse is not sent', async () => {
    const client = clientOf('http://127.0.0.1:9')
    const wrong = [
      { offset: 0, total: 100, length: 99 },
      { offset: 0, total: 10 * STEP, length: STEP + 1 },
      { offset: 0, total: 2 ** 40, length: FRAGMENT_BYTES_MAX + STEP },
      { offset: 90, total: 100, length: 11 },
      { offset: -1, total: 100, length: 101 },
      { offset: 0, total: 0, length: 0 },
    ]
    for (const range of wrong) {
      const put = client.uploadFragment('http://127.0.0.1:9/up', { ...range, body: pieces() })
      await assert.rejects(put, UsageError, JSON.stringify(range))
    }
    const short = { offset: 0, total: 9, length: 9, body: bytes(8) }
    await assert.rejects(client.uploadFragment('http://127.0.0.1:9/up', short), UsageError)
  })

  test('whose source has other bytes than announced, or fails, is never whole', async () => {
    const { client, server } = await scripted((_request, answer) => sendJson(answer, itemJson()))
    const put = (body: AsyncIterable<Uint8Array>): Promise<unknown> =>
      client.uploadFragment(`${server.url}/up`, { offset: 0, total: 100, length: 100, body })
    await assert.rejects(put(pieces(60, 39)), codeOf('file-changed'))
    await assert.rejects(put(pieces(60, 41)), codeOf('file-changed'))
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield bytes(5)
      throw new Error('EIO')
    }
    await assert.rejects(put(broken()), codeOf('file-unreadable'))
    assert.equal(server.requests.length, 0)
  })

  const refusals: [status: number, said: string, code: string][] = [
    [416, 'invalidRange', 'range'],
    [404, 'itemNotFound', 'session-gone'],
    [409, 'nameAlreadyExists', 'exists'],
    [507, 'quotaLimitReached', 'quota-full'],
    [503, 'serviceNotAvailable', 'server-error'],
    [429, 'activityLimitReached', 'rate-limit'],
    [308, 'moved', 'not-onedrive'],
  ]
  for (const [status, said, code] of refusals) {
    test(`that is refused with ${status} says ${code}`, async () => {
      const { client, server } = await scripted((_request, answer) => sendError(answer, status, said))
      const put = client.uploadFragment(`${server.url}/up`, {
        offset: 0,
        total: 5,
        length: 5,
        body: bytes(5),
      })
      await assert.rejects(put, codeOf(code))
    })
  }

  test('draws its bytes before it sends them, and stops when it is stopped', async () => {
    const stop = new AbortController()
    const reason = new Error('enough')
    let drawn = 0
    const { client, server } = await scripted((_request, answer) => sendJson(answer, itemJson()), {
      spendBytes: async (direction, count) => {
        assert.equal(direction, 'up')
        drawn += count
        if (drawn > 5 * STEP) stop.abort(reason)
      },
    })
    const url = `${server.url}/up`
    await client.uploadFragment(url, { offset: 0, total: STEP, length: STEP, body: bytes(STEP) })
    assert.equal(drawn, STEP)
    const long = { offset: 0, total: 20 * STEP, length: 20 * STEP, body: bytes(20 * STEP) }
    await assert.rejects(client.uploadFragment(url, { ...long, signal: stop.signal }), reason)
    assert.ok(drawn < 20 * STEP)
  })

  test('may come slowly from its source, which is not the silence of the service', async () => {
    const { client, server } = await scripted((_request, answer) => sendJson(answer, itemJson()), {
      timeoutMs: 1_000,
    })
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield bytes(10)
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      yield bytes(10)
    }
    const put = client.uploadFragment(`${server.url}/up`, { offset: 0, total: 20, length: 20, body: slow() })
    assert.ok('item' in (await put))
  })

  test('of which nothing is taken any more ends in time', async () => {
    const { client, server } = await scripted(() => undefined, { timeoutMs: 300 })
    const length = 4 * STEP
    const put = client.uploadFragment(`${server.url}/up`, {
      offset: 0,
      total: length,
      length,
      body: pieces(length),
    })
    await assert.rejects(put, codeOf('timeout'))
  })
})

describe('the state of a session', () => {
  test('is asked without a token; one that has ended is cancelled already', async () => {
    const { client, server } = await scripted(({ verb }, answer) => {
      if (verb === 'DELETE') return sendError(answer, 404, 'itemNotFound')
      sendJson(answer, { nextExpectedRanges: ['655360-'], expirationDateTime: EXPIRES })
    })
    const url = `${server.url}/up/1`
    assert.deepEqual(await client.uploadStatus(url), {
      nextOffset: 655_360,
      expiresAtMs: Date.parse(EXPIRES),
    })
    await client.cancelUpload(url)
    for (const { headers } of server.requests) assert.equal(headers.authorization, undefined)
  })
})
