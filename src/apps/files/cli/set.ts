/** `tidemark files set` and `files remove`: what holds for a folder, and the end of keeping it in step. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'

const SET_HELP = `
Patterns are those of a .gitignore; a file .tidemarkignore at the top of the folder serves as well. What is left out
stays where it is, on both sides: nothing is deleted by leaving it out. Without options it shows what holds.

Lists are replaced as a whole: --skip '*.iso' --skip build/ . An empty one ends them: --skip '' .`

const REMOVE_HELP = `
Both sides stay as they are, and so does the trash. If the folder is given to files sync again, what is equal on both
sides is not copied again.`

/** What takes part. */
export type FilterOptions = {
  skip?: string[]
  only?: string[]
  maxSize?: number
  skipDotfiles?: boolean
  followLinks?: boolean
}

export type SetOptions = FilterOptions & {
  mode?: 'two-way' | 'download-only' | 'upload-only'
  conflicts?: 'keep-both' | 'keep-local' | 'keep-remote' | 'manual'
}

export function registerFilesSet(files: Command, context: CliContext): void {
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
  addFilterOptions(set)
    .addHelpText('after', SET_HELP)
    .action(async (folder: string, options: SetOptions) => {
      const { setFolder } = await import('./set-run.ts')
      await setFolder(context, folder, options)
    })
  files
    .command('remove')
    .description('stop keeping a folder in step; both sides stay as they are')
    .argument('<folder>', 'its name, or its path')
    .addHelpText('after', REMOVE_HELP)
    .action(async (folder: string) => {
      const { removeFolder } = await import('./set-run.ts')
      await removeFolder(context, folder)
    })
}

export function conflictsOption(): Option {
  const policies = ['keep-both', 'keep-local', 'keep-remote', 'manual']
  return new Option('--conflicts <policy>', 'what becomes of files that were changed on both sides').choices(
    policies,
  )
}

export function addFilterOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--skip <pattern>', 'leave this out; may be given several times').argParser(collect),
    )
    .addOption(
      new Option('--only <path>', 'leave out all but this; may be given several times').argParser(collect),
    )
    .addOption(
      new Option('--max-size <mb>', 'leave out files that are larger, in MB; 0: any size').argParser(
        megabytes,
      ),
    )
    .option('--skip-dotfiles', 'leave out names that begin with a dot')
    .option('--no-skip-dotfiles', 'take them in again')
    .option('--follow-links', 'follow symbolic links that stay in the folder')
    .option('--no-follow-links', 'leave them alone')
}

function collect(text: string, earlier: string[] = []): string[] {
  return text.trim() === '' ? earlier : [...earlier, text]
}

function megabytes(text: string): number {
  const size = /^\d{1,9}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN
  if (Number.isFinite(size)) return size
  throw new UsageError(`--max-size is "${text}", but it must be a number of megabytes, such as 500.`)
}
