/** Opens mailboxes from what the ledger knows of them: the client with its token and its pace. */
import { readerOf } from '../../app/user.ts'
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import type { Vault } from '../../base/vault.ts'
import { lazyTokens } from '../../cloud/account-tokens.ts'
import { openAccountTokens } from '../../cloud/gmail/auth.ts'
import { gmailBudgets, gmailPace, unitsOf } from '../../cloud/gmail/budgets.ts'
import { GmailClient } from '../../cloud/gmail/client.ts'
import { pricesOf } from '../../cloud/gmail/prices.ts'
import type { Fetch } from '../../cloud/oauth.ts'
import type { Limits } from '../../engine/limits/limits.ts'
import type { Account, Accounts } from '../../ledger/accounts.ts'
import type { Reader } from '../../search/contract.ts'
import { type AssistAccount, type AssistAccounts, SERVICE, settingsOf, streamOf } from './account.ts'
import type { AssistSettings } from './settings.ts'
import type { AssistTables } from './store/tables.ts'

export type OpenAccountsInput = {
  accounts: Accounts
  tables: AssistTables
  vault: Vault
  settings: AssistSettings
  fetch: Fetch
  clock: Clock
  /** The engine's limits, or none for a single look without one. */
  limits: () => Limits | undefined
}

/** A connection that says nothing for this long is given up. */
const SILENCE_MAX_MS = 60_000

export async function openAssistAccounts(input: OpenAccountsInput): Promise<AssistAccounts> {
  const registry = new AccountRegistry(input)
  await registry.reload()
  return registry
}

class AccountRegistry implements AssistAccounts {
  readonly #input: OpenAccountsInput
  readonly #clients = new Map<string, { id: number; client: GmailClient }>()
  readonly #paced = new Set<string>()
  #rows: readonly Account[] = []
  #active: readonly string[] = []

  constructor(input: OpenAccountsInput) {
    this.#input = input
  }

  names(): readonly string[] {
    return this.#active
  }

  async get(name: string): Promise<AssistAccount> {
    const client = await this.client(name)
    const row = await this.#input.tables.account(name)
    if (!row) throw notOnboarded(name)
    const settings = settingsOf(row)
    return {
      name,
      stream: streamOf(name),
      client,
      settings,
      labels: row.labels,
      owner: { name: settings.name, address: name },
      row,
    }
  }

  async client(name: string): Promise<GmailClient> {
    if (!this.#find(name)) await this.reload()
    const row = this.#find(name)
    if (!row) throw unknownAccount(name, this.#rows)
    const known = this.#clients.get(name)
    if (known?.id === row.id) return known.client
    const client = openClient(this.#input, row)
    this.#clients.set(name, { id: row.id, client })
    return client
  }

  async reader(name: string): Promise<Reader> {
    const row = await this.#input.accounts.find(SERVICE, name)
    return row ? readerOf(this.#input, { id: row.userId }) : { principals: [] }
  }

  budget(name: string): string {
    if (!this.#paced.has(name)) this.#define([name])
    return unitsOf(name)
  }

  async reload(): Promise<void> {
    this.#rows = await this.#input.accounts.list(SERVICE)
    const known = await this.#input.tables.accounts()
    this.#active = known
      .filter(({ active, account }) => active && this.#find(account))
      .map(({ account }) => account)
    this.#define(this.#active)
    for (const name of this.#clients.keys()) if (!this.#find(name)) this.#clients.delete(name)
  }

  #find(name: string): Account | undefined {
    return this.#rows.find((row) => row.name === name)
  }

  #define(names: readonly string[]): void {
    const here = this.#input.limits()
    if (!here) return
    for (const name of names) this.#paced.add(name)
    for (const [budget, spec] of Object.entries(gmailBudgets(names, this.#input.settings)))
      here.budget(budget, spec)
  }
}

export function notOnboarded(name: string): UsageError {
  return new UsageError(`The assistant does not work for ${name}.`, {
    code: 'assist-not-onboarded',
    hint: `Begin with: tidemark assist onboard ${name}`,
  })
}

function unknownAccount(name: string, rows: readonly Account[]): UsageError {
  const known = rows.map((row) => row.name).join(', ')
  return new UsageError(`There is no mail account ${name}.`, {
    code: 'account-unknown',
    hint: known ? `There are: ${known}.` : 'Connect one with: tidemark account add gmail --modify',
  })
}

function openClient(input: OpenAccountsInput, row: Account): GmailClient {
  const { settings, clock, fetch, accounts, vault, limits } = input
  const { tokenUrl } = settings
  return new GmailClient({
    fetch,
    clock,
    apiUrl: settings.apiUrl,
    token: lazyTokens(() => openAccountTokens({ account: row, accounts, vault, fetch, clock, tokenUrl })),
    pace: gmailPace({ account: row.name, reach: settings, limits }),
    timeoutMs: SILENCE_MAX_MS,
    prices: pricesOf('current', { 'messages.get': settings.priceOfGet }),
  })
}
