/** Opens the folder pairs that this machine keeps in step: the client with its token and pace, the folder's filter. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import type { HttpExchange } from '../../base/http-exchange.ts'
import type { Vault } from '../../base/vault.ts'
import { lazyTokens } from '../../cloud/account-tokens.ts'
import type { Fetch } from '../../cloud/oauth.ts'
import { openAccountTokens } from '../../cloud/onedrive/auth.ts'
import { OneDriveClient, type SpendBytes } from '../../cloud/onedrive/client.ts'
import type { Pace } from '../../cloud/pace.ts'
import type { TokenSource } from '../../cloud/token-source.ts'
import type { BudgetSpec } from '../../engine/index.ts'
import { BULK_BYTES } from '../../engine/kinds.ts'
import type { Budget } from '../../engine/limits/budget.ts'
import type { Limits } from '../../engine/limits/limits.ts'
import type { Account, Accounts } from '../../ledger/accounts.ts'
import { createFilter } from './filter.ts'
import {
  ELSEWHERE,
  type FilesSettings,
  type FolderPair,
  type FolderPairs,
  folderPairSettings,
  requestBudget,
  SERVICE,
  streamOf,
} from './folder-pair.ts'
import { RULES_CHARS_MAX } from './ignore-rules.ts'
import { isAbsence } from './local/stat.ts'
import { IGNORE_FILE } from './names.ts'
import type { FolderPairRow } from './store/contract.ts'
import type { FileStore } from './store/file-store.ts'

export type OpenFolderPairsInput = {
  store: FileStore
  accounts: Accounts
  vault: Vault
  settings: FilesSettings
  fetch: Fetch
  exchange: HttpExchange
  clock: Clock
  /** Folders of other machines are left to these. */
  machine: string
  limits: () => Limits | undefined
}

/** Changes, checks and looks run beside the transfers. */
const WORKERS_BESIDES = 8

/**
 * What calls to OneDrive may cost. Microsoft publishes no numbers for persons: the start is what other clients ask
 * without being refused, and from there the controller finds out what it bears.
 */
export function fileBudgets(
  accounts: readonly string[],
  settings: FilesSettings,
): Record<string, BudgetSpec> {
  const { requestsPerSecondStart: start, requestsPerSecondMax: max } = settings
  const workers = settings.parallelDownloads + settings.parallelUploads + settings.parallelCheckers
  const spec: BudgetSpec = {
    rate: start,
    rateMax: Math.max(start, max),
    rateMin: Math.min(start, 1),
    workers: { start: workers + WORKERS_BESIDES, max: workers + WORKERS_BESIDES },
  }
  return Object.fromEntries(accounts.map((account) => [requestBudget(account), spec]))
}

export async function openFolderPairs(input: OpenFolderPairsInput): Promise<FolderPairs> {
  const registry = new FolderPairRegistry(input)
  await registry.reload()
  return registry
}

class FolderPairRegistry implements FolderPairs {
  readonly #input: OpenFolderPairsInput
  readonly #opened = new Map<
    string,
    { row: FolderPairRow; ignored: string | undefined; pair: Promise<FolderPair> }
  >()
  readonly #paced = new Set<string>()
  #rows: readonly FolderPairRow[] = []

  constructor(input: OpenFolderPairsInput) {
    this.#input = input
  }

  names(): readonly string[] {
    return this.#rows.map(({ name }) => name)
  }

