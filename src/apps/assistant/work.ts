/**
 * What every mailbox of the assistant is given: its stream, its budgets, a look every few minutes, a daily renewal of its
 * pushes, follow-ups, and the briefing. Everything here can be done again at any time, by any process, and then changes
 * nothing. Jobs that are settled are pruned by the engine after seven days.
 */
import type { AppWork, WorkOptions } from '../../app/runtime.ts'
import { resumeSignedIn } from '../../app/signed-in.ts'
import { followSources } from '../../app/work.ts'
import type { JobKind } from '../../engine/index.ts'
import { SERVICE, sourcesOf, streamOf } from './account.ts'
import { requestSync, syncPayload } from './actions.ts'
import { removeRuns } from './agent/store.ts'
import type { AccountPayload, SyncPayload } from './kinds.ts'
import { forgetCalls } from './models/store.ts'
import type { AssistRuntime } from './runtime.ts'
import { forgetAccount } from './store/accounts.ts'

/** How often the log of calls of models, and runs of agents, lose what is too old. */
const PRUNE_MS = 24 * 3_600_000

export function syncSchedule(account: string): string {
  return `assist.sync ${account}`
}

type Plan = {
  name: string
  spec: string
  kind: JobKind<AccountPayload> | JobKind<SyncPayload>
  payload: AccountPayload
}

function plansOf({ assist, config }: AssistRuntime, account: string): Plan[] {
  const { sync, watch, followUp, briefing } = assist.kinds
  const payload = { account }
  const { poll_minutes, watch_hours, follow_up_hour, briefing_hour } = config.assist
  return [
    {
      name: syncSchedule(account),
      spec: `every ${poll_minutes}m`,
      kind: sync,
      payload: syncPayload(account),
    },
    { name: `assist.watch ${account}`, spec: `every ${watch_hours}h`, kind: watch, payload },
    {
      name: `assist.follow-up ${account}`,
      spec: `cron 0 ${follow_up_hour} * * 1-5`,
      kind: followUp,
      payload,
    },
    { name: `assist.briefing ${account}`, spec: `cron 30 ${briefing_hour} * * *`, kind: briefing, payload },
  ]
}

export async function startAccounts(runtime: AssistRuntime): Promise<void> {
  const { assist, ledger, role, engine } = runtime
  await assist.accounts.reload()
  if (role === 'web') return
  const names = assist.accounts.names()
  const schedules = new Map((await ledger.schedules()).map(({ name, spec }) => [name, spec]))
  const wanted = new Set<string>()
  for (const account of names) {
    const stream = streamOf(account)
    await engine.streams.open(stream)
    for (const { name, spec, kind, payload } of plansOf(runtime, account)) {
      wanted.add(name)
      if (schedules.get(name) === spec) continue
      await engine.schedule(name, spec, kind as JobKind<AccountPayload>, payload, { stream })
    }
    const row = await assist.tables.account(account)
    if (row?.syncedAtMs == null) await requestSync({ engine, kinds: assist.kinds }, account)
  }
  for (const name of schedules.keys()) {
    if (name.startsWith('assist.') && !wanted.has(name)) await ledger.dropSchedule(name)
  }
  await forgetOthers(runtime)
  await resumeSignedIn(runtime, SERVICE, sourcesOf(names))
}

/** Of accounts that are connected no more nothing is kept: it is mail of somebody who left. */
async function forgetOthers({ assist, accounts, ledger }: AssistRuntime): Promise<void> {
  const connected = new Set((await accounts.list(SERVICE)).map(({ name }) => name))
  for (const { account } of await assist.tables.accounts()) {
    if (connected.has(account)) continue
    await ledger.transaction(async (tx) => {
      await forgetCalls(tx, account)
      await removeRuns(tx, { account })
      await forgetAccount(tx, account)
    })
  }
}

/** Begins for all mailboxes, and goes on. The pushes of each are renewed at once. */
export async function startAssistWork(runtime: AssistRuntime, options: WorkOptions): Promise<AppWork> {
  const { clock } = options
  const { assist, engine, role } = runtime
  await startAccounts(runtime)
  let prunedMs = Number.NEGATIVE_INFINITY
  const round = async (): Promise<void> => {
    await startAccounts(runtime)
    if (role === 'web' || clock.monotonicMs() - prunedMs < PRUNE_MS) return
    prunedMs = clock.monotonicMs()
    await assist.models.prune()
    await assist.agents.prune(runtime.config.models.keep_calls_days)
  }
  if (role !== 'web' && assist.settings.pushTopic !== undefined) {
    for (const account of assist.accounts.names()) {
      await engine.enqueue(assist.kinds.watch, { account }, { stream: streamOf(account) })
    }
  }
  return { refresh: () => startAccounts(runtime), stop: followSources(options, round) }
}
