/**
 * Everything that a process of Tidemark works with: the ledger, an engine on it with the jobs of all apps, and the
 * accounts. A command that syncs opens one and closes it at its end; `serve` keeps one open.
 *
 * States: open → closed. Opening starts nothing: whoever wants jobs to run starts the engine. What `reload` changes
 * it changes in place, so that copies of the runtime see it as well.
 */
import { randomUUID } from 'node:crypto'
import { type FileSync, openFileSync } from '../apps/file-sync/index.ts'
import { archiverJobs } from '../apps/mail-archive/archiver/jobs.ts'
import { ArchiveRuns } from '../apps/mail-archive/archiver/runs.ts'
import {
  jobsOf,
  type MailAccounts,
  type MailKinds,
  type MailSettings,
  MailTables,
  mailBudgets,
  mailKinds,
  openMailAccounts,
} from '../apps/mail-archive/index.ts'
import { type Clock, systemClock } from '../clock.ts'
import type { Fetch } from '../cloud/oauth.ts'
import { type Environment, locateLedger, type Origin } from '../config/location.ts'
import type { Config } from '../config/settings.ts'
import { webhookSink } from '../engine/alert-delivery.ts'
import { createEngine, type Engine } from '../engine/engine.ts'
import { Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openLedger } from '../ledger/open.ts'
import { openVault, type Vault } from '../vault.ts'
import {
  engineSizeOf,
  filesSettingsOf,
  type MailOverrides,
  mailSettingsOf,
  retentionOf,
  thresholdsOf,
} from './runtime-settings.ts'

/** `web` answers and runs no jobs; `worker` runs jobs and answers nothing but its health. */
export type Role = 'all' | 'web' | 'worker'

export type Origins = ReadonlyMap<string, Origin>

export type Runtime = {
  role: Role
  config: Config
  /** Where each setting came from, by key; a default where it is not named. */
  origins: Origins
  home: string
  ledger: Ledger
  /** Not started where the role is `web`: it enqueues and steers through the ledger all the same. */
  engine: Engine
  accounts: Accounts
  vault: Vault
  mail: {
    settings: MailSettings
    tables: MailTables
    accounts: MailAccounts
    kinds: MailKinds
    archiveRuns: ArchiveRuns
  }
  files: FileSync
}

export type OpenRuntime = Runtime & {
  /** Stops the engine, then closes the archives and the ledger. */
  close(): Promise<void>
  /**
   * Takes over what can change in a running process: workers, budgets, sizes, how often is looked for mail (with the
   * next `startAccounts`). What needs a new start stays as it is, here and in what is told.
   */
  reload(config: Config, origins?: Origins): Promise<void>
}

export type OpenRuntimeInput = {
  config: Config
  origins?: Origins
  home: string
  /** For the master key. */
  env: Environment
  role: Role
  clock?: Clock
  fetch?: Fetch
  /** What holds for this process, over the configuration. */
  mail?: MailOverrides
  /** How the process is called among the workers. */
  name?: string
  /** False where a missing ledger is an error, with the code `ledger-unmade`. */
  create?: boolean
}

export async function openRuntime(input: OpenRuntimeInput): Promise<OpenRuntime> {
  const { clock = systemClock, create = true } = input
  const location = locateLedger(input.config.ledger.url, input.home)
  const url = location.database === 'sqlite' ? `sqlite:${location.path}` : location.url
  const ledger = await openLedger(url, { clock, create })
  try {
    return await openOn(ledger, { ...input, clock })
  } catch (thrown) {
    await ledger.close()
    throw thrown
  }
}

async function openOn(ledger: Ledger, input: OpenRuntimeInput & { clock: Clock }): Promise<OpenRuntime> {
  const { clock, home, fetch = globalThis.fetch } = input
  const config = structuredClone(input.config)
  const settings = mailSettingsOf(config, home, input.mail)
  const accounts = await Accounts.open(ledger)
  const tables = await MailTables.open(ledger)
  const vault = await openVault({ env: input.env, home })
  let engine: Engine | undefined
  const mail = await openMailAccounts({
    ...{ accounts, tables, settings, vault, fetch, clock },
    newArchiveId: randomUUID,
    limits: () => engine?.limits,
  })
  const kinds = mailKinds({ accounts: mail, tables, ledger, clock, settings })
  const files = await openFileSync({
    ...{ ledger, accounts, vault, settings: filesSettingsOf(config), fetch, clock, engine: () => engine },
  })
  const { webhook_url: webhook } = config.alerts
  engine = await createEngine({
    ...{ ledger, clock, name: input.name ?? 'tidemark', ...engineSizeOf(config) },
    jobs: [
      ...jobsOf(kinds),
      ...archiverJobs({ accounts: mail, ledger, clock, obstacles: kinds.obstacles }),
      ...files.jobs,
    ],
    leaseMs: config.engine.lease_seconds * 1000,
    bulkBytes: config.engine.bulk_bytes,
    budgets: { ...mailBudgets(mail.names(), settings), ...files.budgets() },
    housekeeping: {
      ...retentionOf(config),
      thresholds: thresholdsOf(config),
      sinks: webhook === undefined ? [] : [webhookSink({ url: webhook, fetch })],
      metadata: async () => [
        { target: 'ledger', used: await tables.metadataBytes(), max: settings.metadataBytesMax },
      ],
    },
  })
  const archiveRuns = new ArchiveRuns(engine, { accounts: mail, clock })
  const runtime: Runtime = {
    ...{ role: input.role, config, origins: new Map(input.origins), home, ledger, engine, accounts, vault },
    mail: { settings, tables, accounts: mail, kinds, archiveRuns },
    files,
  }
  return {
    ...runtime,
    close: once(async () => {
      await runtime.engine.stop()
      await files.close()
      await mail.close()
      await ledger.close()
    }),
    reload: (now, origins) => reload(runtime, { config: now, origins, overrides: input.mail }),
  }
}

type Reload = { config: Config; origins: Origins | undefined; overrides: MailOverrides | undefined }

async function reload(runtime: Runtime, { config, origins, overrides }: Reload): Promise<void> {
  const { engine, mail, files, home } = runtime
  for (const section of Object.keys(config) as (keyof Config)[]) {
    if (!isFixed(section)) Object.assign(runtime.config[section], structuredClone(config[section]))
  }
  if (origins) takeOver(runtime.origins as Map<string, Origin>, origins)
  Object.assign(mail.settings, mailSettingsOf(config, home, overrides))
  Object.assign(files.settings, filesSettingsOf(config))
  engine.reload(engineSizeOf(config))
  await mail.accounts.reload()
  await files.drives.reload()
}

/** Opened or bound with the process: what was read anew of them does not hold. */
const FIXED: ReadonlySet<string> = new Set<keyof Config>(['ledger', 'server', 'alerts'])

const isFixed = (key: string): boolean => FIXED.has(key.split('.')[0]!)

function takeOver(kept: Map<string, Origin>, origins: Origins): void {
  for (const key of kept.keys()) if (!isFixed(key)) kept.delete(key)
  for (const [key, origin] of origins) if (!isFixed(key)) kept.set(key, origin)
}

function once(fn: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined
  return () => {
    ended ??= fn()
    return ended
  }
}
