/** The simulated OneDrive put together: drives, sign-in, Graph, transfers, and what faults do to them. */
import { UsageError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { type Random, seededRandom } from '../../base/random.ts'
import type { FaultEffect } from '../fault-rules.ts'
import type { Grants } from '../grants.ts'
import type { Routes, SimAnswer, SimCall } from '../server.ts'
import { type Kernel, type RunningService, randomFor, type ServiceAbout } from '../service.ts'
import { DriveControl } from './control.ts'
import { CopyMonitors } from './copy-monitors.ts'
import { faultAnswer, graphFault } from './errors.ts'
import { generateDrive } from './generate.ts'
import type { DriveType } from './item.ts'
import { mutateDrive } from './mutations.ts'
import type { Quirks } from './quirks.ts'
import { RequestIds } from './request-ids.ts'
import { type RateSettings, RequestRate } from './request-rate.ts'
import { Graph } from './routes.ts'
import { driveScopes } from './scopes.ts'
import { MicrosoftSignIn, microsoftClient, microsoftPaths } from './sign-in.ts'
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
  /** A library of this site of SharePoint, which the account follows; called by its name. */
  site?: string
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
  drives?: readonly SimDriveInput[]
  /** How many requests an account may make; any number if left out. */
  rate?: Partial<RateSettings>
  /** How long the address of a download is good for. */
  downloadUrlMs?: number
}

const DRIVES_MAX = 100

export class OneDrive implements RunningService {
  readonly drives: readonly SimDrive[]
  readonly signIn: MicrosoftSignIn
  readonly rate: RequestRate
  readonly subscriptions: Subscriptions
  readonly urls: TransferUrls
  readonly routes: readonly Routes[]
  readonly clientId = microsoftClient.id
  readonly #kernel: Kernel
  readonly #control = new DriveControl(this)

  constructor(kernel: Kernel, options: OneDriveOptions) {
    const { clock, seed } = kernel
    const random = randomFor(kernel, 0xd21e)
    this.#kernel = kernel
    this.drives = createDrives(kernel, options.drives ?? [])
    this.signIn = new MicrosoftSignIn(kernel, { random, addresses: () => this.addresses })
    this.rate = new RequestRate({ clock, settings: options.rate ?? {} })
    this.subscriptions = new Subscriptions({ clock, random })
    this.urls = new TransferUrls(seed)
    if (options.downloadUrlMs !== undefined) this.urls.downloadMs = options.downloadUrlMs
    this.routes = [...this.#api(random), this.signIn]
    for (const sim of this.drives) sim.state.onChange = () => this.subscriptions.changed(sim)
  }

  get addresses(): readonly string[] {
    return [...new Set(this.drives.map(({ account }) => account))]
  }

  get grants(): Grants {
    return this.signIn.grants
  }

  /** Of Microsoft Graph, with its version: `…/v1.0`. */
  get graphUrl(): string {
    return `${this.#kernel.origin()}/v1.0`
  }

  get authUrl(): string {
    return this.#kernel.origin() + microsoftPaths.auth
  }

  get tokenUrl(): string {
    return this.#kernel.origin() + microsoftPaths.token
  }

  get deviceUrl(): string {
    return this.#kernel.origin() + microsoftPaths.device
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

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    return this.#control.answer(call, pieces)
  }

  about(): ServiceAbout {
    const { graphUrl, authUrl, tokenUrl, deviceUrl, clientId, drives } = this
    const tokens = drives.map(({ name, id }) => ({ id, ...this.issue(name) }))
    const files = drives.reduce((sum, sim) => sum + sim.countItems().files, 0)
    return {
      text: `A simulated OneDrive is at ${graphUrl}, with ${formatCount(files)} files for ${this.addresses.join(', ')}.`,
      settings: {
        TIDEMARK_ONEDRIVE_API_URL: graphUrl,
        TIDEMARK_ONEDRIVE_AUTH_URL: authUrl,
        TIDEMARK_ONEDRIVE_TOKEN_URL: tokenUrl,
        TIDEMARK_ONEDRIVE_DEVICE_URL: deviceUrl,
        TIDEMARK_ONEDRIVE_CLIENT_ID: clientId,
      },
      refreshTokens: tokens.map(({ refreshToken }, at) => [`${drives[at]!.name} (OneDrive)`, refreshToken]),
      json: {
        graphUrl,
        microsoftAuthUrl: authUrl,
        microsoftTokenUrl: tokenUrl,
        microsoftDeviceUrl: deviceUrl,
        microsoftClientId: clientId,
        drives: tokens,
      },
    }
  }

  close(): Promise<void> {
    return this.subscriptions.close()
  }

  #api(random: Random): Routes[] {
    const { urls, subscriptions, drives, grants } = this
    const shared = {
      urls,
      monitors: new CopyMonitors(random),
      onEffect: (sim: SimDrive, effect: FaultEffect) => this.#suffer(sim, effect),
      throttle: (account: string) => this.#throttled(account),
    }
    const { clock } = this.#kernel
    const requestIds = new RequestIds({ random: randomFor(this.#kernel, 0x1d5), now: () => clock.now() })
    return [
      new Graph({ ...shared, kernel: this.#kernel, drives, grants, subscriptions, requestIds }),
      new Transfers({ ...shared, findDrive: (id) => drives.find((sim) => sim.id === id) }),
    ].map((routes) => requestIds.on(routes))
  }

  #throttled(account: string): SimAnswer | undefined {
    const waitS = this.rate.take(account)
    if (waitS === undefined) return undefined
    return faultAnswer(graphFault(this.rate.settings.status, { headers: { 'retry-after': String(waitS) } }))
  }

  #suffer(sim: SimDrive, effect: FaultEffect): void {
    if (effect.do === 'mutate') mutateDrive(sim, effect)
    else if (effect.do === 'expire-history') sim.expireDelta()
    else this.grants.suffer(sim.account, effect)
  }
}

function createDrives({ seed, clock }: Kernel, drives: readonly SimDriveInput[]): SimDrive[] {
  if (drives.length > DRIVES_MAX) throw new UsageError(`There can be ${DRIVES_MAX} drives at most.`)
  const made = new Map<string, SimDrive>()
  for (const [at, input] of drives.entries()) {
    const {
      files = 0,
      sizes,
      filesPerFolder,
      large,
      name = input.account,
      type = input.site === undefined ? 'personal' : 'business',
      ...rest
    } = input
    if (made.has(name)) throw new UsageError(`There are two drives ${name}.`, { hint: 'Give each a name.' })
    const own = seed + at * 101 + 0x0d21
    const sim = new SimDrive({ ...rest, name, type, seed: own, now: () => clock.now() })
    generateDrive(sim, {
      files,
      random: seededRandom(own ^ 0x9e0),
      nowMs: clock.now(),
      ...(sizes === undefined ? {} : { sizes }),
      ...(filesPerFolder === undefined ? {} : { filesPerFolder }),
      ...(large === undefined ? {} : { large }),
    })
    made.set(name, sim)
  }
  return [...made.values()]
}
