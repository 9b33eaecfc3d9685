/** Opens accounts from what the ledger knows of them: the client with its token and its pace, and the archive. */
import { join } from 'node:path'
import type { Clock } from '../../clock.ts'
import { openAccountTokens } from '../../cloud/gmail/account-tokens.ts'
import { GmailClient, type Pace, type TokenSource } from '../../cloud/gmail/client.ts'
import { pricesOf } from '../../cloud/gmail/prices.ts'
import type { Fetch } from '../../cloud/oauth.ts'
import type { Limits } from '../../engine/limits/limits.ts'
import { UsageError } from '../../errors.ts'
import type { Account, Accounts } from '../../ledger/accounts.ts'
import type { Vault } from '../../vault.ts'
import {
  folderName,
  type MailAccount,
  type MailAccounts,
  mailChoices,
  requestsOf,
  SERVICE,
  streamOf,
  unitsOf,
} from './account.ts'
import { CallWatch } from './call-watch.ts'
import { type MailSettings, mailBudgets } from './index.ts'
import { openArchive } from './store/archive.ts'
import type { MailTables } from './store/tables.ts'

export type OpenAccountsInput = {
  accounts: Accounts
  tables: MailTables
  vault: Vault
  settings: MailSettings
  fetch: Fetch
  clock: Clock
  /** A name that no other archive has. */
  newArchiveId: () => string
  /** The engine's limits, or none for a single look without one. */
  limits: () => Limits | undefined
}

/** A connection that says nothing for this long is given up. */
const SILENCE_MAX_MS = 60_000

export async function openMailAccounts(input: OpenAccountsInput): Promise<MailAccounts> {
  const rows = await input.accounts.list(SERVICE)
  const opened = new Map<string, Promise<MailAccount>>()
  return {
    names: () => rows.map(({ name }) => name),
    get(name) {
      const known = opened.get(name)
      if (known) return known
      const row = rows.find((one) => one.name === name)
      if (!row) return Promise.reject(unknownAccount(name, rows))
      const opening = openAccount(input, row)
      opened.set(name, opening)
      // A failure is not kept: the next one to ask may be luckier.
      opening.catch(() => opened.delete(name))
      return opening
    },
    async close() {
      for (const opening of opened.values()) await (await opening).archive.close()
      opened.clear()
    },
  }
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
  return {
    name: row.name,
    stream: streamOf(row.name),
    units: unitsOf(row.name),
    choices: mailChoices.parse(row.settings),
    client: openClient(input, row, calls),
    calls,
    archive,
  }
}

export function openClient(
  input: OpenAccountsInput,
  row: Account,
  calls = new CallWatch(input.clock),
): GmailClient {
  const { settings, clock, fetch } = input
  return new GmailClient({
    ...{ fetch, clock, token: lazyTokens(input, row) },
    apiUrl: settings.apiUrl,
    pace: paceOf(input, row.name, calls),
    timeoutMs: SILENCE_MAX_MS,
    prices: pricesOf('current', { 'messages.get': settings.priceOfGet }),
  })
}

/** The vault is opened by the first call: who only reads the archive needs no secret. */
function lazyTokens(
  { accounts, vault, settings, clock, fetch }: OpenAccountsInput,
  row: Account,
): TokenSource {
  let opening: Promise<TokenSource> | undefined
  let opened: TokenSource | undefined
  return {
    async access(signal) {
      opening ??= openAccountTokens({
        account: row,
        accounts,
        vault,
        fetch,
        clock,
        tokenUrl: settings.tokenUrl,
      })
      // A failure is not kept: the key may be there the next time.
      opening.catch(() => {
        opening = undefined
      })
      opened = await opening
      return opened.access(signal)
    },
    refused: (token) => opened?.refused(token),
  }
}

/** Every call waits for its turn in two budgets: requests over the wire, and units by their price. */
function paceOf({ limits, settings }: OpenAccountsInput, name: string, calls: CallWatch): Pace {
  const specs = mailBudgets([name], settings)
  const [units, requests] = [unitsOf(name), requestsOf(name)]
  return async (call, fn) => {
    const here = limits()
    const watched = (signal: AbortSignal | undefined) => calls.watch(() => fn(signal))
    if (!here) return watched(call.signal)
    const wait = call.signal ? { signal: call.signal } : {}
    // Units first: a request that waits for them is not on the wire yet, and must not count as one that is slow.
    return here
      .budget(units, specs[units]!)
      .call(call.units, () => here.budget(requests, specs[requests]!).call(1, watched, wait), {
        ...wait,
        name: call.method,
      })
  }
}
