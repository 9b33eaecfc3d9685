/** `tidemark mail import` and `mail export`: mail from files into an archive, and out of it into files. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { EXPORT_FORMATS, type ExportFormat } from '../transfer/formats.ts'

export type ImportFlags = { account?: string; quoting?: 'mboxrd' | 'mboxo' | 'none' }

export type ExportFlags = {
  account?: string
  query?: string
  format: ExportFormat
  to: string
  force?: boolean
}

const IMPORT_HELP = `
PATH is a file or a folder, such as a Thunderbird profile, Apple Mail's folders (.mbox, .emlx), a Maildir, Takeout's
mailbox files, or .eml files. Files are known by their content, not by their names, also inside .gz; names of folders
become labels. Links are not followed. What is passed over is named with the reason.

Takeout's files name Gmail's ids, conversations and labels, which are kept; the headers that Takeout adds for them are
taken off, as are those that Thunderbird adds for itself; what was deleted there is passed over. Other messages are
known by their Message-ID and bytes; one that lies in several folders is kept once, with the labels of all.

No account is needed: without one, mail goes into an archive called "imported". The archive of an address that is
named by --account becomes that account's when it is connected.

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
    .argument('<path>', 'a file with mail, or a folder with any of them')
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
      const { importMail } = await import('./transfer-run.ts')
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
      const { exportMail } = await import('./transfer-run.ts')
      await exportMail(context, flags)
    })
}
