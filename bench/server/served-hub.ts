/** The live events on a socket, in a process of its own, with a flow of events that a test can choose. */
import { Hono } from 'hono'
import { systemClock } from '../../src/base/clock.ts'
import type { App } from '../../src/server/app-env.ts'
import { createEventHub } from '../../src/server/event-hub.ts'
import { addEventsRoute } from '../../src/server/events-route.ts'
import { startHttpServer } from '../../src/server/http-server.ts'

export type HubOrder = { do: 'hub'; type: 'mark' | 'snapshot'; bytes: number; everyMs: number }
export type HubReport = { clients: number; queuedBytesMax: number }

export async function serveHub({ type, bytes, everyMs }: HubOrder): Promise<{ url: string }> {
  const app: App = new Hono()
  const hub = createEventHub({ clock: systemClock })
  const route = addEventsRoute(app, { hub, clock: systemClock })
  const { url } = await startHttpServer({ app, port: 0 })
  const text = 'x'.repeat(bytes)
  let queuedBytesMax = 0
  setInterval(() => {
    hub.emit(type, { text })
    queuedBytesMax = Math.max(queuedBytesMax, route.queuedBytes)
  }, everyMs)
  process.on('message', () => {
    const report: HubReport = { clients: route.clients, queuedBytesMax }
    process.send?.({ value: report })
  })
  return { url }
}
