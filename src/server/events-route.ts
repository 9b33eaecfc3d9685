/**
 * GET /api/events: live events as server-sent events. The first is always `hello` with `resumed`: true when all that
 * came after `Last-Event-ID` follows, false when the page must load everything anew (or is new itself). Members are told
 * nothing but `news`: see member-news.ts.
 */
import type { Context } from 'hono'
import { ProblemError } from '../app/problem.ts'
import type { Clock } from '../base/clock.ts'
import type { App, AppEnv, Identity } from './app-env.ts'
import { EventClient } from './event-client.ts'
import { type EventHub, eventIdOf } from './event-hub.ts'
import type { MemberNews } from './member-news.ts'

export const EVENTS_PATH = '/api/events'
export const CLIENTS_MAX = 200
/** Of one member, so that none takes the places of all. */
export const MEMBER_CLIENTS_MAX = 20
export const PING_MS = 15_000
/** How long a browser waits before it connects again. */
const RETRY_MS = 2_000

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // Proxies that collect answers would hold events back.
  'x-accel-buffering': 'no',
}

export type EventsRoute = {
  readonly clients: number
  /** What waits for all clients together. */
  readonly queuedBytes: number
  close(): void
}

export type EventsRouteOptions = {
  hub: EventHub
  clock: Clock
  clientsMax?: number
  /** What members are told; nothing where it is left out. */
  news?: Pick<MemberNews, 'watch'>
  /** Whether whoever listens may still do so: asked when users change here, and with every ping. */
  users?: { holds: (identity: Identity) => Promise<boolean>; onChange: (fn: () => void) => () => void }
}

export function addEventsRoute(
  app: App,
  { hub, clock, news, users, clientsMax = CLIENTS_MAX }: EventsRouteOptions,
): EventsRoute {
  const clients = new Map<EventClient, Identity | undefined>()
  let closed = false
  const dropThose = async (): Promise<void> => {
    for (const [client, identity] of clients) {
      // Who cannot be looked up is not told any more either.
      if (identity && users && !(await users.holds(identity).catch(() => false))) client.leave()
    }
  }
  const unwatchUsers = users?.onChange(() => void dropThose())
  let cancelPing = (): void => {}
  const pingLater = (): void => {
    cancelPing = clock.timer(PING_MS, () => {
      for (const client of clients.keys()) client.ping()
      void dropThose()
      pingLater()
    })
  }
  pingLater()

  app.get(EVENTS_PATH, (c) => {
    // hono answers HEAD with what GET gives, and nobody would ever read that.
    if (c.req.raw.method === 'HEAD') return new Response(null, { headers: HEADERS })
    if (closed || clients.size >= clientsMax) throw full(clientsMax)
    const user = c.get('identity')?.user
    const isMember = user !== undefined && user.role !== 'admin'
    if (isMember) {
      const members = [...clients.values()].filter((one) => one && one.user.role !== 'admin')
      const own = members.filter((one) => one!.user.id === user.id).length
      if (own >= MEMBER_CLIENTS_MAX) throw full(MEMBER_CLIENTS_MAX)
      // All members together leave half of the places to admins.
      if (members.length >= Math.ceil(clientsMax / 2)) throw full(Math.ceil(clientsMax / 2))
    }
    const client = open(c, { hub, clock, clients, news, memberId: isMember ? user.id : undefined })
    return new Response(client.body, { headers: HEADERS })
  })

  return {
    get clients() {
      return clients.size
    },
    get queuedBytes() {
      return [...clients.keys()].reduce((sum, client) => sum + client.queuedBytes, 0)
    },
    close() {
      closed = true
      cancelPing()
      unwatchUsers?.()
      for (const client of clients.keys()) client.close()
    },
  }
}

type Opening = {
  hub: EventHub
  clock: Clock
  clients: Map<EventClient, Identity | undefined>
  news: EventsRouteOptions['news']
  memberId: number | undefined
}

function open(c: Context<AppEnv>, { hub, clock, clients, news, memberId }: Opening): EventClient {
  const outgoing = c.env?.outgoing
  let unsubscribe = (): void => {}
  const client = new EventClient({
    epoch: hub.epoch,
    clock,
    onStalled: () => outgoing?.destroy(),
    onEnd: () => {
      unsubscribe()
      clients.delete(client)
    },
  })
  clients.set(client, c.get('identity'))
  // A client that left before its stream was read is not heard of in another way.
  c.req.raw.signal.addEventListener('abort', () => client.leave(), { once: true })
  if (memberId !== undefined) {
    const hello = JSON.stringify({ epoch: hub.epoch, resumed: false })
    client.write(`retry: ${RETRY_MS}\nevent: hello\ndata: ${hello}\n\n`)
    const tell = (): void => client.write('event: news\ndata: {}\n\n')
    unsubscribe = news?.watch(memberId, tell) ?? unsubscribe
    return client
  }
  // EventSource sends it by itself when it reconnects; a page that was reloaded can only ask.
  const missed = hub.since(c.req.header('last-event-id') ?? c.req.query('lastEventId') ?? null)
  const hello = JSON.stringify({ epoch: hub.epoch, resumed: missed !== null })
  // The id of what was seen, not of the last: what follows is not seen before it arrives.
  const seen = missed?.[0] ? missed[0].id - 1 : hub.lastId
  client.write(`retry: ${RETRY_MS}\nid: ${eventIdOf(hub, seen)}\nevent: hello\ndata: ${hello}\n\n`)
  for (const event of missed ?? []) client.send(event)
  unsubscribe = hub.subscribe((event) => client.send(event))
  return client
}

function full(clientsMax: number): ProblemError {
  return new ProblemError(503, `${clientsMax} pages are connected already; more are not taken.`, {
    hint: 'Close pages that are not needed.',
    code: 'too-many-clients',
    headers: { 'retry-after': '30' },
  })
}
