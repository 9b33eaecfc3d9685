/**
 * What a service with accounts is: how a person signs in there, what may be asked for, whose account a sign-in is of,
 * and what the secret of an account says. All that is done with accounts is written once over this: see
 * src/app/accounts and src/cli/account.
 *
 * To add a service, write its folder with an `account.ts` that has one of these, and name it in registry.ts.
 */
import type { Config } from '../config/settings.ts'
import type { Account, Accounts } from '../ledger/accounts.ts'
import type { StoredAccount } from './account-store.ts'
import type { ClientSetup, ServiceCalls } from './client-setup.ts'
import type { DeviceCode } from './device-code.ts'
import type { OAuthClient, Pkce } from './oauth.ts'
import type { TokenSource } from './token-source.ts'

/** A flag of `tidemark account add` that only some services know. */
export type ServiceFlag = 'readOnly' | 'modify' | 'full' | 'shared' | 'paste' | 'device' | 'serviceAccount'

/** How much an account may do. */
export type AccessLevel = {
  /** For programs: `readonly` */
  level: string
  /** In a sentence: "read only" */
  text: string
  /** On its card: "May read only" */
  may: string
  /** Where it is chosen. */
  choice: { title: string; hint: string }
  /** Asks for it on the command line. */
  flag?: 'readOnly' | 'modify' | 'full' | 'shared'
}

/** Something to tell about an account, and what to do about it. */
export type Concern = { code: string; text: string; hint?: string | undefined }

/** What a sign-in brought. */
export type NewSecret<S> = {
  secret: S
  accessToken: string
  /** What the person should know of it. */
  notes: readonly string[]
}

/** What the service itself says of an account. */
export type Profile = {
  name: string
  /** Stays the same when the name changes, where the service has such a thing. */
  id?: string
  /** For people. */
  facts: readonly string[]
  /** For programs: all of it, and what is told of an account that was just connected. */
  details: Record<string, unknown>
  brief: Record<string, unknown>
}

/** What a secret says, without asking anybody. */
export type SecretLook = {
  /** The client that it was given to; a service account has none. */
  clientId: string | undefined
  /** '' where none is kept. */
  accessToken: string
  obtainedAtMs: number | undefined
  /** How and when somebody signed in, for people. */
  signIn: string | undefined
  concerns: readonly Concern[]
}

/** `done`: given back. `kept`: not asked to. `none`: there is nothing. `by-hand`: only the person can. */
export type Revocation =
  | { outcome: 'done' | 'kept' | 'none' | 'by-hand' }
  | { outcome: 'failed'; why: string }

/** What a person can do about a sign-in that came to nothing. */
export type SignInHints = {
  /** The person said no. */
  denied: string
  refused: string
  /** When the browser is on another machine. */
  elsewhere: string
}

type Asked = { client: OAuthClient; level: string }

/** How a person lets Tidemark in. A way that is missing is one that the service does not have. */
export type SignIn<S extends object> = {
  /** The name of this machine to which the service sends the browser back. */
  host: '127.0.0.1' | 'localhost'
  hints: SignInHints
  /** The same where it goes through the dashboard. */
  pageHints: Pick<SignInHints, 'denied' | 'refused'>
  /** Said to who asks for a way that the service does not have, where there is more to say than that. */
  refusals: Partial<Record<ServiceFlag, { text: string; hint: string }>>
  /** How to come to a client to sign in with. */
  setup: ClientSetup
  url(config: Config, asked: Asked & { redirectUri: string; pkce: Pkce; user?: string | undefined }): string
  byCode(
    calls: ServiceCalls,
    asked: Asked & { code: string; verifier: string; redirectUri: string },
  ): Promise<NewSecret<S>>
  /** The code for the person to type, and what waits until that was done. */
  byDevice?(
    calls: ServiceCalls,
    asked: Asked,
  ): Promise<{ code: DeviceCode; finish: () => Promise<NewSecret<S>> }>
  /** By the key file of a service account, for a user of its domain. */
  byKey?(file: string): (calls: ServiceCalls, asked: { user: string; level: string }) => Promise<NewSecret<S>>
}

export type AccountService<S extends object = object> = {
  readonly name: string
  /** As people call it, and who decides about its sign-ins. */
  readonly title: string
  readonly company: string
  /** Each includes those before it. */
  readonly levels: readonly AccessLevel[]
  /** What is asked for where nobody says, on the command line and on the page. */
  readonly defaultLevel: string
  /** Whether the command asks for as much as an account has already that is named. */
  readonly keepsLevel: boolean
  /** What an account cannot do without. */
  readonly needs: string
  /** Why a sign-in ends. */
  readonly endHint: string
  /** Of an account whose service could not be asked. */
  readonly unknownDetails: Record<string, unknown>
  readonly signIn: SignIn<S>
  /** For whom Tidemark works: the person, or something of theirs. In a sentence, and on a card. */
  called(name: string): { inText: string; asTitle: string }
  parse(secret: string): S
  /** Undefined: not even reading is allowed. */
  levelOf(secret: S, settings: Account['settings']): string | undefined
  /** An error where a sign-in brings less than was asked for. */
  requireLevel(secret: S, level: string): void
  look(secret: S, nowMs: number): SecretLook
  tokens(input: StoredAccount, calls: ServiceCalls): Promise<TokenSource>
  profile(calls: ServiceCalls, tokens: TokenSource): Promise<Profile>
  /** The account that this person has here already; the one of that name if left out. */
  known?(accounts: Accounts, profile: Pick<Profile, 'id' | 'name'>): Promise<Account | undefined>
  /** What is kept with the account besides its secret. */
  settingsOf(profile: Pick<Profile, 'id'>, level: string): Account['settings']
  /** Where a person takes the access away. */
  withdrawal(account: Pick<Account, 'name'>): string
  /** Gives a secret back. Missing where a program cannot. */
  revoke?(secret: S, calls: ServiceCalls): Promise<Revocation>
  /** What is to be said of the limits that are configured. */
  quota?(config: Config): { level: 'ok' | 'warning'; text: string; hint?: string }
}

export function accessText({ levels }: Pick<AccountService, 'levels'>, level: string): string {
  return levels.find((one) => one.level === level)?.text ?? level
}
