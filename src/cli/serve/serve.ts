/** `tidemark serve`: pages, API and the work itself, until Ctrl-C. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../app/command.ts'
import { UsageError } from '../../base/errors.ts'

export type ServeFlags = { host?: string; port?: number; role: 'all' | 'web' | 'worker' }

const PORT_MAX = 65_535

const HELP = `
The address that it prints signs one browser in, once, within 15 minutes; \`tidemark sign-in\` prints another. Programs
(metrics, MCP over HTTP, your own) send the token, which is kept in server.token in the home folder, unless server.token
is set. No option takes it: others see what a command was given.`

export function registerServe(program: Command, context: CliContext): void {
  program
    .command('serve')
    .description('the dashboard and the API, and the work of all accounts, until Ctrl-C')
    .option('--host <address>', 'where it listens (server.host)')
    .addOption(portOption('where it listens; 0 takes any free port (server.port)'))
    .addOption(
      new Option('--role <role>', 'web answers and runs no jobs, worker runs jobs, all does both')
        .choices(['all', 'web', 'worker'])
        .default('all'),
    )
    .addHelpText('after', HELP)
    .action(async (flags: ServeFlags) => {
      const { serve } = await import('./run.ts')
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
