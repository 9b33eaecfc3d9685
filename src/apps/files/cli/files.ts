/**
 * `tidemark files`: folders that are kept in step with OneDrive. What can be said on the command line is declared here,
 * with its help; what a verb does is in the file that its action imports, so that `--help` loads nothing else.
 */
import { type Command, Option } from 'commander'
import type { AppNoun, RegisterVerb } from '../../../app/cli/noun.ts'
import { UsageError } from '../../../base/errors.ts'
import { durationOption } from '../../../cli/output/input.ts'

const SYNC_HELP = `
Without a name it is about all folders of this machine. A folder that is given for the first time, by its path, is
set up: what is in it and what is in OneDrive are merged, and nothing is deleted. It can be stopped at any time with
Ctrl-C and goes on where it was.

The direction, --conflicts, and what is left out (--skip, --only and so on, as in files set) hold from then on, and not
only for this run. So a new folder can begin with a part of OneDrive: tidemark files sync ~/OneDrive --only Documents

With --json, one object a line: {"type":"progress", ...} per folder every few seconds, and at the end
{"type":"summary", folders [...]}; with --dry-run {"type":"plan", ...} for each folder.

Ends with 0 when both sides are in step, 1 when something failed or it was stopped before that, 3 when all is in step but
for things that need you: conflicts, files that could not be synced, deletions that wait for a yes.`

const STATUS_HELP = `
Says what was seen at the last look at each side; it looks at neither, but for whether the folder is
there. Ends with 0 when all is in step or a process works on it, 1 when something failed, is paused, was not synced yet or
was stopped before it was done, 2 when a folder is not there, 3 when something needs you.`

const VERIFY_HELP = `
Every file of the folder is read and hashed, and OneDrive is asked for the whole tree. Every difference from what both
sides last agreed on is told; those that come from changes that were not synced yet, too. With --deep the content of
every file in OneDrive is read as well, which takes as long as downloading all of it.

Ends with 0 where everything agrees, 3 where something does not.`

const MODES = ['--download-only', '--upload-only', '--two-way'] as const

function modeOption(flag: (typeof MODES)[number], description: string): Option {
  const others = MODES.filter((other) => other !== flag)
  const names = others.map((other) => other.slice(2).replace(/-(.)/g, (_, letter) => letter.toUpperCase()))
  return new Option(flag, description).conflicts(names)
}

const conflictsOption = (): Option =>
  new Option('--conflicts <policy>', 'what becomes of files that were changed on both sides').choices([
    'keep-both',
    'keep-local',
    'keep-remote',
    'manual',
  ])

/** What takes part. */
const filterOptions = (): Option[] => [
  new Option('--skip <pattern>', 'leave this out; may be given several times').argParser(collect),
  new Option(
    '--only <path>',
    "leave out all but this; may be given several times; '' takes all of it in again",
  ).argParser(collect),
  new Option('--max-size <mb>', 'leave out files that are larger, in MB; 0: any size').argParser(megabytes),
  new Option('--skip-dotfiles', 'leave out names that begin with a dot'),
  new Option('--no-skip-dotfiles', 'take them in again'),
  new Option('--follow-links', 'follow symbolic links that stay in the folder'),
  new Option('--no-follow-links', 'leave them alone'),
]

function collect(text: string, earlier: string[] = []): string[] {
  return text.trim() === '' ? earlier : [...earlier, text]
}

function megabytes(text: string): number {
  const size = /^\d{1,9}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN
  if (Number.isFinite(size)) return size
  throw new UsageError(`--max-size is "${text}", but it must be a number of megabytes, such as 500.`)
}

const FORCE = ['--force-deletes', 'do many deletions, or replace many files, at once without asking'] as const

export const filesNoun: AppNoun = {
  description: 'folders that are kept in step with OneDrive',
  words: {
    one: 'folder',
    account: 'OneDrive',
    choiceText: 'its name, or its path; all of this machine otherwise',
    hasBadItems: false,
  },
  sync: {
    description: 'bring a folder and OneDrive into step, both ways',
    help: SYNC_HELP,
    choiceText: 'its name, or a path; a new path sets it up',
    options: [
      new Option('--account <address>', 'for a new folder: whose OneDrive'),
      new Option(
        '--drive <name>',
        "for a new folder: a library or a shared folder instead of the account's own drive; see files drives",
      ),
      new Option('--name <name>', 'for a new folder: what it is called here'),
      modeOption('--download-only', 'only bring changes from OneDrive here'),
      modeOption('--upload-only', 'only bring changes from here to OneDrive'),
      modeOption('--two-way', 'both ways, as is usual'),
      conflictsOption(),
      ...filterOptions(),
      new Option('--dry-run', 'print what would be done, and do nothing'),
      new Option('--watch', 'go on, and keep both in step until Ctrl-C'),
      new Option(...FORCE),
    ],
    part: async () => (await import('./sync.ts')).filesSync(),
  },
  status: {
    description: 'show how far folders and OneDrive are in step',
    help: STATUS_HELP,
    options: [new Option('--all', 'list everything that is left alone, with its reason')],
    report: async () => (await import('./status.ts')).reportFolder,
  },
  verify: {
    description: 'read everything on both sides and compare it',
    help: VERIFY_HELP,
    options: [new Option('--deep', 'read the content of files in OneDrive, too')],
    part: async () => (await import('./verify.ts')).filesVerify,
  },
  verbs: [
    (files, context) => {
      addWatch(files, context)
      addBrowse(files, context)
      addCloud(files, context)
      addConflicts(files, context)
      addTrash(files, context)
      addDrives(files, context)
      addSet(files, context)
    },
  ],
}

