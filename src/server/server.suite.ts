/** A server on a real ledger and engine, with a few routes that do what routes of modules do. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { ServerModule } from '../app/module.ts'
import { conflict, ProblemError } from '../app/problem.ts'
import { download, route } from '../app/route.ts'
import type { Role, Runtime } from '../app/runtime.ts'
import { catalog } from '../apps/catalog.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { TidemarkError, UsageError } from '../base/errors.ts'
import { createEngine, defineJob, type Engine } from '../engine/index.ts'
import { Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLedger } from '../ledger/open.ts'
import { Users } from '../ledger/users.ts'
import { createServer, createServices, type Server, type ServerOptions } from './server.ts'
import type { ServerServices } from './services.ts'

export const TOKEN = 'a-token-that-is-long-enough'
export const WRITE = { 'x-tidemark': '1', 'content-type': 'application/json' }

const errors = {
  usage: () => new UsageError('That cannot be asked.', { hint: 'Ask something else.', code: 'usage' }),
  unknown: () => new UsageError('There is no job #5.', { code: 'job-unknown' }),
  exists: () => new UsageError('It is there already.', { code: 'account-exists' }),
  gone: () => new TidemarkError('It was deleted.', { kind: 'gone' }),
  auth: () => new TidemarkError('ann@example.com must sign in again.', { kind: 'auth' }),
  transient: () => new TidemarkError('The database is away.', { kind: 'transient', retryAfterMs: 2_500 }),
  permanent: () => new TidemarkError('It is damaged.', { kind: 'permanent' }),
  conflict: () => conflict('It runs already.'),
  bug: () => new TypeError('x is not a function, secret path /home/ann'),
}

export const thing = z.object({ id: z.number(), name: z.string() })
const errorName = z.enum(Object.keys(errors) as [keyof typeof errors, ...(keyof typeof errors)[]])

export type Things = { at: number; value: number }

/** Its state can be changed by the test. */
export function testModule(state: Things = { at: 0, value: 1 }): ServerModule {
  return {
    name: 'engine',
    snapshot: async () => ({ ...state }),
    routes: [
      route('GET /api/things', {
        summary: 'Things',
        query: z.object({
          limit: z.coerce.number().int().min(1).max(500).default(50),
          state: z.enum(['open', 'done']).optional(),
          tag: z.array(z.string()).optional(),
        }),
        answer: z.object({ query: z.unknown() }),
        handle: async ({ query }) => ({ query }),
      }),
      route('GET /oauth/test/callback', {
        summary: 'Others add names',
        query: z.looseObject({ code: z.string().optional() }),
        answer: z.object({ query: z.unknown() }),
        handle: async ({ query }) => ({ query }),
      }),
      route('GET /api/things/{id}', {
        summary: 'A thing',
        params: z.object({ id: z.string().min(1).max(200) }),
        answer: z.object({ id: z.string() }),
        handle: async ({ params }) => params,
      }),
      route('POST /api/things', {
        summary: 'A new thing',
        body: thing,
        status: 202,
        answer: thing,
        handle: async ({ body }) => body,
      }),
      route('POST /api/sync', {
        summary: 'All optional',
        body: z.object({ account: z.string().optional() }),
        answer: z.object({ account: z.string().optional() }),
        handle: async ({ body }) => body,
      }),
      route('POST /api/plan', {
        summary: 'Changes nothing',
        onlyReads: true,
        answer: z.object({}),
        handle: async () => ({}),
      }),
      route('POST /api/hook', {
        summary: 'Of another service',
        access: 'signed',
        errors: [401],
        body: z.object({ n: z.number().optional() }),
        answer: z.object({ bearer: z.string(), role: z.string() }),
        handle: async ({ bearer, user }) => {
          if (bearer === undefined) throw new ProblemError(401, 'It is not signed.', { code: 'unsigned' })
          return { bearer, role: user.role }
        },
      }),
      route('GET /api/overview', {
        summary: 'All',
        etag: true,
        answer: z.object({ at: z.number(), value: z.number() }),
        handle: async () => ({ ...state }),
      }),
      route('GET /api/errors/{name}', {
        summary: 'Throws',
        params: z.object({ name: errorName }),
        answer: z.object({}),
        handle: async ({ params }) => {
          throw errors[params.name]()
        },
      }),
      download('GET /api/files/{name}', {
        summary: 'A file',
        contentType: 'application/octet-stream',
        params: z.object({ name: z.string() }),
        handle: async ({ params }) => ({
          bytes: new TextEncoder().encode('bytes'),
          contentType: params.name === 'odd' ? 'text/html\r\nx-evil: 1' : 'text/plain',
          fileName: params.name,
        }),
      }),
    ],
  }
}

export const touch = defineJob({
  kind: 'test.touch',
  payload: z.object({ n: z.number() }),
  run: async () => {},
})

export type Core = {
  server: Server
  services: ServerServices
  engine: Engine
  ledger: Ledger
  home: string
  errors: unknown[]
  /** With the token, unless another `authorization` is given. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** As somebody of whom nothing is known. */
  strange(path: string, init?: RequestInit): Promise<Response>
  close(): Promise<void>
}

/** What a program that holds the token sends. */
export function withToken(init: RequestInit = {}, token = TOKEN): RequestInit {
  const headers = new Headers(init.headers)
  if (!headers.has('authorization')) headers.set('authorization', `Bearer ${token}`)
  return { ...init, headers }
}

export type CoreOptions = Partial<Omit<ServerOptions, 'services'>> & {
  role?: Role
  clock?: Clock
  started?: boolean
}

export async function startCore(options: CoreOptions = {}): Promise<Core> {
  const { role = 'all', clock = systemClock, started = false, ...own } = options
  const home = mkdtempSync(join(tmpdir(), 'tidemark-server-'))
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  const engine = await createEngine({ ledger, jobs: [touch] })
  if (started) await engine.start()
  // No app is asked for by what is tested here.
  const users = await Users.open(ledger)
  const accounts = await Accounts.open(ledger)
  const runtime = { role, home, ledger, users, accounts, engine, apps: new Map() } as unknown as Runtime
  const services = createServices(runtime, { clock, catalog })
  const errors: unknown[] = []
  const server = createServer({
    services,
    modules: [testModule()],
    onError: (thrown: unknown) => errors.push(thrown),
    checkAnswers: true,
    token: TOKEN,
    ...own,
  })
  return {
    server,
    services,
    engine,
    ledger,
    home,
    errors,
    request: async (path, init) => server.app.request(path, withToken(init)),
    strange: async (path, init) => server.app.request(path, init),
    async close() {
      await server.close()
      await services.closeServices()
      await engine.stop()
      await ledger.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

export async function problemOf(response: Response): Promise<{
  status: number
  code?: string
  detail: string
  hint?: string
  errors?: { where: string; message: string }[]
}> {
  const type = response.headers.get('content-type') ?? ''
  if (!type.startsWith('application/problem+json')) throw new Error(`${response.status} ${type}, no problem`)
  return (await response.json()) as never
}
