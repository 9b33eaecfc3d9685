/** Opens accounts from what the ledger knows of them: the client with its token and its pace, and the archive. */
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError, UsageError } from '../../base/errors.ts'
import type { Vault } from '../../base/vault.ts'
import { lazyTokens } from '../../cloud/account-tokens.ts'
import { openAccountTokens } from '../../cloud/gmail/auth.ts'
import { gmailBudgets, gmailPace, unitsOf } from '../../cloud/gmail/budgets.ts'
import { GmailClient, type Pace, type TokenSource } from '../../cloud/gmail/client.ts'
import { pricesOf } from '../../cloud/gmail/prices.ts'
import type { Fetch } from '../../cloud/oauth.ts'
import type { Limits } from '../../engine/limits/limits.ts'
import { type Account, type Accounts, OWNER_ID } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { choicesOf, folderName, type MailAccount, type MailAccounts, SERVICE, streamOf } from './account.ts'
import { CallWatch } from './call-watch.ts'
import { noticeLosses } from './losses.ts'
import type { MailSettings } from './settings.ts'
import { openArchive } from './store/archive.ts'
import type { MailTables } from './store/tables.ts'

export type OpenAccountsInput = {
  accounts: Accounts
  ledger: Ledger
  tables: MailTables
  vault: Vault
  settings: MailSettings
  fetch: Fetch
  clock: Clock
  /** A name that no other archive has. */
  newArchiveId: () => string
  /** Nothing is stored in this process. */
  onlyReads?: boolean
  /** The engine's limits, or none for a single look without one. */
  limits: () => Limits | undefined
}

/** A connection that says nothing for this long is given up. */
const SILENCE_MAX_MS = 60_000

export async function openMailAccounts(input: OpenAccountsInput): Promise<MailAccounts> {
  const registry = new AccountRegistry(input)
  await registry.reload()
  return registry
}

type Opening = { row: Account; account: Promise<MailAccount> }

/**
 * The accounts of this process. An account is opened once; it stays open until it is removed, or until all are
 * closed. What was opened keeps its archive and its client when it is connected anew: those look at the secret
 * that is stored.
 */
class AccountRegistry implements MailAccounts {
  readonly #input: OpenAccountsInput
  readonly #opened = new Map<string, Opening>()
  readonly #paced = new Set<string>()
  #rows: readonly Account[] = []
  #local: readonly string[] = []

  constructor(input: OpenAccountsInput) {
    this.#input = input
  }

