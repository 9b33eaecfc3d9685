/**
 * What mail commands work with: the configuration, the ledger, the accounts and, where work is to be done, an engine
 * that runs the mail jobs in this process.
 */

import type { CliContext } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import type { Override } from '../../../config/load.ts'
import type { Config } from '../../../config/settings.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Accounts } from '../../../ledger/accounts.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { LOCAL_NAME } from '../account.ts'
import type { MailAccounts, MailKinds, MailSettings, MailTables } from '../index.ts'
import { type OpenedArchive, withLabels } from '../merged-search.ts'
import { mailRuntime } from '../runtime.ts'
import type { MailOverrides } from '../settings.ts'

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
    for (const name of chosen(opened.mail, choice, 'also local')) {
      const { archive } = await opened.mail.get(name)
      archives.push(await withLabels(opened.tables, name, archive))
    }
    return use({ ...opened, archives })
  })
}

export function onlyOne(archives: readonly OpenedArchive[]): OpenedArchive {
  const [first, ...others] = archives
  if (first && others.length === 0) return first
  throw severalAccounts(archives.map(({ name }) => name))
}

function severalAccounts(names: readonly string[]): UsageError {
  return new UsageError('There are several mail accounts; say which one is meant.', {
    code: 'account-unclear',
    hint: `Add --account with one of: ${names.join(', ')}.`,
  })
}

/**
 * Where imported mail goes: the archive of the account that is named or the only one; without any account, an archive of
 * imports, which is searched and exported like the others and synced with nothing. The archive of an address that is
 * named here and connected later becomes that account's.
 */
export async function withImportArchive<T>(
  context: CliContext,
  choice: Choice,
  use: (opened: OpenedArchive) => Promise<T>,
): Promise<T> {
  return withMail(context, { create: true }, async (opened) => {
    const { mail, tables } = opened
    const name = importName(mail, choice)
    const isNew = !mail.names().includes(name)
    const { archive } = isNew ? await mail.addLocal(name) : await mail.get(name)
    if (isNew) context.output.note(`${name} is an archive of its own, connected with no account.`)
    return use(await withLabels(tables, name, archive))
  })
}

function importName(mail: MailAccounts, { account }: Choice): string {
  const wanted = account?.trim().toLowerCase()
  const names = mail.names()
  if (wanted !== undefined) {
    const known = names.find((name) => name.toLowerCase() === wanted)
    if (known !== undefined || wanted === LOCAL_NAME || /^[^@\s]+@[^@\s]+$/.test(wanted))
      return known ?? wanted
    return chosen(mail, { account })[0]!
  }
  const connected = mail.connected()
  if (connected.length === 0) return names.length === 1 ? names[0]! : LOCAL_NAME
  if (connected.length === 1) return connected[0]!
  throw severalAccounts(connected)
}

/** For commands that work: an engine with the mail jobs, which the command starts. It is stopped at the end. */
export function withMailEngine<T>(
  context: CliContext,
  options: { overrides?: readonly Override[]; sinceMs?: number | undefined },
  use: (opened: MailEngine) => Promise<T>,
): Promise<T> {
  return withMail(context, options, use)
}

/** The accounts that a command is about; all of them where none is named. Archives of imports only where it reads. */
export function chosen(mail: MailAccounts, { account }: Choice, which?: 'also local'): readonly string[] {
  const names = which ? mail.names() : mail.connected()
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

type MailInput = { overrides?: readonly Override[]; sinceMs?: number | undefined; create?: boolean }

/** For commands that open archives for themselves, if at all. Needs no network. */
export async function withMail<T>(
  context: CliContext,
  input: MailInput,
  use: (opened: MailEngine) => Promise<T>,
): Promise<T> {
  const { openMail } = await import('../open.ts')
  const opening = context.openRuntime({
    ...{ apps: [{ name: 'mail', open: openMail }], name: 'mail', overrides: input.overrides },
    appOverrides: { mail: { sinceMs: input.sinceMs } satisfies MailOverrides },
    create: input.create ?? false,
  })
  const runtime = await opening.catch((thrown: unknown) => {
    throw thrown instanceof TidemarkError && thrown.code === 'ledger-unmade' ? noAccount(thrown) : thrown
  })
  try {
    const { ledger, engine, accounts, home } = runtime
    const { mail } = mailRuntime(runtime)
    const { settings, tables, kinds } = mail
    return await use({
      ...{ ledger, engine, accounts, settings, tables, kinds, mail: mail.accounts },
      config: runtime.config,
      home,
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
