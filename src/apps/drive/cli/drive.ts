/**
 * `tidemark drive`: the index of Google Drives. What can be said on the command line is declared here, with its help; what
 * a verb does is in the file that its action imports, so that `--help` loads nothing else.
 */
import { Option } from 'commander'
import type { AppNoun, RegisterVerb } from '../../../app/cli/noun.ts'
import { limitOption } from '../../../cli/output/input.ts'

const SYNC_HELP = `
The first run lists every file that an account sees and reads each document once, however many accounts see it; later
runs follow what changed. It can be stopped at any time with Ctrl-C and goes on where it was. With --json, one object a
line: a progress object per account and step, and at the end {"type":"summary", accounts [...]}.

Ends with 0 when all is settled, 1 when something failed or it was stopped before that, 3 when all is settled but for
files that could not be read.`

export const driveNoun: AppNoun = {
  description: 'the index of Google Drives',
  words: {
    one: 'account',
    account: 'Google Drive',
    item: 'file',
    badText: 'could not be read',
    choice: '--account <address>',
    choiceText: 'only this account',
  },
  sync: {
    description: 'index new and changed documents, and who may see them',
    help: SYNC_HELP,
    options: [new Option('--relist', 'list everything anew, instead of what has changed')],
    part: async () => (await import('./sync.ts')).driveSync,
  },
  status: {
    description: 'show how far each account and each of its drives is',
    report: async () => (await import('./status.ts')).reportDrive,
  },
  verbs: [
    (drive, context) => {
      addSkipped(drive, context)
      addUsers(drive, context)
      addWho(drive, context)
    },
  ],
}

const addSkipped: RegisterVerb = (drive, context) => {
  drive
    .command('skipped')
    .description('list files that are found by their names only, each with its reason')
    .option('--account <address>', 'only what this account sees')
    .option('--code <code>', 'only those with this reason, such as too-large')
    .addOption(limitOption())
    .action(async (options) => (await import('./skipped.ts')).listSkipped(context, options))
}

const addUsers: RegisterVerb = (drive, context) => {
  drive
    .command('users')
    .description('list whose Drives are indexed, and how many documents each of them finds')
    .action(async () => (await import('./users.ts')).listUsers(context))
}

const addWho: RegisterVerb = (drive, context) => {
  drive
    .command('who')
    .description('show who can find a file, and through what')
    .argument('<file>', 'its id, its address in the browser, or its name')
    .action(async (file: string) => (await import('./who.ts')).showWho(context, file))
}
