/**
 * A server as a whole: runtime, engine, accounts and socket. `serve` runs one, and so does the demo.
 *
 * The socket comes first, so that a port that is taken is found before any work begins; what is started is closed in
 * the opposite order, also when starting fails half-way.
 */

import type { AppWork, OpenRuntime, Origins, Role, Runtime } from '../../app/runtime.ts'
import { catalog } from '../../apps/catalog.ts'
import { apps } from '../../apps/registry.ts'
import { systemClock } from '../../base/clock.ts'
import type { Environment } from '../../config/location.ts'
import type { Config } from '../../config/settings.ts'
import type { Logger } from '../../engine/observe/log.ts'
import { logEvents } from '../../engine/observe/log-events.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { type HttpServer, startHttpServer } from '../../server/http-server.ts'
import { createMcpHttp } from '../../server/mcp/http.ts'
import type { WrongSecret } from '../../server/refusal-log.ts'
import { createServer, createServices } from '../../server/server.ts'
import { version } from '../../server/version.ts'
import { createWorkerServer } from '../../server/worker-server.ts'
import { serverModules } from './server-modules.ts'
import { WEB_FOLDER } from './web.ts'

export type ServingInput = {
  config: Config
  origins: Origins
  home: string
  env: Environment
  role: Role
  /** Nothing is listened on where it is undefined. */
  socket: { host: string; port: number; token: string } | undefined
  logger: Logger
  /** See ServerServices. */
  changeSetting?: (key: string, text: string | undefined) => Promise<void>
  /** Before accounts and jobs are looked at. */
  prepare?: (runtime: Runtime) => Promise<void>
}

export type Serving = {
  runtime: OpenRuntime
  /** Undefined where nothing is listened on. */
  url: string | undefined
  reload(config: Config, origins: Origins): Promise<void>
  /** Answers under way are sent, and jobs under way are ended or put back. */
  close(): Promise<void>
}

export async function startServing(input: ServingInput): Promise<Serving> {
  const { config, origins, home, env, role, logger } = input
  const closing = new Closing()
  try {
    const runtime = await openRuntime({ config, origins, home, env, role, apps, name: 'serve' })
    closing.add(() => runtime.close())
    const stopLog = logEvents(runtime.engine.events, logger)
    closing.add(async () => stopLog())
    const http = input.socket && (await listen(runtime, { ...input, socket: input.socket }, closing))
    await input.prepare?.(runtime)
    if (role !== 'web') await runtime.engine.start()
    const works: AppWork[] = []
    for (const [name, app] of runtime.apps) {
      const onError = (error: unknown): void =>
        logger.warn(`${name}: a source could not be looked after`, { error })
      const work = await app.work(runtime, { clock: systemClock, onError })
      works.push(work)
      closing.add(() => work.stop())
    }
    if (role !== 'web') runtime.watchSources()
    return {
      runtime,
      url: http?.url,
      async reload(now, nowOrigins) {
        await runtime.reload(now, nowOrigins)
        logger.level = now.log.level
        const refreshed = await Promise.allSettled(works.map((work) => work.refresh()))
        const failed = refreshed.find(({ status }) => status === 'rejected')
        if (failed) throw (failed as PromiseRejectedResult).reason
      },
      close: () => closing.close(),
    }
  } catch (thrown) {
    await closing.close()
    throw thrown
  }
}

type ListenInput = ServingInput & { socket: NonNullable<ServingInput['socket']> }

async function listen(runtime: Runtime, input: ListenInput, closing: Closing): Promise<HttpServer> {
  const { logger, socket } = input
  const { host, port, token } = socket
  const modules = await serverModules()
  const services = createServices(runtime, {
    clock: systemClock,
    catalog,
    changeSetting: input.changeSetting,
  })
  closing.add(() => services.closeServices())
  const options = {
    services,
    token,
    host,
    allowedHosts: input.config.server.allowed_hosts,
    onError: (error: unknown, about: { method: string; path: string }) =>
      logger.error('a request failed', { ...about, error }),
    onWrongSecret: ({ what, ...about }: WrongSecret) =>
      logger.warn(what === 'token' ? 'a wrong token was refused' : 'a wrong sign-in was refused', about),
  }
  const mcp = createMcpHttp({
    services,
    modules,
    allowsWriting: () => runtime.config.server.mcp_write,
    onError: (error, about) => logger.error('a tool failed', { ...about, error }),
    onProtocolError: (error) => logger.debug('an MCP request was refused', { error }),
  })
  const server =
    input.role === 'worker'
      ? createWorkerServer(options)
      : createServer({ ...options, modules, version, webFolder: WEB_FOLDER, mcp: mcp.handle })
  const { app } = server
  const http = await startHttpServer({
    app,
    host,
    port,
    onError: (error) => logger.warn('a connection failed', { error }),
  }).catch(async (thrown: unknown) => {
    await server.close()
    throw thrown
  })
  closing.add(async () => {
    // Live events end first: the socket would wait for them.
    await server.close()
    await mcp.close()
    await http.close()
  })
  return http
}

/** What was opened, to be closed the other way round, once; a part that fails does not keep the rest open. */
class Closing {
  readonly #steps: (() => Promise<void>)[] = []
  #ended: Promise<void> | undefined

  add(step: () => Promise<void>): void {
    this.#steps.push(step)
  }

  close(): Promise<void> {
    this.#ended ??= this.#run()
    return this.#ended
  }

  async #run(): Promise<void> {
    const failures: unknown[] = []
    for (const step of this.#steps.reverse()) await step().catch((thrown: unknown) => failures.push(thrown))
    if (failures.length > 0) throw failures[0]
  }
}
