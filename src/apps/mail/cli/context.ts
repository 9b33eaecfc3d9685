/** What mail commands work with: the runtime, and the archives that a command is about. Needs no network. */

import { type AppInput, noSource, withApp } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { LOCAL_NAME, type MailAccounts } from '../account.ts'
import { mailApp } from '../app.ts'
import { type OpenedArchive, withLabels } from '../merged-search.ts'
import { type MailRuntime, mailRuntime } from '../runtime.ts'

type Choice = { account?: string | undefined; onlyReads?: boolean }

/** Opens everything, and starts nothing. */
export function withMail<T>(
  context: CliContext,
  input: AppInput,
  use: (opened: MailRuntime) => Promise<T>,
): Promise<T> {
  return withApp(context, mailApp, input, (runtime) => use(mailRuntime(runtime)))
}

/** For commands that look into archives: of one account, or of all. */
export async function withMailArchive<T>(
  context: CliContext,
  choice: Choice,
  use: (opened: MailRuntime & { archives: OpenedArchive[] }) => Promise<T>,
): Promise<T> {
  const appOverrides = { onlyReads: choice.onlyReads }
  return withMail(context, { appOverrides }, async (opened) => {
    const { accounts, tables } = opened.mail
    const archives: OpenedArchive[] = []
    for (const name of chosen(accounts, choice, 'also local')) {
      const { archive } = await accounts.get(name)
      archives.push(await withLabels(tables, name, archive))
    }
    return use({ ...opened, archives })
  })
}

export function onlyOne<Named extends { name: string }>(all: readonly Named[]): Named {
  const [first, ...others] = all
  if (first && others.length === 0) return first
  throw severalAccounts(all.map(({ name }) => name))
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
  return withMail(context, { create: true }, async ({ mail: { accounts, tables } }) => {
    const name = importName(accounts, choice)
    const isNew = !accounts.names().includes(name)
    const { archive } = isNew ? await accounts.addLocal(name) : await accounts.get(name)
    if (isNew) context.output.note(`${name} is an archive of its own, connected with no account.`)
    return use(await withLabels(tables, name, archive))
  })
}

function importName(accounts: MailAccounts, { account }: Choice): string {
  const wanted = account?.trim().toLowerCase()
  const names = accounts.names()
  if (wanted !== undefined) {
    const known = names.find((name) => name.toLowerCase() === wanted)
    if (known !== undefined || wanted === LOCAL_NAME || /^[^@\s]+@[^@\s]+$/.test(wanted))
      return known ?? wanted
    return chosen(accounts, { account })[0]!
  }
  const connected = accounts.connected()
  if (connected.length === 0) return names.length === 1 ? names[0]! : LOCAL_NAME
  if (connected.length === 1) return connected[0]!
  throw severalAccounts(connected)
}

/** The accounts that a command is about; all of them where none is named. Archives of imports only where it reads. */
export function chosen(accounts: MailAccounts, { account }: Choice, which?: 'also local'): readonly string[] {
  const names = which ? accounts.names() : accounts.connected()
  if (account === undefined) {
    if (names.length > 0) return names
    throw noSource(mailApp)
  }
  // Gmail knows no difference between small and capital letters.
  const known = names.find((name) => name.toLowerCase() === account.trim().toLowerCase())
  if (known !== undefined) return [known]
  throw new UsageError(`There is no mail account ${account}.`, {
    code: 'account-unknown',
    hint: names.length > 0 ? `There are: ${names.join(', ')}.` : noSource(mailApp).hint,
  })
}