  names(): readonly string[] {
    return [...this.connected(), ...this.#local]
  }

  connected(): readonly string[] {
    return this.#rows.map(({ name }) => name)
  }

  async addLocal(name: string): Promise<MailAccount> {
    await this.#input.tables.mailbox(name, this.#input.newArchiveId)
    await this.reload()
    return this.#open(name)
  }

  async get(name: string): Promise<MailAccount> {
    const known = this.#opened.get(name)
    if (known) return known.account
    if (!this.#find(name)) await this.reload()
    return this.#open(name)
  }

  budget(name: string): string {
    if (!this.#paced.has(name)) this.#define([name])
    return unitsOf(name)
  }

  async reload(): Promise<void> {
    this.#rows = await this.#input.accounts.list(SERVICE)
    const connected = new Set(this.connected())
    this.#local = (await this.#input.tables.unplanned()).filter((name) => !connected.has(name))
    this.#define(this.connected())
    for (const [name, { row, account }] of this.#opened) {
      const now = this.#find(name)
      if (now?.id === row.id) await changeChoices(account, now)
      else {
        this.#opened.delete(name)
        await closeArchive(account)
      }
    }
  }

  async close(): Promise<void> {
    const all = [...this.#opened.values()]
    this.#opened.clear()
    for (const { account } of all) await closeArchive(account)
  }

  #find(name: string): Account | undefined {
    const local = {
      id: 0,
      service: SERVICE,
      settings: {},
      state: 'ready' as const,
      userId: OWNER_ID,
      createdAtMs: 0,
    }
    return (
      this.#rows.find((row) => row.name === name) ??
      (this.#local.includes(name) ? { ...local, name } : undefined)
    )
  }

  /** No wait between looking and noting: whoever asks at the same time gets the same one. */
  #open(name: string): Promise<MailAccount> {
    const known = this.#opened.get(name)
    if (known) return known.account
    const row = this.#find(name)
    if (!row) return Promise.reject(unknownAccount(name, this.#rows))
    const opening = { row, account: openAccount(this.#input, row) }
    this.#opened.set(name, opening)
    // A failure is not kept: the next one to ask may be luckier.
    opening.account.catch(() => {
      if (this.#opened.get(name) === opening) this.#opened.delete(name)
    })
    return opening.account
  }

  #define(names: readonly string[]): void {
    const { limits, settings } = this.#input
    const here = limits()
    if (!here) return
    for (const name of names) this.#paced.add(name)
    for (const [budget, spec] of Object.entries(gmailBudgets(names, settings))) here.budget(budget, spec)
  }
}

async function changeChoices(opening: Promise<MailAccount>, row: Account): Promise<void> {
  const account = await opening.catch(() => undefined)
  if (account) account.choices = choicesOf(row)
}

/** One that could not be opened has nothing to close. */
async function closeArchive(opening: Promise<MailAccount>): Promise<void> {
  const account = await opening.catch(() => undefined)
  await account?.archive.close()
}

export function unknownAccount(name: string, rows: readonly Pick<Account, 'name'>[]): UsageError {
  const known = rows.map((row) => row.name).join(', ')
  return new UsageError(`There is no mail account ${name}.`, {
    code: 'account-unknown',
    hint: known ? `There are: ${known}.` : 'Connect one with: tidemark account add gmail',
  })
}

async function openAccount(input: OpenAccountsInput, row: Account): Promise<MailAccount> {
  const { settings, tables, clock } = input
  const mailbox = await tables.mailbox(row.name, input.newArchiveId)
  const archive = await openArchive({
    folder: join(settings.folder, folderName(row.name)),
    account: row.name,
    archiveId: mailbox.archive_id,
    // Once planned there is something to lose: an empty folder in its place is an accident.
    expectExisting: mailbox.planned_at !== null,
    shardBy: settings.shardBy,
    shardBytesMax: settings.shardBytesMax,
    now: () => clock.now(),
  })
  const calls = new CallWatch(clock)
  const account: MailAccount = {
    name: row.name,
    stream: streamOf(row.name),
    units: unitsOf(row.name),
    choices: choicesOf(row),
    client: openClient(input, row, calls),
    calls,
    archive,
  }
  if (input.limits() && !input.onlyReads) await noticeBefore(input, account)
  return account
}

/** An engine stores in it from here on: what it lacks is noted first. The history job does the same, and asks for it. */
async function noticeBefore(input: OpenAccountsInput, account: MailAccount): Promise<void> {
  try {
    await noticeLosses(input, account)
  } catch (thrown) {
    // What is wrong with an archive is told to whoever uses it, and does not keep it from being mended.
    if (asTidemarkError(thrown).kind !== 'bug') return
    await account.archive.close()
    throw thrown
  }
}

export function openClient(
  input: OpenAccountsInput,
  row: Account,
  calls = new CallWatch(input.clock),
): GmailClient {
  const { settings, clock, fetch } = input
  return new GmailClient({
    fetch,
    clock,
    token: tokensOf(input, row),
    apiUrl: settings.apiUrl,
    pace: paceOf(input, row.name, calls),
    timeoutMs: SILENCE_MAX_MS,
    prices: pricesOf('current', { 'messages.get': settings.priceOfGet }),
  })
}

function tokensOf({ accounts, vault, settings, clock, fetch }: OpenAccountsInput, row: Account): TokenSource {
  return lazyTokens(() =>
    openAccountTokens({ account: row, accounts, vault, fetch, clock, tokenUrl: settings.tokenUrl }),
  )
}

function paceOf({ limits, settings }: OpenAccountsInput, account: string, calls: CallWatch): Pace {
  const pace = gmailPace({ account, reach: settings, limits })
  return (call, fn) => pace(call, (signal) => calls.watch(() => fn(signal)))
}
