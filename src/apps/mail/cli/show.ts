/** `tidemark mail show ID`: one message, its headers, its bytes or its attachments. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { idOption } from '../../../cli/output/input.ts'
import { MESSAGE_JSON } from './message.ts'

export type ShowFlags = {
  account?: string
  raw?: boolean
  headers?: boolean
  text?: boolean
  html?: boolean
  attachments?: boolean
  /** From 1. */
  saveAttachment?: number
  to?: string
  force?: boolean
}

const HELP = `
ID is Gmail's id of a message, as \`tidemark mail search\` shows it, or a Message-ID with its @.
What came from others is shown escaped on a terminal. --raw and --html give it exactly as it is, to a file or another
program; to a terminal only with --force, since mail can hold sequences that a terminal obeys. An attachment is never
written over a file that is there, unless with --force; in a folder it gets its own name, made safe.

With --json: ${MESSAGE_JSON}
Also text; with --headers, headers [{name, value}] instead; with --html, html; with --raw, raw (base64).`

export function registerMailShow(mail: Command, context: CliContext): void {
  const views = ['raw', 'headers', 'text', 'html', 'attachments', 'saveAttachment']
  const view = (flag: string, description: string): Option => {
    const option = new Option(flag, description)
    return option.conflicts(views.filter((name) => name !== option.attributeName()))
  }
  mail
    .command('show')
    .description('show a message, its headers, its bytes or its attachments')
    .argument('<id>', 'which message')
    .option('--account <address>', 'only in the archive of this account')
    .addOption(view('--raw', 'the bytes of the message, exactly as Gmail has them'))
    .addOption(view('--headers', 'its headers'))
    .addOption(view('--text', 'only its text'))
    .addOption(view('--html', 'its HTML, as it came'))
    .addOption(view('--attachments', 'list its attachments'))
    .addOption(
      idOption('--save-attachment <number>', 'save this attachment, with --to').conflicts(views.slice(0, -1)),
    )
    .option('--to <path>', 'the file or folder for --save-attachment')
    .option('--force', 'write bytes to a terminal, or over a file that is there')
    .addHelpText('after', HELP)
    .action(async (id: string, flags: ShowFlags) => {
      const { showMail } = await import('./show-run.ts')
      await showMail(context, id, flags)
    })
}
