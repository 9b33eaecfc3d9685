/**
 * A subscription of Google Pub/Sub, pulled over REST.
 *
 * Invariants:
 * - a deadline is between 10 and 600 s, or nothing, which gives a message back
 * - Pub/Sub takes a late extension and a late acknowledgement without a word, and has given the message to another:
 *   so a receipt whose deadline has passed by our own clock is lost, except where the subscription delivers exactly
 *   once and says so itself
 * - `visibleAtMs` is never later than what Pub/Sub goes by
 */
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { type TokenSource, Transport } from '../http-transport.ts'
import type { Fetch } from '../oauth.ts'
import type {
  AcknowledgeResult,
  ExtendResult,
  Queue,
  QueueDepth,
  QueueLimits,
  QueueMessage,
} from '../queue.ts'
import * as pubsubErrors from './errors.ts'
import { pullSchema, type ReceivedMessage, subscriptionSchema } from './schema.ts'

export type PubsubQueueOptions = {
  fetch: Fetch
  clock: Clock
  token: TokenSource
  /** `projects/p/subscriptions/s` */
  subscription: string
  apiUrl?: string
  /** How long what is received is invisible to others; left out, as the subscription says. */
  visibilityMs?: number
  timeoutMs?: number
}

export const PUBSUB_API_URL = 'https://pubsub.googleapis.com'
const TIMEOUT_MS = 30_000
const WAIT_MS_MAX = 20_000
const RECEIVE_MAX = 100
/** Receipts of a call; Pub/Sub takes 512 KiB, and they have some 200 characters. */
const RECEIPTS_MAX = 1_000
const EXTEND_MS_MIN = 10_000
const EXTEND_MS_MAX = 600_000
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
/** What is subtracted from a deadline for the way of the answer. */
const TRANSIT_MS = 2_000
/** Receipts that are kept in mind; those of a reader that never acknowledges are forgotten. */
const HELD_MAX = 100_000

export class PubsubQueue implements Queue {
  readonly limits: QueueLimits = {
    receiveMax: RECEIVE_MAX,
    waitMsMax: WAIT_MS_MAX,
    extendMsMax: EXTEND_MS_MAX,
    heldMsMax: null,
  }
  readonly #options: PubsubQueueOptions
  readonly #transport: Transport
  #deadlineMs: Promise<number> | undefined
  /** By receipt: until when it is held, by our clock. */
  readonly #heldUntilMs = new Map<string, number>()

