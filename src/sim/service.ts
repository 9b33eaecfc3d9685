/**
 * What a service of the simulated cloud is. Each has a folder of its own and one line in registry.ts; whatever
 * is started by name, told by flags, asked over the control API or printed follows from that line.
 *
 * A `SimService` is read by the command line at every start, so it holds only values; what it does is loaded when it
 * is started.
 */
import type { Clock } from '../base/clock.ts'
import { type Random, seededRandom } from '../base/random.ts'
import type { CallLog } from './call-log.ts'
import type { FaultRule } from './fault-rules.ts'
import type { Faults } from './faults.ts'
import type { Grants, TokenTimes } from './grants.ts'
import type { Routes, SimAnswer, SimCall } from './server.ts'

/** What all services share. */
export type Kernel = {
  clock: Clock
  seed: number
  faults: Faults
  log: CallLog
  oauth: OAuthSettings
  /** Where the server listens; nowhere before it does. */
  origin(): string
}

/** What the person at the consent page does, when there is none, and how long tokens are good for. */
export type OAuthSettings = TokenTimes & {
  /** Consents at once for this address; `true`: for `login_hint`, or the first account. */
  autoApprove: string | boolean
  /** Refuses. */
  deny: boolean
  /** Grants only these of the scopes asked for. */
  grantOnly: readonly string[] | null
  /** The scopes that an administrator has delegated to a service account; null: all. */
  delegatedScopes: readonly string[] | null
}

export const oauthDefaults: Readonly<OAuthSettings> = {
  autoApprove: false,
  deny: false,
  grantOnly: null,
  delegatedScopes: null,
  accessTokenMs: 3_599_000,
  refreshTokenMs: null,
}

export type SimService<Options extends object, Running extends RunningService> = {
  /** As it is named in sentences. */
  title: string
  /** Added to the kernel's profiles of the same names; these rules strike the calls of this service only. */
  faultProfiles: Readonly<Record<string, readonly FaultRule[]>>
  /** False: it knows no accounts, and a cloud may consist of it alone. */
  hasAccounts?: false
  /** Its flags of `tidemark sim`. The first one names its accounts, where it has any. */
  flags: readonly [SimFlag, ...SimFlag[]]
  /** The world that the flags ask for, for these accounts. */
  fromFlags(accounts: readonly string[], flags: SimFlags): Options
  /** Makes its world and what answers for it. Without options its world is empty. */
  start(kernel: Kernel, options: Options): Promise<Running>
}

export type RunningService = {
  /** Who has an account. */
  addresses: readonly string[]
  /** Calls over HTTP, asked in this order. */
  routes: readonly Routes[]
  /** The tokens it gave out, where it has a sign-in. */
  grants?: Grants
  /** More tokens for an account; those that its own client asks for where no scopes are named. */
  issue?(address: string, scopes?: readonly string[]): { accessToken: string; refreshToken: string }
  /** A call below /control; undefined where it is about something else. */
  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined
  /** What it counted, for /control/counters. */
  counters?(): Record<string, unknown>
  resetCounters?(): void
  about(): ServiceAbout
  close?(): Promise<void>
}

/** What `tidemark sim` prints of it. */
export type ServiceAbout = {
  /** A sentence: where it is and what it holds. */
  text: string
  /** Environment variables that point Tidemark at it. */
  settings: Readonly<Record<string, string>>
  /** Which to try then, in their order. */
  commands?: readonly string[]
  refreshTokens: readonly (readonly [account: string, token: string])[]
  /** Fields of the line that a program reads. */
  json: Readonly<Record<string, unknown>>
}

export type SimFlagValue = string | number | readonly string[]
export type SimFlags = Readonly<Record<string, SimFlagValue | undefined>>

export type SimFlag = {
  /** `--messages <number>` */
  flag: string
  about: string
  /** `addresses`: may be given several times. */
  takes: { min: number; max: number; word?: string } | 'addresses' | 'text' | readonly string[]
  byDefault?: string | number
}

/** A chance of its own for each purpose, always the same for the same seed. */
export function randomFor({ seed }: Pick<Kernel, 'seed'>, purpose: number): Random {
  return seededRandom(seed ^ purpose)
}
