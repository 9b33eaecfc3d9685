/**
 * What mail commands work with: the configuration, the ledger, the accounts and, where work is to be done, an engine
 * that runs the mail jobs in this process.
 */
import type { MailAccounts, MailKinds, MailSettings, MailTables } from '../apps/mail-archive/index.ts'
import { type OpenedArchive, withLabels } from '../apps/mail-archive/merged-search.ts'
import type { Override } from '../config/load.ts'
import type { Config } from '../config/settings.ts'
import type { Engine } from '../engine/engine.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import type { Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CliContext } from './context.ts'

export type OpenedMail = {
  ledger: Ledger
  config: Config
  home: string
  settings: MailSettings
  accounts: Accounts
  tables: MailTables
  mail: MailAccounts
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
      archives.push(await withLabels(opened.tables, name, archive))
    }
    return use({ ...opened, archives })
  })
}

/** For commands that work: an engine with the mail jobs, which the command starts. It is stopped at the end. */
export function withMailEngine<T>(
  context: CliContext,
  options: { overrides?: readonly Override[]; sinceMs?: number | undefined },
  use: (opened: MailEngine) => Promise<T>,
): Promise<T> {
  return withMail(context, options, use)
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

type MailInput = { overrides?: readonly Override[]; sinceMs?: number | undefined }

/** For commands that open archives for themselves, if at all. Needs no network. */
export async function withMail<T>(
  context: CliContext,
  input: MailInput,
  use: (opened: MailEngine) => Promise<T>,
): Promise<T> {
  const { openRuntime } = await import('../server/runtime.ts')
  const { values: config, home, origins } = await context.loadConfig(input.overrides)
  const runtime = await openRuntime({
    ...{ config, origins, home: home.path, env: context.env, role: 'worker', name: 'mail' },
    mail: { sinceMs: input.sinceMs },
    create: false,
  }).catch((thrown: unknown) => {
    throw thrown instanceof TidemarkError && thrown.code === 'ledger-unmade' ? noAccount(thrown) : thrown
  })
  try {
    const { ledger, engine, accounts, mail } = runtime
    const { settings, tables, kinds } = mail
    return await use({
      ...{ ledger, engine, accounts, settings, tables, kinds, mail: mail.accounts },
      config: runtime.config,
      home: home.path,
    })
  } finally {
    await runtime.close()
  }
}

function noAccount(cause?: unknown): UsageError {
  return new UsageError('No mail account is connected.', {
    ...{ code: 'no-account', cause },
    hint: 'Connect one with: tidemark account add gmail',
  })
}
