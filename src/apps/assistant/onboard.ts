/**
 * Begins the assistant for a mailbox: its labels are created or found, its settings kept, and its first scan asked for.
 * May be repeated: labels and records that are there stay, and the cursor does too.
 */

import { UsageError } from '../../base/errors.ts'
import type { Vault } from '../../base/vault.ts'
import { readSecret } from '../../cloud/gmail/account.ts'
import { requireScope } from '../../cloud/gmail/auth.ts'
import { request } from '../../engine/index.ts'
import type { Accounts } from '../../ledger/accounts.ts'
import { type AccountSettings, accountSettings, SERVICE, settingsOf, streamOf } from './account.ts'
import { type ActionPlace, syncPayload } from './actions.ts'
import { ensureLabels } from './labels.ts'
import { putAccount, wantSync } from './store/accounts.ts'

export type OnboardPlace = ActionPlace & { accounts: Accounts; vault: Vault }

export type Onboarded = { account: string; isNew: boolean; labels: Readonly<Record<string, string>> }

export async function onboard(
  place: OnboardPlace,
  account: string,
  change: Partial<AccountSettings> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<Onboarded> {
  const { engine, kinds, accounts, vault } = place
  const connected = await accounts.find(SERVICE, account)
  if (!connected) {
    throw new UsageError(`There is no mail account ${account}.`, {
      code: 'account-unknown',
      hint: 'Connect it with: tidemark account add gmail --modify',
    })
  }
  const { scopes } = await readSecret({ accounts, vault, account: connected })
  requireScope(account, scopes, 'unlabel')
  const before = await kinds.tables.account(account)
  const settings = chosenSettings({ ...(before && settingsOf(before)), ...change })
  const client = await kinds.accounts.client(account)
  const made = await ensureLabels(client, settings.labels, signal, before)
  const stream = streamOf(account)
  await engine.streams.open(stream)
  await engine.transaction(async (tx) => {
    const nowMs = kinds.clock.now()
    await putAccount(tx, { account, settings: JSON.stringify(settings), made, nowMs })
    await wantSync(tx, account, { full: true, nowMs })
    await tx.enqueue([
      request(kinds.sync, syncPayload(account), { stream }),
      request(kinds.watch, { account }, { stream }),
    ])
  })
  await kinds.accounts.reload()
  return { account, isNew: before === undefined, labels: made.labels }
}

function chosenSettings(given: Partial<AccountSettings>): AccountSettings {
  const { success, data, error } = accountSettings.safeParse(given)
  if (success) return data
  const [issue] = error.issues
  throw new UsageError(`The settings are not right: ${issue?.path.join('.')}: ${issue?.message}`, {
    code: 'settings-invalid',
    cause: error,
  })
}
