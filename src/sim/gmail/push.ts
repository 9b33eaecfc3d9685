/**
 * users.watch and its notifications: a POST in Pub/Sub's shape to one address, signed with a JWT (RS256)
 * whose key stands in a JWKS of its own.
 *
 * A user gets one event per second at most; the rest is dropped, as the real service does. A delivery that
 * is not answered with 2xx is tried again, so the same event may come twice and late.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { createSigningKey, publicJwk, type SigningKey, signJwt } from '../google/keys.ts'
import { jsonAnswer, type Operation, type Routes, type SimCall } from '../server.ts'

export type PushSettings = {
  /** Null: nothing is delivered. */
  endpoint: string | null
  /** Null: the endpoint itself, as Pub/Sub does it. */
  audience: string | null
  email: string
  subscription: string
  /** How many of the events are delivered twice, 0 to 1. */
  duplicateShare: number
}

export type Watch = { topicName: string; labelIds: readonly string[]; expiresAtMs: number }
export type PushCounts = { sent: number; dropped: number; failed: number; delivered: number }

export const certsPath = '/oauth2/v3/certs'

const WATCH_MS = 7 * 24 * 3_600_000
const EVENT_GAP_MS = 1_000
const ATTEMPTS_MAX = 5
const RETRY_MS = 500
const PENDING_MAX = 1_000
const DELIVERY_MS_MAX = 10_000
const TOKEN_S = 3_600

export class Push implements Routes {
  readonly settings: PushSettings
  readonly counts: PushCounts = { sent: 0, dropped: 0, failed: 0, delivered: 0 }
  readonly #clock: Clock
  readonly #random: Random
  readonly #watches = new Map<string, Watch>()
  readonly #lastSentMs = new Map<string, number>()
  readonly #stop = new AbortController()
  readonly #pending = new Set<Promise<void>>()
  #key: SigningKey | undefined
  #messages = 0

  constructor(options: { clock: Clock; random: Random; settings?: Partial<PushSettings> }) {
    this.#clock = options.clock
    this.#random = options.random
    this.settings = {
      endpoint: null,
      audience: null,
      email: 'push@tidemark-sim.iam.gserviceaccount.com',
      subscription: 'projects/tidemark-sim/subscriptions/mail',
      duplicateShare: 0,
      ...options.settings,
    }
  }

  match(call: SimCall): Operation | undefined {
    if (call.path !== certsPath || call.verb !== 'GET') return undefined
    return {
      name: 'oauth.certs',
      run: () => jsonAnswer({ keys: [publicJwk(this.#signingKey())] }),
      refuse: ({ status, reason, message }) =>
        jsonAnswer({ error: reason ?? 'internal_failure', error_description: message }, status),
    }
  }

  watch(address: string, input: { topicName: string; labelIds: readonly string[] }): number {
    const expiresAtMs = this.#clock.now() + WATCH_MS
    this.#watches.set(address, { ...input, expiresAtMs })
    return expiresAtMs
  }

  stop(address: string): void {
    this.#watches.delete(address)
  }

  watchOf(address: string): Watch | undefined {
    return this.#watches.get(address)
  }

  /** The mailbox has changed: tells the one who watches it, if anybody. */
  changed(address: string, historyId: bigint): void {
    const watch = this.#watches.get(address)
    const nowMs = this.#clock.now()
    if (!watch || watch.expiresAtMs <= nowMs || this.settings.endpoint === null) return
    const lastMs = this.#lastSentMs.get(address) ?? Number.NEGATIVE_INFINITY
    if (nowMs - lastMs < EVENT_GAP_MS || this.#pending.size >= PENDING_MAX) {
      this.counts.dropped += 1
      return
    }
    this.#lastSentMs.set(address, nowMs)
    this.send(address, historyId)
  }

  /** Whatever the watch says; also how a test sends one that it wants to send. */
  send(address: string, historyId: bigint): void {
    const { endpoint, subscription, duplicateShare } = this.settings
    if (endpoint === null) return
    this.#messages += 1
    const publishTime = new Date(this.#clock.now()).toISOString()
    const data = Buffer.from(JSON.stringify({ emailAddress: address, historyId: String(historyId) }))
    const messageId = String(10_000_000_000 + this.#messages)
    const message = {
      data: data.toString('base64url'),
      messageId,
      message_id: messageId,
      publishTime,
      publish_time: publishTime,
    }
    const body = JSON.stringify({ message, subscription })
    const times = this.#random() < duplicateShare ? 2 : 1
    for (let time = 0; time < times; time++) {
      this.counts.sent += 1
      const delivery = this.#deliver(endpoint, body).finally(() => this.#pending.delete(delivery))
      this.#pending.add(delivery)
    }
  }

  /** Nothing is under way any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending)
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the simulated cloud is closing'))
    await this.settled()
  }

  async #deliver(endpoint: string, body: string): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && !this.#stop.signal.aborted; attempt++) {
      if (await this.#post(endpoint, body)) {
        this.counts.delivered += 1
        return
      }
      const waitMs = RETRY_MS * 2 ** attempt
      // Closing ends the wait, and then the loop.
      if (attempt < ATTEMPTS_MAX) await sleep(this.#clock, waitMs, this.#stop.signal).catch(() => {})
    }
    this.counts.failed += 1
  }

  async #post(endpoint: string, body: string): Promise<boolean> {
    try {
      const answer = await fetch(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#token(endpoint)}` },
        body,
        signal: AbortSignal.any([this.#stop.signal, AbortSignal.timeout(DELIVERY_MS_MAX)]),
      })
      await answer.body?.cancel()
      return answer.ok
    } catch {
      // Nobody there, or too slow: the same as a refusal.
      return false
    }
  }

  #token(endpoint: string): string {
    const nowS = Math.floor(this.#clock.now() / 1000)
    return signJwt(this.#signingKey(), {
      iss: 'https://accounts.google.com',
      aud: this.settings.audience ?? endpoint,
      azp: '100000000000000000002',
      sub: '100000000000000000002',
      email: this.settings.email,
      email_verified: true,
      iat: nowS,
      exp: nowS + TOKEN_S,
    })
  }

  #signingKey(): SigningKey {
    this.#key ??= createSigningKey('sim-push')
    return this.#key
  }
}
