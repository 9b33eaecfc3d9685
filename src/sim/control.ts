/**
 * The control API under /control: what a test, a bench or an oracle asks of the simulator beside the calls
 * that the real service knows. Never faulted, never priced, JSON in and out.
 */
import { z } from 'zod'
import { TidemarkError, UsageError } from '../base/errors.ts'
import type { Random } from '../base/random.ts'
import type { CallLog } from './call-log.ts'
import { bodyOf, parse } from './control-input.ts'
import { faultProfiles } from './fault-profiles.ts'
import type { Faults } from './faults.ts'
import type { Mailbox } from './gmail/mailbox.ts'
import type { Mutations } from './gmail/mutations.ts'
import type { OAuth } from './oauth.ts'
import { DriveControl } from './onedrive/control.ts'
import type { OneDrive } from './onedrive/service.ts'
import type { Push } from './push.ts'
import type { Quota, QuotaSettings } from './quota.ts'
import { jsonAnswer, type Operation, type Service, type SimAnswer, type SimCall } from './server.ts'

export type ControlledAccount = {
  mailbox: Mailbox
  mutations: Mutations
  delivered: () => ReadonlySet<string>
}

export type ControlOptions = {
  faults: Faults
  quota: Quota
  oauth: OAuth
  push: Push
  log: CallLog
  oneDrive: OneDrive
  random: Random
  account: (address: string) => ControlledAccount | undefined
  addresses: () => readonly string[]
  origin: () => string
}

const PREFIX = '/control'
const COUNT_MAX = 10_000

const idsInput = {
  ids: z.array(z.string()).optional(),
  count: z.number().int().min(1).max(COUNT_MAX).optional(),
}
const strings = z.array(z.string())
const inputs = {
  quota: z.strictObject({
    unitsPerMinute: z.number().positive().nullable().optional(),
    prices: z.record(z.string(), z.number().min(0)).optional(),
    model: z.enum(['window', 'bucket']).optional(),
    burstSeconds: z.number().positive().optional(),
    shape: z.enum(['user403', 'rate403', 'exhausted429', 'mixed']).optional(),
    retryAfterSeconds: z.number().min(0).nullable().optional(),
    otherShare: z.number().min(0).max(1).optional(),
    concurrencyMax: z.number().int().min(1).nullable().optional(),
  }),
  oauth: z.strictObject({
    autoApprove: z.union([z.boolean(), z.string()]).optional(),
    deny: z.boolean().optional(),
    grantOnly: strings.nullable().optional(),
    delegatedScopes: strings.nullable().optional(),
    accessTokenMs: z.number().positive().optional(),
    refreshTokenMs: z.number().positive().nullable().optional(),
  }),
  push: z.strictObject({
    endpoint: z.url().nullable().optional(),
    audience: z.string().nullable().optional(),
    email: z.string().optional(),
    subscription: z.string().optional(),
    duplicateShare: z.number().min(0).max(1).optional(),
  }),
  tokens: z.strictObject({ address: z.string().optional(), token: z.string().optional() }),
  issue: z.strictObject({ address: z.string(), scopes: strings.min(1) }),
  arrive: z.strictObject({
    count: z.number().int().min(1).max(COUNT_MAX).optional(),
    internalMs: z.number().int().optional(),
    labelIds: strings.optional(),
    threadId: z.string().optional(),
    /** base64url */
    raw: z.string().optional(),
  }),
  delete: z.strictObject(idsInput),
  relabel: z.strictObject({ ...idsInput, add: strings.optional(), remove: strings.optional() }),
  switches: z.strictObject({
    pageTokens: z.enum(['keyset', 'offset']).optional(),
    emptyHistoryPages: z.boolean().optional(),
  }),
  empty: z.strictObject({}),
}

export class Control implements Service {
  readonly #options: ControlOptions

  readonly #drives: DriveControl

  constructor(options: ControlOptions) {
    this.#options = options
    this.#drives = new DriveControl(options.oneDrive)
  }

  match(call: SimCall): Operation | undefined {
    if (call.path !== PREFIX && !call.path.startsWith(`${PREFIX}/`)) return undefined
    return {
      name: 'control',
      isExempt: true,
      run: () => this.#answer(call),
      refuse: ({ status, message }) => jsonAnswer({ error: message }, status),
    }
  }

