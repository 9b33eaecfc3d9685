/** The simulated Gmail put together: mailboxes, sign-in, quota, notifications, and what faults do to them. */
import { UsageError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import type { FaultEffect } from '../fault-rules.ts'
import { Discovery } from '../google/discovery.ts'
import { invalid } from '../google/errors.ts'
import { type GoogleAccount, GoogleService } from '../google/service.ts'
import { googlePaths } from '../google/sign-in.ts'
import { Uploads } from '../google/uploads.ts'
import { Quota, type QuotaSettings } from '../quota.ts'
import type { Routes, SimAnswer, SimCall } from '../server.ts'
import { type Kernel, type RunningService, randomFor, type ServiceAbout } from '../service.ts'
import { GmailControl } from './control.ts'
import { gmailDocument } from './discovery.ts'
import { type GenerateOptions, generateMailbox } from './generate.ts'
import type { Mailbox } from './mailbox.ts'
import { Mutations } from './mutations.ts'
import { newPrices } from './prices.ts'
import { certsPath, Push, type PushSettings } from './push.ts'
import { GmailApi, gmailRoutes } from './routes.ts'
import { gmailScopes } from './scopes.ts'

/** An account to be: how many messages it has, and what the generator is told besides. */
export type GmailAccountOptions = Pick<GenerateOptions, 'address' | 'messages'> &
  Partial<Omit<GenerateOptions, 'address' | 'messages' | 'now'>> & {
    /** How far the mail goes back, where `fromMs` does not say it. */
    years?: number
  }

export type GmailOptions = {
  accounts?: readonly GmailAccountOptions[]
  quota?: Partial<QuotaSettings>
  push?: Partial<PushSettings>
  /** The real service allows 100; 50 has been seen. */
  batchPartsMax?: number
}

export type GmailAccount = GoogleAccount

const ACCOUNTS_MAX = 1_000
const DAY_MS = 86_400_000
const YEARS_DEFAULT = 10
/** What Tidemark is told where nothing is ever refused. */
const UNLIMITED_UNITS = 1_000_000_000

export class Gmail extends GoogleService implements RunningService {
  readonly quota: Quota
  readonly push: Push
  readonly routes: readonly Routes[]
  readonly accounts: readonly GmailAccount[]
  readonly #mailboxes: ReadonlyMap<string, Mailbox>
  readonly #mutations: ReadonlyMap<string, Mutations>
  readonly #api: GmailApi
  readonly #control: GmailControl

  constructor(kernel: Kernel, options: GmailOptions) {
    const { clock, seed } = kernel
    super(kernel)
    this.#mailboxes = createMailboxes(kernel, options.accounts ?? [])
    this.#mutations = new Map(
      [...this.#mailboxes].map(([name, mailbox]) => [name, new Mutations({ mailbox, clock })]),
    )
    this.quota = new Quota({
      ...options.quota,
      prices: { ...newPrices, ...options.quota?.prices },
      clock,
      seed,
    })
    this.push = new Push({ clock, random: randomFor(kernel, 0x9054), settings: options.push ?? {} })
    this.#api = new GmailApi({
      kernel,
      mailboxes: this.#mailboxes,
      grants: this.grants,
      quota: this.quota,
      push: this.push,
      uploads: new Uploads(randomFor(kernel, 0x0b18), { badRequest: invalid }),
      onEffect: (address, effect) => this.#suffer(address, effect),
      batchPartsMax: options.batchPartsMax,
    })
    this.#control = new GmailControl(this, randomFor(kernel, 0xc047))
    this.routes = [this.#api, this.signIn, this.push, new Discovery(gmailDocument(gmailRoutes))]
    for (const [address, mailbox] of this.#mailboxes) {
      mailbox.onChange = (historyId) => this.push.changed(address, historyId)
    }
    this.accounts = this.addresses.map((address) => this.issue(address))
  }

  get addresses(): readonly string[] {
    return [...this.#mailboxes.keys()]
  }

  get tokenInfoUrl(): string {
    return this.baseUrl + googlePaths.tokenInfo
  }

  get jwksUrl(): string {
    return this.baseUrl + certsPath
  }

  mailbox(address: string): Mailbox {
    return known(this.#mailboxes, address)
  }

  mutations(address: string): Mutations {
    return known(this.#mutations, address)
  }

  /** Ids whose listing has left whole. */
  delivered(address: string): ReadonlySet<string> {
    return this.#api.delivered(address)
  }

  issue(address: string, scopes: readonly string[] = [gmailScopes.full]): GmailAccount {
    return this.issueTo(this.mailbox(address).address, scopes)
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    return this.#control.answer(call, pieces)
  }

  counters(): Record<string, unknown> {
    const usage = Object.fromEntries(this.addresses.map((address) => [address, this.quota.usage(address)]))
    return { quota: usage, push: this.push.counts }
  }

  resetCounters(): void {
    this.quota.resetUsage()
  }

  about(): ServiceAbout {
    const { baseUrl, authUrl, tokenUrl, revokeUrl, tokenInfoUrl, jwksUrl, clientId, clientSecret } = this
    const { unitsPerMinute } = this.quota.settings
    const messages = [...this.#mailboxes.values()].reduce((sum, one) => sum + one.profile().messagesTotal, 0)
    return {
      text: `A simulated Gmail is at ${baseUrl}, with ${formatCount(messages)} messages for ${this.addresses.join(', ')}.`,
      settings: {
        TIDEMARK_GMAIL_API_URL: baseUrl,
        TIDEMARK_GMAIL_AUTH_URL: authUrl,
        TIDEMARK_GMAIL_TOKEN_URL: tokenUrl,
        TIDEMARK_GMAIL_REVOKE_URL: revokeUrl,
        TIDEMARK_GMAIL_CLIENT_ID: clientId,
        TIDEMARK_GMAIL_CLIENT_SECRET: clientSecret,
        TIDEMARK_GMAIL_UNITS_PER_MINUTE: String(unitsPerMinute ?? UNLIMITED_UNITS),
        ...(unitsPerMinute === null ? { TIDEMARK_GMAIL_REQUESTS_PER_SECOND_MAX: '1000' } : {}),
      },
      refreshTokens: this.accounts.map(({ address, refreshToken }) => [address, refreshToken]),
      json: {
        accounts: this.accounts,
        clientId,
        clientSecret,
        tokenUrl,
        authUrl,
        revokeUrl,
        tokenInfoUrl,
        jwksUrl,
      },
    }
  }

  close(): Promise<void> {
    return this.push.close()
  }

  #suffer(address: string, effect: FaultEffect): void {
    if (effect.do === 'mutate') this.#mutations.get(address)?.apply(effect)
    else if (effect.do === 'expire-history') this.#mailboxes.get(address)?.expireHistory()
    else this.grants.suffer(address, effect)
  }
}

function createMailboxes(kernel: Kernel, accounts: readonly GmailAccountOptions[]): Map<string, Mailbox> {
  if (accounts.length > ACCOUNTS_MAX) throw new UsageError(`There can be ${ACCOUNTS_MAX} accounts at most.`)
  const mailboxes = new Map<string, Mailbox>()
  for (const [at, account] of accounts.entries()) {
    if (mailboxes.has(account.address)) throw new UsageError(`There are two accounts ${account.address}.`)
    mailboxes.set(account.address, createMailbox(account, { ...kernel, seed: kernel.seed + at }))
  }
  return mailboxes
}

/** Mail ends with yesterday, so that the same seed gives the same mail all day long. */
function createMailbox({ years, ...account }: GmailAccountOptions, { clock, seed }: Kernel): Mailbox {
  const toMs = account.toMs ?? Math.floor(clock.now() / DAY_MS) * DAY_MS
  const fromMs = account.fromMs ?? toMs - (years ?? YEARS_DEFAULT) * 365.25 * DAY_MS
  return generateMailbox({ seed, ...account, fromMs, toMs, now: () => clock.now() })
}

function known<Value>(map: ReadonlyMap<string, Value>, address: string): Value {
  const found = map.get(address)
  if (found) return found
  throw new UsageError(`There is no account ${address}.`, {
    hint: `There are ${[...map.keys()].join(', ')}.`,
  })
}
