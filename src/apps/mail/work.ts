/**
 * What every connected account is given: its stream, its budgets, a first plan, and a look at its mailbox every few
 * minutes. Everything here can be done again at any time, by any process, and then changes nothing: the plan and the
 * look have keys, a schedule fires in one process.
 */

import type { AppWork, WorkOptions } from '../../app/runtime.ts'
import { resumeSignedIn } from '../../app/signed-in.ts'
import type { CancelTimer } from '../../base/clock.ts'
import type { Account } from '../../ledger/accounts.ts'
import { choicesOf, SERVICE, sourcesOf, streamOf } from './account.ts'
import type { MailRuntime } from './runtime.ts'

/** How soon a process works for an account that another one has connected. */
const FOLLOW_MS = 10_000

/** `mail.history ann@example.com` */
export function historySchedule(account: string): string {
  return `mail.history ${account}`
}

/** `mail.index ann@example.com` */
export function indexSchedule(account: string): string {
  return `mail.index ${account}`
}

/** New mail is read into the index as it comes; this finds what was imported or cleaned up meanwhile. */
const COMPARE_INDEX = 'every 15m'

/** Sees which accounts there are now, and begins what each needs. A process that only answers leaves that to others. */
export function startAccounts(runtime: MailRuntime): Promise<void> {
  return begin(runtime, { failed: 'revived' })
}

/** What failed for good starts over with the process, and not every few seconds while it runs. */
async function begin(runtime: MailRuntime, { failed }: { failed: 'revived' | 'left' }): Promise<void> {
  const { mail, accounts, ledger, role } = runtime
  await mail.accounts.reload()
  if (role === 'web') return
  const rows = await accounts.list(SERVICE)
  const schedules = new Map((await ledger.schedules()).map(({ name, spec }) => [name, spec]))
  for (const account of rows) {
    await enqueueFirst(runtime, account, failed)
    await putSchedule(runtime, account.name, schedules)
    await putIndexSchedule(runtime, account.name, schedules)
  }
  const names = rows.map(({ name }) => name)
  const wanted = names.flatMap((name) => [
    historySchedule(name),
    ...(mail.kinds.indexing ? [indexSchedule(name)] : []),
  ])
  await dropSchedules(runtime, { there: schedules.keys(), wanted: new Set(wanted) })
  await resumeSignedIn(runtime, SERVICE, sourcesOf(names))
}

/** Begins for all accounts, and goes on. */
export async function startMailWork(runtime: MailRuntime, options: WorkOptions): Promise<AppWork> {
  await startAccounts(runtime)
  const stop = followAccounts(runtime, options)
  return { refresh: () => startAccounts(runtime), stop }
}

/** The same again and again, so that what happens to accounts elsewhere is seen here. Returns how to end it. */
export function followAccounts(
  runtime: MailRuntime,
  { clock, onError, everyMs = FOLLOW_MS }: WorkOptions,
): () => Promise<void> {
  let stopped = false
  let cancel: CancelTimer = () => {}
  let round: Promise<void> = Promise.resolve()
  const arm = (): void => {
    cancel = clock.timer(everyMs, () => {
      round = begin(runtime, { failed: 'left' })
        .catch(onError)
        .finally(() => {
          if (!stopped) arm()
        })
    })
  }
  arm()
  return () => {
    stopped = true
    cancel()
    return round
  }
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

async function putSchedule(
  { engine, config, mail }: MailRuntime,
  account: string,
  there: ReadonlyMap<string, string>,
): Promise<void> {
  const name = historySchedule(account)
  const spec = `every ${config.mail.poll_minutes}m`
  if (there.get(name) === spec) return
  await engine.schedule(name, spec, mail.kinds.history, { account }, { stream: streamOf(account) })
}

async function putIndexSchedule(
  { engine, mail }: MailRuntime,
  account: string,
  there: ReadonlyMap<string, string>,
): Promise<void> {
  const name = indexSchedule(account)
  if (!mail.kinds.indexing || there.get(name) === COMPARE_INDEX) return
  await engine.schedule(
    name,
    COMPARE_INDEX,
    mail.kinds.indexing.kind,
    { unit: account, compare: true },
    { stream: streamOf(account) },
  )
}

/** Spam, trash and labels may be chosen anew when an account is connected again. */
async function hasOtherChoices(
  { mail }: Pick<MailRuntime, 'mail'>,
  account: Pick<Account, 'name' | 'settings'>,
): Promise<boolean> {
  const mailbox = await mail.tables.findMailbox(account.name)
  return mailbox?.choices != null && mailbox.choices !== JSON.stringify(choicesOf(account))
}

async function dropSchedules(
  { engine, ledger, mail }: MailRuntime,
  { there, wanted }: { there: Iterable<string>; wanted: ReadonlySet<string> },
): Promise<void> {
  for (const name of there) {
    const isOurs = name.startsWith(historySchedule('')) || name.startsWith(indexSchedule(''))
    if (!isOurs || wanted.has(name)) continue
    await ledger.dropSchedule(name)
    // What was read into the index of a mailbox that is not kept up to date any more goes.
    const [, unit] = name.split(indexSchedule(''))
    if (unit && mail.kinds.indexing) await engine.enqueue(mail.kinds.indexing.kind, { unit })
  }
}