  accounts(): readonly string[] {
    return [...new Set(this.#rows.map(({ account }) => account))]
  }

  async get(name: string): Promise<FolderPair> {
    if (!this.#find(name)) await this.reload()
    const row = this.#find(name) ?? (await this.#refuse(name))
    const known = this.#opened.get(name)
    if (known) return known.pair
    const ignored = readIgnoreFile(row.root)
    const opening = { row, ignored, pair: openFolderPair(this.#input, row, ignored) }
    this.#opened.set(name, opening)
    // A failure is not kept: the next one to ask may be luckier.
    opening.pair.catch(() => {
      if (this.#opened.get(name) === opening) this.#opened.delete(name)
    })
    return opening.pair
  }

  budget(name: string): string {
    const account = this.#find(name)?.account ?? name
    if (!this.#paced.has(account)) this.#define([account])
    return requestBudget(account)
  }

  async reload(): Promise<void> {
    const rows = await this.#input.store.folderPairs()
    this.#rows = rows.filter(({ machine }) => machine === this.#input.machine)
    this.#define(this.#rows.map(({ account }) => account))
    for (const [name, { row, ignored }] of this.#opened) {
      const now = this.#find(name)
      // What is in the folder decides about the filter, too: it is read again.
      const isSame = now?.settings === row.settings && now.markerId === row.markerId
      if (!isSame || !isIgnoring(now, ignored)) this.#opened.delete(name)
    }
  }

  async close(): Promise<void> {
    this.#opened.clear()
  }

  #find(name: string): FolderPairRow | undefined {
    return this.#rows.find((row) => row.name === name)
  }

  async #refuse(name: string): Promise<never> {
    const row = await this.#input.store.folderPair(name)
    throw new UsageError(`The folder of ${name}, ${row.root}, is on another machine.`, {
      code: ELSEWHERE,
      hint: 'Run Tidemark there; a folder is kept in step by the machine that has it.',
    })
  }

  #define(accounts: readonly string[]): void {
    const here = this.#input.limits()
    if (!here) return
    for (const account of accounts) this.#paced.add(account)
    for (const [name, spec] of Object.entries(fileBudgets(accounts, this.#input.settings)))
      here.budget(name, spec)
  }
}

async function openFolderPair(
  input: OpenFolderPairsInput,
  row: FolderPairRow,
  ignored: string | undefined,
): Promise<FolderPair> {
  const account = await input.accounts.find(SERVICE, row.account)
  if (!account) {
    throw new UsageError(`The account ${row.account} of the folder ${row.name} is not connected.`, {
      code: 'account-unknown',
      hint: 'Connect it with: tidemark account add onedrive',
    })
  }
  const settings = folderPairSettings.parse(JSON.parse(row.settings))
  return {
    name: row.name,
    stream: streamOf(row.name),
    account: row.account,
    driveId: row.driveId,
    isBusiness: row.driveType !== 'personal',
    rootItemId: row.rootItemId,
    sharedBy: row.sharedBy ?? undefined,
    maySeeShared: async () => (await input.accounts.find(SERVICE, row.account))?.settings.access === 'shared',
    root: row.root,
    markerId: row.markerId,
    settings,
    filter: createFilter(settings.filter, ignored),
    client: openOneDriveClient(input, account),
  }
}

/** Enough for all the characters that rules may have. */
const IGNORE_BYTES_MAX = 4 * RULES_CHARS_MAX

/** Undefined: there is none, or the folder is not there, which whoever acts on it finds out. */
export function readIgnoreFile(root: string): string | undefined {
  const path = join(root, IGNORE_FILE)
  try {
    const found = statSync(path)
    // Reading a pipe would wait for ever.
    if (!found.isFile()) return undefined
    if (found.size > IGNORE_BYTES_MAX)
      throw new Error(`it has ${found.size} bytes, and rules have at most ${IGNORE_BYTES_MAX}`)
    return readFileSync(path, 'utf8')
  } catch (thrown) {
    if (isAbsence(thrown)) return undefined
    // Without its lines, what must not leave this machine would be uploaded.
    throw new UsageError(`What takes part is not known: ${path} cannot be read.`, {
      code: 'ignore-file-unreadable',
      cause: thrown,
      hint: 'Make it readable, or delete it. Until then nothing is changed on either side.',
    })
  }
}

function isIgnoring({ root }: FolderPairRow, lines: string | undefined): boolean {
  try {
    return readIgnoreFile(root) === lines
  } catch {
    return false
  }
}

export type ClientInput = Pick<
  OpenFolderPairsInput,
  'accounts' | 'vault' | 'settings' | 'fetch' | 'exchange' | 'clock' | 'limits'
>

export function openOneDriveClient(input: ClientInput, account: Account): OneDriveClient {
  const { settings, clock, exchange } = input
  return new OneDriveClient({
    exchange,
    clock,
    apiUrl: settings.apiUrl,
    token: accountTokens(input, account),
    pace: accountPace(input, account.name),
    spendBytes: byteSpending(input),
    timeoutMs: settings.silenceMs,
  })
}

function accountTokens(
  { accounts, vault, settings, clock, fetch }: ClientInput,
  account: Account,
): TokenSource {
  return lazyTokens(() =>
    openAccountTokens({ account, accounts, vault, fetch, clock, tokenUrl: settings.tokenUrl }),
  )
}

function accountPace({ limits, settings }: ClientInput, account: string): Pace {
  const name = requestBudget(account)
  let from: ReturnType<typeof limits>
  let budget: Budget | undefined
  return async (call, fn) => {
    const here = limits()
    if (!here) return fn(call.signal)
    if (here !== from) {
      from = here
      budget = here.budget(name, fileBudgets([account], settings)[name]!)
    }
    // News of the other side does not queue behind one's own work.
    const lane = call.method === 'delta' ? { lane: 'interactive' as const } : {}
    const wait = { ...(call.signal ? { signal: call.signal } : {}), ...lane }
    return budget!.call(call.units, () => fn(call.signal), { ...wait, name: call.method })
  }
}

/** All transfers of this process, and of others on the same ledger, share the line. */
function byteSpending({ limits, settings }: ClientInput): SpendBytes {
  return async (direction, bytes, signal, wholeBytes) => {
    const way = direction === 'up' ? 'upload' : 'download'
    const lane = wholeBytes === undefined || wholeBytes >= BULK_BYTES ? 'bulk' : 'interactive'
    await limits()?.bandwidth(settings.bandwidth).take(way, bytes, signal, lane)
  }
}
