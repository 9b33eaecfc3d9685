/** `tidemark files sync` and `files watch`: brings a folder and OneDrive into step, and keeps them so. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { addFilterOptions, conflictsOption } from './set.ts'

const HELP = `
Without a name it is about all folders of this machine. A folder that is given for the first time, by its path, is
set up: what is in it and what is in OneDrive are merged, and nothing is deleted. It can be stopped at any time with
Ctrl-C and goes on where it was.

The direction, --conflicts, and what is left out (--skip, --only and so on, as in files set) hold from then on, and not
only for this run. So a new folder can begin with a part of OneDrive: tidemark files sync ~/OneDrive --only Documents

With --json, one object a line: {"type":"progress", ...} per folder every few seconds, and at the end
{"type":"summary", folders [...]}; with --dry-run {"type":"plan", ...} for each folder.

Ends with 0 when both sides are in step, 1 when something failed or it was stopped before that, 3 when all is in step but
for things that need you: conflicts, files that could not be synced, deletions that wait for a yes.`

const WATCH_HELP = `
Changes in the folder are seen at once, changes in OneDrive by asking every files.poll_seconds; every
files.scan_minutes the whole folder is looked through. Ctrl-C stops it. tidemark serve does the same for all folders.

It says what it did and what needs you. With --json, one object a line, by its type: "action" for each thing that was
done or failed, "needs" when conflicts or things that are left alone change, "progress" while there is work, "summary".`

export function registerFilesSync(files: Command, context: CliContext): void {
  const sync = files
    .command('sync')
    .description('bring a folder and OneDrive into step, both ways')
    .argument('[folder]', 'its name, or a path; a new path sets it up')
    .option('--account <address>', 'for a new folder: whose OneDrive')
    .option('--drive <id>', "for a new folder: another drive than the account's own")
    .option('--name <name>', 'for a new folder: what it is called here')
    .addOption(modeOption('--download-only', 'only bring changes from OneDrive here'))
    .addOption(modeOption('--upload-only', 'only bring changes from here to OneDrive'))
    .addOption(modeOption('--two-way', 'both ways, as is usual'))
    .addOption(conflictsOption())
  addFilterOptions(sync)
    .option('--dry-run', 'print what would be done, and do nothing')
    .option('--watch', 'go on, and keep both in step until Ctrl-C')
    .option('--force-deletes', 'do many deletions, or replace many files, at once without asking')
    .addHelpText('after', HELP)
    .action(async (folder: string | undefined, options) => {
      const { syncFiles } = await import('./sync-run.ts')
      await syncFiles(context, folder, options)
    })
  files
    .command('watch')
    .description('keep folders and OneDrive in step until Ctrl-C')
    .argument('[folder]', 'its name, or its path')
    .option('--force-deletes', 'do many deletions, or replace many files, at once without asking')
    .addHelpText('after', WATCH_HELP)
    .action(async (folder: string | undefined, options) => {
      const { syncFiles } = await import('./sync-run.ts')
      await syncFiles(context, folder, { ...options, watch: true, isKnownOnly: true })
    })
}

const MODES = ['--download-only', '--upload-only', '--two-way'] as const

function modeOption(flag: (typeof MODES)[number], description: string): Option {
  const others = MODES.filter((other) => other !== flag)
  const names = others.map((other) => other.slice(2).replace(/-(.)/g, (_, letter) => letter.toUpperCase()))
  return new Option(flag, description).conflicts(names)
}
