import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { checkedAddresses, type PinnedFetch, pinnedFetch } from '../../../../base/pinned-fetch.ts'
import { type ActionGrant, checkAction } from '../../guard/actions.ts'
import { agentProfile } from '../profiles.ts'
import { ToolRefusal } from '../tool.ts'
import { httpGet } from './http-get.ts'

const PUBLIC = '93.184.216.34'

type Answer = Response | (() => Response | Promise<Response>)

/** By address; what is not there is not to be asked. */
function web(
  pages: Record<string, Answer>,
  options: { addresses?: (host: string) => Promise<readonly string[]>; fetch?: PinnedFetch } = {},
) {
  const { addresses = async () => [PUBLIC] } = options
  const { http } = agentProfile.parse({
    name: 'a',
    http: [
      { host: 'api.example.com', paths: ['/orders/', '/status'], queries: ['/status'] },
      { host: 'cdn.example.com', paths: ['/'] },
    ],
  })
  const grant: ActionGrant = {
    tools: ['http_get'],
    labels: [],
    http,
    sendTo: [],
    threadIds: new Set(),
    mcpTools: new Set(),
  }
  const asked: { url: string; init: RequestInit }[] = []
  const tool = httpGet({
    grant,
    // As the connection does it: looked up, checked, and then asked.
    web: async (url, init) => {
      if (options.fetch) return options.fetch(url, init)
      await checkedAddresses(new URL(url).hostname, { resolve: addresses })
      asked.push({ url, init })
      const page = pages[url]
      if (page === undefined) throw new Error(`nobody answers at ${url}`)
      return typeof page === 'function' ? page() : page
    },
  })
  /** As a run does it: checked first. */
  const get = async (url: string): Promise<string> => {
    const check = checkAction({ name: 'http_get', input: { url } }, grant)
    if (!check.isAllowed) return `refused: ${check.code}`
    const signal = new AbortController().signal
    try {
      const { text, quote } = await tool.run(check.action, { run: 1, key: 'k', context: [], signal })
      return `${text} ${quote}`
    } catch (thrown) {
      if (thrown instanceof ToolRefusal) return `refused: ${thrown.code}`
      throw thrown
    }
  }
  return { get, asked, tool }
}

function page(text: string, type = 'text/plain'): Response {
  return new Response(text, { headers: { 'content-type': type } })
}

function redirect(to: string, status = 302): Response {
  return new Response(null, { status, headers: { location: to } })
}

