/** `tidemark status`: one screen about everything, and one sentence at its end. */
import type { Command } from 'commander'
import type { CliContext } from '../app/command.ts'

const HELP = `
Ends with 0 when all is settled, going on or waiting for an engine, 1 when jobs failed or counts do not
agree, and 3 when something needs you (a conflict, deletions that wait for your yes) or everything is
settled but for bad items.

With --json: ledger {database, where}, engines [{id, name, host, pid, state, startedAt, heartbeatAt,
leaseUntil}], streams [{name, mark, markMovedAt, paused, segments, settledSegments, listed, stored,
gone, skipped, bad, unbalanced}], pauses [{scope, target, reason, at}], jobs {ready, deps, time, claimed,
done, failed, canceled, skipped}, badItems {count, atLeast}, alerts [{condition, target, severity,
text, since, last, count}], needs [{stream, text}], verdict {state, text}. Times are UTC.`

export function registerStatus(program: Command, context: CliContext): void {
  program
    .command('status')
    .description('show how far everything is')
    .addHelpText('after', HELP)
    .action(async () => {
      const { showStatus } = await import('./jobs/status.ts')
      const hasServe = program.commands.some((command) => command.name() === 'serve')
      await showStatus(context, { startCommand: hasServe ? 'tidemark serve' : undefined })
    })
}
