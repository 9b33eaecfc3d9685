/** `tidemark mail archive`, `undo` and `archive-runs`: take out of Gmail what is proven to be stored, and back. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { limitOption } from '../../../cli/output/input.ts'
import { ARCHIVE_ACTIONS } from '../clean-up/verdict.ts'

const ARCHIVE_HELP = `
Takes only messages below the watermark whose bytes, read back from the archive just now, have their hash, and whose
state in Gmail is as it was when they were planned. Everything else is refused and told by class.

  unlabel   takes a label away, INBOX if none is named: the message stays in All Mail. The default.
  trash     moves to the trash, which Gmail empties after 30 days.
  delete    deletes for good; needs --permanently, and a typed confirmation or --yes.

What was done is journaled before it is done: undo it with tidemark mail undo RUN. Can be stopped at any time with
Ctrl-C; go on with --resume. Ages are written 90d, 26w, 18mo or 2y.

Ends with 0 when done, 1 when something failed or it was stopped, 2 on wrong usage, 3 when done but some messages
were refused because their bytes in the archive are damaged.`

const UNDO_HELP = `
Labels come back as they were before. Messages that Gmail no longer has are inserted again, with their bytes from the
archive, under new ids. Gmail then dates them by their Date header, usually some seconds before they arrived. With
--keep-dates it is the other way round: their Date header is replaced by the time of arrival, and kept as
X-Original-Date, so that their bytes are others. How many are different in that way is said at the end. What others
have deleted meanwhile is not inserted.`

export function registerMailArchive(mail: Command, context: CliContext): void {
  mail
    .command('archive')
    .description('take mail out of Gmail that is proven to be stored')
    .option('--account <address>', 'the account; may be left out where there is only one')
    .option('--older-than <age>', 'only what arrived longer ago, such as 2y')
    .option('--query <query>', 'only what this search finds')
    .addOption(new Option('--action <action>', 'what to do').choices([...ARCHIVE_ACTIONS]).default('unlabel'))
    .option('--label <name>', 'with unlabel: the label to take away; INBOX if left out')
    .option('--dry-run', 'only say what would be done and what refused')
    .option('--quick', 'with --dry-run: without reading bytes and asking Gmail')
    .addOption(messagesOption())
    .option('--permanently', 'with delete: yes, for good')
    .option('--yes', 'do not ask')
    .option('--resume [run]', 'go on with a run that is not finished')
    .option('--abandon <run>', 'give up a run: what is done stays done')
    .addHelpText('after', ARCHIVE_HELP)
    .action(async (options) => {
      const { archiveMail } = await import('./clean-up-run.ts')
      await archiveMail(context, options)
    })
  mail
    .command('undo')
    .description('undo an archive run')
    .argument('<run>', 'its number, as archive-runs shows it')
    .option('--keep-dates', 'insert deleted messages with the date of arrival; this changes their bytes')
    .addHelpText('after', UNDO_HELP)
    .action(async (run: string, options) => {
      const { undoArchive } = await import('./clean-up-run.ts')
      await undoArchive(context, run, options)
    })
  mail
    .command('archive-runs')
    .description('archive runs, newest first; with a number, one of them')
    .argument('[run]', 'the number of a run')
    .option('--account <address>', 'only of this account')
    .addOption(limitOption())
    .action(async (run: string | undefined, options) => {
      const { listCleanUpRuns } = await import('./clean-up-list.ts')
      await listCleanUpRuns(context, run, options)
    })
}

function messagesOption(): Option {
  return new Option('--limit <number>', 'at most this many messages').argParser((text) => {
    if (/^\d{1,12}$/.test(text) && Number(text) >= 1) return Number(text)
    throw new UsageError(`--limit is "${text}", but it must be a whole number from 1 up.`)
  })
}
