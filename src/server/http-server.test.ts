import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { z } from 'zod'
import type { ServerModule } from '../app/module.ts'
import { route } from '../app/route.ts'
import { startHttpServer } from './http-server.ts'
import { problemOf, startCore, TOKEN, withToken } from './server.suite.ts'

/** A raw exchange: what the server says until it ends the connection. */
function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
    socket.write(text)
  })
}

describe('the socket', () => {
  test('takes a free port when asked for port 0, and only this machine reaches it', async () => {
    const core = await startCore()
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    assert.ok(http.port > 0)
    assert.equal(http.url, `http://127.0.0.1:${http.port}`)
    const response = await fetch(`${http.url}/api/overview`, withToken())
    assert.equal(response.status, 200)
    await response.body?.cancel()
    await http.close()
    await core.close()
  })

  test('says that its port is taken, and what to do', async () => {
    const core = await startCore()
    const { app } = core.server
    const http = await startHttpServer({ app, port: 0 })
    await assert.rejects(startHttpServer({ app, port: http.port }), {
      code: 'port-taken',
      message: `Port ${http.port} on 127.0.0.1 is taken by another program.`,
    })
    await http.close()
    await assert.rejects(startHttpServer({ app, port: 0, host: '203.0.113.7' }), {
      code: 'host-invalid',
    })
    await core.close()
  })

  test('with a token is reached from elsewhere by address, and not by any name', async () => {
    const core = await startCore({ host: '0.0.0.0', token: TOKEN })
    const http = await startHttpServer({ app: core.server.app, port: 0, host: '0.0.0.0' })
    const ask = (host: string) =>
      exchange(
        http.port,
        `GET /api/overview HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${TOKEN}\r\nConnection: close\r\n\r\n`,
      )
    assert.match(await ask('10.1.2.3:4141'), /^HTTP\/1.1 200/)
    assert.match(await ask('evil.example'), /^HTTP\/1.1 403/)
    await http.close()
    await core.close()
  })

  test('answers what is no proper request with 4xx', async () => {
    const core = await startCore()
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    const end = 'Connection: close\r\n\r\n'
    const requests = [
      `GET / HTTP/1.1\r\n${end}`,
      `GET / HTTP/1.0\r\n${end}`,
      `GET / HTTP/1.1\r\nHost: a b\r\n${end}`,
      `GET /\\..\\x HTTP/1.1\r\nHost: localhost\r\n${end}`,
      `GET http:// HTTP/1.1\r\nHost: localhost\r\n${end}`,
      `GET http://evil.example/api/overview HTTP/1.1\r\nHost: localhost\r\n${end}`,
      `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n${end}`,
      `TRACE /api/overview HTTP/1.1\r\nHost: localhost\r\n${end}`,
      `POST /api/things HTTP/1.1\r\nHost: localhost\r\nX-Tidemark: 1\r\nContent-Length: 9999999\r\n${end}`,
      `OPTIONS * HTTP/1.1\r\nHost: localhost\r\n${end}`,
      'nonsense\r\n\r\n',
    ]
    const known = (text: string): string =>
      text.replace('Connection:', `Authorization: Bearer ${TOKEN}\r\nConnection:`)
    for (const request of requests.map(known)) {
      assert.match(await exchange(http.port, request), /^HTTP\/1\.[01] 4\d\d/, request.slice(0, 60))
    }
    assert.deepEqual(core.errors, [])
    await http.close()
    await core.close()
  })
})

describe('connections', () => {
  const SILENT = 1_000

  test('of somebody who only holds them lock nobody out: the oldest of strangers go', async () => {
    const core = await startCore()
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    const held = Array.from({ length: SILENT }, () => connect(http.port, '127.0.0.1'))
    let cut = 0
    for (const socket of held) {
      socket.on('error', () => {})
      socket.on('close', () => {
        cut += 1
      })
    }
    await Promise.all(held.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    const live = await fetch(`${http.url}/api/events`, withToken())
    assert.equal(live.status, 200)
    for (let n = 0; n < 20; n++) {
      const answer = await fetch(`${http.url}/api/overview`, withToken())
      assert.equal(answer.status, 200)
      await answer.body?.cancel()
    }
    while (cut < SILENT / 2) await new Promise((resolve) => setImmediate(resolve))
    // More strangers come, and who is known stays.
    const more = Array.from({ length: SILENT }, () => connect(http.port, '127.0.0.1'))
    for (const socket of more) socket.on('error', () => {})
    await Promise.all(more.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    const reader = live.body!.pipeThrough(new TextDecoderStream()).getReader()
    assert.match((await reader.read()).value ?? '', /event: hello/)
    core.services.hub.emit('mark', { still: 'here' })
    let seen = ''
    while (!seen.includes('still')) seen += (await reader.read()).value ?? assert.fail('the page was cut off')
    await reader.cancel()
    for (const socket of [...held, ...more]) socket.destroy()
    await http.close()
    await core.close()
  })
})

describe('closing', () => {
  test('waits for answers under way and ends live events properly', async () => {
    let finish = (): void => {}
    const started = Promise.withResolvers<void>()
    const slow: ServerModule = {
      name: 'engine',
      routes: [
        route('GET /api/slow', {
          tag: 'test',
          summary: 'Slow',
          answer: z.object({ ok: z.boolean() }),
          handle: async () => {
            started.resolve()
            await new Promise<void>((resolve) => {
              finish = resolve
            })
            return { ok: true }
          },
        }),
      ],
    }
    const core = await startCore({ modules: [slow] })
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    const live = await fetch(`${http.url}/api/events`, withToken())
    const text = live.text()
    const answer = fetch(`${http.url}/api/slow`, withToken())
    await started.promise
    await core.server.close()
    const closed = http.close()
    assert.match(await text, /event: hello/)
    finish()
    assert.deepEqual(await (await answer).json(), { ok: true })
    await closed
    await assert.rejects(fetch(`${http.url}/healthz`))
    await core.close()
  })

  test('does not wait for ever for who does not read', async () => {
    const core = await startCore()
    const http = await startHttpServer({ app: core.server.app, port: 0, closeGraceMs: 50 })
    const deaf = connect(http.port, '127.0.0.1')
    deaf.on('error', () => {})
    const gone = new Promise((resolve) => deaf.on('close', resolve))
    deaf.pause()
    deaf.write('GET /api/things HTTP/1.1\r\nHost: localhost\r\n')
    while ((await http.connections) === 0) await new Promise((resolve) => setImmediate(resolve))
    await http.close()
    deaf.resume()
    await gone
    await core.close()
  })

  test('refuses new live events meanwhile', async () => {
    const core = await startCore()
    await core.server.close()
    assert.equal((await problemOf(await core.request('/api/events'))).status, 503)
    await core.close()
  })
})
