import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, test } from 'node:test'
import { createHttpExchange, type HttpAnswer, type HttpRequest } from './http-exchange.ts'

const MIB = 1024 * 1024
const exchange = createHttpExchange()
let server: Server | undefined

async function serve(answer: (request: IncomingMessage, answer: ServerResponse) => void): Promise<string> {
  server = createServer(answer)
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function ask(url: string, more: Partial<HttpRequest> = {}): Promise<HttpAnswer> {
  return exchange({ method: 'GET', url, headers: {}, signal: new AbortController().signal, ...more })
}

async function textOf({ body }: HttpAnswer): Promise<string> {
  let text = ''
  for await (const chunk of body) text += chunk
  return text
}

async function countOf(incoming: IncomingMessage): Promise<number> {
  let bytes = 0
  for await (const chunk of incoming) bytes += (chunk as Buffer).length
  return bytes
}

describe('an exchange', () => {
  afterEach(async () => {
    exchange.close()
    server?.closeAllConnections()
    await new Promise((resolve) => server?.close(resolve))
  })

  test('sends what it was given and nothing else, and follows nothing', async () => {
    let heads: IncomingMessage['headers'] = {}
    const url = await serve((request, answer) => {
      heads = request.headers
      answer.writeHead(302, { location: '/elsewhere', 'x-one': 'a' }).end('there')
    })
    const answer = await ask(url, { headers: { 'x-two': 'b' } })
    assert.deepEqual([answer.status, answer.headers.get('location')], [302, '/elsewhere'])
    assert.deepEqual([answer.headers.get('x-one'), answer.headers.get('x-three')], ['a', null])
    assert.equal(await textOf(answer), 'there')
    assert.deepEqual(Object.keys(heads).sort(), ['connection', 'host', 'x-two'])
  })

  test('asks for what an address says, however odd it is, the first time and later', async () => {
    const seen: string[] = []
    const url = await serve((request, answer) => {
      seen.push(`${request.headers.host} ${request.url}`)
      answer.end()
    })
    const { origin, host, port } = new URL(url)
    const odd: [address: string, path: string][] = [
      [`${origin}/plain?a=/b`, '/plain?a=/b'],
      [`${origin}?a=/b`, '/?a=/b'],
      [`${origin}/a b/日本`, '/a%20b/%E6%97%A5%E6%9C%AC'],
      [`${origin}/x/../y/%2E%2e/z#part`, '/z'],
      [`${origin}\\@elsewhere.test/p`, '/@elsewhere.test/p'],
      [`http://elsewhere.test:1@127.0.0.1:${port}/p`, '/p'],
    ]
    for (const [address] of [...odd, ...odd]) await textOf(await ask(address))
    const expected = odd.map(([, path]) => `${host} ${path}`)
    assert.deepEqual(seen, [...expected, ...expected])
    await assert.rejects(ask(`ftp://${host}/x`), TypeError)
  })

  test('keeps connections', async () => {
    const ports = new Set<number>()
    const url = await serve((request, answer) => {
      ports.add(request.socket.remotePort!)
      request.resume().on('end', () => answer.end('x'))
    })
    for (let i = 0; i < 5; i++) await textOf(await ask(url, { method: 'PUT', body: 'abc' }))
    assert.equal(ports.size, 1)
  })

  test('sends bytes, text and streams whole, with their length', async () => {
    const url = await serve(async (request, answer) => {
      const declared = request.headers['content-length']
      answer.end(`${declared} ${await countOf(request)}`)
    })
    let sent = 0
    const onSent = (): void => {
      sent += 1
    }
    const put = async (body: HttpRequest['body'], bodyBytes?: number): Promise<string> =>
      textOf(await ask(url, { method: 'PUT', body, bodyBytes, onSent }))
    assert.equal(await put('é'), '2 2')
    assert.equal(await put(new Uint8Array(5 * MIB + 3)), `${5 * MIB + 3} ${5 * MIB + 3}`)
    assert.ok(sent >= 5, `${sent} times`)
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 40; i++) yield new Uint8Array(100_000)
    }
    assert.equal(await put(pieces(), 4_000_000), '4000000 4000000')
    assert.equal(await put(undefined), '0 0')
  })

  test('is done with a piece of a stream when it asks for the next, however slow the other side is', async () => {
    const PIECES = 300
    const url = await serve(async (request, answer) => {
      let isRight = true
      let at = 0
      for await (const chunk of request as AsyncIterable<Buffer>) {
        for (const byte of chunk) isRight &&= byte === Math.floor(at++ / 20_000) % 251
        await new Promise((resolve) => setImmediate(resolve))
      }
      answer.end(`${isRight} ${at}`)
    })
    async function* pieces(): AsyncGenerator<Uint8Array> {
      const memory = new Uint8Array(20_000)
      for (let i = 0; i < PIECES; i++) yield memory.fill(i % 251)
    }
    const bodyBytes = PIECES * 20_000
    const answer = await ask(url, { method: 'PUT', body: pieces(), bodyBytes })
    assert.equal(await textOf(answer), `true ${bodyBytes}`)
  })

  test('reads no more of a source than the other side takes', async () => {
    let go: (() => void) | undefined
    const url = await serve((request, answer) => {
      // Nothing is read until told.
      go = () => void countOf(request).then((bytes) => answer.end(String(bytes)))
    })
    let given = 0
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (; given < 64; given++) yield new Uint8Array(MIB)
    }
    const answer = ask(url, { method: 'PUT', body: pieces(), bodyBytes: 64 * MIB })
    let before = -1
    while (!go || before !== given) {
      before = given
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    assert.ok(given < 48, `${given} MiB were read`)
    go()
    assert.equal(await textOf(await answer), String(64 * MIB))
  })

  test('stops sending when the answer is there before the body', async () => {
    const ended = Promise.withResolvers<void>()
    const url = await serve((request, answer) => {
      request.socket.on('close', () => ended.resolve())
      answer.writeHead(507).end('full')
    })
    let given = 0
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (; given < 4_000; given++) yield new Uint8Array(MIB)
    }
    const answer = await ask(url, { method: 'PUT', body: pieces(), bodyBytes: 4_000 * MIB })
    assert.equal(answer.status, 507)
    assert.equal(await textOf(answer), 'full')
    assert.ok(given < 4_000)
    await ended.promise
  })

  test('ends with the error of its source', async () => {
    const url = await serve((request) => request.on('error', () => undefined).resume())
    // biome-ignore lint/correctness/useYield: it fails before it gives anything.
    async function* broken(): AsyncGenerator<Uint8Array> {
      throw new Error('the disk is gone')
    }
    await assert.rejects(ask(url, { method: 'PUT', body: broken(), bodyBytes: 9 }), /the disk is gone/)
  })

  test('an abort ends it with its reason, before and during the answer', async () => {
    let closed = 0
    const url = await serve((request, answer) => {
      request.socket.on('close', () => {
        closed += 1
      })
      if (request.url === '/begun') answer.write('x')
    })
    const reason = new Error('enough')
    const silent = new AbortController()
    const asked = ask(url, { signal: silent.signal })
    silent.abort(reason)
    await assert.rejects(asked, reason)
    const begun = new AbortController()
    const answer = await ask(`${url}begun`, { signal: begun.signal })
    begun.abort(reason)
    await assert.rejects(textOf(answer))
    await assert.rejects(ask(url, { signal: AbortSignal.abort(reason) }), reason)
    while (closed === 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('a kept connection that the server has closed is replaced, unless the call changes something', async () => {
    let calls = 0
    const url = await serve((request, answer) => {
      calls += 1
      request.resume()
      // Every second call finds its connection dead.
      if (calls % 2 === 0) request.socket.destroy()
      else answer.end('x')
    })
    await textOf(await ask(url))
    await textOf(await ask(url))
    assert.equal(calls, 3)
    await assert.rejects(ask(url, { method: 'PUT', body: 'once' }), { code: 'ECONNRESET' })
    assert.equal(calls, 4)
  })

  test('a body that breaks off is an error, not an end', async () => {
    const url = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-length': '100' })
      answer.write('only this', () => answer.destroy())
    })
    await assert.rejects(textOf(await ask(url)), { code: 'ECONNRESET' })
  })
})
