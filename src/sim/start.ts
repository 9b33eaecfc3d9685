/** Starts a simulated cloud in this process: for tests, benches and `tidemark sim`. */
import { type Clock, systemClock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { type Random, seededRandom } from '../base/random.ts'
import { CallLog } from './call-log.ts'
import { Control } from './control.ts'
import type { FaultEffect, FaultsInput } from './fault-rules.ts'
import { Faults } from './faults.ts'
import { type GenerateOptions, generateMailbox } from './gmail/generate.ts'
import type { Mailbox } from './gmail/mailbox.ts'
import { Mutations } from './gmail/mutations.ts'
import { Gmail } from './gmail/routes.ts'
import { gmailScopes } from './gmail/scopes.ts'
import { OAuth, oauthPaths, type ServiceAccount } from './oauth.ts'
import type { Grants } from './oauth-grants.ts'
import type { RateSettings } from './onedrive/request-rate.ts'
import {
  type DriveTokens,
  microsoftAddresses,
  OneDrive,
  type OneDriveOptions,
  type SimDriveInput,
} from './onedrive/service.ts'
import type { SimDrive } from './onedrive/sim-drive.ts'
import { certsPath, Push, type PushSettings } from './push.ts'
import { Quota, type QuotaSettings } from './quota.ts'
import { type SimServer, startServer } from './server.ts'

/** An account to be: how many messages it has, and what the generator is told besides. */
export type SimAccountOptions = Pick<GenerateOptions, 'address' | 'messages'> &
  Partial<Omit<GenerateOptions, 'address' | 'messages' | 'now'>> & {
    /** How far the mail goes back, where `fromMs` does not say it. */
    years?: number
  }

export type SimOptions = {
  /** 0 or nothing: any free one. */
  port?: number
  seed?: number
  /** Mailboxes. */
  accounts?: readonly SimAccountOptions[]
  drives?: readonly SimDriveInput[]
  /** How many requests to drives an account may make; any number if left out. */
  driveRate?: Partial<RateSettings>
  /** How long the address of a download is good for. */
  downloadUrlMs?: number
  quota?: Partial<QuotaSettings>
  faults?: FaultsInput
  push?: Partial<PushSettings>
  clock?: Clock
  batchPartsMax?: number
  accessTokenMs?: number
  /** Null: refresh tokens never end by themselves; seven days for an app in testing. */
  refreshTokenMs?: number | null
}

export type SimAccount = { address: string; accessToken: string; refreshToken: string }

export type Sim = {
  port: number
  /** Of the Gmail API: `rootUrl` of Google's client. */
  baseUrl: string
  authUrl: string
  tokenUrl: string
  revokeUrl: string
  tokenInfoUrl: string
  controlUrl: string
  jwksUrl: string
  clientId: string
  clientSecret: string
  accounts: readonly SimAccount[]
  mailbox(address: string): Mailbox
  mutations(address: string): Mutations
  /** Ids whose listing has left whole. */
  delivered(address: string): ReadonlySet<string>
  faults: Faults
  quota: Quota
  oauth: OAuth
  push: Push
  log: CallLog
  serviceAccount(): ServiceAccount
  /** More tokens for an account, with these scopes. */
  issue(address: string, scopes: readonly string[]): SimAccount
  /** Of Microsoft Graph, with its version: `…/v1.0`. */
  graphUrl: string
  microsoftAuthUrl: string
  microsoftTokenUrl: string
  microsoftDeviceUrl: string
  microsoftClientId: string
  /** By name or account. */
  drive(name: string): SimDrive
  /** Tokens for the drives of an account. */
  issueDrive(account: string, scopes?: readonly string[]): DriveTokens
  oneDrive: OneDrive
  close(): Promise<void>
}

export const simClient = {
  id: '000000000000-tidemarksim.apps.googleusercontent.com',
  secret: 'GOCSPX-tidemark-sim',
} as const

const ACCOUNTS_MAX = 1_000
const DAY_MS = 86_400_000
const YEARS_DEFAULT = 10

export async function startSim(options: SimOptions): Promise<Sim> {
  const clock = options.clock ?? systemClock
  const seed = options.seed ?? 1
  const mailboxes = createMailboxes(options, { clock, seed })
  const mutations = new Map(
    [...mailboxes].map(([name, mailbox]) => [name, new Mutations({ mailbox, clock })]),
  )
  const faults = new Faults({ seed, clock })
  if (options.faults) faults.set(options.faults)
  const quota = new Quota({ ...options.quota, clock, seed })
  const oauth = createOAuth(options, { clock, random: seededRandom(seed ^ 0x0a07), mailboxes })
  const push = new Push({ clock, random: seededRandom(seed ^ 0x9054), settings: options.push ?? {} })
  const log = new CallLog()
  const gmail = new Gmail({
    ...{ mailboxes, grants: oauth.grants, quota, faults, push, clock },
    ...(options.batchPartsMax === undefined ? {} : { batchPartsMax: options.batchPartsMax }),
    onEffect: effectOn({ grants: oauth.grants, mailboxes, mutations }),
    onPart: (name, status) => log.notePart(name, status),
  })
  let server: SimServer | undefined
  const origin = (): string => server?.origin ?? ''
  const oneDrive = createOneDrive(options, { clock, seed, faults, log, consent: oauth.consent, origin })
  const control = new Control({
    ...{ faults, quota, oauth, push, log, oneDrive, random: seededRandom(seed ^ 0xc047), origin },
    addresses: () => [...mailboxes.keys()],
    account: (address) => {
      const mailbox = mailboxes.get(address)
      const own = mutations.get(address)
      return mailbox && own && { mailbox, mutations: own, delivered: () => gmail.delivered(address) }
    },
  })
  for (const [address, mailbox] of mailboxes)
    mailbox.onChange = (historyId) => push.changed(address, historyId)
  const accounts = [...mailboxes.keys()].map((address) =>
    issueTokens(oauth.grants, address, [gmailScopes.full]),
  )
  const services = [...oneDrive.services, gmail, oauth, push, control]
  server = await startServer({
    ...{ port: options.port ?? 0, services, faults, clock },
    onServed: (served) => log.note(served),
    onBytes: (operation, bytes) => log.noteBytes(operation, bytes),
  })
  const running = server
  return {
    ...addressesOf(running),
    ...microsoftAddresses(running.origin),
    oneDrive,
    drive: (name) => oneDrive.drive(name),
    issueDrive: (account, scopes) => oneDrive.issue(account, scopes),
    ...{ accounts, faults, quota, oauth, push, log, clientId: simClient.id, clientSecret: simClient.secret },
    mailbox: (address) => known(mailboxes, address),
    mutations: (address) => known(mutations, address),
    delivered: (address) => gmail.delivered(address),
    serviceAccount: () => oauth.serviceAccount(running.origin),
    issue: (address, scopes) => issueTokens(oauth.grants, known(mailboxes, address).address, scopes),
    async close() {
      await running.close()
      await Promise.all([push.close(), oneDrive.subscriptions.close()])
    },
  }
}

type Surroundings = { clock: Clock; seed: number }

function createMailboxes(options: SimOptions, { clock, seed }: Surroundings): Map<string, Mailbox> {
  const { accounts = [], drives = [] } = options
  if (accounts.length + drives.length === 0) throw new UsageError('A simulated cloud needs an account.')
  if (accounts.length > ACCOUNTS_MAX) throw new UsageError(`There can be ${ACCOUNTS_MAX} accounts at most.`)
  const mailboxes = new Map<string, Mailbox>()
  for (const [at, account] of accounts.entries()) {
    if (mailboxes.has(account.address)) throw new UsageError(`There are two accounts ${account.address}.`)
    mailboxes.set(account.address, createMailbox(account, { clock, seed: seed + at }))
  }
  return mailboxes
}

/** Mail ends with yesterday, so that the same seed gives the same mail all day long. */
function createMailbox({ years, ...account }: SimAccountOptions, { clock, seed }: Surroundings): Mailbox {
  const toMs = account.toMs ?? Math.floor(clock.now() / DAY_MS) * DAY_MS
  const fromMs = account.fromMs ?? toMs - (years ?? YEARS_DEFAULT) * 365.25 * DAY_MS
  return generateMailbox({ seed, ...account, fromMs, toMs, now: () => clock.now() })
}

function createOneDrive(
  options: SimOptions,
  rest: Pick<OneDriveOptions, 'clock' | 'seed' | 'faults' | 'log' | 'consent' | 'origin'>,
): OneDrive {
  const { driveRate, downloadUrlMs, accessTokenMs, refreshTokenMs } = options
  return new OneDrive({
    ...rest,
    drives: options.drives ?? [],
    ...(driveRate === undefined ? {} : { rate: driveRate }),
    ...(downloadUrlMs === undefined ? {} : { downloadUrlMs }),
    ...(accessTokenMs === undefined ? {} : { accessTokenMs }),
    ...(refreshTokenMs === undefined ? {} : { refreshTokenMs }),
  })
}

function createOAuth(
  options: SimOptions,
  { clock, random, mailboxes }: { clock: Clock; random: Random; mailboxes: ReadonlyMap<string, Mailbox> },
): OAuth {
  return new OAuth({
    clock,
    random,
    clientId: simClient.id,
    clientSecret: simClient.secret,
    addresses: () => [...mailboxes.keys()],
    ...(options.accessTokenMs === undefined ? {} : { accessTokenMs: options.accessTokenMs }),
    ...(options.refreshTokenMs === undefined ? {} : { refreshTokenMs: options.refreshTokenMs }),
  })
}

function effectOn(state: {
  grants: Grants
  mailboxes: ReadonlyMap<string, Mailbox>
  mutations: ReadonlyMap<string, Mutations>
}): (address: string, effect: FaultEffect) => void {
  return (address, effect) => {
    switch (effect.do) {
      case 'mutate':
        return state.mutations.get(address)?.apply(effect)
      case 'expire-history':
        return state.mailboxes.get(address)?.expireHistory()
      case 'expire-access':
        state.grants.expireAccess(address)
        return
      case 'revoke-tokens':
        state.grants.revokeAccount(address)
    }
  }
}

function issueTokens(grants: Grants, address: string, scopes: readonly string[]): SimAccount {
  const { access, refreshToken = '' } = grants.issue({ address, scopes, isOffline: true })
  return { address, accessToken: access.token, refreshToken }
}

function addressesOf({ origin, port }: SimServer) {
  return {
    port,
    baseUrl: origin,
    authUrl: origin + oauthPaths.auth,
    tokenUrl: origin + oauthPaths.token,
    revokeUrl: origin + oauthPaths.revoke,
    tokenInfoUrl: origin + oauthPaths.tokenInfo,
    controlUrl: `${origin}/control`,
    jwksUrl: origin + certsPath,
  }
}

function known<Value>(map: ReadonlyMap<string, Value>, address: string): Value {
  const found = map.get(address)
  if (found) return found
  throw new UsageError(`There is no account ${address}.`, {
    hint: `There are ${[...map.keys()].join(', ')}.`,
  })
}
