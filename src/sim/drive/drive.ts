/** The simulated Google Drive put together: its world, sign-in, quota, the API, and what faults do to it. */
import { formatCount } from '../../base/format.ts'
import type { FaultEffect } from '../fault-rules.ts'
import { Discovery } from '../google/discovery.ts'
import { type GoogleAccount, GoogleService } from '../google/service.ts'
import { Uploads } from '../google/uploads.ts'
import { Quota, type QuotaSettings } from '../quota.ts'
import type { Routes, SimAnswer, SimCall } from '../server.ts'
import { type Kernel, type RunningService, randomFor, type ServiceAbout } from '../service.ts'
import { DriveControl } from './control.ts'
import { Counts } from './counts.ts'
import { driveDocument } from './discovery.ts'
import { badRequest } from './errors.ts'
import { type GenerateOptions, generateWorld } from './generate.ts'
import { isFolder } from './item.ts'
import { Listing } from './listing.ts'
import { mutateWorld } from './mutations.ts'
import { type WhoSees, whoSees } from './oracle.ts'
import { drivePrices, UNITS_PER_MINUTE } from './prices.ts'
import { DriveApi, driveApiRoutes, type StandingRefusal } from './routes.ts'
import { driveScopes } from './scopes.ts'
import { DriveWorld } from './world.ts'

export type GoogleDriveOptions = GenerateOptions & {
  quota?: Partial<QuotaSettings>
  /** Searches over all drives say that they are incomplete, and are. */
  incompleteSearch?: boolean
  /** What happens to a folder (trash, move) is told in changes of all that is below it, too. */
  tellsBelow?: boolean
  /** So many of the generated documents are refused to everybody, for one reason after the other. */
  refused?: number
}

export type DriveAccount = GoogleAccount

/** For which a single file is refused. */
const REASONS = [
  'cannotDownloadFile',
  'insufficientFilePermissions',
  'cannotDownloadAbusiveFile',
  'domainPolicy',
] as const

const CONTENT_METHODS = ['files.media', 'files.export', 'files.copy'] as const

export class GoogleDrive extends GoogleService implements RunningService {
  /** Everything that is in it, to look at and to change. */
  readonly world: DriveWorld
  readonly listing: Listing
  readonly counts = new Counts()
  readonly quota: Quota
  readonly routes: readonly Routes[]
  readonly accounts: readonly DriveAccount[]
  readonly refusals = new Map<string, StandingRefusal>()
  readonly #control: DriveControl

  constructor(kernel: Kernel, options: GoogleDriveOptions) {
    const { clock, seed } = kernel
    const { quota, incompleteSearch = false, tellsBelow = false, refused = 0, ...generate } = options
    super(kernel)
    this.world = new DriveWorld({ clock, random: randomFor(kernel, 0xd81e), tellsBelow })
    generateWorld(this.world, generate, { random: randomFor(kernel, 0x90d1), nowMs: clock.now() })
    this.#refuseSome(refused)
    this.listing = new Listing(this.world)
    this.listing.isIncomplete = incompleteSearch
    const prices = { ...drivePrices, ...quota?.prices }
    this.quota = new Quota({ unitsPerMinute: UNITS_PER_MINUTE, ...quota, prices, clock, seed })
    this.#control = new DriveControl(this, clock)
    const api = new DriveApi({
      kernel,
      world: this.world,
      listing: this.listing,
      uploads: new Uploads(randomFor(kernel, 0x0b17), { badRequest }),
      counts: this.counts,
      grants: this.grants,
      quota: this.quota,
      refusals: this.refusals,
      onEffect: (address, effect) => this.#suffer(address, effect),
    })
    this.routes = [api, this.signIn, new Discovery(driveDocument(driveApiRoutes))]
    this.accounts = this.addresses.map((address) => this.issue(address))
  }

  get addresses(): readonly string[] {
    return [...this.world.users.keys()]
  }

  issue(address: string, scopes: readonly string[] = [driveScopes.full]): DriveAccount {
    return this.issueTo(this.world.user(address).address, scopes)
  }

  /** Who may find and read what, now: the oracle. */
  whoSees(): WhoSees {
    return whoSees(this.world, this.kernel.clock.now())
  }

  /**
   * Refuses a file's content, or all of a shared drive, to everybody: 403 with a reason such as `cannotDownloadFile`
   * or `teamDriveMembershipRequired`, 404, or a 5xx.
   */
  refuse(id: string, refusal: Partial<StandingRefusal> = {}): void {
    const item = this.world.item(id)
    const status = refusal.status ?? 403
    const methods = refusal.methods ?? (isFolder(item) ? undefined : CONTENT_METHODS)
    this.refusals.set(id, { ...refusal, status, ...(methods === undefined ? {} : { methods }) })
  }

  /** Ends a refusal. */
  allow(id: string): void {
    this.refusals.delete(id)
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    return this.#control.answer(call, pieces)
  }

  counters(): Record<string, unknown> {
    const usage = Object.fromEntries(this.addresses.map((address) => [address, this.quota.usage(address)]))
    return { drive: { ...this.counts.list(), quota: usage } }
  }

  resetCounters(): void {
    this.counts.reset()
    this.quota.resetUsage()
  }

  about(): ServiceAbout {
    const { baseUrl, authUrl, tokenUrl, revokeUrl, clientId, clientSecret, accounts, world } = this
    const files = [...world.items.values()].filter((item) => !isFolder(item)).length
    const { unitsPerMinute } = this.quota.settings
    return {
      text: `A simulated Google Drive is at ${baseUrl}, with ${formatCount(files)} files for ${this.addresses.join(', ')}.`,
      settings: {
        TIDEMARK_GOOGLE_DRIVE_API_URL: baseUrl,
        TIDEMARK_GOOGLE_DRIVE_AUTH_URL: authUrl,
        TIDEMARK_GOOGLE_DRIVE_TOKEN_URL: tokenUrl,
        TIDEMARK_GOOGLE_DRIVE_REVOKE_URL: revokeUrl,
        TIDEMARK_GOOGLE_DRIVE_CLIENT_ID: clientId,
        TIDEMARK_GOOGLE_DRIVE_CLIENT_SECRET: clientSecret,
        TIDEMARK_GOOGLE_DRIVE_UNITS_PER_MINUTE: String(unitsPerMinute ?? 1_000_000_000),
      },
      refreshTokens: accounts.map(({ address, refreshToken }) => [`${address} (Google Drive)`, refreshToken]),
      json: {
        driveAccounts: accounts,
        driveApiUrl: baseUrl,
        googleAuthUrl: authUrl,
        googleTokenUrl: tokenUrl,
        googleClientId: clientId,
        googleClientSecret: clientSecret,
      },
    }
  }

  #refuseSome(count: number): void {
    const files = [...this.world.items.values()].filter((item) => !isFolder(item))
    const apart = Math.max(1, Math.floor(files.length / Math.max(1, count)))
    for (let at = 0; at < Math.min(count, files.length); at++) {
      this.refuse(files[at * apart]!.id, { reason: REASONS[at % REASONS.length]! })
    }
  }

  #suffer(address: string, effect: FaultEffect): void {
    if (effect.do === 'mutate') mutateWorld(this.world, address, effect)
    else this.grants.suffer(address, effect)
  }
}
