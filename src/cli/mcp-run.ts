/**
 * Speaks MCP over stdin and stdout until the input ends or a signal comes. The ledger is opened as by a server that
 * only answers: no engine is started, so nothing is synced here, and one that runs elsewhere is not disturbed.
 */
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { systemClock } from '../clock.ts'
import type { LoadedConfig } from '../config/load.ts'
import { createLogger, type Logger } from '../engine/log.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { followAccounts } from '../server/account-work.ts'
import { createEventHub } from '../server/event-hub.ts'
import { mcpServers } from '../server/mcp/server.ts'
import { type OpenRuntime, openRuntime } from '../server/runtime.ts'
import type { Services } from '../server/services.ts'
import type { CliContext } from './context.ts'
import type { McpFlags } from './mcp.ts'
import { stopSignal } from './serve-run.ts'
import { modules } from './server-modules.ts'

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
  // Nobody draws charts here or follows live events.
  const services: Services = {
    ...{ ...runtime, clock: systemClock, hub: createEventHub({ clock: systemClock }) },
    series: { points: () => [] },
  }
  const unfollow = followAccounts(runtime, {
    clock: systemClock,
    onError: (error) => logger.warn('accounts could not be looked at', { error }),
  })
  // A client that hangs up closes the input as well: there is nothing to read again.
  const stopping = stopSignal(context, () => {})
  try {
    await converse(services, logger, stopping.stopped)
  } finally {
    await unfollow()
    await runtime.close()
    stopping.end()
  }
}

async function open(
  context: CliContext,
  { values: config, origins, home }: LoadedConfig,
): Promise<OpenRuntime> {
  const input = { config, origins, home: home.path, env: context.env, role: 'web', name: 'mcp' } as const
  try {
    return await openRuntime({ ...input, create: false })
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError) || thrown.code !== 'ledger-unmade') throw thrown
    throw new UsageError(`Nothing is archived in ${home.path} yet.`, {
      ...{ code: 'no-ledger', cause: thrown },
      hint: 'Connect an account with: tidemark account add gmail, or: tidemark account add onedrive. Another place is given by --home or ledger.url.',
    })
  }
}

async function converse(services: Services, logger: Logger, stopped: Promise<void>): Promise<void> {
  const servers = mcpServers({
    ...{ services, modules, allowsWriting: () => services.config.server.mcp_write },
    onError: (error, about) => logger.error('a tool failed', { ...about, error }),
  })
  const transport = new StdioServerTransport()
  const connection = serveStdio(servers, {
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
