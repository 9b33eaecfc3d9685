/** `tidemark mail`: the mail archive, one file per group of verbs. */
import type { Command } from 'commander'
import type { CliContext } from './context.ts'
import { registerMailArchive } from './mail-archive.ts'
import { registerMailBad } from './mail-bad.ts'
import { registerMailRecover } from './mail-recover.ts'
import { registerMailSearch } from './mail-search.ts'
import { registerMailShow } from './mail-show.ts'
import { registerMailStats } from './mail-stats.ts'
import { registerMailStatus } from './mail-status.ts'
import { registerMailSync } from './mail-sync.ts'
import { registerMailTransfer } from './mail-transfer.ts'
import { registerMailVerify } from './mail-verify.ts'

export type RegisterMail = (mail: Command, context: CliContext) => void

const verbs: readonly RegisterMail[] = [
  registerMailSync,
  registerMailStatus,
  registerMailBad,
  registerMailVerify,
  registerMailRecover,
  registerMailSearch,
  registerMailShow,
  registerMailStats,
  registerMailArchive,
  registerMailTransfer,
]

export function registerMail(program: Command, context: CliContext): void {
  const mail = program.command('mail').description('the mail archive')
  for (const register of verbs) register(mail, context)
}
