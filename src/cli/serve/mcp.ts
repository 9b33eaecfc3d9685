/** `tidemark mcp`: the archive for programs that speak MCP, over stdin and stdout. */
import type { Command } from 'commander'
import type { CliContext } from '../../app/command.ts'

export type McpFlags = { allowWrite?: boolean }

const HELP = `
A client starts it by itself; most take this in their settings (the folder is where Tidemark keeps its data):

  {
    "mcpServers": {
      "tidemark": { "command": "tidemark", "args": ["--home", "/home/ann/.local/share/tidemark", "mcp"] }
    }
  }

It reads the same data as a server that is running and needs none. Nothing is synced by it, and it ends when the client
closes its input. stdout carries the protocol; what there is to say about troubles goes to stderr.
Over HTTP the same is at /mcp of tidemark serve, with the server's token (server.token in the home folder).`

export function registerMcp(program: Command, context: CliContext): void {
  program
    .command('mcp')
    .description('lets a program that speaks MCP search and read the archive, over stdin and stdout')
    .option('--allow-write', 'also let it start a sync and try bad items again (server.mcp_write)')
    .addHelpText('after', HELP)
    .action(async (flags: McpFlags) => {
      const { serveMcp } = await import('./mcp-run.ts')
      await serveMcp(context, flags)
    })
}
