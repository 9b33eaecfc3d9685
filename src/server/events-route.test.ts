import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { Hono } from 'hono'
import { FakeClock } from '../base/clock.ts'
import type { App } from './app-env.ts'
import { EventClient, QUEUE_BYTES_MAX, STALLED_MS } from './event-client.ts'
import { createEventHub, eventIdOf } from './event-hub.ts'
import { addEventsRoute } from './events-route.ts'
import { startHttpServer } from './http-server.ts'
import { problemOf, startCore, TOKEN, withToken } from './server.suite.ts'

type Frame = Record<string, string>

/** Reads events until there are `n`. */
async function read(response: Response, n: number): Promise<Frame[]> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const frames = (): Frame[] =>
    text
      .split('\n\n')
      .slice(0, -1)
      .map((part) => Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2))))
      .filter((frame) => 'event' in frame)
  while (frames().length < n) {
    const { done, value } = await reader.read()
    if (done) break
    text += value
  }
  await reader.cancel()
  return frames()
}

function open(socket: Socket, headers = ''): void {
  const known = `Authorization: Bearer ${TOKEN}\r\n`
  socket.write(`GET /api/events HTTP/1.1\r\nHost: localhost\r\n${known}${headers}\r\n`)
}

async function until(fact: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await fact())) await new Promise((resolve) => setTimeout(resolve, 10))
}

describe('live events', () => {
  test('begin with hello and follow as they come', async () => {
    const core = await startCore()
    const { hub } = core.services
    const response = await core.request('/api/events')
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    hub.emit('mark', { text: 'one\ntwo' })
    const [hello, mark] = await read(response, 2)
    assert.deepEqual(JSON.parse(hello!.data!), { epoch: hub.epoch, resumed: false })
    assert.equal(hello!.id, eventIdOf(hub, 0))
    assert.deepEqual(mark, { id: eventIdOf(hub, 1), event: 'mark', data: '{"text":"one\\ntwo"}' })
    assert.equal(core.server.events.clients, 0)
    assert.equal(hub.listeners, 0)
    await core.close()
  })

  test('are resumed after the last that was seen', async () => {
    const core = await startCore()
    const { hub } = core.services
    for (const n of [1, 2, 3]) hub.emit('mark', n)
    const resume = async (id: string): Promise<Frame[]> =>
      read(await core.request('/api/events', { headers: { 'last-event-id': id } }), 3)
    const [hello, second, third] = await resume(eventIdOf(hub, 1))
    assert.deepEqual(JSON.parse(hello!.data!), { epoch: hub.epoch, resumed: true })
    assert.equal(hello!.id, eventIdOf(hub, 1))
    assert.deepEqual([second!.data, third!.data], ['2', '3'])
    await core.close()
  })

  test('of another start are not resumed, which hello says', async () => {
    const core = await startCore()
    const response = await core.request('/api/events', { headers: { 'last-event-id': 'abc-7' } })
    assert.equal(JSON.parse((await read(response, 1))[0]!.data!).resumed, false)
    await core.close()
  })

  test('bring a snapshot soon, and another when something changed', async () => {
    const core = await startCore()
    const frames = await read(await core.request('/api/events'), 2)
    assert.equal(frames[1]!.event, 'snapshot')
    assert.equal(JSON.parse(frames[1]!.data!).value, 1)
    await core.close()
  })

  test('answer HEAD without counting a client', async () => {
    const core = await startCore()
    assert.equal((await core.request('/api/events', { method: 'HEAD' })).status, 200)
    assert.equal(core.server.events.clients, 0)
    await core.close()
  })

  test('are refused when too many listen', async () => {
    const clock = new FakeClock()
    const core = await startCore()
    const app: App = new Hono()
    app.onError((thrown) => new Response(String(thrown), { status: 503 }))
    const hub = createEventHub({ clock })
    const route = addEventsRoute(app, { hub, clock, clientsMax: 2 })
    const [first] = [await app.request('/api/events'), await app.request('/api/events')]
    assert.equal((await app.request('/api/events')).status, 503)
    await first!.body!.cancel()
    assert.equal((await app.request('/api/events')).status, 200)
    route.close()
    assert.equal(route.clients, 2, 'until what waits has been read')
    assert.equal((await problemOf(await core.request('/api/x'))).status, 404)
    await core.close()
  })

  test('are kept open by pings', async () => {
    const clock = new FakeClock()
    const app: App = new Hono()
    const route = addEventsRoute(app, { hub: createEventHub({ clock }), clock })
    const reader = (await app.request('/api/events')).body!.getReader()
    await reader.read()
    const ping = reader.read()
    await clock.advance(15_000)
    assert.equal(new TextDecoder().decode((await ping).value), ': ping\n\n')
    route.close()
    assert.equal((await reader.read()).done, true)
  })
})

