/** `tidemark account`: what is connected, and connecting it. */
import { Argument, type Command, Option } from 'commander'
import type { CliContext } from '../../app/command.ts'
import { apps } from '../../apps/registry.ts'
import { UsageError } from '../../base/errors.ts'
import type { ServiceFlag } from '../../cloud/account-service.ts'
import { type ServiceEntry, services } from '../../cloud/registry.ts'
import { durationOption } from '../output/input.ts'

/** Those of the apps, too, by their names in code: undefined where not given. */
export type AddOptions = Record<string, unknown> & {
  user?: string
  for?: string
  serviceAccount?: string
  readOnly?: boolean
  modify?: boolean
  full?: boolean
  shared?: boolean
  paste?: boolean
  device?: boolean
  open?: boolean
  browser?: boolean
  /** Milliseconds. */
  wait: number
}

const WAIT_MS_DEFAULT = 10 * 60_000

/** `of Gmail messages, of OneDrive drive`: what is told of the accounts of some services alone. */
function ofEach(toldOf: (service: ServiceEntry) => string | undefined): string {
  return services
    .flatMap((service) => {
      const told = toldOf(service)
      return told === undefined ? [] : [`of ${service.title} ${told}`]
    })
    .join(', ')
}

/** What the apps that work for a service say of something. */
function toldByApps(key: 'settings' | 'remove'): (service: ServiceEntry) => string | undefined {
  return ({ name }) => {
    const told = apps
      .filter((app) => app.services.includes(name))
      .flatMap(({ accounts }) => accounts?.told[key] ?? [])
    return told.length === 0 ? undefined : told.join(', ')
  }
}

const having = (flag: ServiceFlag): string =>
  services
    .filter(({ flags }) => flags.includes(flag))
    .map(({ title }) => title)
    .join(', ')

const addHelp = (): string => `
Prints an address to open in a browser, and waits until you have signed in there. For machines without a browser:
with --paste (${having('paste')}) you paste the address that the browser is sent to afterwards; with --device (${having('device')}) you
type a code into a browser on any device.

Before the first account of a service its client must be set up: on a terminal the command leads through it, and
tidemark account setup SERVICE does it alone. Asked for is the least that an app needs, unless flags ask for more.

An account that is there already is connected anew: its settings stay, unless flags change them.

With --json: service, name, state, access, reconnected; ${ofEach((service) => service.told.add ?? (toldByApps('settings')(service) && 'settings'))}.`

const listHelp = (): string => `
With --json, an account has: service, name, user, state (ready or sign-in), access (${ofEach(({ levels }) => levels)},
or null), settings (${ofEach(toldByApps('settings'))}), createdAt.
Secrets are never printed.`

const checkHelp = (): string => `
Asks the service. Ends with 0 when everything works, and 1 when something does not.

With --json, an account has: service, name, ok, state, access, tokenObtainedAt, problems [{code, text, hint}],
warnings [{code, text, hint}]; ${ofEach(({ told }) => told.check)}.`

const removeHelp = (): string => `
${['Nothing that was kept of the account is deleted, here or there.', ...apps.flatMap(({ accounts }) => accounts?.told.inUse ?? [])].join(' ')}

With --json: service, name, removed, revoked (done, kept, none, by-hand or failed);
${ofEach(toldByApps('remove'))}.`

export function registerAccount(program: Command, context: CliContext): void {
  const account = program.command('account').description('connect accounts and look after them')
  registerAdd(account, context)
  registerSetup(account, context)
  account
    .command('list')
    .description('list the connected accounts')
    .addHelpText('after', listHelp)
    .action(async () => {
      const { listAccounts } = await import('./list.ts')
      await listAccounts(context)
    })
  account
    .command('remove')
    .description('forget an account and give its token back; what was kept of it stays')
    .argument('<account>', 'its address, or SERVICE:ADDRESS')
    .option('--yes', 'do not ask')
    .option('--force', 'also while it is in use')
    .option('--no-revoke', 'leave the access in place, for another Tidemark that uses it')
    .addHelpText('after', removeHelp)
    .action(async (name: string, options: { yes?: boolean; force?: boolean; revoke: boolean }) => {
      const { removeAccount } = await import('./remove.ts')
      await removeAccount(context, name, options)
    })
  account
    .command('check')
    .description('ask the service whether an account still works')
    .argument('[account]', 'its address; all of them if left out')
    .addHelpText('after', checkHelp)
    .action(async (name: string | undefined) => {
      const { checkAccounts } = await import('./check.ts')
      await checkAccounts(context, name)
    })
}

