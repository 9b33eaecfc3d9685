/**
 * What every connected account is given: its stream, its budgets, a first plan, and a look at its mailbox every few
 * minutes. Everything here can be done again at any time, by any process, and then changes nothing: the plan and the
 * look have keys, a schedule fires in one process.
 */
import { SERVICE } from '../apps/mail-archive/account.ts'
import { mailChoices, streamOf } from '../apps/mail-archive/index.ts'
import type { CancelTimer, Clock } from '../clock.ts'
import { SIGN_IN_REASON } from '../engine/health.ts'
import type { Account } from '../ledger/accounts.ts'
import type { Runtime } from './runtime.ts'

/** How soon a process works for an account that another one has connected. */
const FOLLOW_MS = 10_000

/** `mail.history ann@example.com` */
export function historySchedule(account: string): string {
  return `mail.history ${account}`
}

/** Sees which accounts there are now, and begins what each needs. A process that only answers leaves that to others. */
export function startAccounts(runtime: Runtime): Promise<void> {
  return begin(runtime, { failed: 'revived' })
}

/** What failed for good starts over with the process, and not every few seconds while it runs. */
async function begin(runtime: Runtime, { failed }: { failed: 'revived' | 'left' }): Promise<void> {
  const { mail, accounts, ledger, role } = runtime
  await mail.accounts.reload()
  if (role === 'web') return
  const rows = await accounts.list(SERVICE)
  const schedules = new Map((await ledger.schedules()).map(({ name, spec }) => [name, spec]))
  for (const account of rows) {
    await enqueueFirst(runtime, account, failed)
    await putSchedule(runtime, account.name, schedules)
  }
  const names = rows.map(({ name }) => name)
  await dropSchedules(runtime, { there: schedules.keys(), wanted: new Set(names.map(historySchedule)) })
  await resumeSignedIn(runtime, names)
}

/** The same again and again, so that what happens to accounts elsewhere is seen here. Returns how to end it. */
export function followAccounts(
  runtime: Runtime,
  {
    clock,
    onError,
    everyMs = FOLLOW_MS,
  }: { clock: Clock; onError: (error: unknown) => void; everyMs?: number },
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

/** A stream that was paused because the account had to sign in goes on once it has. */
export async function resumeSignedIn(
  { engine, ledger, accounts }: Pick<Runtime, 'engine' | 'ledger' | 'accounts'>,
  names: readonly string[],
): Promise<void> {
  for (const { scope, target, reason } of await ledger.pauses()) {
    const name = names.find((one) => scope === 'stream' && target === streamOf(one))
    if (name === undefined || !reason.startsWith(SIGN_IN_REASON)) continue
    const account = await accounts.find(SERVICE, name)
    if (account?.state !== 'ready') continue
    // What was put off until somebody has signed in need not wait any longer.
    await ledger.hurry(target)
    await engine.resume('stream', target)
  }
}

async function enqueueFirst(runtime: Runtime, account: Account, failed: 'revived' | 'left'): Promise<void> {
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
  { engine, config, mail }: Runtime,
  account: string,
  there: ReadonlyMap<string, string>,
): Promise<void> {
  const name = historySchedule(account)
  const spec = `every ${config.mail.poll_minutes}m`
  if (there.get(name) === spec) return
  await engine.schedule(name, spec, mail.kinds.history, { account }, { stream: streamOf(account) })
}

/** Spam, trash and labels may be chosen anew when an account is connected again. */
async function hasOtherChoices(
  { mail }: Pick<Runtime, 'mail'>,
  { name, settings }: Pick<Account, 'name' | 'settings'>,
): Promise<boolean> {
  const mailbox = await mail.tables.findMailbox(name)
  return mailbox?.choices != null && mailbox.choices !== JSON.stringify(mailChoices.parse(settings))
}

async function dropSchedules(
  { ledger }: Runtime,
  { there, wanted }: { there: Iterable<string>; wanted: ReadonlySet<string> },
): Promise<void> {
  for (const name of there) {
    if (name.startsWith(historySchedule('')) && !wanted.has(name)) await ledger.dropSchedule(name)
  }
}
