/**
 * The running process against who means no good: raw bytes on its socket, as no proper client would send them. Each
 * tries to pause everything; none gets through, and at the end nothing is paused.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { ANN, type ApiServer, startApiServer, TOKEN } from './server.ts'

const BODY = '{"scope":"all"}'
/** The limits of the socket are 10 and 30 s; a busy machine looks at them late. */
const CUT_OFF_MS_MAX = 240_000

let server: ApiServer
let port: number
let host: string

before(async () => {
  server = await startApiServer({ messages: 3 })
  const url = new URL(server.url)
  port = Number(url.port)
  host = url.host
})
after(() => server.close())

/** What the server says until it ends the connection, or says nothing more. */
function exchange(text: string, { isLast = true } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let said = ''
    socket.setTimeout(CUT_OFF_MS_MAX, () =>
      socket.destroy(new Error(`nothing was answered to ${text.slice(0, 80)}`)),
    )
    socket.on('data', (chunk) => (said += chunk.toString('latin1')))
    // A server that refuses may hang up while more is being sent.
    socket.on('error', (error) =>
      said === '' && !/RESET|EPIPE/.test(String(error)) ? reject(error) : resolve(said),
    )
    socket.on('close', () => resolve(said))
    if (isLast) socket.end(text, 'latin1')
    else socket.write(text, 'latin1')
  })
}

type Line = readonly [name: string, value: string]

function pauseRequest(
  lines: readonly Line[],
  {
    target = '/api/pause',
    method = 'POST',
    body = BODY,
  }: { target?: string; method?: string; body?: string } = {},
): string {
  const usual: Line[] = [
    ['Host', host],
    ['Authorization', `Bearer ${TOKEN}`],
    ['X-Tidemark', '1'],
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
    ['Connection', 'close'],
  ]
  const given = new Set(lines.map(([name]) => name.toLowerCase()))
  const all = [
    ...usual.filter(([name]) => !given.has(name.toLowerCase())),
    ...lines.filter(([, value]) => value !== ''),
  ]
  return `${method} ${target} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
}

async function refused(text: string, statuses: readonly number[]): Promise<void> {
  const answer = await exchange(text)
  // Whoever wants a tunnel is hung up on.
  if (answer === '' && text.startsWith('CONNECT ')) return assertUntouched()
  assert.ok(statuses.includes(statusOf(answer)), `${text.slice(0, 200)}\n→ ${answer.slice(0, 300)}`)
  assert.match(answer, /\r\nContent-Type: application\/problem\+json/i)
  await assertUntouched()
}

async function assertUntouched(): Promise<void> {
  const { pauses } = (await (await server.ask('/api/overview')).json()) as { pauses: unknown[] }
  assert.deepEqual(pauses, [])
  const accounts = (await (await server.ask('/api/accounts')).json()) as { items: unknown[] }
  assert.equal(accounts.items.length, 3)
}

describe('who may not', () => {
  test('without the token, with another, or with it in a wrong place changes nothing', async () => {
    for (const authorization of ['', `Bearer ${TOKEN}x`, `Basic ${btoa(`:${TOKEN}`)}`, TOKEN, 'Bearer']) {
      await refused(pauseRequest([['Authorization', authorization]]), [401])
    }
    await refused(pauseRequest([['Authorization', '']], { target: `/api/pause?token=${TOKEN}` }), [401])
    await refused(
      pauseRequest([
        ['Authorization', ''],
        ['Cookie', `tidemark_session=${TOKEN}`],
      ]),
      [401],
    )
  })

  test('from another site, or under another name, is refused even with the token', async () => {
    for (const origin of [
      'https://evil.example',
      'null',
      `http://${host}.evil.example`,
      `http://evil@${host}x`,
    ]) {
      await refused(pauseRequest([['Origin', origin]]), [403])
    }
    for (const site of ['cross-site', 'same-site'])
      await refused(pauseRequest([['Sec-Fetch-Site', site]]), [403])
    for (const name of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      '0x7f000001.example',
    ]) {
      await refused(pauseRequest([['Host', name]]), [403])
    }
    await refused(
      pauseRequest([
        ['Host', 'evil.example'],
        ['X-Forwarded-Host', host],
      ]),
      [403],
    )
  })

  test('with a session as a cookie, which other services of this host receive, changes nothing', async () => {
    const signIn = await fetch(`${server.url}/api/sign-in`, {
      method: 'POST',
      headers: { 'x-tidemark': '1', 'content-type': 'application/json' },
      body: JSON.stringify({ token: TOKEN }),
    })
    assert.equal(signIn.headers.get('set-cookie'), null)
    const { session } = (await signIn.json()) as { session: string }
    const cookie: Line[] = [
      ['Authorization', ''],
      ['Cookie', `tidemark_session=${session}; session=${session}`],
    ]
    await refused(pauseRequest(cookie), [401])
    await refused(pauseRequest([...cookie, ['Origin', server.url]]), [401])
    const bearer: Line[] = [['Authorization', `Bearer ${session}`]]
    await refused(pauseRequest([...bearer, ['X-Tidemark', ''], ['Origin', server.url]]), [403])
    await refused(pauseRequest([...bearer, ['Origin', 'https://evil.example']]), [403])
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
    ]) {
      await refused(pauseRequest([...bearer, ['Origin', server.url], ['Content-Type', type]]), [415])
    }
  })
})

