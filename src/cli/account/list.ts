/** `tidemark account list`, and finding the account that a command names. */

import { keepsText, shownSettings, usesOf } from '../../app/accounts/account-use.ts'
import { connectCommand } from '../../app/accounts/connecting.ts'
import type { CliContext } from '../../app/command.ts'
import { openIfThere } from '../../app/with-ledger.ts'
import { apps } from '../../apps/registry.ts'
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { distance, isoTime } from '../../base/moment.ts'
import { openVault, type Vault } from '../../base/vault.ts'
import { levelOfAccount } from '../../cloud/account-keeping.ts'
import { accessText } from '../../cloud/account-service.ts'
import { CONNECT_HINT, findService } from '../../cloud/registry.ts'
import type { Config } from '../../config/settings.ts'
import { type Account, Accounts, accountKey } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { Users } from '../../ledger/users.ts'
import { didYouMean } from '../output/input.ts'

/** For commands about accounts: a home without a ledger has none. */
export async function withAccounts<T>(
  context: CliContext,
  use: (opened: { accounts: Accounts; ledger: Ledger; config: Config }) => Promise<T>,
): Promise<T | undefined> {
  const { ledger, place } = await openIfThere(context)
  if (!ledger) return undefined
  try {
    return await use({ accounts: await Accounts.open(ledger), ledger, config: place.config })
  } finally {
    await ledger.close()
  }
}

export function noAccounts(): UsageError {
  return new UsageError('No account is connected.', { code: 'no-account', hint: CONNECT_HINT })
}

export async function listAccounts(context: CliContext): Promise<void> {
  const { output } = context
  const rows = (await withAccounts(context, (opened) => accountRows(context, opened))) ?? []
  const now = systemClock.now()
  output.listing({
    columns: [
      { title: 'service', value: ({ account }) => account.service },
      { title: 'account', value: ({ account }) => account.name },
      { title: 'user', value: ({ user }) => user },
      { title: 'state', value: ({ account }) => (account.state === 'ready' ? 'ready' : 'sign in again') },
      { title: 'access', value: ({ access }) => access },
      { title: 'keeps', value: ({ keeps }) => keeps },
      { title: 'connected', value: ({ account }) => distance(account.createdAtMs, now) },
    ],
    rows,
    json: rows.map(({ account: { service, name, state, createdAtMs }, user, level, settings }) => ({
      service,
      name,
      user,
      state,
      access: level ?? null,
      settings,
      createdAt: isoTime(createdAtMs),
    })),
    empty: `No account is connected. ${CONNECT_HINT}`,
  })
  if (output.json) return
  for (const row of rows) {
    if (row.account.state === 'sign-in')
      output.note(`Sign in again with: ${connectCommand(row.account, row)}`)
  }
}

async function accountRows(
  context: CliContext,
  { accounts, ledger }: { accounts: Accounts; ledger: Ledger },
) {
  const vault = await vaultOrNone(context)
  const { home } = await context.loadConfig()
  const names = new Map((await (await Users.open(ledger)).list()).map(({ id, name }) => [id, name]))
  const rows = []
  for (const account of await accounts.list()) {
    const service = await findService(account.service)
    // Of an app's own, such as a pipeline: the app lists what it has.
    if (!service) continue
    const uses = await usesOf(apps, account.service)
    const level = vault && service && (await levelOfAccount(service, { accounts, vault, account }))
    rows.push({
      account,
      user: names.get(account.userId) ?? `#${account.userId}`,
      service,
      level,
      settings: shownSettings(uses, account.settings),
      access: service && level !== undefined ? accessText(service, level) : '?',
      keeps: await keepsText(uses, account, { ledger, home: home.path }),
    })
  }
  return rows
}

/** A listing needs no key: without one, what only the secret says is left open. */
async function vaultOrNone(context: CliContext): Promise<Vault | undefined> {
  const { home } = await context.loadConfig()
  try {
    return await openVault({ env: context.env, home: home.path })
  } catch (thrown) {
    context.output.note(`The vault cannot be opened: ${(thrown as Error).message} See: tidemark doctor`)
    return undefined
  }
}

/** By its address, or `service:address` where two services have the same. */
export async function findAccount(accounts: Accounts, text: string): Promise<Account> {
  const all = await accounts.list()
  const wanted = text.trim().toLowerCase()
  const found = all.filter(
    (account) => account.name.toLowerCase() === wanted || accountKey(account).toLowerCase() === wanted,
  )
  if (found.length === 1) return found[0]!
  if (found.length > 1) {
    throw new UsageError(`Several accounts are called ${text}.`, {
      code: 'account-ambiguous',
      hint: `Name one of: ${found.map(accountKey).join(', ')}.`,
    })
  }
  const names = all.map(({ name }) => name)
  throw new UsageError(`There is no account ${text}${didYouMean(text, names)}`, {
    code: 'account-unknown',
    hint: names.length > 0 ? `There are: ${names.join(', ')}.` : CONNECT_HINT,
  })
}