function registerAdd(account: Command, context: CliContext): void {
  const add = account
    .command('add')
    .description('connect an account, or connect it anew')
    .addArgument(new Argument('<service>', 'what to connect').choices(services.map(({ name }) => name)))
    .option('--user <address>', 'whose account it must be')
    .option('--for <user>', 'the user of Tidemark who will see what is kept of it; the owner if left out')
    .option(
      '--service-account <file>',
      'sign in by a service account with domain-wide delegation, for --user',
    )
    .addOption(new Option('--read-only', 'ask for nothing but reading').conflicts(['modify', 'full']))
    .addOption(new Option('--modify', 'ask also for labelling, moving and trashing').conflicts('full'))
    .addOption(new Option('--full', 'ask also for deleting permanently').conflicts('readOnly'))
    .addOption(
      new Option('--shared', 'ask also for folders that others share and libraries of SharePoint').conflicts(
        'readOnly',
      ),
    )
  for (const { flags, text, isList } of apps.flatMap(({ accounts }) => accounts?.flags ?? [])) {
    const option = new Option(flags, text)
    add.addOption(isList ? option.argParser(collect) : option)
  }
  add
    .addOption(
      new Option('--paste', 'paste the answer here, on a machine without a browser').conflicts('open'),
    )
    .addOption(
      new Option('--device', 'get a code to type on another device, instead of the browser here').conflicts(
        'paste',
      ),
    )
    .option('--open', 'open the browser')
    .addOption(new Option('--no-browser', 'open no browser, only print the address (default)'))
    .addOption(
      durationOption('--wait <time>', 'how long to wait for the sign-in').default(WAIT_MS_DEFAULT, '10m'),
    )
    .addHelpText('after', addHelp)
    .action(async (service: string, options: AddOptions) => {
      if (options.open && options.browser === false) {
        throw new UsageError('Shall the browser be opened or not? --open and --no-browser are both given.')
      }
      const { addAccount } = await import('./add.ts')
      await addAccount(context, service, options)
    })
}

const SETUP_HELP = `
Services let a program in only as a client that somebody has registered there, once. The command shows the steps, asks for
the id and the secret, asks the service about them, and keeps them sealed. Where nobody sits before it, both are read
from standard input, each on a line; --file takes the JSON file that some services let you download. What the
configuration says wins. The page of settings does the same.

With --json: service, checks [{step, state (ok, failed or unknown), text, hint}]; with --forget: service, removed.`

function registerSetup(account: Command, context: CliContext): void {
  account
    .command('setup')
    .description('set up the client with which accounts of a service are connected')
    .addArgument(new Argument('<service>', 'of what').choices(services.map(({ name }) => name)))
    .addOption(
      new Option(
        '--file <file>',
        'the JSON file of the client, where the service lets it be downloaded',
      ).conflicts(['check', 'forget']),
    )
    .addOption(
      new Option('--check', 'only ask the service about the client that holds now').conflicts('forget'),
    )
    .option('--forget', 'forget the client that was entered; connected accounts go on')
    .addHelpText('after', SETUP_HELP)
    .action(async (service: string, options: { file?: string; check?: boolean; forget?: boolean }) => {
      const { setUpClient } = await import('./setup.ts')
      await setUpClient(context, service, options)
    })
}

function collect(text: string, earlier: string[] = []): string[] {
  return earlier.includes(text) ? earlier : [...earlier, text]
}
