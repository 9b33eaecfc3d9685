/**
 * The whole server but for its socket: pages, API, live events, health, metrics and MCP, as one app. `serve` puts it
 * on a socket (http-server.ts); tests call `app.request`.
 */
import { z } from 'zod'
import { type ServerModule, servicesFor } from '../app/module.ts'
import type { Runtime } from '../app/runtime.ts'
import type { Services } from '../app/services.ts'
import { NOBODY, type RequestUser } from '../app/user.ts'
import { syncOf } from '../app/users/sync-state.ts'
import { TidemarkError } from '../base/errors.ts'
import { addModules, assertNoDuplicates, closeApi, createApp, honoPath, type OnError } from './app.ts'
import type { App } from './app-env.ts'
import { forwardEngineEvents } from './engine-events.ts'
import { createEventHub } from './event-hub.ts'
import { eventSchemas } from './event-schemas.ts'
import { addEventsRoute, type EventsRoute } from './events-route.ts'
import { addHealth } from './health.ts'
import { MemberNews } from './member-news.ts'
import { addMetrics } from './metrics-route.ts'
import {
  addOpenApi,
  type Documented,
  documentedOf,
  type EventSchemas,
  openApiDocument,
  ownRoutes,
} from './openapi.ts'
import { readInput } from './request-input.ts'
import { Security, type SecurityOptions } from './security.ts'
import { createSeries } from './series.ts'
import type { ServerServices } from './services.ts'
import { addSignIn, signInSpecs } from './sign-in.ts'
import { type SnapshotSource, startSnapshotLoop } from './snapshot-loop.ts'
import { addStatic } from './static.ts'
import { addTickets, ticketSpecs } from './tickets.ts'

export type ServerOptions = {
  services: ServerServices
  modules: readonly ServerModule[]
  /** What programs send, and what people sign in with. */
  token: string
  /** What it will be bound to; 127.0.0.1 if left out. */
  host?: string | undefined
  /** Further names under which it is reached, without ports. */
  allowedHosts?: readonly string[] | undefined
  /** Where the built pages are. */
  webFolder?: string | undefined
  version?: string | undefined
  mcp?: ((request: Request, user: RequestUser) => Promise<Response>) | undefined
  onError?: OnError | undefined
  onWrongSecret?: SecurityOptions['onWrongSecret']
  /** Holds every answer against its schema; for tests. */
  checkAnswers?: boolean
}

export type Server = {
  app: App
  events: EventsRoute
  close(): Promise<void>
}

/** Members may speak it; they are offered the tools that are for them. */
const MCP_ROUTE = { method: 'post', path: '/mcp' }

/** The module whose routes lie directly under /api, and whose snapshot is the event `snapshot`. */
const ENGINE_MODULE = 'engine'

export function createServer(options: ServerOptions): Server {
  const { services, modules, onError = () => {} } = options
  const { clock, hub, engine, users } = services
  checkModules(modules)
  const routes = modules.flatMap((module) => module.routes)
  const own: Documented[] = [...Object.values(signInSpecs), ...Object.values(ticketSpecs), ...ownRoutes]
  const documented = [...routes.map(documentedOf), ...own]
  const memberRoutes = [...documented.filter(({ access }) => access === 'member'), MCP_ROUTE]
  const signedRoutes = documented.filter(({ access }) => access === 'signed')
  const security = new Security({ ...options, clock, users, memberRoutes, signedRoutes })
  const app = createApp(onError)
  app.use('*', security.middleware)
  assertNoDuplicates(documented)
  checkQueries(app, own)

  const health = addHealth(app, services, security)
  addMetrics(app, services)
  addSignIn(app, { security, clock, token: options.token, users })
  addTickets(app, { clock })
  addOpenApi(app, openApiDocument(documented, { version: options.version, events: eventsOf(modules) }))
  const news = new MemberNews({ hub, clock, stateOf: (userId) => stateOfMember(services, userId) })
  const events = addEventsRoute(app, {
    hub,
    clock,
    news,
    users: { holds: (identity) => security.holds(identity), onChange: (fn) => users.onChange(fn) },
  })
  addModules(app, modules, { services, onError, checkAnswers: options.checkAnswers ?? false })
  const { mcp } = options
  if (mcp) app.post(MCP_ROUTE.path, (c) => mcp(c.req.raw, c.get('identity')?.user ?? NOBODY))
  closeApi(app, [...documented, ...(mcp ? [MCP_ROUTE] : [])])
  addStatic(app, options.webFolder)

  const stopEvents = forwardEngineEvents({ events: engine.events, hub, clock })
  const loop = startSnapshotLoop({
    hub,
    clock,
    sources: modules.flatMap((module) => sourceOf(module, services)),
    onError: (thrown) => onError(thrown, { method: 'LIVE', path: '/api/events' }),
  })
  return {
    app,
    events,
    async close() {
      stopEvents()
      health.close()
      security.close()
      events.close()
      news.close()
      await loop.close()
    },
  }
}

/** By which a member's pages are told to ask again: their accounts, and how far each is. */
async function stateOfMember(services: Services, userId: number): Promise<unknown> {
  const accounts = await services.accounts.ofUser(userId)
  const connected = accounts.map(({ service, name, state }) => [service, name, state])
  return { connected, sources: await syncOf(services, accounts) }
}

/** What the modules work with, on a runtime that is open; close it before the runtime. */
export function createServices(
  runtime: Runtime,
  { clock, catalog, changeSetting }: Pick<ServerServices, 'clock' | 'catalog' | 'changeSetting'>,
): ServerServices & { closeServices(): Promise<void> } {
  const series = createSeries({ engine: runtime.engine, ledger: runtime.ledger, clock })
  return {
    ...runtime,
    clock,
    catalog,
    changeSetting,
    hub: createEventHub({ clock }),
    series,
    closeServices: () => series.close(),
  }
}

function sourceOf(module: ServerModule, services: Services): SnapshotSource[] {
  const { name, snapshot } = module
  if (!snapshot) return []
  return [{ type: snapshotType(name), read: () => snapshot(servicesFor(module, services)) }]
}

function snapshotType(name: string): string {
  return name === ENGINE_MODULE ? 'snapshot' : `snapshot-${name}`
}

function eventsOf(modules: readonly ServerModule[]): EventSchemas {
  const snapshots = modules
    .filter(({ snapshot }) => snapshot !== undefined)
    .map(({ name, snapshotSchema = z.unknown() }) => [snapshotType(name), snapshotSchema])
  return { ...eventSchemas, ...Object.fromEntries(snapshots) }
}

/** The server's own routes refuse what they do not know, as those of modules do. */
function checkQueries(app: App, routes: readonly Documented[]): void {
  for (const { path, query } of routes) {
    app.use(honoPath(path), async (c, next) => {
      await readInput(c.req.raw, query ? { query } : {}, {})
      await next()
    })
  }
}

/** Only these places are guarded as they must be: see security.ts. */
function checkModules(modules: readonly ServerModule[]): void {
  for (const { name, routes } of modules) {
    const home = name === ENGINE_MODULE ? '/api/' : `/api/${name}/`
    for (const { spec } of routes) {
      if (`${spec.path}/`.startsWith(home) || spec.path.startsWith('/oauth/')) continue
      throw new TidemarkError(`The module ${name} has a route ${spec.path}; it must begin with ${home}.`, {
        kind: 'bug',
      })
    }
  }
}
