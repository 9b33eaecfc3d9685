/** `tidemark users`: who may ask, the tokens of their programs, and signing them in. */
import { Argument, type Command } from 'commander'
import type { CliContext } from '../../app/command.ts'
import { limitOption, parseId } from '../output/input.ts'
import { portOption } from '../serve/serve.ts'

const LIST_HELP = `
With --json, a user has: id, name, role (admin or member), state (active or disabled), accounts [SERVICE:NAME], tokens
(how many), createdAt.`

const ADD_HELP = `
Members search what was kept of their own accounts, and see how far it is. Admins may do everything; what was kept of
others they see only by saying so, and that is written down (tidemark users audit).

Connect an account for a user with: tidemark account add SERVICE --for USER`

const TOKEN_HELP = `
A token is printed once; only its hash is kept. Programs send it as the header Authorization: Bearer TOKEN. It may do
what its user may do, until it is revoked or the user is disabled.`

const SIGN_IN_HELP = `
The address works once, within 15 minutes, for a server of this home that runs already. Whoever opens it is that user:
give it to nobody else.`

export function registerUsers(program: Command, context: CliContext): void {
  const users = program.command('users').description('who may search, and who looks after everything')
  users
    .command('list')
    .description('list the users')
    .addHelpText('after', LIST_HELP)
    .action(async () => (await import('./list.ts')).listUsers(context))
  users
    .command('add')
    .description('add a user')
    .argument('<name>', 'an address, or one word')
    .option('--admin', 'who may do everything')
    .addHelpText('after', ADD_HELP)
    .action(async (name: string, { admin }: { admin?: boolean }) =>
      (await import('./change.ts')).addUser(context, { name, role: admin ? 'admin' : 'member' }),
    )
  users
    .command('role')
    .description('let a user do everything, or only what members may')
    .argument('<name>', 'the user')
    .addArgument(new Argument('<role>', 'what they are').choices(['admin', 'member']))
    .action(async (name: string, role: 'admin' | 'member') =>
      (await import('./change.ts')).changeUser(context, name, { role }),
    )
  users
    .command('disable')
    .description('let a user in no more; their tokens and sessions end at once')
    .argument('<name>', 'the user')
    .action(async (name: string) =>
      (await import('./change.ts')).changeUser(context, name, { state: 'disabled' }),
    )
  users
    .command('enable')
    .description('let a user in again')
    .argument('<name>', 'the user')
    .action(async (name: string) =>
      (await import('./change.ts')).changeUser(context, name, { state: 'active' }),
    )
  users
    .command('remove')
    .description('remove a user who has no accounts')
    .argument('<name>', 'the user')
    .action(async (name: string) => (await import('./change.ts')).removeUser(context, name))
  users
    .command('give')
    .description('give an account to a user, who sees from then on what was kept of it')
    .argument('<account>', 'its address, or SERVICE:ADDRESS')
    .argument('<name>', 'the user')
    .action(async (account: string, name: string) =>
      (await import('./change.ts')).giveAccount(context, { account, name }),
    )
  registerTokens(users, context)
  users
    .command('sign-in')
    .description('print an address that signs a user in to a browser')
    .argument('<name>', 'the user')
    .addOption(portOption('of the server, where it is not server.port'))
    .addHelpText('after', SIGN_IN_HELP)
    .action(async (name: string, { port }: { port?: number }) =>
      (await import('./access.ts')).printSignIn(context, { name, port }),
    )
  users
    .command('audit')
    .description('list what was done for users, and by whom: the newest first')
    .addOption(limitOption())
    .action(async ({ limit }: { limit: number }) => (await import('./list.ts')).listAudit(context, limit))
}

function registerTokens(users: Command, context: CliContext): void {
  const token = users.command('token').description('tokens with which programs of a user ask')
  token
    .command('add')
    .description('make a token, and print it once')
    .argument('<name>', 'the user')
    .option('--label <text>', 'what it is for', '')
    .addHelpText('after', TOKEN_HELP)
    .action(async (name: string, { label }: { label: string }) =>
      (await import('./access.ts')).addToken(context, { name, label }),
    )
  token
    .command('list')
    .description('list the tokens of a user, without the tokens themselves')
    .argument('<name>', 'the user')
    .action(async (name: string) => (await import('./access.ts')).listTokens(context, name))
  token
    .command('revoke')
    .description('let a token be worth nothing from now on, and the sessions that it gave')
    .argument('<name>', 'the user')
    .argument('<number>', 'of the token, as the list shows it')
    .action(async (name: string, number: string) =>
      (await import('./access.ts')).revokeToken(context, { name, id: parseId(number, 'token') }),
    )
}
