/**
 * What every connected account is given: its stream, its budgets, a first plan, and a look at its mailbox every few
 * minutes. Everything here can be done again at any time, by any process, and then changes nothing: the plan and the
 * look have keys, a schedule fires in one process.
 */

import type { AppWork, WorkOptions } from '../../app/runtime.ts'
import { resumeSignedIn } from '../../app/signed-in.ts'
import { followSources, keepSchedules, scheduleName } from '../../app/work.ts'
import type { Account } from '../../ledger/accounts.ts'
import { choicesOf, SERVICE, sourcesOf, streamOf } from './account.ts'
import type { MailRuntime } from './runtime.ts'

const HISTORY = 'mail.history'
const INDEX = 'mail.index'

export const indexSchedule = (account: string): string => scheduleName(INDEX, account)

/** New mail is read into the index as it comes; this finds what was imported or cleaned up meanwhile. */
const COMPARE_INDEX = 'every 15m'

/** Sees which accounts there are now, and begins what each needs. A process that only answers leaves that to others. */
export function startAccounts(runtime: MailRuntime): Promise<void> {
  return begin(runtime, { failed: 'revived' })
}

/** What failed for good starts over with the process, and not every few seconds while it runs. */
async function begin(runtime: MailRuntime, { failed }: { failed: 'revived' | 'left' }): Promise<void> {
  const { mail, accounts, role } = runtime
  await mail.accounts.reload()
  if (role === 'web') return
  const rows = await accounts.list(SERVICE)
  for (const account of rows) await enqueueFirst(runtime, account, failed)
  const names = rows.map(({ name }) => name)
  await putSchedules(runtime, names)
  await resumeSignedIn(runtime, SERVICE, sourcesOf(names))
}

/** Begins for all accounts, and goes on. */
export async function startMailWork(runtime: MailRuntime, options: WorkOptions): Promise<AppWork> {
  await startAccounts(runtime)
  const stop = followAccounts(runtime, options)
  return { refresh: () => startAccounts(runtime), stop }
}

/** The same again and again. Returns how to end it. */
export function followAccounts(runtime: MailRuntime, options: WorkOptions): () => Promise<void> {
  return followSources(options, () => begin(runtime, { failed: 'left' }))
}

async function enqueueFirst(
  runtime: MailRuntime,
  account: Account,
  failed: 'revived' | 'left',
): Promise<void> {
  const { engine, ledger, mail } = runtime
  const stream = streamOf(account.name)
  const { tail_at: plannedTo } = await engine.streams.open(stream)
  const isNew = plannedTo === 0
  if (!isNew && !(await hasOtherChoices(runtime, account))) return
  const kind = isNew ? mail.kinds.plan : mail.kinds.reconcile
  const before = await ledger.jobs({ kind: kind.kind, stream, state: 'failed', limit: 1 })
  if (failed === 'left' && before.length > 0) return
  await engine.enqueue(kind, { account: account.name }, { stream })
}

async function putSchedules(runtime: MailRuntime, names: readonly string[]): Promise<void> {
  const { engine, config, mail } = runtime
  const { history, indexing } = mail.kinds
  const wanted = names.flatMap((name) => {
    const of = { about: name, stream: streamOf(name) }
    const look = {
      ...of,
      kind: history,
      spec: `every ${config.mail.poll_minutes}m`,
      payload: { account: name },
    }
    if (!indexing) return [look]
    return [look, { ...of, kind: indexing.kind, spec: COMPARE_INDEX, payload: { unit: name, compare: true } }]
  })
  for (const dropped of await keepSchedules(runtime, wanted, { kinds: [HISTORY, INDEX] })) {
    // What was read into the index of a mailbox that is not kept up to date any more goes.
    const [, unit] = dropped.split(indexSchedule(''))
    if (unit && indexing) await engine.enqueue(indexing.kind, { unit })
  }
}

/** Spam, trash and labels may be chosen anew when an account is connected again. */
async function hasOtherChoices(
  { mail }: Pick<MailRuntime, 'mail'>,
  account: Pick<Account, 'name' | 'settings'>,
): Promise<boolean> {
  const mailbox = await mail.tables.findMailbox(account.name)
  return mailbox?.choices != null && mailbox.choices !== JSON.stringify(choicesOf(account))
}
