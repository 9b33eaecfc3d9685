/**
 * A server as a whole: runtime, engine, accounts and socket. `serve` runs one, and so does the demo.
 *
 * The socket comes first, so that a port that is taken is found before any work begins; what is started is closed in
 * the opposite order, also when starting fails half-way.
 */
import { systemClock } from '../clock.ts'
import type { Environment } from '../config/location.ts'
import type { Config } from '../config/settings.ts'
import type { Logger } from '../engine/log.ts'
import { logEvents } from '../engine/log-events.ts'
import { followAccounts, startAccounts } from '../server/account-work.ts'
import { startDrives } from '../server/file-work.ts'
import { type HttpServer, startHttpServer } from '../server/http-server.ts'
import { createMcpHttp } from '../server/mcp/http.ts'
import { type OpenRuntime, type Origins, openRuntime, type Role, type Runtime } from '../server/runtime.ts'
import { createServer, createServices } from '../server/server.ts'
import { version } from '../server/version.ts'
import { createWorkerServer } from '../server/worker-server.ts'
import { WEB_FOLDER } from './serve-web.ts'
import { modules } from './server-modules.ts'

export type ServingInput = {
  config: Config
  origins: Origins
  home: string
  env: Environment
  role: Role
  host: string
  /** Nothing is listened on where it is undefined. */
  port: number | undefined
  token: string | undefined
  logger: Logger
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
    const runtime = await openRuntime({ config, origins, home, env, role, name: 'serve' })
    closing.add(() => runtime.close())
    const stopLog = logEvents(runtime.engine.events, logger)
    closing.add(async () => stopLog())
    const http = input.port === undefined ? undefined : await listen(runtime, input, closing)
    await input.prepare?.(runtime)
    if (role !== 'web') await runtime.engine.start()
    await startAccounts(runtime)
    const onError = (error: unknown): void => logger.warn('accounts could not be looked at', { error })
    closing.add(followAccounts(runtime, { clock: systemClock, onError }))
    const drives = await startDrives(runtime, {
      clock: systemClock,
      onError: (error) => logger.warn('a folder could not be looked after', { error }),
    })
    closing.add(() => drives.stop())
    return {
      runtime,
      url: http?.url,
      async reload(now, nowOrigins) {
        await runtime.reload(now, nowOrigins)
        logger.level = now.log.level
        await startAccounts(runtime)
        await drives.refresh()
      },
      close: () => closing.close(),
    }
  } catch (thrown) {
    await closing.close()
    throw thrown
  }
}

async function listen(runtime: Runtime, input: ServingInput, closing: Closing): Promise<HttpServer> {
  const { host, port = 0, token, logger } = input
  const services = createServices(runtime, { clock: systemClock })
  closing.add(() => services.closeServices())
  const options = {
    ...{ services, token, host, allowedHosts: input.config.server.allowed_hosts },
    onError: (error: unknown, about: { method: string; path: string }) =>
      logger.error('a request failed', { ...about, error }),
  }
  const mcp = createMcpHttp({
    ...{ services, modules, allowsWriting: () => runtime.config.server.mcp_write },
    onError: (error, about) => logger.error('a tool failed', { ...about, error }),
    onProtocolError: (error) => logger.debug('an MCP request was refused', { error }),
  })
  const server =
    input.role === 'worker'
      ? createWorkerServer(options)
      : createServer({ ...options, modules, version, webFolder: WEB_FOLDER, mcp: mcp.handle })
  const { app, isProtected } = server
  const http = await startHttpServer({
    ...{ app, host, port, isProtected },
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
