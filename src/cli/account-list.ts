/** `tidemark account list`, and finding the account that a command names. */
import { systemClock } from '../clock.ts'
import type { Config } from '../config/settings.ts'
import { UsageError } from '../errors.ts'
import { type Account, Accounts, accountKey } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { distance, isoTime } from '../moment.ts'
import { ACCESS_TEXT, accessOfAccount } from '../server/gmail-account.ts'
import { openVault, type Vault } from '../vault.ts'
import type { CliContext } from './context.ts'
import { didYouMean } from './jobs-input.ts'
import { openIfThere } from './ledger.ts'

const CONNECT_HINT = 'Connect one with: tidemark account add gmail'

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
  const rows = (await withAccounts(context, ({ accounts }) => withAccess(context, accounts))) ?? []
  const now = systemClock.now()
  output.listing({
    columns: [
      { title: 'service', value: ({ account }) => account.service },
      { title: 'account', value: ({ account }) => account.name },
      { title: 'state', value: ({ account }) => (account.state === 'ready' ? 'ready' : 'sign in again') },
      { title: 'access', value: ({ access }) => (access ? ACCESS_TEXT[access] : '?') },
      { title: 'mail', value: ({ account }) => choicesText(account) },
      { title: 'connected', value: ({ account }) => distance(account.createdAtMs, now) },
    ],
    rows,
    json: rows.map(({ account: { service, name, state, settings, createdAtMs }, access }) => ({
      ...{ service, name, state, access: access ?? null, settings, createdAt: isoTime(createdAtMs) },
    })),
    empty: `No account is connected. ${CONNECT_HINT}`,
  })
  if (rows.some(({ account }) => account.state === 'sign-in') && !output.json) {
    output.note('Sign in again with: tidemark account add gmail --user ADDRESS')
  }
}

async function withAccess(context: CliContext, accounts: Accounts) {
  const vault = await vaultOrNone(context)
  const rows = []
  for (const account of await accounts.list()) {
    rows.push({ account, access: vault && (await accessOfAccount({ accounts, vault, account })) })
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

function choicesText({ settings }: Account): string {
  const { spam, trash, onlyLabels, skipLabels } = settings as Record<string, unknown>
  const names = (value: unknown): string => (Array.isArray(value) ? value.join(', ') : '')
  const only = names(onlyLabels)
  const skip = names(skipLabels)
  return [
    only ? `only ${only}` : 'all',
    spam === true ? 'with spam' : 'without spam',
    ...(trash === false ? ['without trash'] : []),
    ...(skip ? [`without ${skip}`] : []),
  ].join(', ')
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
    hint:
      names.length > 0 ? `There are: ${names.join(', ')}.` : 'Connect one with: tidemark account add gmail',
  })
}
