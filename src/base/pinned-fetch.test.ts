/** What answers here are two servers on addresses of this machine; which of them count as inside is said by the test. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { pinnedFetch } from './pinned-fetch.ts'

const OUTSIDE = '127.0.0.2'
const INSIDE = '127.0.0.1'

let outside: Server
let inside: Server
let port = 0
const reached: string[] = []

async function listen(address: string, at: number): Promise<Server> {
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    if (path === '/away') response.writeHead(302, { location: '/there' }).end()
    else if (path === '/nothing') response.writeHead(204).end()
    else response.writeHead(200, { 'content-type': 'text/plain', 'x-one': 'a' }).end(`${address} ${path}`)
  })
  server.on('connection', () => reached.push(address))
  server.listen(at, address)
  await once(server, 'listening')
  return server
}

before(async () => {
  outside = await listen(OUTSIDE, 0)
  port = (outside.address() as AddressInfo).port
  inside = await listen(INSIDE, port)
})
after(() => {
  outside.close()
  inside.close()
})

/** Answers in turn; the last one again and again. */
function rebound(...answers: (readonly string[])[]) {
  const asked: string[] = []
  const resolve = async (host: string): Promise<readonly string[]> => {
    asked.push(host)
    return answers[Math.min(asked.length, answers.length) - 1]!
  }
  return { asked, fetch: pinnedFetch({ resolve, isInside: (address) => address === INSIDE }) }
}

const at = (path: string): string => `http://shop.example:${port}${path}`

describe('a pinned connection', () => {
  test('goes to the address that was checked, by the one look-up that there is', async () => {
    const { fetch, asked } = rebound([OUTSIDE], [INSIDE])
    reached.length = 0
    const answer = await fetch(at('/page'), {})
    assert.deepEqual([answer.status, answer.headers.get('x-one')], [200, 'a'])
    assert.equal(await answer.text(), `${OUTSIDE} /page`)
    assert.deepEqual([asked, reached], [['shop.example'], [OUTSIDE]])
  })

  test('is not made again by an older look: a name that is bound anew is refused, and nobody inside hears of it', async () => {
    const { fetch } = rebound([OUTSIDE], [INSIDE])
    reached.length = 0
    const first = await fetch(at('/away'), { redirect: 'manual' })
    assert.deepEqual([first.status, first.headers.get('location')], [302, '/there'])
    await first.body?.cancel()
    await assert.rejects(fetch(at('/there'), {}), { code: 'host-inside' })
    assert.deepEqual(reached, [OUTSIDE])
  })

  test('is not made where one address of several is inside, where there is none, or to an address itself', async () => {
    reached.length = 0
    await assert.rejects(rebound([OUTSIDE, INSIDE]).fetch(at('/'), {}), { code: 'host-inside' })
    await assert.rejects(rebound([]).fetch(at('/'), {}), { code: 'host-unknown' })
    await assert.rejects(rebound([OUTSIDE]).fetch(`http://${INSIDE}:${port}/`, {}), { code: 'host-inside' })
    for (const host of ['169.254.169.254', '[::1]', '[::ffff:10.0.0.1]', '10.0.0.1', '0.0.0.0']) {
      const plain = pinnedFetch({ resolve: async () => [] })
      await assert.rejects(plain(`http://${host}/latest/`, {}), { code: 'host-inside' }, host)
    }
    assert.deepEqual(reached, [])
  })

  test('ends when its caller does, and has no body where there is none', async () => {
    const { fetch } = rebound([OUTSIDE])
    assert.equal((await fetch(at('/nothing'), {})).body, null)
    const stop = new AbortController()
    stop.abort()
    await assert.rejects(fetch(at('/page'), { signal: stop.signal }), { name: 'AbortError' })
  })
})
