import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { collect, failure, never, type StoreSite, testObjectStore } from '../object-store.suite.ts'
import { type Script, startServer } from '../scripted-server.suite.ts'
import { WebStore } from './client.ts'

type Kept = { bytes: Uint8Array; isDenied: boolean }

/** A plain web server with ranges and etags. */
function serve(kept: Map<string, Kept>, state: { broken?: 'cut' | 'short' }): Script {
  return (request, answer) => {
    const found = kept.get(request.path)
    if (!found) return void answer.writeHead(404).end()
    if (found.isDenied) return void answer.writeHead(403).end()
    const { bytes } = found
    const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? -1)
    if (from >= 0 && from >= bytes.length) {
      return void answer.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end()
    }
    const part = from >= 0 ? bytes.subarray(from) : bytes
    const range = `bytes ${from}-${bytes.length - 1}/${bytes.length}`
    const half = Math.floor(part.length / 2)
    answer.writeHead(from >= 0 ? 206 : 200, {
      etag,
      'content-length': state.broken === 'short' ? half : part.length,
      ...(from >= 0 && { 'content-range': range }),
    })
    if (request.verb === 'HEAD') return void answer.end()
    if (state.broken === undefined) return void answer.end(part)
    answer.write(part.subarray(0, half), () => {
      if (state.broken === 'cut') answer.destroy()
      else answer.end()
    })
  }
}

async function openSite(): Promise<StoreSite> {
  const kept = new Map<string, Kept>()
  const state: { broken?: 'cut' | 'short' } = {}
  const server = await startServer(serve(kept, state))
  const pathOf = (key: string): string => `/${encodeURIComponent(key)}`
  return {
    store: open([server.url]),
    uriOf: (key) => `${server.url}${pathOf(key)}`,
    put: async (key, bytes) => void kept.set(pathOf(key), { bytes, isDenied: false }),
    remove: async (key) => void kept.delete(pathOf(key)),
    deny: async (key) => {
      kept.get(pathOf(key))!.isDenied = true
    },
    breakOff: async (how) => {
      state.broken = how
    },
    mend: async () => {
      delete state.broken
    },
    close: () => server.close(),
  }
}

function open(hosts: readonly string[], addresses: readonly string[] = ['203.0.113.7']): WebStore {
  return new WebStore({ clock: systemClock, hosts, resolve: async () => addresses })
}

testObjectStore({
  name: 'a web server',
  open: openSite,
  canBreakOff: true,
  canList: false,
  canMove: false,
  canTag: false,
})

const whole = { version: null, fromByte: 0, signal: never() }

