/** What somebody wishes of a clean-up, before anything happens: read strictly, allowed by the account, and able to run. */
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { readSecret } from '../../../cloud/gmail/account.ts'
import { type GmailAction, requireScope } from '../../../cloud/gmail/auth.ts'
import { SERVICE, sourcesOf, streamOf } from '../account.ts'
import { unknownAccount } from '../open-accounts.ts'
import type { MailRuntime } from '../runtime.ts'
import type { NewRun } from '../store/journal.ts'
import { cutoffOf } from './cutoff.ts'
import { understoodQuery } from './selection.ts'
import { type ArchiveAction, INBOX } from './verdict.ts'

export type Wish = { account: string; action: ArchiveAction; olderThan: string; query: string }

export type WishedRun = Omit<NewRun, 'approved'>

/** A query or an age that cannot be read is told now, and not by a job. `label`: its id; the inbox if left out. */
export async function wishedRun(
  { mail }: Pick<MailRuntime, 'mail'>,
  { account, action, olderThan, query }: Wish,
  { nowMs, label = INBOX }: { nowMs: number; label?: string },
): Promise<WishedRun> {
  return {
    account,
    action,
    messagesMax: null,
    query: await understoodQuery(mail.tables, query, { now: nowMs, me: account }),
    label: action === 'unlabel' ? label : null,
    cutoffMs: cutoffOf(olderThan, nowMs),
  }
}

/** An account that does not allow it is told so, and how to allow it. */
export async function requirePermission(
  { accounts, vault }: Pick<MailRuntime, 'accounts' | 'vault'>,
  { account, action }: { account: string; action: GmailAction },
): Promise<void> {
  const row = await accounts.find(SERVICE, account)
  if (!row) throw unknownAccount(account, await accounts.list(SERVICE))
  const { scopes } = await readSecret({ accounts, vault, account: row })
  requireScope(account, scopes, action)
}

/** What cannot be opened is found now, and not by a job. */
export async function prepareStream(runtime: MailRuntime, account: string): Promise<void> {
  await runtime.mail.accounts.get(account)
  await runtime.engine.streams.open(streamOf(account))
  await resumeSignedIn(runtime, SERVICE, sourcesOf([account]))
}