  constructor(options: PubsubQueueOptions) {
    this.#options = options
    const { apiUrl = PUBSUB_API_URL, timeoutMs = TIMEOUT_MS } = options
    this.#transport = new Transport({
      ...options,
      apiUrl,
      timeoutMs: timeoutMs + WAIT_MS_MAX,
      errors: pubsubErrors,
    })
  }

  async receive(options: {
    max: number
    waitMs: number
    signal: AbortSignal
  }): Promise<readonly QueueMessage[]> {
    const { clock, visibilityMs } = this.#options
    options.signal.throwIfAborted()
    const deadlineMs = await this.#deadline(options.signal)
    const askedAtMs = clock.now()
    const received = await this.#pull(options)
    const receivedAtMs = Math.max(askedAtMs, clock.now() - TRANSIT_MS)
    const messages = received.map((one) => messageOf(one, receivedAtMs + deadlineMs))
    for (const { receipt, visibleAtMs } of messages) this.#hold(receipt, visibleAtMs)
    if (visibilityMs === undefined || messages.length === 0) return messages
    const results = await this.extend(messages, visibilityMs)
    return messages
      .filter((_, at) => results[at] === 'extended')
      .map((message) => ({ ...message, visibleAtMs: this.#heldUntilMs.get(message.receipt) ?? 0 }))
  }

  async extend(messages: readonly QueueMessage[], visibleAfterMs: number): Promise<readonly ExtendResult[]> {
    const seconds = deadlineSeconds(visibleAfterMs)
    const nowMs = this.#options.clock.now()
    const held = messages.filter((message) => this.#isHeld(message, nowMs))
    const lost = await this.#send('modifyAckDeadline', held, { ackDeadlineSeconds: seconds })
    return messages.map((message) => {
      const { receipt } = message
      if (!held.includes(message) || lost.has(receipt)) return 'lost'
      if (seconds === 0) this.#heldUntilMs.delete(receipt)
      else this.#hold(receipt, nowMs + seconds * 1_000)
      return 'extended'
    })
  }

  async acknowledge(messages: readonly QueueMessage[]): Promise<readonly AcknowledgeResult[]> {
    const nowMs = this.#options.clock.now()
    const isLate = messages.map((message) => !this.#isHeld(message, nowMs))
    // Those that are late, too: it may be that nobody has them yet.
    const lost = await this.#send('acknowledge', messages, {})
    return messages.map(({ receipt }, at) => {
      const isLost = isLate[at] || lost.has(receipt)
      this.#heldUntilMs.delete(receipt)
      return isLost ? 'lost' : 'acknowledged'
    })
  }

  /** Pub/Sub itself does not tell; Cloud Monitoring does, some minutes later. */
  async depth(): Promise<QueueDepth> {
    return { waiting: null, inFlight: null, oldestAgeMs: null }
  }

  async close(): Promise<void> {}

  async #pull({ max, waitMs, signal }: { max: number; waitMs: number; signal: AbortSignal }) {
    const { clock } = this.#options
    const waited = new AbortController()
    const onAbort = (): void => waited.abort(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const cancel =
      waitMs > 0 ? clock.timer(Math.min(waitMs, WAIT_MS_MAX), () => waited.abort(WAITED)) : () => undefined
    const body = {
      maxMessages: Math.min(Math.max(1, max), RECEIVE_MAX),
      ...(waitMs <= 0 && { returnImmediately: true }),
    }
    try {
      const answer = await this.#post('pull', body, waited.signal)
      return pubsubErrors.decode(pullSchema, answer, 'messages').receivedMessages
    } catch (thrown) {
      if (thrown === WAITED && !signal.aborted) return []
      throw thrown
    } finally {
      cancel()
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** The receipts that are lost. */
  async #send(method: string, messages: readonly QueueMessage[], fields: object): Promise<Set<string>> {
    const lost = new Set<string>()
    for (let from = 0; from < messages.length; from += RECEIPTS_MAX) {
      const ackIds = messages.slice(from, from + RECEIPTS_MAX).map(({ receipt }) => receipt)
      try {
        await this.#post(method, { ackIds, ...fields })
      } catch (thrown) {
        const refused = asTidemarkError(thrown).cause
        if (!(refused instanceof pubsubErrors.RefusedReceipts)) throw thrown
        // What is done with may be done again: the whole call is repeated.
        if (refused.later.size > 0) throw pubsubErrors.damagedAnswer('receipts', 'some are to be sent again')
        for (const receipt of refused.lost) lost.add(receipt)
      }
    }
    return lost
  }

  #deadline(signal: AbortSignal): Promise<number> {
    this.#deadlineMs ??= this.#transport
      .send(
        { verb: 'GET', path: `/v1/${this.#options.subscription}` },
        async (answer) => {
          const bytes = await answer.jsonBytes('the subscription', ANSWER_BYTES_MAX)
          const value = pubsubErrors.parseJson(bytes.toString('utf8'), 'the subscription')
          const { ackDeadlineSeconds } = pubsubErrors.decode(subscriptionSchema, value, 'the subscription')
          return ackDeadlineSeconds * 1_000
        },
        signal,
      )
      .catch((thrown: unknown) => {
        this.#deadlineMs = undefined
        // Who may read messages may not be let look at the subscription: the shortest deadline is no lie.
        if (asTidemarkError(thrown).code === 'queue-denied') return EXTEND_MS_MIN
        throw thrown
      })
    return this.#deadlineMs
  }

  #post(method: string, body: object, signal?: AbortSignal): Promise<unknown> {
    return this.#transport.send(
      {
        verb: 'POST',
        path: `/v1/${this.#options.subscription}:${method}`,
        body: JSON.stringify(body),
        contentType: 'application/json',
      },
      async (answer) => {
        const bytes = await answer.jsonBytes(method, ANSWER_BYTES_MAX)
        return bytes.length === 0 ? {} : pubsubErrors.parseJson(bytes.toString('utf8'), method)
      },
      signal,
    )
  }

  #isHeld({ receipt, visibleAtMs }: QueueMessage, nowMs: number): boolean {
    return nowMs < (this.#heldUntilMs.get(receipt) ?? visibleAtMs)
  }

  #hold(receipt: string, untilMs: number): void {
    this.#heldUntilMs.set(receipt, untilMs)
    if (this.#heldUntilMs.size <= HELD_MAX) return
    const [oldest] = this.#heldUntilMs.keys()
    if (oldest !== undefined) this.#heldUntilMs.delete(oldest)
  }
}

/** Why a pull ends without a message. */
const WAITED = new Error('nothing came')

function deadlineSeconds(ms: number): number {
  return ms <= 0 ? 0 : Math.floor(Math.min(Math.max(ms, EXTEND_MS_MIN), EXTEND_MS_MAX) / 1_000)
}

function messageOf({ ackId, deliveryAttempt, message }: ReceivedMessage, visibleAtMs: number): QueueMessage {
  const sentAtMs = Date.parse(message.publishTime ?? '')
  const attributes = Object.entries(message.attributes).map(([name, value]) => [name.toLowerCase(), value])
  return {
    id: message.messageId,
    receipt: ackId,
    body: Buffer.from(message.data, 'base64'),
    attributes: Object.fromEntries(attributes) as Record<string, string>,
    deliveries: deliveryAttempt ?? null,
    sentAtMs: Number.isFinite(sentAtMs) ? sentAtMs : null,
    visibleAtMs,
  }
}
