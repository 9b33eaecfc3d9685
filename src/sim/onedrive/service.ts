/** The simulated OneDrive put together: drives, sign-in, Graph, transfers, and what faults do to them. */
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import type { CallLog } from '../call-log.ts'
import type { FaultEffect } from '../fault-rules.ts'
import type { Faults } from '../faults.ts'
import type { Consent } from '../oauth.ts'
import { Grants } from '../oauth-grants.ts'
import type { Service, SimAnswer } from '../server.ts'
import { CopyMonitors } from './copy-monitors.ts'
import type { DriveType } from './drive.ts'
import { faultAnswer, graphFault } from './errors.ts'
import { generateDrive } from './generate.ts'
import { mutateDrive } from './mutations.ts'
import type { Quirks } from './quirks.ts'
import { type RateSettings, RequestRate } from './request-rate.ts'
import { Graph } from './routes.ts'
import { driveScopes } from './scopes.ts'
import { MicrosoftSignIn, microsoftPaths } from './sign-in.ts'
import { SimDrive } from './sim-drive.ts'
import { Subscriptions } from './subscriptions.ts'
import { TransferUrls } from './transfer-urls.ts'
import { Transfers } from './transfers.ts'

/** A drive to be. */
export type SimDriveInput = {
  account: string
  /** Where an account has several; the account otherwise. */
  name?: string
  type?: DriveType
  /** How many files the generator makes. */
  files?: number
  sizes?: 'mixed' | 'small'
  filesPerFolder?: number
  /** This many more of this size; their bytes are made when they are read. */
  large?: { files: number; bytes: number }
  quotaBytes?: number
  /** Uploads above it are kept as hash and size only, unless they are synthetic. */
  keepBytesMax?: number
  /** How long an upload session waits for its next fragment. */
  sessionMs?: number
  quirks?: Partial<Quirks>
}

export type DriveTokens = { account: string; accessToken: string; refreshToken: string }

export type OneDriveOptions = {
  drives: readonly SimDriveInput[]
  seed: number
  clock: Clock
  faults: Faults
  log: CallLog
  consent: Consent
  origin: () => string
  rate?: Partial<RateSettings>
  downloadUrlMs?: number
  accessTokenMs?: number
  refreshTokenMs?: number | null
}

export const microsoftClient = { id: '11111111-2222-4333-8444-tidemark0sim' } as const

const DRIVES_MAX = 100

export class OneDrive {
  readonly drives: readonly SimDrive[]
  readonly grants: Grants
  readonly signIn: MicrosoftSignIn
  readonly rate: RequestRate
  readonly subscriptions: Subscriptions
  readonly urls: TransferUrls
  readonly services: readonly Service[]
  readonly #options: OneDriveOptions
  readonly #random: Random

