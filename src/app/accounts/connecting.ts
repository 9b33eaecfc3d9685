/**
 * Connecting an account, whatever the service and whoever asked: a sign-in brings a secret, the service says whose
 * account it is, and only then is it kept, with what was chosen for the apps that work for it.
 *
 *   signed in ──identify──▶ known whose ──keepIdentified──▶ kept, sealed, ready
 */
import { TidemarkError } from '../../base/errors.ts'
import { shellWord } from '../../base/wording.ts'
import { type KeptAccount, keepAccount, knownAccount } from '../../cloud/account-keeping.ts'
import type { AccountService, NewSecret, Profile } from '../../cloud/account-service.ts'
import type { AccountStore } from '../../cloud/account-store.ts'
import type { ServiceCalls } from '../../cloud/client-setup.ts'
import { newToken } from '../../cloud/token-source.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { AccountUses } from './account-use.ts'

export type Identified = NewSecret<object> & { profile: Profile; level: string }

/** `user`: whose account it must be, where somebody said so. */
export async function identify(
  service: AccountService,
  signedIn: NewSecret<object>,
  asked: { calls: ServiceCalls; level: string; user?: string | undefined; store: AccountStore },
): Promise<Identified> {
  const { calls, level, user, store } = asked
  service.requireLevel(signedIn.secret, level)
  // Nothing is given back when this fails: Google takes a whole grant back with one token, and so the token that an
  // account may be using already.
  const profile = await service.profile(calls, newToken(signedIn.accessToken))
  const known = await knownAccount(service, store.accounts, profile)
  if (user === undefined || user === profile.name || user === known?.name) {
    return { ...signedIn, profile, level }
  }
  throw new TidemarkError(`This is the account ${profile.name}, not ${user}. Nothing was kept.`, {
    kind: 'auth',
    code: 'other-account',
    hint: 'Sign in with the other account, or leave --user out.',
  })
}

/** What was chosen, by the name of the app; what was chosen before holds where nothing else is said. */
export type Chosen = Readonly<Record<string, Record<string, unknown>>>

export type KeptFor = {
  store: AccountStore
  uses: AccountUses
  chosen: Chosen
  /** Whose it will be: see keepAccount. */
  userId?: number | undefined
}

export function keepIdentified(
  service: AccountService,
  { profile, secret, level }: Identified,
  { store, uses, chosen, userId }: KeptFor,
): Promise<KeptAccount> {
  const change = (settings: Account['settings']): Account['settings'] =>
    [...uses].reduce(
      (changed, [app, { choices }]) => choices?.write(changed, chosen[app] ?? {}) ?? changed,
      settings,
    )
  return keepAccount(store, service, { profile, secret, level, userId, change })
}

/** The command that connects an account anew, with what it may do now, or what it was asked to be allowed. */
export function connectCommand(
  { service, name, settings }: Pick<Account, 'service' | 'name'> & Partial<Pick<Account, 'settings'>>,
  known?: { service: AccountService | undefined; level?: string | undefined },
): string {
  const { levels = [], keepsLevel = true } = known?.service ?? {}
  const has = known?.level ?? settings?.access
  const { flag } = levels.find(({ level }) => level === has) ?? {}
  // Without it the account would be asked for more than it has now, or lose what it has.
  const same =
    keepsLevel || flag === undefined
      ? ''
      : ` --${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  return `tidemark account add ${service}${same} --user ${shellWord(name)}`
}
