/** A server with the routes of one app, asked as a program that holds the token asks. */
import { clientsModule } from '../app/accounts/client-routes.ts'
import { accountsModule } from '../app/accounts/module.ts'
import type { ServerModule } from '../app/module.ts'
import type { OpenRuntime } from '../app/runtime.ts'
import { systemClock } from '../base/clock.ts'
import { engineModule } from '../server/engine-api/module.ts'
import { TOKEN, withToken } from '../server/server.suite.ts'
import { createServer, createServices } from '../server/server.ts'
import type { ServerServices } from '../server/services.ts'
import { catalog } from './catalog.ts'
import { apps } from './registry.ts'

/** An answer, whose form the server has held against the route's schema before. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every form
export type Body = any

export type Answer = { status: number; type: string; body: Body }

export type AppApi<R> = {
  services: R & ServerServices
  /** What went wrong inside, of which clients are not told. */
  errors: unknown[]
  request(path: string, init?: RequestInit, token?: string): Promise<Response>
  /** As the owner, or as the user whose token it is. */
  get(path: string, token?: string): Promise<Answer>
  post(path: string, body?: unknown): Promise<Answer>
  put(path: string, body: unknown, token?: string): Promise<Answer>
  remove(path: string): Promise<Answer>
  /** With the runtime. */
  closeApi(): Promise<void>
}

export async function appApi<R extends OpenRuntime>(
  runtime: R,
  module: ServerModule<R & ServerServices>,
): Promise<AppApi<R>> {
  const services = { ...runtime, ...createServices(runtime, { clock: systemClock, catalog }) }
  const errors: unknown[] = []
  const own = module as unknown as ServerModule
  const server = createServer({
    services,
    modules: [engineModule, await accountsModule(apps, [own]), await clientsModule(), own],
    checkAnswers: true,
    token: TOKEN,
    onError: (thrown) => errors.push(thrown),
  })
  const request = async (path: string, init?: RequestInit, token?: string): Promise<Response> =>
    server.app.request(path, withToken(init, token))
  const ask = async (path: string, init?: RequestInit, token?: string): Promise<Answer> => {
    const answer = await request(path, init, token)
    const type = answer.headers.get('content-type') ?? ''
    const body = type.includes('json') ? await answer.json() : await answer.text()
    return { status: answer.status, type, body }
  }
  const headers = { 'x-tidemark': '1', 'content-type': 'application/json' }
  return {
    services,
    errors,
    request,
    get: (path, token) => ask(path, undefined, token),
    post: (path, body = {}) => ask(path, { method: 'POST', headers, body: JSON.stringify(body) }),
    put: (path, body, token) => ask(path, { method: 'PUT', headers, body: JSON.stringify(body) }, token),
    remove: (path) => ask(path, { method: 'DELETE', headers }),
    async closeApi() {
      await server.close()
      await services.closeServices()
      await runtime.close()
    },
  }
}
