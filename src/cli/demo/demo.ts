/** `tidemark demo`: all of Tidemark at work on a simulated cloud, to look at. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../app/command.ts'
import { UsageError } from '../../base/errors.ts'
import { portOption } from '../serve/serve.ts'

export type DemoFlags = { port?: number; once?: boolean; messages?: number; fast?: boolean }

const MESSAGES_MAX = 1_000_000

export function registerDemo(program: Command, context: CliContext): void {
  program
    .command('demo')
    .description('everything at work on a simulated cloud, with the dashboard; in a folder of its own')
    .addOption(portOption('of the dashboard; 4180, or any free one where that is taken'))
    .option('--once', 'end as soon as everything is settled, with the books')
    .addOption(
      new Option('--messages <number>', 'how many messages the mailbox begins with (3000)').argParser(
        parseMessages,
      ),
    )
    .option('--fast', 'without the quota that keeps the copying slow enough to watch')
    .addHelpText(
      'after',
      '\nWith --home FOLDER it is kept there, and the next start goes on where this one ended, however it ended.',
    )
    .action(async (flags: DemoFlags) => {
      const { runDemo } = await import('./run.ts')
      await runDemo(context, flags)
    })
}

function parseMessages(text: string): number {
  const messages = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (messages >= 1 && messages <= MESSAGES_MAX) return messages
  throw new UsageError(`--messages is "${text}", but it must be a whole number from 1 to ${MESSAGES_MAX}.`)
}
