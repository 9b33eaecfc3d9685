/** The file sync: what it needs, and the jobs that it offers to an engine. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import { createHttpExchange } from '../../base/http-exchange.ts'
import type { Vault } from '../../base/vault.ts'
import type { Fetch } from '../../cloud/oauth.ts'
import type { Engine } from '../../engine/engine.ts'
import type { BudgetSpec } from '../../engine/index.ts'
import type { AnyJobKind } from '../../engine/job-kind.ts'
import type { Accounts } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { Transfers } from './act/transfers.ts'
import { type FilesSettings, type FolderPairs, streamOf } from './folder-pair.ts'
import { type FileKinds, fileKinds } from './jobs.ts'
import { fileBudgets, openFolderPairs } from './open-folder-pairs.ts'
import { PlanRequests } from './plan-requests.ts'
import { pauseShare } from './shared-folder.ts'
import { FileStore } from './store/file-store.ts'
import { type SyncKinds, syncKinds } from './sync-kinds.ts'

export type FileSync = {
  settings: FilesSettings
  store: FileStore
  pairs: FolderPairs
  transfers: Transfers
  kinds: FileKinds & SyncKinds
  jobs: readonly AnyJobKind[]
  budgets(): Record<string, BudgetSpec>
  close(): Promise<void>
}

export type FileSyncInput = {
  ledger: Ledger
  accounts: Accounts
  vault: Vault
  settings: FilesSettings
  fetch: Fetch
  clock: Clock
  /** Once there is one; nothing is enqueued before. */
  engine: () => Engine | undefined
  onError?: (error: unknown) => void
}

export async function openFileSync(input: FileSyncInput): Promise<FileSync> {
  const { ledger, settings, clock } = input
  const store = await FileStore.open(ledger)
  const exchange = createHttpExchange()
  const pairs = await openFolderPairs({
    ...input,
    store,
    exchange,
    machine: machineId(),
    limits: () => input.engine()?.limits,
  })
  const planRequests = new PlanRequests({
    clock,
    ask: async (pair, { what, ...more }) => {
      await input.engine()?.enqueue(kinds[what], { drive: pair, ...more }, { stream: streamOf(pair) })
    },
    onError: input.onError ?? (() => {}),
  })
  const transfers = new Transfers()
  const acting = fileKinds({
    pairs,
    store,
    planRequests,
    transfers,
    settings,
    clock,
    lookAfter: (pair) => looking.lookAfter(pair),
  })
  const looking: SyncKinds = syncKinds({
    pairs,
    store,
    ledger,
    kindOf: acting.kindOf,
    pauseShare: (pair, error) => pauseShare({ engine: input.engine(), store }, pair, error),
  })
  const kinds = { ...acting, ...looking }
  return {
    settings,
    store,
    pairs,
    transfers,
    kinds,
    jobs: [...acting.all, looking.sync, looking.delta, looking.look, looking.plan],
    budgets: () => fileBudgets(pairs.accounts(), settings),
    async close() {
      planRequests.close()
      await acting.close()
      await pairs.close()
      exchange.close()
    },
  }
}

/** A folder belongs to one machine; its name may change, this does not. */
export function machineId(): string {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    try {
      const id = readFileSync(path, 'utf8').trim()
      if (id !== '') return id
    } catch {
      // Not on this system.
    }
  }
  return hostname()
}
