/** `tidemark mail sync`: brings the archive up to date, and with --watch keeps it so. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { durationOption } from '../../../cli/output/input.ts'

const HELP = `
The first run copies all mail, slice by slice from the oldest; later runs fetch what changed. It can be stopped at
any time with Ctrl-C and goes on where it was. With --json, one object a line: a progress object per account and
step, and at the end {"type":"summary", accounts [...]}.

Ends with 0 when all is settled, 1 when something failed or it was stopped before that, 3 when all is settled but for bad messages.`

export function registerMailSync(mail: Command, context: CliContext): void {
  mail
    .command('sync')
    .description('copy new and changed mail into the archive')
    .option('--account <address>', 'only this account')
    .option('--watch', 'go on, and look for changes every few minutes')
    .addOption(
      new Option('--slice <length>', 'how long a slice is').choices(['auto', 'day', 'week', 'month']),
    )
    .option('--since <date>', 'leave out older mail, such as 2020-01-31; decided by the first sync')
    .addOption(durationOption('--every <time>', 'with --watch: how often to look, such as 2m'))
    .addHelpText('after', HELP)
    .action(async (options) => {
      const { syncMail } = await import('./sync-run.ts')
      await syncMail(context, options)
    })
}
