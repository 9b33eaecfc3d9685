/**
 * Speaks MCP over stdin and stdout until the input ends or a signal comes. The ledger is opened as by a server that
 * only answers: no engine is started, so nothing is synced here, and one that runs elsewhere is not disturbed.
 */
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import type { CliContext } from '../../app/command.ts'
import type { AppWork, OpenRuntime } from '../../app/runtime.ts'
import type { Services } from '../../app/services.ts'
import { OWNER } from '../../app/user.ts'
import { apps } from '../../apps/registry.ts'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { CONNECT_COMMANDS } from '../../cloud/registry.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { createLogger, type Logger } from '../../engine/observe/log.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { mcpServers } from '../../server/mcp/server.ts'
import type { McpFlags } from './mcp.ts'
import { stopSignal } from './run.ts'
import { serverModules } from './server-modules.ts'

export async function serveMcp(context: CliContext, { allowWrite }: McpFlags): Promise<void> {
  const overrides = allowWrite ? [{ key: 'server.mcp_write', value: true, flag: '--allow-write' }] : []
  const loaded = await context.loadConfig(overrides)
  const { level, format } = loaded.values.log
  const stream = {
    write: (text: string) => context.output.rawError(text),
    isTTY: process.stderr.isTTY === true,
  }
  const logger = await createLogger({ clock: systemClock, stream, level, format })
  const runtime = await open(context, loaded)
  const services: Services = { ...runtime, clock: systemClock }
  const onError = (error: unknown): void => logger.warn('accounts could not be looked at', { error })
  const works: AppWork[] = []
  // A client that hangs up closes the input as well: there is nothing to read again.
  const stopping = stopSignal(context, () => {})
  try {
    for (const app of runtime.apps.values())
      works.push(await app.work(runtime, { clock: systemClock, onError }))
    await converse(services, logger, stopping.stopped)
  } finally {
    for (const work of works) await work.stop()
    await runtime.close()
    stopping.end()
  }
}

async function open(
  context: CliContext,
  { values: config, origins, home }: LoadedConfig,
): Promise<OpenRuntime> {
  const input = {
    config,
    origins,
    home: home.path,
    env: context.env,
    role: 'web',
    apps,
    name: 'mcp',
  } as const
  try {
    return await openRuntime({ ...input, create: false })
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError) || thrown.code !== 'ledger-unmade') throw thrown
    throw new UsageError(`Nothing is archived in ${home.path} yet.`, {
      code: 'no-ledger',
      cause: thrown,
      hint: `Connect an account with: ${CONNECT_COMMANDS.join(', or: ')}. Another place is given by --home or ledger.url.`,
    })
  }
}

async function converse(services: Services, logger: Logger, stopped: Promise<void>): Promise<void> {
  const modules = await serverModules()
  const servers = mcpServers({
    services,
    modules,
    allowsWriting: () => services.config.server.mcp_write,
    onError: (error, about) => logger.error('a tool failed', { ...about, error }),
  })
  const transport = new StdioServerTransport()
  const connection = serveStdio(() => servers(OWNER), {
    transport,
    onerror: (error) => logger.warn('the client was not understood', { error }),
  })
  const ended = Promise.withResolvers<void>()
  const close = transport.onclose
  transport.onclose = () => {
    close?.()
    ended.resolve()
  }
  await Promise.race([ended.promise, stopped])
  await connection.close()
}
