/** `tidemark mail import` and `mail export`: mail from files into an archive, and out of it into files. */
import { type Command, Option } from 'commander'
import { EXPORT_FORMATS, type ExportFormat } from '../apps/mail-archive/transfer/formats.ts'
import type { CliContext } from './context.ts'

export type ImportFlags = { account?: string; quoting?: 'mboxrd' | 'mboxo' | 'none' }

export type ExportFlags = {
  account?: string
  query?: string
  format: ExportFormat
  to: string
  force?: boolean
}

const IMPORT_HELP = `
PATH is a mailbox file (mbox, such as Takeout's), a Maildir, a message (.eml), or a folder with any of them.
Takeout's files name Gmail's ids, conversations and labels, which are kept; the headers that Takeout adds for
them are taken off. Other messages are known by their Message-ID and bytes.

What the archive has is left alone: an import that was stopped is simply started again. Imported mail is searched
like all other, and marked (is:imported): nothing in Gmail is freed on the word of a file.

Ends with 0 when all was read, 3 when some of it was damaged and skipped; each such place is named.`

const EXPORT_HELP = `
  mbox      one file, as Takeout writes it: ids, conversations and labels can be imported again.
  eml       a folder with a folder for each year, a file for each message.
  maildir   a Maildir; read and starred mail has its flags.

Written beside the target under a name that ends in .partial, and renamed when all of it is on disk.
The query is written as for tidemark mail search; without one, all mail is exported.

Ends with 0 when done, 3 when done but some messages could not be read from the archive.`

export function registerMailTransfer(mail: Command, context: CliContext): void {
  mail
    .command('import')
    .description('bring mail from files into the archive')
    .argument('<path>', 'a mailbox file, a Maildir, an .eml file, or a folder of them')
    .option(
      '--account <address>',
      'the account whose archive takes it; may be left out where there is only one',
    )
    .addOption(
      new Option('--quoting <form>', 'how a mailbox file quotes lines that begin with "From "')
        .choices(['mboxrd', 'mboxo', 'none'])
        .default('mboxrd'),
    )
    .addHelpText('after', IMPORT_HELP)
    .action(async (path: string, flags: ImportFlags) => {
      const { importMail } = await import('./mail-transfer-run.ts')
      await importMail(context, path, flags)
    })
  mail
    .command('export')
    .description('write mail from the archive into files')
    .option('--account <address>', 'the account; may be left out where there is only one')
    .option('--query <query>', 'only what this search finds')
    .addOption(
      new Option('--format <format>', 'how it is written').choices([...EXPORT_FORMATS]).default('mbox'),
    )
    .requiredOption('--to <path>', 'the file (mbox) or folder (eml, maildir) to write')
    .option('--force', 'replace the file, or add to the folder, that is there')
    .addHelpText('after', EXPORT_HELP)
    .action(async (flags: ExportFlags) => {
      const { exportMail } = await import('./mail-transfer-run.ts')
      await exportMail(context, flags)
    })
}
