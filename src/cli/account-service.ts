/** What commands about accounts ask of a service, so that each of them is written once. */
import type { TokenSource } from '../cloud/token-source.ts'
import type { Config } from '../config/settings.ts'
import { TidemarkError, type UsageError } from '../errors.ts'
import type { Account } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ShelvedAccount } from '../server/account-shelf.ts'
import { shellWord } from '../wording.ts'
import { gmailService } from './account-service-gmail.ts'
import { oneDriveService } from './account-service-onedrive.ts'
import type { Concern } from './account-token-age.ts'

export type Access = { level: string; text: string }

/** What the secret of an account says, without asking anybody. */
export type SecretLook = {
  /** Undefined: not even reading is allowed. */
  access: Access | undefined
  /** The client that it was given to; a service account has none. */
  clientId: string | undefined
  /** '' where none is kept. */
  accessToken: string
  obtainedAtMs: number | undefined
  /** How and when somebody signed in, for people. */
  signIn: string | undefined
  concerns: Concern[]
}

/** What the service itself says. */
export type ProfileLook = { name: string; facts: string[]; details: Record<string, unknown> }

/** What is left of an account that is forgotten. */
export type Remains = {
  /** Ends the question whether it shall be forgotten. */
  question: string
  /** For who has forgotten it. */
  text: string
  details: Record<string, unknown>
  /** Why it must not be forgotten, unless somebody insists. */
  inUse?: UsageError | undefined
}

/** `done`: given back. `kept`: not asked to. `none`: there is nothing. `by-hand`: only the person can. */
export type Revocation =
  | { outcome: 'done' | 'kept' | 'none' }
  | { outcome: 'by-hand' }
  | { outcome: 'failed'; why: string }

export interface AccountService {
  readonly service: string
  /** As people call it, and who decides about its sign-ins. */
  readonly title: string
  readonly company: string
  /** What an account cannot do without. */
  readonly needs: string
  /** Why a sign-in ends. */
  readonly endHint: string
  /** What is asked for with `connect`, as flags. */
  flagsOf(access: Access | undefined): string
  clientOf(config: Config): { key: string; id: string | undefined }
  look(input: ShelvedAccount, nowMs: number): Promise<SecretLook>
  tokens(input: ShelvedAccount, config: Config): Promise<TokenSource>
  profile(config: Config, tokens: TokenSource): Promise<ProfileLook>
  /** Of an account whose service could not be asked. */
  readonly unknownDetails: Record<string, unknown>
  /** What an access leaves undone, if anything. */
  limitOf(access: Access): string
  keeps(account: Account, ledger: Ledger): Promise<string>
  remains(account: Account, place: { ledger: Ledger; home: string }): Promise<Remains>
  /** Where a person takes the access away. */
  readonly withdrawal: (account: Account) => string
  /** Opens the secret while it is there; what is returned gives it back. */
  prepareRevocation(input: ShelvedAccount, config: Config): Promise<() => Promise<Revocation>>
}

const services: readonly AccountService[] = [gmailService, oneDriveService]

export const CONNECT_HINT = `Connect one with: ${services.map(({ service }) => `tidemark account add ${service}`).join(', or ')}`

export function serviceOf({ service }: Pick<Account, 'service'>): AccountService | undefined {
  return services.find((one) => one.service === service)
}

/** The command that connects an account anew, with what it may do now. */
export function connectCommand(
  { service, name }: Pick<Account, 'service' | 'name'>,
  access?: Access,
): string {
  const flags = serviceOf({ service })?.flagsOf(access) ?? ''
  return `tidemark account add ${service}${flags} --user ${shellWord(name)}`
}

/** What an account may do, for listings: undefined where its secret cannot be opened. */
export async function accessFor(input: ShelvedAccount, nowMs: number): Promise<Access | undefined> {
  try {
    return (await serviceOf(input.account)?.look(input, nowMs))?.access
  } catch (thrown) {
    // A listing shows what can be shown; `account check` and `doctor` say what is wrong.
    if (thrown instanceof TidemarkError && thrown.kind === 'auth') return undefined
    throw thrown
  }
}