const WATCH_HELP = `
Changes in the folder are seen at once, changes in OneDrive by asking every files.poll_seconds; every
files.scan_minutes the whole folder is looked through. Ctrl-C stops it. tidemark serve does the same for all folders.

It says what it did and what needs you. With --json, one object a line, by its type: "action" for each thing that was
done or failed, "needs" when conflicts or things that are left alone change, "progress" while there is work, "summary".`

const addWatch: RegisterVerb = (files, context) => {
  files
    .command('watch')
    .description('keep folders and OneDrive in step until Ctrl-C')
    .argument('[folder]', 'its name, or its path')
    .option(...FORCE)
    .addHelpText('after', WATCH_HELP)
    .action(async (folder: string | undefined, options) =>
      (await import('./sync.ts')).syncFiles(context, folder, { ...options, watch: true, isKnownOnly: true }),
    )
}

const LS_HELP = `
PATH is from the top of the folder, with / between names. It shows what was seen at the last look at either side:
  in step   both sides are the same            waiting   for something else first
  here      changed in the folder              left      left alone, or left out
  there     changed in OneDrive                held      a deletion that waits for your yes
  both      changed on both sides              conflict  you decide: tidemark files resolve`

const addBrowse: RegisterVerb = (files, context) => {
  files
    .command('ls')
    .description('list what is in a folder, on both sides')
    .argument('[path]', 'from the top of the folder', '')
    .option('--folder <name>', 'of which folder; needed where there are several')
    .addHelpText('after', LS_HELP)
    .action(async (path: string, options) => (await import('./browse.ts')).listPath(context, path, options))
  files
    .command('stat')
    .description('show all that is known about one file or folder')
    .argument('<path>', 'from the top of the folder')
    .option('--folder <name>', 'of which folder; needed where there are several')
    .action(async (path: string, options) => (await import('./browse.ts')).statPath(context, path, options))
}

const CLOUD_HELP = `
PATH is from the top of the drive that the folder is kept in step with, with / between names. What is changed in
OneDrive comes to the folder with the next sync, or at once where one is running.`

const addCloud: RegisterVerb = (files, context) => {
  const verb = (name: string, description: string): Command =>
    files
      .command(name)
      .description(description)
      .option('--folder <name>', 'whose drive is meant; needed where there are several')
      .addHelpText('after', CLOUD_HELP)
  verb('get', 'fetch a file from OneDrive')
    .argument('<path>', 'in the drive')
    .argument('[to]', 'where to; its own name in the current folder otherwise')
    .option('--force', 'replace what is there')
    .action(async (path: string, to: string | undefined, options) =>
      (await import('./cloud-get.ts')).getFile(context, { path, to, ...options }),
    )
  verb('put', 'bring a file to OneDrive')
    .argument('<file>', 'on this machine')
    .argument('<path>', 'in the drive; with a / at its end, into that folder')
    .option('--force', 'replace what is there; the version before stays in its history')
    .action(async (file: string, path: string, options) =>
      (await import('./cloud-put.ts')).putFile(context, { file, path, ...options }),
    )
  verb('rm', 'move a file or folder in OneDrive to its recycle bin')
    .argument('<path>', 'in the drive')
    .option('--recursive', 'also a folder that is not empty')
    .action(async (path: string, options) =>
      (await import('./cloud.ts')).removePath(context, { path, ...options }),
    )
  verb('mkdir', 'make a folder in OneDrive')
    .argument('<path>', 'in the drive')
    .option('--parents', 'with the folders above it')
    .action(async (path: string, options) =>
      (await import('./cloud.ts')).makeFolder(context, { path, ...options }),
    )
  verb('mv', 'rename or move a file or folder in OneDrive')
    .argument('<from>', 'in the drive')
    .argument('<to>', 'in the drive; a folder that is there takes it in')
    .action(async (from: string, to: string, options) =>
      (await import('./cloud.ts')).movePath(context, { from, to, ...options }),
    )
}