describe('reading the web', () => {
  test('gives the text of a page that the profile allows, asked for without cookies, body or redirects', async () => {
    const { get, asked } = web({
      'https://api.example.com/orders/7': page('{"state":"sent"}', 'application/json'),
    })
    assert.equal(await get('https://api.example.com/orders/7'), 'Status 200. {"state":"sent"}')
    const { method, redirect: follows, credentials, body } = asked[0]!.init
    assert.deepEqual([method, follows, credentials, body], ['GET', 'manual', 'omit', undefined])
  })

  test('asks nothing of any other address, however it is written', async () => {
    const { get, asked } = web({})
    const refused = [
      'http://api.example.com/orders/7',
      'https://169.254.169.254/latest/meta-data/',
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://0x7f.1/',
      'https://[::1]/',
      'https://[::ffff:169.254.169.254]/',
      'https://localhost/',
      'https://api.example.com:8443/orders/7',
      'https://api.example.com.evil.example/orders/7',
      'https://api.example.com@evil.example/orders/7',
      'https://user:pw@api.example.com/orders/7',
      'https://evil.example/?x=https://api.example.com/orders/7',
      'https://evil.example#@api.example.com/orders/7',
      'https://api.example.com/admin',
      'https://api.example.com/ordersX',
      'https://api.example.com/status/x',
      'https://api.example.com/orders/../admin',
      'https://api.example.com/orders/%2e%2e/admin',
      'https://api.example.com/orders/..%2fadmin',
      'https://api.example.com/orders/7?leak=secret',
      'https://cdn.example.com/?leak=secret',
      'file:///etc/passwd',
      'data:text/plain,x',
      'ftp://api.example.com/orders/7',
      '//api.example.com/orders/7',
      'no address',
      '',
    ]
    for (const url of refused) assert.match(await get(url), /^refused: /, url)
    assert.deepEqual(asked, [])
  })

  test('lets a query out only with the very path that the profile names for it', async () => {
    const { get } = web({ 'https://api.example.com/status?id=7': page('ok') })
    assert.equal(await get('https://api.example.com/status?id=7'), 'Status 200. ok')
  })

  test('follows redirects to what the profile allows, and to nothing else', async () => {
    const good = web({
      'https://api.example.com/orders/7': redirect('/orders/8'),
      'https://api.example.com/orders/8': redirect('https://cdn.example.com/8.txt'),
      'https://cdn.example.com/8.txt': page('here'),
    })
    assert.equal(await good.get('https://api.example.com/orders/7'), 'Status 200. here')
    const bad = [
      'http://api.example.com/orders/8',
      'https://169.254.169.254/latest/meta-data/',
      'https://evil.example/',
      '//evil.example/orders/',
      'https://api.example.com/admin',
      '/orders/8?session=1',
      'https://u:p@api.example.com/orders/8',
      'javascript:alert(1)',
      'http://[',
    ]
    for (const to of bad) {
      const { get, asked } = web({ 'https://api.example.com/orders/7': redirect(to, 307) })
      assert.match(await get('https://api.example.com/orders/7'), /^refused: /, to)
      assert.equal(asked.length, 1, to)
    }
  })

  test('does not go round for ever', async () => {
    const { get, asked } = web({
      'https://api.example.com/orders/7': () => redirect('/orders/8'),
      'https://api.example.com/orders/8': () => redirect('/orders/7'),
    })
    assert.equal(await get('https://api.example.com/orders/7'), 'refused: redirects')
    assert.equal(asked.length, 4)
  })

  test('asks nothing of a host that leads into a network, in any way of writing its address', async () => {
    const inside = [
      '127.0.0.1',
      '10.1.2.3',
      '172.16.0.1',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '0.0.0.0',
      '::1',
      '::',
      'fe80::1',
      'fd00::1',
      '::ffff:127.0.0.1',
      '::ffff:a9fe:a9fe',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b:1::a9fe:a9fe',
      '2002:a9fe:a9fe::',
      'fec0::1',
      '::169.254.169.254',
      '::ffff:0:169.254.169.254',
      'no address',
    ]
    for (const address of inside) {
      const { get, asked } = web({}, { addresses: async () => [PUBLIC, address] })
      assert.equal(await get('https://api.example.com/orders/7'), 'refused: inside', address)
      assert.deepEqual(asked, [], address)
    }
    const nowhere = web({}, { addresses: async () => [] })
    assert.equal(await nowhere.get('https://api.example.com/orders/7'), 'refused: host')
  })

  test('is not led inside by a name that is bound anew at a redirect', async () => {
    const reached: string[] = []
    const listen = async (address: string, port: number): Promise<Server> => {
      const server = createServer((request, response) => {
        reached.push(`${address} ${request.url}`)
        if (request.url === '/orders/7') response.writeHead(302, { location: '/orders/8' }).end()
        else response.writeHead(200, { 'content-type': 'text/plain' }).end('secret')
      })
      server.listen(port, address)
      await once(server, 'listening')
      return server
    }
    const outside = await listen('127.0.0.2', 0)
    const { port } = outside.address() as AddressInfo
    const inside = await listen('127.0.0.1', port)
    try {
      let looks = 0
      const pinned = pinnedFetch({
        resolve: async () => (looks++ === 0 ? ['127.0.0.2'] : ['127.0.0.1']),
        isInside: (address) => address === '127.0.0.1',
      })
      // The connection is the real one, but for its encryption.
      const plain = (url: string): string => url.replace(/^https:\/\/([^/]+)/, `http://$1:${port}`)
      const { get } = web({}, { fetch: (url, init) => pinned(plain(url), init) })
      assert.equal(await get('https://api.example.com/orders/7'), 'refused: inside')
      assert.deepEqual([reached, looks], [['127.0.0.2 /orders/7'], 2])
    } finally {
      outside.close()
      inside.close()
    }
  })

  test('reads only so much of a page, and no page that is no text', async () => {
    let sent = 0
    let isLeft = false
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1
        controller.enqueue(new Uint8Array(10_000).fill(97))
      },
      cancel() {
        isLeft = true
      },
    })
    const { get } = web({
      'https://cdn.example.com/endless': new Response(endless, {
        headers: { 'content-type': 'text/html; charset=x' },
      }),
      'https://cdn.example.com/picture': page('x', 'image/png'),
      'https://cdn.example.com/untold': new Response(new Uint8Array(3)),
    })
    const text = await get('https://cdn.example.com/endless')
    assert.ok(text.startsWith('Status 200. Only its first 200000 bytes were read.'))
    assert.ok(text.length < 201_000 && sent < 30 && isLeft, `${text.length} ${sent}`)
    assert.equal(await get('https://cdn.example.com/picture'), 'refused: not-text')
    assert.equal(await get('https://cdn.example.com/untold'), 'refused: not-text')
  })
})
