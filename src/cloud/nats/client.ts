/**
 * A durable pull consumer of NATS JetStream. The packages are loaded when it is opened; nothing of them is known outside
 * this folder.
 *
 * Invariants:
 * - whoever extends gets the consumer's own AckWait from now on, never more; nothing gives a message back
 * - every extension and acknowledgement is confirmed by the server
 * - JetStream confirms also what comes late, when it has given the message to another: so a receipt whose deadline has
 *   passed by our own clock is lost
 */
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node'
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import type {
  AcknowledgeResult,
  ExtendResult,
  Queue,
  QueueDepth,
  QueueLimits,
  QueueMessage,
} from '../queue.ts'
import { classify, isNobodyThere, statusError } from './errors.ts'

export type NatsQueueOptions = {
  clock: Clock
  /** `nats://127.0.0.1:4222`, several where it is a cluster. */
  servers: readonly string[]
  stream: string
  consumer: string
  user?: string | undefined
  password?: string | undefined
  token?: string | undefined
  timeoutMs?: number
}

type Connection = { nats: NatsConnection; createInbox: () => string }
type ConsumerInfo = {
  num_pending: number
  num_ack_pending: number
  config: {
    ack_wait?: number | undefined
    backoff?: number[] | undefined
    ack_policy?: string | undefined
    deliver_subject?: string | undefined
  }
}

const TIMEOUT_MS = 5_000
const WAIT_MS_MAX = 30_000
const RECEIVE_MAX = 100
const ACK_WAIT_MS = 30_000
/** What is subtracted from a deadline for the way of the answer. */
const TRANSIT_MS_MAX = 1_000
const NS_PER_MS = 1_000_000
/** Receipts that are kept in mind; those of a reader that never acknowledges are forgotten. */
const HELD_MAX = 100_000

export class NatsQueue implements Queue {
  readonly limits: QueueLimits
  readonly #options: NatsQueueOptions
  readonly #connection: Connection
  readonly #info: () => Promise<ConsumerInfo>
  readonly #ackWaitMs: number
  /** By receipt: until when it is held, by our clock. */
  readonly #heldUntilMs = new Map<string, number>()

  private constructor(
    options: NatsQueueOptions,
    parts: { connection: Connection; info: () => Promise<ConsumerInfo>; ackWaitMs: number },
  ) {
    this.#options = options
    this.#connection = parts.connection
    this.#info = parts.info
    this.#ackWaitMs = parts.ackWaitMs
    this.limits = {
      receiveMax: RECEIVE_MAX,
      waitMsMax: WAIT_MS_MAX,
      extendMsMax: parts.ackWaitMs,
      heldMsMax: null,
    }
  }

  /** Connects and asks for the consumer: how long it waits for an acknowledgement is the most that can be extended. */
  static async open(options: NatsQueueOptions): Promise<NatsQueue> {
    const { stream, consumer, timeoutMs = TIMEOUT_MS } = options
    if (![stream, consumer].every((name) => /^[^\s.*>/\\]{1,255}$/.test(name))) {
      throw new UsageError('The name of a stream or a consumer holds characters that no name has.')
    }
    const core = await import('@nats-io/transport-node')
    const jetstream = await import('@nats-io/jetstream')
    let nats: NatsConnection | undefined
    try {
      nats = await core.connect({
        servers: [...options.servers],
        name: 'tidemark',
        timeout: timeoutMs,
        maxReconnectAttempts: -1,
        ...(options.user !== undefined && { user: options.user }),
        ...(options.password !== undefined && { pass: options.password }),
        ...(options.token !== undefined && { token: options.token }),
      })
      const manager = await jetstream.jetstreamManager(nats, { checkAPI: false, timeout: timeoutMs })
      const info = (): Promise<ConsumerInfo> => manager.consumers.info(stream, consumer)
      const ackWaitMs = ackWaitOf(await info())
      const connection = { nats, createInbox: () => core.createInbox() }
      return new NatsQueue(options, { connection, info, ackWaitMs })
    } catch (thrown) {
      await nats?.close()
      throw classify(thrown)
    }
  }

  async receive(options: {
    max: number
    waitMs: number
    signal: AbortSignal
  }): Promise<readonly QueueMessage[]> {
    const { signal } = options
    signal.throwIfAborted()
    const batch = Math.min(Math.max(1, options.max), RECEIVE_MAX)
    const there = await this.#pull({ batch, waitMs: 0, signal })
    if (there.length > 0 || options.waitMs <= 0) return there
    // Of several that are waited for, the first would wait for the last.
    return await this.#pull({ batch: 1, waitMs: Math.min(options.waitMs, WAIT_MS_MAX), signal })
  }

