/** The assistant in a process: its tables, the clients of its mailboxes, its models, and its kinds of jobs. */

import type { AppPlace } from '../../app/runtime.ts'
import { TidemarkError } from '../../base/errors.ts'
import { gmailBudgets } from '../../cloud/gmail/budgets.ts'
import { PushTokens } from '../../cloud/google/push-token.ts'
import { OWNER_ID } from '../../ledger/accounts.ts'
import { APP, SERVICE } from './account.ts'
import { requestSync } from './actions.ts'
import { openAgents } from './agent/open.ts'
import type { PushPart } from './api/webhook.ts'
import { assistKinds, jobsOf } from './jobs.ts'
import type { AssistKinds } from './kinds.ts'
import { openLocalClassifier } from './local/classifier.ts'
import { openModels } from './models/ask.ts'
import { ModelCalls } from './models/store.ts'
import { openAssistAccounts } from './open-accounts.ts'
import { assistRuntime, type OpenAssist } from './runtime.ts'
import { type AssistOverrides, assistSettingsOf } from './settings.ts'
import { assistSources } from './sources.ts'
import { lookAtAssist } from './status.ts'
import { AssistTables } from './store/tables.ts'
import { startAssistWork } from './work.ts'

/** Looking, following and drafting besides what else is at work. */
const WORKERS_MIN = 6

export async function openAssist(place: AppPlace): Promise<OpenAssist> {
  const { config, ledger, clock } = place
  const overrides = (place.overrides[APP] ?? {}) as AssistOverrides
  const settings = assistSettingsOf(config, overrides)
  const tables = await AssistTables.open(ledger)
  const calls = await ModelCalls.open(ledger)
  const models = openModels({
    place,
    store: calls,
    // What is of no mailbox, such as an evaluation, is the owner's.
    payerOf: async (account) => `user:${(await place.accounts.find(SERVICE, account))?.userId ?? OWNER_ID}`,
  })
  const local = openLocalClassifier({
    embed: async (texts, signal) => {
      const { embedder } = await place.search.open()
      if (embedder) return embedder.embed(texts, { purpose: 'document', signal })
      throw new TidemarkError('Search has no embedding model.', { kind: 'permanent', code: 'no-embedder' })
    },
  })
  const note = (code: string, text: string): void =>
    place.engine()?.events.emit({ type: 'note', app: APP, level: 'warn', code, text })
  const search = (): ReturnType<typeof place.search.open> => place.search.open()
  const agents = await openAgents({
    ...place,
    search,
    ask: (question) => models.ask({ ...question, purpose: 'agent' }),
    isAdmins: async (account) => {
      const row = await place.accounts.find(SERVICE, account)
      return row !== undefined && (await place.users.get(row.userId))?.role === 'admin'
    },
    note,
  })
  const accounts = await openAssistAccounts({
    accounts: place.accounts,
    tables,
    vault: place.vault,
    fetch: place.fetch,
    clock,
    settings,
    limits: () => place.engine()?.limits,
  })
  const kinds = assistKinds({
    ledger,
    accounts,
    tables,
    clock,
    settings,
    models,
    local,
    search,
    agents,
    note,
  })
  const look = await lookAtAssist(ledger)
  return {
    ...look,
    needs: async () => [...((await look.needs?.()) ?? []), ...(await agents.needs())],
    settings,
    tables,
    accounts,
    kinds,
    models,
    calls,
    agents,
    push: pushOf(place, kinds),
    sources: assistSources(place, { accounts, tables, kinds }),
    jobs: jobsOf(kinds),
    budgets: () => gmailBudgets(accounts.names(), settings),
    workersMin: () => WORKERS_MIN,
    work: (runtime, options) => startAssistWork(assistRuntime(runtime), options),
    async reload() {
      Object.assign(settings, assistSettingsOf(config, overrides))
      await accounts.reload()
    },
    close: async () => {},
  }
}

function pushOf(place: AppPlace, kinds: AssistKinds): PushPart {
  const { config, fetch, clock } = place
  let opened: { by: string; tokens: PushTokens } | undefined
  return {
    tokens() {
      const { push_audience: audience, push_account: email, push_keys_url: keysUrl } = config.assist
      if (audience === undefined || email === undefined) return undefined
      const by = JSON.stringify([audience, email, keysUrl])
      if (opened?.by !== by)
        opened = { by, tokens: new PushTokens({ fetch, clock, keysUrl, audience, email }) }
      return opened.tokens
    },
    isKnown: async (account) => (await kinds.tables.account(account))?.active === true,
    async arrived({ account, historyId, atMs }) {
      await requestSync({ engine: place.engine()!, kinds }, account, { historyId, atMs })
    },
  }
}