  constructor(options: OneDriveOptions) {
    const { clock, seed, origin, consent } = options
    this.#options = options
    this.#random = seededRandom(seed ^ 0xd21e)
    this.drives = createDrives(options)
    this.grants = new Grants({
      ...{ clock, random: seededRandom(seed ^ 0x0d07) },
      ...(options.accessTokenMs === undefined ? {} : { accessTokenMs: options.accessTokenMs }),
      ...(options.refreshTokenMs === undefined ? {} : { refreshTokenMs: options.refreshTokenMs }),
    })
    this.signIn = new MicrosoftSignIn({
      ...{ clock, random: this.#random, grants: this.grants, consent, origin, clientId: microsoftClient.id },
      accounts: () => this.accounts,
    })
    this.rate = new RequestRate({ clock, ...(options.rate ? { settings: options.rate } : {}) })
    this.subscriptions = new Subscriptions({ clock, random: this.#random })
    this.urls = new TransferUrls({ origin, seed })
    if (options.downloadUrlMs !== undefined) this.urls.downloadMs = options.downloadUrlMs
    this.services = [this.#graph(), this.#transfers(), this.signIn]
    for (const sim of this.drives) sim.state.onChange = () => this.subscriptions.changed(sim)
  }

  get accounts(): readonly string[] {
    return [...new Set(this.drives.map(({ account }) => account))]
  }

  /** By its name, its account, or its id. */
  drive(name: string): SimDrive {
    const { drives } = this
    const found =
      drives.find((sim) => sim.name === name) ?? drives.find((sim) => sim.account === name || sim.id === name)
    if (found) return found
    throw new UsageError(`There is no drive ${name}.`, {
      hint: `There are ${drives.map((sim) => sim.name).join(', ') || 'none'}.`,
    })
  }

  issue(account: string, scopes: readonly string[] = driveScopes): DriveTokens {
    const owner = this.drive(account).account
    const { access, refreshToken = '' } = this.grants.issue({ address: owner, scopes, isOffline: true })
    return { account: owner, accessToken: access.token, refreshToken }
  }

  readonly #copies = new CopyMonitors(() => this.#random())

  #graph(): Graph {
    const { faults, log, origin } = this.#options
    return new Graph({
      ...{ drives: this.drives, grants: this.grants, faults, origin, urls: this.urls },
      ...{ monitors: this.#copies, subscriptions: this.subscriptions },
      onEffect: (sim, effect) => this.#effect(sim, effect),
      onPart: (name, status) => log.notePart(name, status),
      throttle: (account) => this.#throttled(account),
    })
  }

  #transfers(): Transfers {
    return new Transfers({
      ...{ urls: this.urls, monitors: this.#copies, origin: this.#options.origin },
      driveOf: (id) => this.drives.find((sim) => sim.id === id),
      onEffect: (sim, effect) => this.#effect(sim, effect),
      throttle: (account) => this.#throttled(account),
    })
  }

  #throttled(account: string): SimAnswer | undefined {
    const waitS = this.rate.take(account)
    if (waitS === undefined) return undefined
    return faultAnswer(graphFault(this.rate.settings.status, { headers: { 'retry-after': String(waitS) } }))
  }

  #effect(sim: SimDrive, effect: FaultEffect): void {
    switch (effect.do) {
      case 'mutate':
        mutateDrive(sim, effect)
        return
      case 'expire-history':
        sim.expireDelta()
        return
      case 'expire-access':
        this.grants.expireAccess(sim.account)
        return
      case 'revoke-tokens':
        this.grants.revokeAccount(sim.account)
    }
  }
}

export function microsoftAddresses(origin: string) {
  return {
    graphUrl: `${origin}/v1.0`,
    microsoftAuthUrl: origin + microsoftPaths.auth,
    microsoftTokenUrl: origin + microsoftPaths.token,
    microsoftDeviceUrl: origin + microsoftPaths.device,
    microsoftClientId: microsoftClient.id,
  }
}

function createDrives({ drives, seed, clock }: OneDriveOptions): SimDrive[] {
  if (drives.length > DRIVES_MAX) throw new UsageError(`There can be ${DRIVES_MAX} drives at most.`)
  const made = new Map<string, SimDrive>()
  for (const [at, input] of drives.entries()) {
    const {
      files = 0,
      sizes,
      filesPerFolder,
      large,
      name = input.account,
      type = 'personal',
      ...rest
    } = input
    if (made.has(name)) throw new UsageError(`There are two drives ${name}.`, { hint: 'Give each a name.' })
    const own = seed + at * 101 + 0x0d21
    const sim = new SimDrive({ ...rest, name, type, seed: own, now: () => clock.now() })
    generateDrive(sim, {
      ...{ files, random: seededRandom(own ^ 0x9e0), nowMs: clock.now() },
      ...(sizes === undefined ? {} : { sizes }),
      ...(filesPerFolder === undefined ? {} : { filesPerFolder }),
      ...(large === undefined ? {} : { large }),
    })
    made.set(name, sim)
  }
  return [...made.values()]
}