describe('a request in disguise', () => {
  test('another method behind an allowed one stays what it is', async () => {
    for (const name of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override']) {
      const target = `/api/accounts/gmail/${ANN}`
      const get = pauseRequest(
        [
          [name, 'DELETE'],
          ['Content-Length', ''],
        ],
        { target, method: 'GET', body: '' },
      )
      await refused(get, [405])
    }
    await refused(
      pauseRequest([], { target: '/api/pause?_method=POST', method: 'GET', body: '' }),
      [400, 405],
    )
  })

  test('methods that nobody needs are refused', async () => {
    for (const method of ['TRACE', 'CONNECT', 'PROPFIND', 'PATCH', 'PURGE', 'post', 'POSTX']) {
      await refused(pauseRequest([], { method }), [400, 403, 404, 405])
    }
    const trace = await exchange(pauseRequest([['X-Secret', 'echo-me']], { method: 'TRACE', body: '' }))
    assert.ok(!trace.includes('echo-me'))
    await refused(`CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n`, [400, 403, 404, 405])
  })

  test('an address of another host, or one that hides the path, is refused', async () => {
    for (const target of [
      ...['http://evil.example/api/pause', 'https://evil.example:443/api/pause', '//evil.example/api/pause'],
      ...[
        'http://user:pass@evil.example/api/pause',
        'ftp://evil.example/api/pause',
        '*',
        'api/pause',
        '/api//pause',
      ],
      ...[
        '/API/pause',
        '/api/%2e%2e/api%2fpause',
        '/api/pause%00',
        '/api/pause/',
        '/api;/pause',
        '/./%ff/api/pause',
      ],
    ]) {
      await refused(pauseRequest([], { target }), [400, 401, 403, 404, 405])
    }
  })
})

describe('a request that two servers would read differently', () => {
  test('is not read at all', async () => {
    const chunked = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`
    const shapes: (readonly Line[])[] = [
      [
        ['Content-Length', String(BODY.length)],
        ['Transfer-Encoding', 'chunked'],
      ],
      [
        ['Transfer-Encoding', 'chunked'],
        ['Content-Length', '4'],
      ],
      [
        ['Content-Length', '15'],
        ['Content-Length', '16'],
      ],
      [['Content-Length', '15, 16']],
      [['Content-Length', '+15']],
      [['Content-Length', '0x0f']],
      [['Content-Length', '-1']],
      [
        ['Content-Length', ''],
        ['Transfer-Encoding', 'xchunked'],
      ],
      [
        ['Content-Length', ''],
        ['Transfer-Encoding', 'chunked, identity'],
      ],
      [
        ['Content-Length', ''],
        ['Transfer-Encoding ', 'chunked'],
      ],
      [
        ['Host', 'evil.example'],
        ['Host', '127.0.0.1'],
      ],
    ]
    for (const lines of shapes) {
      for (const body of [BODY, chunked]) await refused(pauseRequest(lines, { body }), [400, 403])
    }
    const hidden = pauseRequest([])
    const get = `GET /healthz HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`
    await refused(get, [400])
  })

  test('with broken lines, names or chunks is refused', async () => {
    await refused(pauseRequest([]).replaceAll('\r\n', '\n'), [400])
    await refused(pauseRequest([['X-A\0b', '1']]), [400])
    await refused(pauseRequest([['X-A', 'a\0b']]), [400])
    await refused(pauseRequest([]).replace('\r\nHost', '\r\n Folded: 1\r\nHost'), [400])
    const chunked: Line[] = [
      ['Content-Length', ''],
      ['Transfer-Encoding', 'chunked'],
    ]
    for (const body of [`zz\r\n${BODY}\r\n0\r\n\r\n`, `-1\r\n${BODY}`, `ffffffffffffffffff\r\n${BODY}`]) {
      await refused(pauseRequest(chunked, { body }), [400])
    }
  })
})

describe('too much', () => {
  test('of headers, of one header or of a body is refused', async () => {
    await refused(pauseRequest([['X-Long', 'x'.repeat(20_000)]]), [431])
    const many = Array.from({ length: 3_000 }, (_, n): Line => [`X-${n}`, '1'])
    await refused(pauseRequest(many), [431])
    await refused(pauseRequest([], { target: `/api/pause?${'x'.repeat(9_000)}` }), [414])
    await refused(pauseRequest([['Content-Length', '99999999999']]), [413])
    await refused(pauseRequest([], { body: `{"scope":"all","reason":"${'x'.repeat(1_100_000)}"}` }), [413])
    const chunk = `${(1_100_000).toString(16)}\r\n${'x'.repeat(1_100_000)}\r\n0\r\n\r\n`
    await refused(
      pauseRequest(
        [
          ['Content-Length', ''],
          ['Transfer-Encoding', 'chunked'],
        ],
        { body: chunk },
      ),
      [413],
    )
  })

  test('of patience is not there: who sends too slowly is cut off, and others do not notice', async () => {
    const whole = pauseRequest([])
    const slow = [
      exchange(whole.slice(0, 60), { isLast: false }),
      exchange(whole.slice(0, -5), { isLast: false }),
      ...Array.from({ length: 50 }, () =>
        exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `, { isLast: false }),
      ),
    ]
    assert.equal((await server.ask('/healthz')).status, 200)
    for (const answer of await Promise.all(slow)) assert.equal(statusOf(answer), 408, answer.slice(0, 200))
    await assertUntouched()
  })
})

test('afterwards the same request, sent properly, does what it says, and the log tells of no failure', async () => {
  assert.equal(statusOf(await exchange(pauseRequest([]))), 200)
  const { pauses } = (await (await server.ask('/api/overview')).json()) as { pauses: { scope: string }[] }
  assert.deepEqual(
    pauses.map(({ scope }) => scope),
    ['all'],
  )
  assert.doesNotMatch(server.log(), /a request failed|a connection failed/)
  assert.ok(!server.log().includes(TOKEN))
})
