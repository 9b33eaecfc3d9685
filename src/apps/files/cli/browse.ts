/** `tidemark files ls` and `files stat`: what both sides have, as last seen. Needs no network. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'

const LS_HELP = `
PATH is from the top of the folder, with / between names. It shows what was seen at the last look at either side:
  in step   both sides are the same            waiting   for something else first
  here      changed in the folder              left      left alone, or left out
  there     changed in OneDrive                held      a deletion that waits for your yes
  both      changed on both sides              conflict  you decide: tidemark files resolve`

export function registerFilesBrowse(files: Command, context: CliContext): void {
  files
    .command('ls')
    .description('list what is in a folder, on both sides')
    .argument('[path]', 'from the top of the folder', '')
    .option('--folder <name>', 'of which folder; needed where there are several')
    .addHelpText('after', LS_HELP)
    .action(async (path: string, options: { folder?: string }) => {
      const { listPath } = await import('./browse-run.ts')
      await listPath(context, path, options)
    })
  files
    .command('stat')
    .description('show all that is known about one file or folder')
    .argument('<path>', 'from the top of the folder')
    .option('--folder <name>', 'of which folder; needed where there are several')
    .action(async (path: string, options: { folder?: string }) => {
      const { statPath } = await import('./browse-run.ts')
      await statPath(context, path, options)
    })
}