describe('addresses of the web', () => {
  test('are asked of no host that is not listed, by no redirect either', async () => {
    const inner = await startServer((_, answer) => void answer.writeHead(200, { etag: '"x"' }).end('secret'))
    const outer = await startServer(
      (_, answer) => void answer.writeHead(302, { location: `${inner.url}/` }).end(),
    )
    const store = open([outer.url])
    for (const uri of [
      `${inner.url}/`,
      `${outer.url}/`,
      'ftp://x/y',
      'https://a:b@example.com/',
      'nothing',
    ]) {
      assert.equal((await failure(store.read(uri, whole))).code, 'object-denied', uri)
    }
    assert.deepEqual([outer.requests.length, inner.requests.length], [1, 0])
    const both = open([outer.url, inner.url])
    assert.equal((await collect((await both.read(`${outer.url}/`, whole)).bytes)).toString(), 'secret')
    await outer.close()
    await inner.close()
  })

  test('are asked without TLS only of hosts that are listed so, by no redirect either', async () => {
    const server = await startServer((_, answer) => void answer.writeHead(200, { etag: '"x"' }).end('a'))
    const { host, hostname } = new URL(server.url)
    for (const hosts of [[host], [hostname], [`https://${host}`]]) {
      const error = await failure(open(hosts).read(`${server.url}/`, whole))
      assert.equal(error.code, 'object-denied')
      assert.match(error.message, /listed for https only/)
    }
    assert.equal(server.requests.length, 0)
    const ways = await startServer(
      (_, answer) => void answer.writeHead(302, { location: `${server.url}/` }).end(),
    )
    assert.equal((await failure(open([ways.url, host]).read(`${ways.url}/`, whole))).code, 'object-denied')
    assert.deepEqual([ways.requests.length, server.requests.length], [1, 0])
    await ways.close()
    await server.close()
  })

  test('whose names lead into a network of their own are refused, unless that address is listed', async () => {
    const server = await startServer((_, answer) => void answer.writeHead(200, { etag: '"x"' }).end('a'))
    const port = new URL(server.url).port
    const uri = `http://localhost:${port}/`
    for (const inside of [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '192.168.0.1',
      '::1',
      'fd00::1',
      '::ffff:10.0.0.1',
    ]) {
      const error = await failure(open(['http://localhost'], ['203.0.113.7', inside]).read(uri, whole))
      assert.equal(error.code, 'object-denied', inside)
    }
    assert.equal(server.requests.length, 0)
    const listed = open(['http://localhost', '127.0.0.1'], ['127.0.0.1'])
    assert.equal((await collect((await listed.read(uri, whole)).bytes)).toString(), 'a')
    await server.close()
  })

  test('are read from the address that was checked, also where the name leads elsewhere by then', async () => {
    const reached: string[] = []
    const listen = async (address: string, at: number): Promise<Server> => {
      const server = createServer((request, answer) => {
        reached.push(`${address} ${request.url}`)
        if (request.url === '/away') answer.writeHead(302, { location: '/there' }).end()
        else answer.writeHead(200, { etag: '"x"' }).end(address)
      })
      await once(server.listen(at, address), 'listening')
      return server
    }
    const outside = await listen('127.0.0.2', 0)
    const { port } = outside.address() as AddressInfo
    const inside = await listen('127.0.0.1', port)
    let bound = ['127.0.0.2']
    const hosts = ['http://localhost', '127.0.0.2']
    const store = new WebStore({ clock: systemClock, hosts, resolve: async () => bound })
    try {
      const body = await store.read(`http://localhost:${port}/a`, whole)
      assert.equal((await collect(body.bytes)).toString(), '127.0.0.2')
      outside.once('request', () => {
        bound = ['127.0.0.1']
      })
      const error = await failure(store.read(`http://localhost:${port}/away`, whole))
      assert.equal(error.code, 'object-denied')
      assert.deepEqual(reached, ['127.0.0.2 /a', '127.0.0.2 /away'])
    } finally {
      for (const server of [outside, inside]) server.close().closeAllConnections()
    }
  })

  test('whose name is not found just now are no bad objects: they are asked again later', async () => {
    const store = open(['data.example.com'], [])
    assert.equal((await failure(store.read('https://data.example.com/a', whole))).kind, 'transient')
  })

  test('without an etag are known by time and length, and without those are refused', async () => {
    let modified: string | undefined = 'Tue, 03 Nov 2026 10:00:00 GMT'
    const server = await startServer((_, answer) => {
      answer.writeHead(200, modified === undefined ? {} : { 'last-modified': modified, 'content-length': 3 })
      answer.end('abc')
    })
    const store = open([server.url])
    const uri = `${server.url}/a`
    const first = await store.read(uri, whole)
    await collect(first.bytes)
    assert.equal(first.version.id, `${Date.parse(modified)}-3`)
    // A server without ranges gives all of it again.
    const rest = await store.read(uri, { ...whole, fromByte: 2, version: first.version })
    assert.equal((await collect(rest.bytes)).toString(), 'c')
    modified = 'Tue, 03 Nov 2026 10:00:01 GMT'
    assert.equal(
      (await failure(store.read(uri, { ...whole, version: first.version }))).code,
      'object-replaced',
    )
    modified = undefined
    assert.equal((await failure(store.read(uri, whole))).code, 'object-unversioned')
    await server.close()
  })
})
