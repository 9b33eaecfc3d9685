/**
 * What mail commands work with: the configuration, the ledger, the accounts and, where work is to be done, an engine
 * that runs the mail jobs in this process.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { MailAccounts, MailKinds, MailSettings, MailTables } from '../apps/mail-archive/index.ts'
import type { Archive } from '../apps/mail-archive/store/contract.ts'
import { systemClock } from '../clock.ts'
import type { Override } from '../config/load.ts'
import type { Config } from '../config/settings.ts'
import type { Engine } from '../engine/engine.ts'
import { UsageError } from '../errors.ts'
import type { Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CliContext } from './context.ts'
import { withLedger } from './ledger.ts'

export type OpenedMail = {
  ledger: Ledger
  config: Config
  home: string
  settings: MailSettings
  accounts: Accounts
  tables: MailTables
  mail: MailAccounts
}

export type OpenedArchive = {
  name: string
  archive: Archive
  /** Ids by lower-case name, and names by id. */
  labels: ReadonlyMap<string, string>
  labelNames: ReadonlyMap<string, string>
}

export type MailEngine = OpenedMail & { engine: Engine; kinds: MailKinds }

type Choice = { account?: string | undefined }

/** For commands that look into archives: of one account, or of all. Needs no network. */
export async function withMailArchive<T>(
  context: CliContext,
  choice: Choice,
  use: (opened: OpenedMail & { archives: OpenedArchive[] }) => Promise<T>,
): Promise<T> {
  return withMail(context, {}, async (opened) => {
    const archives: OpenedArchive[] = []
    for (const name of chosen(opened.mail, choice)) {
      const { archive } = await opened.mail.get(name)
      const rows = await opened.tables.labels(name)
      archives.push({
        ...{ name, archive },
        labels: new Map(rows.map((row) => [row.name.toLowerCase(), row.id])),
        labelNames: new Map(rows.map((row) => [row.id, row.name])),
      })
    }
    return use({ ...opened, archives })
  })
}

/** For commands that work: an engine with the mail jobs, which the command starts. It is stopped at the end. */
export async function withMailEngine<T>(
  context: CliContext,
  options: { overrides?: readonly Override[]; sinceMs?: number | undefined },
  use: (opened: MailEngine) => Promise<T>,
): Promise<T> {
  const { createEngine } = await import('../engine/engine.ts')
  const { jobsOf, mailBudgets, mailKinds } = await import('../apps/mail-archive/index.ts')
  const { archiverJobs } = await import('../apps/mail-archive/archiver/jobs.ts')
  let engine: Engine | undefined
  return withMail(context, { ...options, limits: () => engine?.limits }, async (opened) => {
    const { ledger, config, settings, tables, mail } = opened
    const kinds = mailKinds({ accounts: mail, tables, ledger, clock: systemClock, settings })
    engine = await createEngine({
      ledger,
      jobs: [
        ...jobsOf(kinds),
        ...archiverJobs({ accounts: mail, ledger, clock: systemClock, obstacles: kinds.obstacles }),
      ],
      workers: Math.max(config.engine.workers, settings.workers.max + 4),
      window: config.engine.window,
      leaseMs: config.engine.lease_seconds * 1000,
      budgets: mailBudgets(mail.names(), settings),
      name: 'mail',
      housekeeping: {
        settledKeptMs: config.ledger.prune_after_days * 86_400_000,
        failedKeptMs: config.ledger.failed_after_days * 86_400_000,
        thresholds: thresholdsOf(config),
        metadata: async () => [
          { target: 'ledger', used: await tables.metadataBytes(), max: settings.metadataBytesMax },
        ],
      },
    })
    try {
      return await use({ ...opened, engine, kinds })
    } finally {
      await engine.stop()
    }
  })
}

/** The accounts that a command is about; all of them where none is named. */
export function chosen(mail: MailAccounts, { account }: Choice): readonly string[] {
  const names = mail.names()
  if (account === undefined) {
    if (names.length > 0) return names
    throw noAccount()
  }
  // Gmail knows no difference between small and capital letters.
  const known = names.find((name) => name.toLowerCase() === account.trim().toLowerCase())
  if (known !== undefined) return [known]
  throw new UsageError(`There is no mail account ${account}.`, {
    code: 'account-unknown',
    hint:
      names.length > 0 ? `There are: ${names.join(', ')}.` : 'Connect one with: tidemark account add gmail',
  })
}

type MailInput = {
  overrides?: readonly Override[]
  sinceMs?: number | undefined
  limits?: () => Engine['limits'] | undefined
}

/** For commands that open archives for themselves, if at all. Needs no network. */
export async function withMail<T>(
  context: CliContext,
  input: MailInput,
  use: (opened: OpenedMail) => Promise<T>,
): Promise<T> {
  const { Accounts } = await import('../ledger/accounts.ts')
  const { MailTables, openMailAccounts } = await import('../apps/mail-archive/index.ts')
  const { openVault } = await import('../vault.ts')
  const { values: config, home } = await context.loadConfig(input.overrides)
  try {
    return await withLedger(context, async ({ ledger }) => {
      const accounts = await Accounts.open(ledger)
      const tables = await MailTables.open(ledger)
      const settings = settingsOf(config, home.path, input.sinceMs)
      const mail = await openMailAccounts({
        ...{ accounts, tables, settings },
        vault: await openVault({ env: context.env, home: home.path }),
        fetch: globalThis.fetch,
        clock: systemClock,
        newArchiveId: randomUUID,
        limits: input.limits ?? (() => undefined),
      })
      try {
        return await use({ ledger, config, home: home.path, settings, accounts, tables, mail })
      } finally {
        await mail.close()
      }
    })
  } catch (thrown) {
    if (thrown instanceof UsageError && thrown.code === 'no-ledger') throw noAccount(thrown)
    throw thrown
  }
}

function noAccount(cause?: unknown): UsageError {
  return new UsageError('No mail account is connected.', {
    ...{ code: 'no-account', cause },
    hint: 'Connect one with: tidemark account add gmail',
  })
}

function settingsOf({ gmail, mail }: Config, home: string, sinceMs: number | undefined): MailSettings {
  return {
    folder: join(home, 'mail'),
    apiUrl: gmail.api_url,
    tokenUrl: gmail.token_url,
    unitsPerMinute: gmail.units_per_minute,
    priceOfGet: gmail.price_of_get,
    requestsPerSecond: { start: gmail.requests_per_second_start, max: gmail.requests_per_second_max },
    workers: {
      start: Math.min(gmail.workers_start, gmail.workers_max),
      max: gmail.workers_max,
    },
    slice: mail.slice,
    sliceByLabel: mail.slice_by_label,
    batch: mail.batch,
    sinceMs,
    shardBy: mail.shard_by,
    shardBytesMax: mail.shard_max,
    metadataBytesMax: mail.metadata_max,
  }
}

function thresholdsOf({ alerts }: Config) {
  return {
    badWarnShare: alerts.bad_warn,
    badCriticalShare: alerts.bad_critical,
    badPerHourCritical: alerts.bad_per_hour_critical,
    throttledMs: alerts.throttled_minutes * 60_000,
    heartbeatMs: alerts.heartbeat_minutes * 60_000,
  }
}
