/** `tidemark files get|put|rm|mkdir|mv`: OneDrive itself, without waiting for a sync. The folder here follows. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'

const HELP = `
PATH is from the top of the drive that the folder is kept in step with, with / between names. What is changed in
OneDrive comes to the folder with the next sync, or at once where one is running.`

export function registerFilesCloud(files: Command, context: CliContext): void {
  const folderFlag = ['--folder <name>', 'whose drive is meant; needed where there are several'] as const
  files
    .command('get')
    .description('fetch a file from OneDrive')
    .argument('<path>', 'in the drive')
    .argument('[to]', 'where to; its own name in the current folder otherwise')
    .option('--force', 'replace what is there')
    .option(...folderFlag)
    .addHelpText('after', HELP)
    .action(async (path: string, to: string | undefined, options) => {
      const { getFile } = await import('./cloud-get.ts')
      await getFile(context, { path, to, ...options })
    })
  files
    .command('put')
    .description('bring a file to OneDrive')
    .argument('<file>', 'on this machine')
    .argument('<path>', 'in the drive; with a / at its end, into that folder')
    .option('--force', 'replace what is there; the version before stays in its history')
    .option(...folderFlag)
    .addHelpText('after', HELP)
    .action(async (file: string, path: string, options) => {
      const { putFile } = await import('./cloud-put.ts')
      await putFile(context, { file, path, ...options })
    })
  files
    .command('rm')
    .description('move a file or folder in OneDrive to its recycle bin')
    .argument('<path>', 'in the drive')
    .option('--recursive', 'also a folder that is not empty')
    .option(...folderFlag)
    .addHelpText('after', HELP)
    .action(async (path: string, options) => {
      const { removePath } = await import('./cloud-run.ts')
      await removePath(context, { path, ...options })
    })
  files
    .command('mkdir')
    .description('make a folder in OneDrive')
    .argument('<path>', 'in the drive')
    .option('--parents', 'with the folders above it')
    .option(...folderFlag)
    .addHelpText('after', HELP)
    .action(async (path: string, options) => {
      const { makeFolder } = await import('./cloud-run.ts')
      await makeFolder(context, { path, ...options })
    })
  files
    .command('mv')
    .description('rename or move a file or folder in OneDrive')
    .argument('<from>', 'in the drive')
    .argument('<to>', 'in the drive; a folder that is there takes it in')
    .option(...folderFlag)
    .addHelpText('after', HELP)
    .action(async (from: string, to: string, options) => {
      const { movePath } = await import('./cloud-run.ts')
      await movePath(context, { from, to, ...options })
    })
}