  #answer(call: SimCall): SimAnswer {
    const pieces = call.path.slice(PREFIX.length).split('/').filter(Boolean).map(decodeURIComponent)
    try {
      const found =
        this.#drives.answer(call, pieces) ??
        (pieces[0] === 'accounts' && pieces.length > 1
          ? this.#account(call, pieces[1]!, pieces[2])
          : this.#general(call, `${call.verb} ${pieces.join('/')}`))
      return (
        found ?? jsonAnswer({ error: `There is no ${call.verb} ${call.path}; see src/sim/README.md.` }, 404)
      )
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error
      const status = error.code === 'sim-not-found' ? 404 : 400
      return jsonAnswer({ error: error.message, hint: error.hint }, status)
    }
  }

  #general(call: SimCall, what: string): SimAnswer | undefined {
    const { faults, quota, push, log, addresses } = this.#options
    switch (what) {
      case 'GET ':
        return jsonAnswer({ accounts: addresses(), profiles: Object.keys(faultProfiles) })
      case 'GET faults':
        return this.#faults()
      case 'PUT faults':
        faults.set(bodyOf(call))
        return this.#faults()
      case 'DELETE faults':
        faults.clear()
        return this.#faults()
      case 'POST faults/rules':
        faults.add(bodyOf(call) as Parameters<Faults['add']>[0])
        return this.#faults()
      case 'GET quota':
        return jsonAnswer(quota.settings)
      case 'PUT quota':
        quota.set(parse(inputs.quota, call) as Partial<QuotaSettings>)
        return jsonAnswer(quota.settings)
      case 'GET push':
        return jsonAnswer({ ...push.settings, counts: push.counts })
      case 'PUT push':
        Object.assign(push.settings, parse(inputs.push, call))
        return jsonAnswer({ ...push.settings, counts: push.counts })
      case 'GET counters':
        return jsonAnswer(this.#counters())
      case 'DELETE counters':
        log.reset()
        quota.resetUsage()
        return jsonAnswer(this.#counters())
      case 'GET log':
        return jsonAnswer({ calls: log.last(Number(call.query.get('limit') ?? 100) || 100) })
      case 'GET accounts':
        return jsonAnswer({ accounts: addresses().map((address) => this.#summary(address)) })
      default:
        return this.#signIn(call, what)
    }
  }

  #signIn(call: SimCall, what: string): SimAnswer | undefined {
    const { oauth, origin } = this.#options
    const { grants } = oauth
    switch (what) {
      case 'GET oauth':
        return this.#oauthSettings()
      case 'PUT oauth': {
        const { delegatedScopes, accessTokenMs, refreshTokenMs, ...consent } = parse(inputs.oauth, call)
        Object.assign(oauth.consent, consent)
        if (delegatedScopes !== undefined) oauth.delegatedScopes = delegatedScopes
        if (accessTokenMs !== undefined) grants.accessTokenMs = accessTokenMs
        if (refreshTokenMs !== undefined) grants.refreshTokenMs = refreshTokenMs
        return this.#oauthSettings()
      }
      case 'GET service-account':
        return jsonAnswer(oauth.serviceAccount(origin()))
      case 'GET tokens':
        return jsonAnswer(grants.list())
      case 'POST tokens': {
        const { address, scopes } = parse(inputs.issue, call)
        this.#known(address)
        const { access, refreshToken } = grants.issue({ address, scopes, isOffline: true })
        return jsonAnswer({ accessToken: access.token, refreshToken })
      }
      case 'POST tokens/revoke': {
        const { address, token } = parse(inputs.tokens, call)
        if (token !== undefined) return jsonAnswer({ revoked: grants.revoke(token) })
        grants.revokeAccount(this.#known(address).mailbox.address)
        return jsonAnswer({ revoked: true })
      }
      case 'POST tokens/expire':
        return jsonAnswer({
          expired: grants.expireAccess(this.#known(parse(inputs.tokens, call).address).mailbox.address),
        })
      default:
        return undefined
    }
  }

  #account(call: SimCall, address: string, action: string | undefined): SimAnswer | undefined {
    const account = this.#known(address)
    const { mailbox, mutations } = account
    switch (`${call.verb} ${action ?? ''}`) {
      case 'GET ':
        return jsonAnswer(this.#summary(address))
      case 'GET dump':
        return dumpAnswer(account, call.query.get('hashes') !== 'false')
      case 'POST arrive':
        return jsonAnswer({ messages: this.#arrive(call, mutations) })
      case 'POST delete': {
        const ids = this.#ids(parse(inputs.delete, call), mutations)
        for (const id of ids) mailbox.delete(id)
        return jsonAnswer({ ids })
      }
      case 'POST relabel': {
        const { add, remove, ...which } = parse(inputs.relabel, call)
        const ids = this.#ids(which, mutations)
        for (const id of ids) mailbox.modify(id, { add: add ?? [], remove: remove ?? [] })
        return jsonAnswer({ ids })
      }
      case 'POST expire-history':
        parse(inputs.empty, call)
        mailbox.expireHistory()
        return jsonAnswer(this.#summary(address))
      case 'PUT switches':
        Object.assign(mailbox.switches, parse(inputs.switches, call))
        return jsonAnswer(mailbox.switches)
      default:
        return undefined
    }
  }

  #arrive(call: SimCall, mutations: Mutations): { id: string; threadId: string; historyId: string }[] {
    const { count = 1, raw, ...rest } = parse(inputs.arrive, call)
    const bytes = raw === undefined ? {} : { raw: Buffer.from(raw, 'base64url') }
    return Array.from({ length: count }, () => {
      const { id, threadId, historyId } = mutations.arrive({ ...rest, ...bytes }, this.#options.random)
      return { id, threadId, historyId: String(historyId) }
    })
  }

  #ids(input: { ids?: string[] | undefined; count?: number | undefined }, mutations: Mutations): string[] {
    return input.ids ?? mutations.pick(input.count ?? 1, this.#options.random)
  }

  #known(address: string | undefined): ControlledAccount {
    const account = address === undefined ? undefined : this.#options.account(address)
    if (account) return account
    const there = this.#options.addresses().join(', ')
    throw new UsageError(`There is no account ${address ?? '(none given)'}.`, { hint: `There are ${there}.` })
  }

  #summary(address: string): Record<string, unknown> {
    const { mailbox, delivered } = this.#known(address)
    const { historyId, ...profile } = mailbox.profile()
    return {
      ...profile,
      historyId: String(historyId),
      deleted: mailbox.deleted.size,
      listed: mailbox.everListed.size,
      delivered: delivered().size,
      watch: this.#options.push.watchOf(address) ?? null,
      quota: this.#options.quota.usage(address),
    }
  }

  #faults(): SimAnswer {
    const { faults } = this.#options
    return jsonAnswer({ profile: faults.profile, rules: faults.counts(), poison: faults.poisoned })
  }

  #oauthSettings(): SimAnswer {
    const { oauth } = this.#options
    const { accessTokenMs, refreshTokenMs } = oauth.grants
    return jsonAnswer({
      ...oauth.consent,
      delegatedScopes: oauth.delegatedScopes,
      accessTokenMs,
      refreshTokenMs,
    })
  }

  #counters(): Record<string, unknown> {
    const { log, quota, push, addresses } = this.#options
    const usage = Object.fromEntries(addresses().map((address) => [address, quota.usage(address)]))
    return { ...log.counts(), quota: usage, push: push.counts }
  }
}

/** In pieces: a mailbox of 200,000 makes a dump of some 50 MB. */
function dumpAnswer({ mailbox, delivered }: ControlledAccount, withHashes: boolean): SimAnswer {
  const isDelivered = delivered()
  const head = JSON.stringify({ address: mailbox.address, historyId: String(mailbox.historyId) })
  const body: string[] = [`${head.slice(0, -1)},"messages":[`]
  let isFirst = true
  for (const { sha256, everListed, deleted, ...message } of mailbox.dump()) {
    const shown = {
      ...message,
      state: deleted ? 'deleted' : 'present',
      listed: everListed,
      delivered: isDelivered.has(message.id),
      ...(withHashes ? { sha256: sha256() } : {}),
    }
    body.push(`${isFirst ? '' : ','}\n${JSON.stringify(shown)}`)
    isFirst = false
  }
  body.push('\n]}\n')
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(body.join('')) }
}