  async extend(messages: readonly QueueMessage[], visibleAfterMs: number): Promise<readonly ExtendResult[]> {
    const nowMs = this.#options.clock.now()
    return await Promise.all(
      messages.map(async (message): Promise<ExtendResult> => {
        if (!this.#isHeld(message, nowMs)) return 'lost'
        const isBack = visibleAfterMs <= 0
        if (!(await this.#tell(message, isBack ? '-NAK' : '+WPI'))) return 'lost'
        if (isBack) this.#heldUntilMs.delete(message.receipt)
        else this.#hold(message.receipt, nowMs + this.#ackWaitMs)
        return 'extended'
      }),
    )
  }

  async acknowledge(messages: readonly QueueMessage[]): Promise<readonly AcknowledgeResult[]> {
    const nowMs = this.#options.clock.now()
    return await Promise.all(
      messages.map(async (message): Promise<AcknowledgeResult> => {
        const isLate = !this.#isHeld(message, nowMs)
        // Also what is late: it may be that nobody has it yet.
        const isTold = await this.#tell(message, '+ACK')
        this.#heldUntilMs.delete(message.receipt)
        return isTold && !isLate ? 'acknowledged' : 'lost'
      }),
    )
  }

  async depth(): Promise<QueueDepth> {
    try {
      const { num_pending, num_ack_pending } = await this.#info()
      return { waiting: num_pending, inFlight: num_ack_pending, oldestAgeMs: null }
    } catch (thrown) {
      throw classify(thrown)
    }
  }

  async close(): Promise<void> {
    await this.#connection.nats.close()
  }

  async #pull(request: { batch: number; waitMs: number; signal: AbortSignal }): Promise<QueueMessage[]> {
    const { nats, createInbox } = this.#connection
    const { stream, consumer, clock, timeoutMs = TIMEOUT_MS } = this.#options
    const { batch, waitMs, signal } = request
    const inbox = createInbox()
    const messages: QueueMessage[] = []
    let subscription: Subscription | undefined
    let cancel = (): void => undefined
    let onAbort = (): void => undefined
    try {
      return await new Promise((resolve, reject) => {
        onAbort = () => reject(signal.reason)
        signal.addEventListener('abort', onAbort, { once: true })
        // A server that is lost while we wait says nothing; what it may have given is given again.
        cancel = clock.timer(waitMs + timeoutMs, () => resolve(messages), { keepAlive: true })
        subscription = nats.subscribe(inbox, {
          callback: (error, message) => {
            if (error) return reject(classify(error))
            const failed = statusOf(message)
            if (failed !== undefined) return failed === 'end' ? resolve(messages) : reject(failed)
            messages.push(this.#messageOf(message))
            if (messages.length === batch) resolve(messages)
          },
        })
        const wait = waitMs > 0 ? { expires: Math.ceil(waitMs) * NS_PER_MS } : { no_wait: true }
        const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`
        nats.publish(subject, JSON.stringify({ batch, ...wait }), { reply: inbox })
      })
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      throw classify(thrown)
    } finally {
      cancel()
      signal.removeEventListener('abort', onAbort)
      subscription?.unsubscribe()
    }
  }

  #messageOf(message: Msg): QueueMessage {
    const nowMs = this.#options.clock.now()
    const receipt = message.reply ?? ''
    const { id, deliveries, sentAtMs } = readReceipt(receipt)
    const attributes: Record<string, string> = { subject: message.subject }
    for (const name of message.headers?.keys() ?? []) {
      attributes[name.toLowerCase()] = message.headers?.get(name) ?? ''
    }
    const visibleAtMs = nowMs + this.#ackWaitMs - Math.min(TRANSIT_MS_MAX, this.#ackWaitMs / 10)
    this.#hold(receipt, visibleAtMs)
    return { id, receipt, body: message.data, attributes, deliveries, sentAtMs, visibleAtMs }
  }

  /** False where nobody is there any more to be told. */
  async #tell({ receipt }: QueueMessage, what: '+ACK' | '-NAK' | '+WPI'): Promise<boolean> {
    const { timeoutMs = TIMEOUT_MS } = this.#options
    try {
      await this.#connection.nats.request(receipt, what, { timeout: timeoutMs })
      return true
    } catch (thrown) {
      if (isNobodyThere(thrown)) return false
      throw classify(thrown)
    }
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

/** The shortest of those that hold for some delivery. */
function ackWaitOf({ config }: ConsumerInfo): number {
  if (config.deliver_subject) {
    throw new UsageError('The consumer pushes its messages; a pull consumer is needed.', {
      code: 'queue-push',
    })
  }
  if (config.ack_policy !== 'explicit') {
    throw new UsageError('The consumer does not wait for acknowledgements: give it the policy "explicit".', {
      code: 'queue-unacknowledged',
    })
  }
  const waits = config.backoff?.length ? config.backoff : [config.ack_wait ?? ACK_WAIT_MS * NS_PER_MS]
  return Math.min(...waits) / NS_PER_MS
}

/** `end` where there is nothing more, an error where something is wrong, undefined where it is a message. */
function statusOf(message: Msg): 'end' | Error | undefined {
  const { headers } = message
  if (message.data.length > 0 || !headers || headers.code === 0) return undefined
  return statusError(headers.code, headers.description) ?? 'end'
}

/**
 * `$JS.ACK.stream.consumer.delivered.sequence.…`, with a domain and an account in front of the stream on newer servers.
 */
function readReceipt(receipt: string): { id: string; deliveries: number | null; sentAtMs: number | null } {
  const parts = receipt.split('.')
  const at = parts.length >= 11 ? 4 : 2
  const [stream, , deliveries, sequence, , sentNs] = parts.slice(at)
  return {
    id: `${stream}:${sequence}`,
    deliveries: /^\d{1,15}$/.test(deliveries ?? '') ? Number(deliveries) : null,
    sentAtMs: /^\d{1,20}$/.test(sentNs ?? '') ? Number(BigInt(sentNs!) / BigInt(NS_PER_MS)) : null,
  }
}
