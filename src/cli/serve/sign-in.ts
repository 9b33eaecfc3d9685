/** `tidemark sign-in`: an address that signs a browser in to the server. */
import type { Command } from 'commander'
import type { CliContext } from '../../app/command.ts'
import { portOption } from './serve.ts'

const HELP = `
The address works once, within 15 minutes, for a server of this home that runs already. It is made from the token
alone: nothing is asked, and the token does not stand in it. It is printed and not opened, since others of this machine
see what programs are started with.`

export function registerSignIn(program: Command, context: CliContext): void {
  program
    .command('sign-in')
    .description('print an address that signs a browser in to the server')
    .addOption(portOption('of the server, where it is not server.port'))
    .addHelpText('after', HELP)
    .action(async ({ port }: { port?: number }) => {
      const { serverUrl } = await import('../../server/http-server.ts')
      const { addressFor } = await import('./run.ts')
      const { serverToken } = await import('./token.ts')
      const loaded = await context.loadConfig()
      const { server } = loaded.values
      const url = serverUrl(server.host, port ?? server.port)
      const address = addressFor(url, await serverToken(loaded))
      if (context.output.json) context.output.value({ url, signIn: address })
      else context.output.line(address)
    })
}
