/** `tidemark account list`, and finding the account that a command names. */
import { systemClock } from '../clock.ts'
import type { Config } from '../config/settings.ts'
import { UsageError } from '../errors.ts'
import { type Account, Accounts, accountKey } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { distance, isoTime } from '../moment.ts'
import { openVault, type Vault } from '../vault.ts'
import { accessFor, CONNECT_HINT, connectCommand, serviceOf } from './account-service.ts'
import type { CliContext } from './context.ts'
import { didYouMean } from './jobs-input.ts'
import { openIfThere } from './ledger.ts'

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
  const rows = (await withAccounts(context, (opened) => rowsOf(context, opened))) ?? []
  const now = systemClock.now()
  output.listing({
    columns: [
      { title: 'service', value: ({ account }) => account.service },
      { title: 'account', value: ({ account }) => account.name },
      { title: 'state', value: ({ account }) => (account.state === 'ready' ? 'ready' : 'sign in again') },
      { title: 'access', value: ({ access }) => access?.text ?? '?' },
      { title: 'keeps', value: ({ keeps }) => keeps },
      { title: 'connected', value: ({ account }) => distance(account.createdAtMs, now) },
    ],
    rows,
    json: rows.map(({ account: { service, name, state, settings, createdAtMs }, access }) => ({
      ...{ service, name, state, access: access?.level ?? null, settings, createdAt: isoTime(createdAtMs) },
    })),
    empty: `No account is connected. ${CONNECT_HINT}`,
  })
  if (output.json) return
  for (const { account, access } of rows) {
    if (account.state === 'sign-in') output.note(`Sign in again with: ${connectCommand(account, access)}`)
  }
}

async function rowsOf(context: CliContext, { accounts, ledger }: { accounts: Accounts; ledger: Ledger }) {
  const vault = await vaultOrNone(context)
  const rows = []
  for (const account of await accounts.list()) {
    const access = vault && (await accessFor({ accounts, vault, account }, systemClock.now()))
    rows.push({ account, access, keeps: (await serviceOf(account)?.keeps(account, ledger)) ?? '' })
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
