/**
 * The whole server but for its socket: pages, API, live events, health, metrics and MCP, as one app. `serve` puts it
 * on a socket (http-server.ts); tests call `app.request`.
 */
import { z } from 'zod'
import type { Clock } from '../clock.ts'
import { TidemarkError } from '../errors.ts'
import { addModules, assertNoDuplicates, closeApi, createApp, type OnError } from './app.ts'
import type { App } from './app-env.ts'
import { forwardEngineEvents } from './engine-events.ts'
import { createEventHub } from './event-hub.ts'
import { eventSchemas } from './event-schemas.ts'
import { addEventsRoute, type EventsRoute } from './events-route.ts'
import { addHealth } from './health.ts'
import { addMetrics } from './metrics-route.ts'
import type { ServerModule } from './module.ts'
import {
  addOpenApi,
  type Documented,
  documentedOf,
  type EventSchemas,
  openApiDocument,
  ownRoutes,
} from './openapi.ts'
import { readInput } from './request-input.ts'
import type { AnyRoute } from './route.ts'
import type { Runtime } from './runtime.ts'
import { Security } from './security.ts'
import { createSeries } from './series.ts'
import type { Services } from './services.ts'
import { addSignIn, signInSpecs } from './sign-in.ts'
import { type SnapshotSource, startSnapshotLoop } from './snapshot-loop.ts'
import { addStatic } from './static.ts'

export type ServerOptions = {
  services: Services
  modules: readonly ServerModule[]
  /** Needed as soon as the server listens on more than this machine. */
  token?: string | undefined
  /** What it will be bound to; 127.0.0.1 if left out. */
  host?: string | undefined
  /** Further names under which it is reached, without ports. */
  allowedHosts?: readonly string[] | undefined
  /** Where the built pages are. */
  webFolder?: string | undefined
  version?: string | undefined
  mcp?: ((request: Request) => Promise<Response>) | undefined
  onError?: OnError | undefined
  /** Holds every answer against its schema; for tests. */
  checkAnswers?: boolean
}

export type Server = {
  app: App
  /** For `startHttpServer`: whether others than this machine may reach it. */
  isProtected: boolean
  events: EventsRoute
  close(): Promise<void>
}

/** The module whose routes lie directly under /api, and whose snapshot is the event `snapshot`. */
const ENGINE_MODULE = 'engine'

export function createServer(options: ServerOptions): Server {
  const { services, modules, onError = () => {} } = options
  const { clock, hub, engine } = services
  checkModules(modules)
  services.needs = async () => {
    const all = await Promise.all(modules.map(({ needs }) => needs?.(services) ?? []))
    return all.flat()
  }
  const security = new Security({ ...options, clock })
  const app = createApp(onError)
  app.use('*', security.middleware)
  const routes = modules.flatMap((module) => module.routes)
  const documented = [...routes.map(documentedOf), ...Object.values(signInSpecs), ...ownRoutes]
  assertNoDuplicates(documented)
  checkQueries(app, [...Object.values(signInSpecs), ...ownRoutes])

  const health = addHealth(app, services)
  addMetrics(app, services)
  addSignIn(app, { security, clock })
  addOpenApi(app, openApiDocument(documented, { version: options.version, events: eventsOf(modules) }))
  const events = addEventsRoute(app, { hub, clock })
  addModules(app, modules, { services, onError, checkAnswers: options.checkAnswers ?? false })
  const { mcp } = options
  if (mcp) app.post('/mcp', (c) => mcp(c.req.raw))
  closeApi(app, [...documented, ...(mcp ? [{ method: 'post', path: '/mcp' }] : [])])
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
    isProtected: security.required,
    events,
    async close() {
      stopEvents()
      health.close()
      events.close()
      await loop.close()
    },
  }
}

/** What the modules work with, on a runtime that is open; close it before the runtime. */
export function createServices(
  runtime: Runtime,
  { clock }: { clock: Clock },
): Services & { closeServices(): Promise<void> } {
  const series = createSeries({ engine: runtime.engine, ledger: runtime.ledger, clock })
  return { ...runtime, clock, hub: createEventHub({ clock }), series, closeServices: () => series.close() }
}

function sourceOf({ name, snapshot }: ServerModule, services: Services): SnapshotSource[] {
  if (!snapshot) return []
  return [{ type: snapshotType(name), read: () => snapshot(services) }]
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
    app.use(path, async (c, next) => {
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
      checkAccess(spec)
      if (spec.path.startsWith(home) || spec.path.startsWith('/oauth/')) continue
      throw new TidemarkError(`The module ${name} has a route ${spec.path}; it must begin with ${home}.`, {
        kind: 'bug',
      })
    }
  }
}

/** The header and the same origin are asked for by method: a GET that changes something would go unguarded. */
function checkAccess({ method, path, access }: AnyRoute['spec']): void {
  const needed = method === 'get' ? 'read' : 'write'
  if (access === needed) return
  throw new TidemarkError(`The route ${method} ${path} must have access ${needed}.`, { kind: 'bug' })
}
