/** Opens accounts from what the ledger knows of them: the client with its token and its pace. */
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import type { Vault } from '../../base/vault.ts'
import { lazyTokens } from '../../cloud/account-tokens.ts'
import { openAccountTokens } from '../../cloud/drive/auth.ts'
import { DriveClient, type Pace } from '../../cloud/drive/client.ts'
import type { Fetch } from '../../cloud/oauth.ts'
import type { BudgetSpec } from '../../engine/index.ts'
import type { Limits } from '../../engine/limits/limits.ts'
import type { Account, Accounts } from '../../ledger/accounts.ts'
import { type DriveAccount, type DriveAccounts, SERVICE, streamOf, unitsOf } from './account.ts'
import type { DriveSettings } from './settings.ts'

export type OpenAccountsInput = {
  accounts: Accounts
  vault: Vault
  settings: DriveSettings
  fetch: Fetch
  clock: Clock
  /** The engine's limits, or none for a single look without one. */
  limits: () => Limits | undefined
}

export async function openDriveAccounts(input: OpenAccountsInput): Promise<DriveAccounts> {
  const registry = new AccountRegistry(input)
  await registry.reload()
  return registry
}

/** Of what is allowed in a minute, what is spent: the service counts with another clock. */
const PACED_SHARE = 0.96

export function driveBudgets(
  accounts: readonly string[],
  { unitsPerMinute, workersMax }: Pick<DriveSettings, 'unitsPerMinute' | 'workersMax'>,
): Record<string, BudgetSpec> {
  const spec: BudgetSpec = {
    rate: (unitsPerMinute / 60) * PACED_SHARE,
    workers: { start: Math.min(4, workersMax), max: workersMax },
  }
  return Object.fromEntries(accounts.map((name) => [unitsOf(name), spec]))
}

/** The accounts of this process. A client stays when its account is connected anew: it looks at the secret that is stored. */
class AccountRegistry implements DriveAccounts {
  readonly #input: OpenAccountsInput
  readonly #opened = new Map<string, { id: number; account: DriveAccount }>()
  readonly #paced = new Set<string>()
  #rows: readonly Account[] = []

  constructor(input: OpenAccountsInput) {
    this.#input = input
  }

  names(): readonly string[] {
    return this.#rows.map(({ name }) => name)
  }

  async get(name: string): Promise<DriveAccount> {
    if (!this.#find(name)) await this.reload()
    const row = this.#find(name)
    if (!row) throw unknownAccount(name, this.names())
    const known = this.#opened.get(name)
    if (known?.id === row.id) return known.account
    const account = { name, stream: streamOf(name), client: openClient(this.#input, row) }
    this.#opened.set(name, { id: row.id, account })
    return account
  }

  budget(name: string): string {
    if (!this.#paced.has(name)) this.#define([name])
    return unitsOf(name)
  }

  async reload(): Promise<void> {
    this.#rows = await this.#input.accounts.list(SERVICE)
    this.#define(this.names())
    for (const name of this.#opened.keys()) if (!this.#find(name)) this.#opened.delete(name)
  }

  #find(name: string): Account | undefined {
    return this.#rows.find((row) => row.name === name)
  }

  #define(names: readonly string[]): void {
    const { limits, settings } = this.#input
    const here = limits()
    if (!here) return
    for (const name of names) this.#paced.add(name)
    for (const [budget, spec] of Object.entries(driveBudgets(names, settings))) here.budget(budget, spec)
  }
}

function unknownAccount(name: string, names: readonly string[]): UsageError {
  return new UsageError(`There is no Drive account ${name}.`, {
    code: 'account-unknown',
    hint:
      names.length > 0 ? `There are: ${names.join(', ')}.` : 'Connect one with: tidemark account add drive',
  })
}

function openClient(input: OpenAccountsInput, row: Account): DriveClient {
  const { settings, clock, fetch, accounts, vault } = input
  const { tokenUrl } = settings
  return new DriveClient({
    fetch,
    clock,
    apiUrl: settings.apiUrl,
    token: lazyTokens(() => openAccountTokens({ account: row, accounts, vault, fetch, clock, tokenUrl })),
    pace: paceOf(input, row.name),
  })
}

function paceOf({ limits, settings }: OpenAccountsInput, name: string): Pace {
  const units = unitsOf(name)
  return async (call, fn) => {
    const here = limits()
    if (!here) return fn(call.signal)
    const wait = call.signal ? { signal: call.signal } : {}
    // Now, not when the account was opened: settings change while it is open.
    const spec = driveBudgets([name], settings)[units]!
    return here.budget(units, spec).call(call.units, fn, { ...wait, name: call.method })
  }
}