const CONFLICTS_HELP = `
Open ones are there only where the folder's policy is "manual": tidemark files set FOLDER --conflicts manual.
Otherwise a conflict is settled at once, and listed with --all: by keep-both, the version from here has got another
name, which the list shows.`

const RESOLVE_HELP = `
--keep local    the version from here counts; OneDrive's is kept in the trash of the folder
--keep remote   OneDrive's version counts; the one from here goes to the trash of the folder
--keep both     OneDrive's version keeps the name, the one from here gets another

It is done by the next sync, or at once where one is running.`

const addConflicts: RegisterVerb = (files, context) => {
  files
    .command('conflicts')
    .description('list files that were changed on both sides')
    .option('--folder <name>', 'only of this folder')
    .option('--all', 'settled ones, too')
    .addHelpText('after', CONFLICTS_HELP)
    .action(async (options) => (await import('./conflicts.ts')).listConflicts(context, options))
  files
    .command('resolve')
    .description('decide which version of a conflict counts')
    .argument('<id>', 'its number in the list')
    .addOption(
      new Option('--keep <version>', 'which one counts')
        .choices(['local', 'remote', 'both'])
        .makeOptionMandatory(),
    )
    .option('--folder <name>', 'of which folder; needed where there are several')
    .addHelpText('after', RESOLVE_HELP)
    .action(async (id: string, options) => (await import('./conflicts.ts')).resolve(context, id, options))
}

const TRASH_HELP = `
What was deleted in OneDrive, or replaced by a newer version from there, is kept in .tidemark/trash of the folder for
files.trash_days, counted by the time that Tidemark saw pass. What was deleted here is in OneDrive's recycle bin.`

const addTrash: RegisterVerb = (files, context) => {
  const trash = files.command('trash').description('what was deleted or replaced in a folder')
  trash
    .command('list')
    .description('list what is in the trash')
    .option('--folder <name>', 'only of this folder')
    .addHelpText('after', TRASH_HELP)
    .action(async (options) => (await import('./trash.ts')).listEntries(context, options))
  trash
    .command('restore')
    .description('put something back to where it was')
    .argument('<entry>', 'as the list shows it')
    .option('--to <path>', 'to another place in the folder')
    .option('--folder <name>', 'of which folder; needed where there are several')
    .action(async (entry: string, options) => (await import('./trash.ts')).putBack(context, entry, options))
  trash
    .command('empty')
    .description('delete for good what is in the trash')
    .addOption(
      durationOption('--older-than <time>', 'only what Tidemark has seen there for longer, such as 7d'),
    )
    .option('--folder <name>', 'only of this folder')
    .option('--yes', 'without asking')
    .action(async (options) => (await import('./trash.ts')).empty(context, options))
}

const SET_HELP = `
Patterns are those of a .gitignore; a file .tidemarkignore at the top of the folder serves as well. What is left out
stays where it is, on both sides: nothing is deleted by leaving it out. Without options it shows what holds.

Lists are replaced as a whole: --skip '*.iso' --skip build/ . An empty one ends them: --skip '' .`

const REMOVE_HELP = `
Both sides stay as they are, and so does the trash. If the folder is given to files sync again, what is equal on both
sides is not copied again.`

const DRIVES_HELP = `
The account's own drives, the libraries of the sites of SharePoint that you follow, and folders that other people share
with you; for what is not your own the account must be connected with --shared. Microsoft lists fewer and fewer shared
folders: one that is missing is chosen by its link, --drive 'https://…', or listed once you add a shortcut to it at the
top of your OneDrive. Where you may only read, changes only come here.

With --json: account, drives [{id, type, name, usedBytes, owner}], hint.`

const addDrives: RegisterVerb = (files, context) => {
  files
    .command('drives')
    .description('list what a folder can be kept in step with')
    .option('--account <address>', 'whose; not needed where one account is connected')
    .addHelpText('after', DRIVES_HELP)
    .action(async (options) => (await import('./drives.ts')).listDrives(context, options))
}

const addSet: RegisterVerb = (files, context) => {
  const set = files
    .command('set')
    .description('choose what holds for a folder: direction, conflicts, what is left out')
    .argument('<folder>', 'its name, or its path')
    .addOption(
      new Option('--mode <mode>', 'which way changes go').choices([
        'two-way',
        'download-only',
        'upload-only',
      ]),
    )
    .addOption(conflictsOption())
  for (const option of filterOptions()) set.addOption(option)
  set
    .addHelpText('after', SET_HELP)
    .action(async (folder: string, options) => (await import('./set.ts')).setFolder(context, folder, options))
  files
    .command('remove')
    .description('stop keeping a folder in step; both sides stay as they are')
    .argument('<folder>', 'its name, or its path')
    .addHelpText('after', REMOVE_HELP)
    .action(async (folder: string) => (await import('./set.ts')).removeFolder(context, folder))
}