describe('a client that does not read', () => {
  test('is dropped when too much waits for it', () => {
    const ended: string[] = []
    const client = new EventClient({
      epoch: 'e',
      clock: new FakeClock(),
      onStalled: () => ended.push('stalled'),
      onEnd: () => ended.push('end'),
    })
    const data = 'x'.repeat(100_000)
    for (let id = 1; id <= 20; id++) client.send({ id, type: 'mark', data })
    assert.deepEqual(ended, ['end', 'stalled'])
    assert.equal(client.queuedBytes, 0)
  })

  test('has at most one snapshot waiting', () => {
    const client = new EventClient({
      epoch: 'e',
      clock: new FakeClock(),
      onStalled: () => assert.fail('stalled'),
      onEnd: () => {},
    })
    const data = 'x'.repeat(100_000)
    for (let id = 1; id <= 1_000; id++) client.send({ id, type: 'snapshot', data })
    assert.ok(client.queuedBytes < 101_000)
  })

  test('is dropped when it took nothing for a while', async () => {
    const clock = new FakeClock()
    let stalled = false
    const onStalled = (): void => {
      stalled = true
    }
    const client = new EventClient({ epoch: 'e', clock, onStalled, onEnd: () => {} })
    client.send({ id: 1, type: 'mark', data: 1 })
    await clock.advance(STALLED_MS)
    client.ping()
    assert.equal(stalled, false)
    await clock.advance(1)
    client.ping()
    assert.equal(stalled, true)
  })

  test('is disconnected on a real socket, and what waits for it stays bounded', async () => {
    const core = await startCore()
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    const deaf = connect(http.port, '127.0.0.1')
    deaf.on('error', () => {})
    deaf.pause()
    open(deaf)
    await until(() => core.server.events.clients === 1)
    const reader = (await fetch(`${http.url}/api/events`, withToken()))
      .body!.pipeThrough(new TextDecoderStream())
      .getReader()
    await until(() => core.server.events.clients === 2)
    const text = 'x'.repeat(50_000)
    let [most, seen] = [0, '']
    for (let n = 0; n < 400; n++) {
      core.services.hub.emit('mark', { text, n })
      most = Math.max(most, core.server.events.queuedBytes)
      // The one that reads misses nothing, whatever becomes of the other.
      while (!seen.includes(`"n":${n}}`)) seen = seen.slice(-100) + (await reader.read()).value
    }
    await until(() => core.server.events.clients === 1)
    assert.ok(most < 2 * QUEUE_BYTES_MAX, `${most} bytes waited`)
    await until(async () => (await http.connections) <= 1)
    await reader.cancel()
    await core.server.close()
    await http.close()
    await core.close()
  })

  test('that leaves before anything was read is forgotten at once', async () => {
    const core = await startCore()
    const leaving = new AbortController()
    const response = await core.request('/api/events', { signal: leaving.signal })
    assert.equal(core.server.events.clients, 1)
    leaving.abort()
    assert.deepEqual([core.server.events.clients, core.services.hub.listeners], [0, 0])
    assert.equal((await response.body!.getReader().read()).done, true)
    await core.close()
  })

  test('that leaves is forgotten at once', async () => {
    const core = await startCore()
    const http = await startHttpServer({ app: core.server.app, port: 0 })
    const socket = connect(http.port, '127.0.0.1')
    open(socket)
    await until(() => core.server.events.clients === 1)
    socket.destroy()
    await until(() => core.server.events.clients === 0)
    assert.equal(core.services.hub.listeners, 0)
    await http.close()
    await core.close()
  })
})
