/** The control API of mailboxes: mail that arrives, changes and goes, the quota, notifications, the dump for an oracle. */
import { z } from 'zod'
import type { Random } from '../../base/random.ts'
import { parse } from '../control.ts'
import type { Quota } from '../quota.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import type { Mailbox } from './mailbox.ts'
import type { Mutations } from './mutations.ts'
import type { Push } from './push.ts'

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
  push: z.strictObject({
    endpoint: z.url().nullable().optional(),
    audience: z.string().nullable().optional(),
    email: z.string().optional(),
    subscription: z.string().optional(),
    duplicateShare: z.number().min(0).max(1).optional(),
  }),
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

/** What there is of Gmail to look at and to change. */
export type ControlledGmail = {
  addresses: readonly string[]
  quota: Quota
  push: Push
  mailbox(address: string): Mailbox
  mutations(address: string): Mutations
  delivered(address: string): ReadonlySet<string>
  serviceAccount(): object
}

export class GmailControl {
  readonly #gmail: ControlledGmail
  readonly #random: Random

  constructor(gmail: ControlledGmail, random: Random) {
    this.#gmail = gmail
    this.#random = random
  }

  answer(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    const { quota, push, addresses } = this.#gmail
    const [first, address, action] = pieces
    if (first === 'accounts' && address !== undefined) return this.#account(call, address, action)
    switch (`${call.verb} ${pieces.join('/')}`) {
      case 'GET accounts':
        return jsonAnswer({ accounts: addresses.map((one) => this.#summary(one)) })
      case 'GET quota':
        return jsonAnswer(quota.settings)
      case 'PUT quota':
        quota.set(parse(inputs.quota, call))
        return jsonAnswer(quota.settings)
      case 'GET push':
        return jsonAnswer({ ...push.settings, counts: push.counts })
      case 'PUT push':
        Object.assign(push.settings, parse(inputs.push, call))
        return jsonAnswer({ ...push.settings, counts: push.counts })
      case 'GET service-account':
        return jsonAnswer(this.#gmail.serviceAccount())
      default:
        return undefined
    }
  }

  #account(call: SimCall, address: string, action: string | undefined): SimAnswer | undefined {
    const mailbox = this.#gmail.mailbox(address)
    const mutations = this.#gmail.mutations(address)
    switch (`${call.verb} ${action ?? ''}`) {
      case 'GET ':
        return jsonAnswer(this.#summary(address))
      case 'GET dump':
        return dumpAnswer(mailbox, this.#gmail.delivered(address), call.query.get('hashes') !== 'false')
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
      const { id, threadId, historyId } = mutations.arrive({ ...rest, ...bytes }, this.#random)
      return { id, threadId, historyId: String(historyId) }
    })
  }

  #ids(input: { ids?: string[] | undefined; count?: number | undefined }, mutations: Mutations): string[] {
    return input.ids ?? mutations.pick(input.count ?? 1, this.#random)
  }

  #summary(address: string): Record<string, unknown> {
    const mailbox = this.#gmail.mailbox(address)
    const { historyId, ...profile } = mailbox.profile()
    return {
      ...profile,
      historyId: String(historyId),
      deleted: mailbox.deleted.size,
      listed: mailbox.everListed.size,
      delivered: this.#gmail.delivered(address).size,
      watch: this.#gmail.push.watchOf(address) ?? null,
      quota: this.#gmail.quota.usage(address),
    }
  }
}

/** In pieces: a mailbox of 200,000 makes a dump of some 50 MB. */
function dumpAnswer(mailbox: Mailbox, delivered: ReadonlySet<string>, withHashes: boolean): SimAnswer {
  const head = JSON.stringify({ address: mailbox.address, historyId: String(mailbox.historyId) })
  const body: string[] = [`${head.slice(0, -1)},"messages":[`]
  let isFirst = true
  for (const { sha256, everListed, deleted, ...message } of mailbox.dump()) {
    const shown = {
      ...message,
      state: deleted ? 'deleted' : 'present',
      listed: everListed,
      delivered: delivered.has(message.id),
      ...(withHashes ? { sha256: sha256() } : {}),
    }
    body.push(`${isFirst ? '' : ','}\n${JSON.stringify(shown)}`)
    isFirst = false
  }
  body.push('\n]}\n')
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(body.join('')) }
}
