/** `tidemark mail recover`: an archive and its ledger brought together again, when one of them was lost. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'

export type RecoverFlags = { account?: string; empty?: boolean }

const HELP = `
Where the ledger was lost and the account connected anew, the archive in the account's folder is taken over: the next
sync compares it with Gmail and fetches only what is missing. Where the archive's list of files (archive.json) is lost
or damaged, it is written anew from the files. Where the archive itself is lost for good, --empty begins a new one,
which mail verify --repair fills again with what Gmail still has. No mail is changed or removed.`

export function registerMailRecover(mail: Command, context: CliContext): void {
  mail
    .command('recover')
    .description('take over an archive whose ledger or list of files was lost')
    .option('--account <address>', 'only this account')
    .option('--empty', 'begin with an empty archive where it is lost for good')
    .addHelpText('after', HELP)
    .action(async (options: RecoverFlags) => {
      const { recoverMail } = await import('./recover-run.ts')
      await recoverMail(context, options)
    })
}
