/** `tidemark serve`: pages, API and the work itself, until Ctrl-C. */
import { type Command, Option } from 'commander'
import { UsageError } from '../errors.ts'
import type { CliContext } from './context.ts'

export type ServeFlags = { host?: string; port?: number; role: 'all' | 'web' | 'worker'; token?: string }

const PORT_MAX = 65_535

export function registerServe(program: Command, context: CliContext): void {
  program
    .command('serve')
    .description('the dashboard and the API, and the work of all accounts, until Ctrl-C')
    .option('--host <address>', 'where it listens; beyond this machine it takes a token (server.host)')
    .addOption(portOption('where it listens; 0 takes any free port (server.port)'))
    .addOption(
      new Option('--role <role>', 'web answers and runs no jobs, worker runs jobs, all does both')
        .choices(['all', 'web', 'worker'])
        .default('all'),
    )
    .option('--token <text>', 'what to sign in with; others may see it here, so rather set server.token')
    .action(async (flags: ServeFlags) => {
      const { serve } = await import('./serve-run.ts')
      await serve(context, flags)
    })
}

export function portOption(description: string): Option {
  return new Option('--port <number>', description).argParser(parsePort)
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= PORT_MAX) return port
  throw new UsageError(`--port is "${text}", but it must be a whole number from 0 to ${PORT_MAX}.`)
}
