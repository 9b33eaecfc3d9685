/** `tidemark account`: what is connected, and connecting it. */
import { Argument, type Command, Option } from 'commander'
import { UsageError } from '../errors.ts'
import type { CliContext } from './context.ts'
import { durationOption } from './jobs-input.ts'

export type AddOptions = {
  user?: string
  serviceAccount?: string
  readOnly?: boolean
  full?: boolean
  /** Undefined where not given: then what was chosen before stays. */
  spam?: boolean
  trash?: boolean
  onlyLabel?: string[]
  skipLabel?: string[]
  paste?: boolean
  device?: boolean
  open?: boolean
  browser?: boolean
  /** Milliseconds. */
  wait: number
}

const WAIT_MS_DEFAULT = 10 * 60_000

const ADD_HELP = `
Prints an address to open in a browser, and waits until you have signed in there. For machines without a browser:
with --paste (Gmail) you paste the address that the browser is sent to afterwards; with --device (OneDrive) you
type a code into a browser on any device.

An account that is there already is connected anew: its settings stay, unless flags change them.

With --json: service, name, state, access, reconnected; of Gmail settings, of OneDrive drive {type}.`

const LIST_HELP = `
With --json, an account has: service, name, state (ready or sign-in), access (of Gmail readonly, modify or full, of
OneDrive readonly or readwrite, or null), settings (of Gmail {spam, trash, onlyLabels, skipLabels}), createdAt.
Secrets are never printed.`

const CHECK_HELP = `
Asks the service. Ends with 0 when everything works, and 1 when something does not.

With --json, an account has: service, name, ok, state, access, tokenObtainedAt, problems [{code, text, hint}],
warnings [{code, text, hint}]; of Gmail messages, of OneDrive drive {type, usedBytes, totalBytes}.`

const REMOVE_HELP = `
Nothing that was kept of the account is deleted, here or there. An account with which a folder is kept in step is
forgotten only with --force: the folder stays as it is, and is no longer kept in step.

With --json: service, name, removed, revoked (done, kept, none, by-hand or failed); of Gmail archive, of OneDrive
folders [{name, root}].`

export function registerAccount(program: Command, context: CliContext): void {
  const account = program.command('account').description('connect accounts and look after them')
  registerAdd(account, context)
  account
    .command('list')
    .description('list the connected accounts')
    .addHelpText('after', LIST_HELP)
    .action(async () => {
      const { listAccounts } = await import('./account-list.ts')
      await listAccounts(context)
    })
  account
    .command('remove')
    .description('forget an account and give its token back; what was kept of it stays')
    .argument('<account>', 'its address, or SERVICE:ADDRESS')
    .option('--yes', 'do not ask')
    .option('--force', 'also while a folder is kept in step with it')
    .option('--no-revoke', 'leave the access in place, for another Tidemark that uses it')
    .addHelpText('after', REMOVE_HELP)
    .action(async (name: string, options: { yes?: boolean; force?: boolean; revoke: boolean }) => {
      const { removeAccount } = await import('./account-remove.ts')
      await removeAccount(context, name, options)
    })
  account
    .command('check')
    .description('ask the service whether an account still works')
    .argument('[account]', 'its address; all of them if left out')
    .addHelpText('after', CHECK_HELP)
    .action(async (name: string | undefined) => {
      const { checkAccounts } = await import('./account-check.ts')
      await checkAccounts(context, name)
    })
}

function registerAdd(account: Command, context: CliContext): void {
  account
    .command('add')
    .description('connect an account, or connect it anew')
    .addArgument(new Argument('<service>', 'what to connect').choices(['gmail', 'onedrive']))
    .option('--user <address>', 'whose account it must be')
    .option(
      '--service-account <file>',
      'sign in by a service account with domain-wide delegation, for --user',
    )
    .addOption(new Option('--read-only', 'ask for nothing but reading').conflicts('full'))
    .addOption(new Option('--full', 'ask also for deleting permanently').conflicts('readOnly'))
    .option('--spam', 'archive spam too')
    .option('--no-spam', 'leave spam out (default)')
    .option('--trash', 'archive the trash too (default)')
    .option('--no-trash', 'leave the trash out')
    .option('--only-label <label>', 'only mail with this label; can be given several times', collect)
    .option('--skip-label <label>', 'no mail with this label; can be given several times', collect)
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
    .addHelpText('after', ADD_HELP)
    .action(async (service: string, options: AddOptions) => {
      if (options.open && options.browser === false) {
        throw new UsageError('Shall the browser be opened or not? --open and --no-browser are both given.')
      }
      if (service === 'onedrive') {
        const { addOneDrive } = await import('./account-add-onedrive.ts')
        await addOneDrive(context, options)
        return
      }
      const { addGmail } = await import('./account-add.ts')
      await addGmail(context, options)
    })
}

function collect(text: string, earlier: string[] = []): string[] {
  return earlier.includes(text) ? earlier : [...earlier, text]
}
