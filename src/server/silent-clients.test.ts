/** Many clients of the live events that never read, on real sockets: all that waits for them anywhere is bounded. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { Hono } from 'hono'
import { systemClock } from '../base/clock.ts'
import type { App } from './app-env.ts'
import { QUEUE_BYTES_MAX } from './event-client.ts'
import { createEventHub } from './event-hub.ts'
import { addEventsRoute } from './events-route.ts'
import { startHttpServer } from './http-server.ts'

const SILENT = 20
const EVENT_BYTES = 200_000
/** More than the kernel takes for a connection, many times over. */
const EVENTS_MAX = 1_000

async function start() {
  const app: App = new Hono()
  const answers = new Set<ServerResponse>()
  app.use('*', async (c, next) => {
    answers.add(c.env?.outgoing as ServerResponse)
    await next()
  })
  const hub = createEventHub({ clock: systemClock, keep: 10 })
  const route = addEventsRoute(app, { hub, clock: systemClock })
  const http = await startHttpServer({ app, port: 0 })
  /** In our queues, in Node's, and nowhere else but in the kernel. */
  const waitingBytes = (): number =>
    [...answers].reduce((sum, answer) => sum + answer.writableLength, route.queuedBytes)
  return { hub, route, http, waitingBytes }
}

async function until(fact: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await fact())) await new Promise((resolve) => setTimeout(resolve, 5))
}

function openSilent(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  // It is cut off in the end.
  socket.on('error', () => {})
  socket.pause()
  socket.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
  return socket
}

describe('clients that do not read', () => {
  test('are cut off one and all, with bounded memory, while others miss nothing', async () => {
    const { hub, route, http, waitingBytes } = await start()
    const sockets = Array.from({ length: SILENT }, () => openSilent(http.port))
    const reader = (await fetch(`${http.url}/api/events`))
      .body!.pipeThrough(new TextDecoderStream())
      .getReader()
    await until(() => route.clients === SILENT + 1)
    const text = 'x'.repeat(EVENT_BYTES)
    let [most, seen, sent] = [0, '', 0]
    while (route.clients > 1 && sent < EVENTS_MAX) {
      sent += 1
      hub.emit('mark', { text, sent })
      most = Math.max(most, waitingBytes())
      while (!seen.includes(`"sent":${sent}}`)) seen = seen.slice(-100) + (await reader.read()).value
      most = Math.max(most, waitingBytes())
    }
    assert.equal(route.clients, 1, 'only who reads is left')
    // What waits in a queue is taken over as one piece by Node, and then a queue fills once more.
    assert.ok(most <= SILENT * 2 * (QUEUE_BYTES_MAX + EVENT_BYTES + 1_000), `${most} bytes waited`)
    assert.ok(most > QUEUE_BYTES_MAX, 'nothing waited at all, so nothing was tested')
    await until(async () => (await http.connections) <= 1)
    await until(() => waitingBytes() === 0)
    for (const socket of sockets) socket.destroy()
    await reader.cancel()
    route.close()
    await http.close()
  })

  test('have no more than one snapshot waiting each, however many there were', async () => {
    const { hub, route, http, waitingBytes } = await start()
    const sockets = Array.from({ length: SILENT }, () => openSilent(http.port))
    await until(() => route.clients === SILENT)
    const text = 'x'.repeat(EVENT_BYTES)
    let most = 0
    for (let n = 0; n < EVENTS_MAX; n++) {
      hub.emit('snapshot', { text, n })
      await new Promise((resolve) => setImmediate(resolve))
      most = Math.max(most, waitingBytes())
    }
    // One that waits, and one that Node holds, which the kernel does not take.
    assert.ok(most <= SILENT * 2 * (EVENT_BYTES + 1_000), `${most} bytes waited`)
    assert.ok(waitingBytes() > SILENT * EVENT_BYTES, 'the kernel took everything, so nothing was tested')
    assert.equal(route.clients, SILENT)
    for (const socket of sockets) socket.destroy()
    await until(() => route.clients === 0)
    route.close()
    await http.close()
  })
})
