/** `tidemark mail`: the mail archive, one file per group of verbs. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'
import { registerMailBad } from './bad.ts'
import { registerMailArchive } from './clean-up.ts'
import { registerMailRecover } from './recover.ts'
import { registerMailReindex } from './reindex.ts'
import { registerMailSearch } from './search.ts'
import { registerMailShow } from './show.ts'
import { registerMailStats } from './stats.ts'
import { registerMailStatus } from './status.ts'
import { registerMailSync } from './sync.ts'
import { registerMailTransfer } from './transfer.ts'
import { registerMailVerify } from './verify.ts'

export type RegisterMail = (mail: Command, context: CliContext) => void

const verbs: readonly RegisterMail[] = [
  registerMailSync,
  registerMailStatus,
  registerMailBad,
  registerMailVerify,
  registerMailReindex,
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
