/** `tidemark files verify`: every file against what both sides last agreed on. Changes nothing. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'

const HELP = `
Every file of the folder is read and hashed, and OneDrive is asked for the whole tree. Every difference from what both
sides last agreed on is told; those that come from changes that were not synced yet, too. With --deep the content of
every file in OneDrive is read as well, which takes as long as downloading all of it.

Ends with 0 where everything agrees, 3 where something does not.`

export function registerFilesVerify(files: Command, context: CliContext): void {
  files
    .command('verify')
    .description('read everything on both sides and compare it')
    .argument('[folder]', 'its name, or its path; all of this machine otherwise')
    .option('--deep', 'read the content of files in OneDrive, too')
    .addHelpText('after', HELP)
    .action(async (folder: string | undefined, options: { deep?: boolean }) => {
      const { verifyFolders } = await import('./verify-run.ts')
      await verifyFolders(context, folder, options)
    })
}
