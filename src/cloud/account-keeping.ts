/** Keeps accounts of any service: what is known of one already, and one commit for what a sign-in brought. */
import { TidemarkError } from '../base/errors.ts'
import { type Account, type Accounts, accountKey } from '../ledger/accounts.ts'
import type { AccountService, Profile } from './account-service.ts'
import { type AccountStore, openSecret, type StoredAccount } from './account-store.ts'

/** What an account may do, for listings: undefined where not even reading is allowed, or its secret cannot be opened. */
export async function levelOfAccount(
  service: AccountService,
  input: StoredAccount,
): Promise<string | undefined> {
  try {
    return service.levelOf(service.parse(await openSecret(input)), input.account.settings)
  } catch (thrown) {
    // A listing shows what can be shown; `account check` and `doctor` say what is wrong, and connecting anew mends it.
    if (thrown instanceof TidemarkError && thrown.kind === 'auth') return undefined
    throw thrown
  }
}

export type KeptAccount = {
  name: string
  settings: Account['settings']
  /** What it was; undefined for one that is new. */
  before: { settings: Account['settings']; level: string | undefined } | undefined
}

/** A new account, or a new secret for one that is there: by one commit, which makes it ready again. */
export async function keepAccount<S extends object>(
  store: AccountStore,
  service: AccountService<S>,
  input: {
    profile: Pick<Profile, 'id' | 'name'>
    secret: S
    level: string
    /** Whose it will be. One that is there stays whose it is, and is refused to another user. The owner's if left out. */
    userId?: number | undefined
    /** What else shall stand in its settings, given what stands there. */
    change?: (settings: Account['settings']) => Account['settings']
  },
): Promise<KeptAccount> {
  const { profile, secret, level, userId, change = (settings) => settings } = input
  const { accounts, vault } = store
  service.requireLevel(secret, level)
  const known = await knownAccount(service, accounts, profile)
  if (known && userId !== undefined && known.userId !== userId) throw ofAnother(known)
  const name = known?.name ?? profile.name
  const before = known && {
    settings: known.settings,
    level: await levelOfAccount(service, { ...store, account: known }),
  }
  const settings = { ...change({ ...known?.settings }), ...service.settingsOf(profile, level) }
  const id = { service: service.name, name }
  const sealed = vault.seal(accountKey(id), JSON.stringify(secret))
  if (known) await accounts.reconnect(known.id, { sealed, settings })
  else await accounts.add({ ...id, settings, sealed, userId })
  return { name, settings, before }
}

function ofAnother({ name }: Account): TidemarkError {
  return new TidemarkError(`The account ${name} is connected by another user. Nothing was changed.`, {
    kind: 'permanent',
    code: 'account-of-another',
    hint: 'An account is of one user. An admin can give it to another one: tidemark users give ACCOUNT USER',
  })
}

export function knownAccount(
  service: Pick<AccountService, 'name' | 'known'>,
  accounts: Accounts,
  profile: Pick<Profile, 'id' | 'name'>,
): Promise<Account | undefined> {
  return service.known ? service.known(accounts, profile) : accounts.find(service.name, profile.name)
}
