import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { startHttpServer } from './http-server.ts'
import type { ServerModule } from './module.ts'
import { defineRoute } from './route.ts'
import { problemOf, startCore, TOKEN } from './server.suite.ts'

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
    const response = await fetch(`${http.url}/api/overview`)
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
    await assert.rejects(startHttpServer({ app, port: 0, host: '203.0.113.7', isProtected: true }), {
      code: 'host-invalid',
    })
    await core.close()
  })

  test('is not opened to others without a token', async () => {
    const core = await startCore()
    await assert.rejects(startHttpServer({ app: core.server.app, port: 0, host: '0.0.0.0' }), {
      code: 'token-needed',
    })
    await core.close()
    await assert.rejects(startCore({ host: '0.0.0.0' }), { code: 'token-needed' })
  })

  test('with a token is reached from elsewhere by address, and not by any name', async () => {
    const core = await startCore({ host: '0.0.0.0', token: TOKEN })
    const { app, isProtected } = core.server
    const http = await startHttpServer({ app, port: 0, host: '0.0.0.0', isProtected })
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
    for (const request of requests) {
      assert.match(await exchange(http.port, request), /^HTTP\/1\.[01] 4\d\d/, request.slice(0, 60))
    }
    assert.deepEqual(core.errors, [])
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
        defineRoute(
          {
            ...{ method: 'get', path: '/api/slow', summary: 'Slow', tag: 'test', access: 'read' },
            answer: z.object({ ok: z.boolean() }),
          },
          async () => {
            started.resolve()
            await new Promise<void>((resolve) => {
              finish = resolve
            })
            return { ok: true }
          },
        ),
      ],
    }
    const core = await startCore({ modules: [slow] })
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    const live = await fetch(`${http.url}/api/events`)
    const text = live.text()
    const answer = fetch(`${http.url}/api/slow`)
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
