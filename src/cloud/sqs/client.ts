/**
 * A queue of SQS. The SDK is loaded with the first call; nothing of it is known outside this folder.
 *
 * Invariants:
 * - nothing is asked for that SQS would refuse: waits up to 20 s, ten messages, a visibility from 0 to 43,200 s that ends
 *   within 12 hours from the receipt
 * - `visibleAtMs` is never later than what SQS goes by
 * - a batch answers for each of its entries; what failed at SQS itself makes the whole call fail, which can be repeated
 */
import type { SQSClient } from '@aws-sdk/client-sqs'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { type AwsAccess, awsConfig } from '../aws/credentials.ts'
import type {
  AcknowledgeResult,
  ExtendResult,
  Queue,
  QueueDepth,
  QueueLimits,
  QueueMessage,
} from '../queue.ts'
import { classify, isLostReceipt } from './errors.ts'

export type SqsQueueOptions = AwsAccess & {
  queueUrl: string
  clock: Clock
  /** How long what is received is invisible to others. */
  visibilityMs?: number
  /** Silence of the connection, on top of a wait that was asked for. */
  timeoutMs?: number
}

type Sdk = { sdk: typeof import('@aws-sdk/client-sqs'); client: SQSClient }
type Entry = { Id: string; ReceiptHandle: string }
type Failure = { Id?: string | undefined; Code?: string | undefined; Message?: string | undefined }

const VISIBILITY_MS = 180_000
const TIMEOUT_MS = 10_000
const BATCH_MAX = 10
const WAIT_MS_MAX = 20_000
const HELD_MS_MAX = 43_200_000
/** The last second of the 12 hours is not asked for: SQS counts from a moment that we know only roughly. */
const HELD_MARGIN_MS = 1_000
/** What is subtracted from a deadline for the way of the answer. */
const TRANSIT_MS = 2_000
/** SQS has 120,000 in flight at most. */
const RECEIPTS_MAX = 120_000

export class SqsQueue implements Queue {
  readonly limits: QueueLimits = {
    receiveMax: BATCH_MAX,
    waitMsMax: WAIT_MS_MAX,
    extendMsMax: HELD_MS_MAX,
    heldMsMax: HELD_MS_MAX,
  }
  readonly #options: SqsQueueOptions
  #sdk: Promise<Sdk> | undefined
  /** When each receipt was given, for the 12 hours. */
  readonly #receivedAtMs = new Map<string, number>()

  constructor(options: SqsQueueOptions) {
    this.#options = options
  }

  async receive(options: {
    max: number
    waitMs: number
    signal: AbortSignal
  }): Promise<readonly QueueMessage[]> {
    const { clock, queueUrl } = this.#options
    const visibilityS = seconds(this.#options.visibilityMs ?? VISIBILITY_MS, HELD_MS_MAX)
    const askedAtMs = clock.now()
    const answer = await this.#call(options.signal, ({ sdk, client }, abort) =>
      client.send(
        new sdk.ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: Math.min(Math.max(1, options.max), BATCH_MAX),
          WaitTimeSeconds: seconds(options.waitMs, WAIT_MS_MAX),
          VisibilityTimeout: visibilityS,
          MessageSystemAttributeNames: ['All'],
          MessageAttributeNames: ['All'],
        }),
        abort,
      ),
    )
    const receivedAtMs = Math.max(askedAtMs, clock.now() - TRANSIT_MS)
    return (answer.Messages ?? []).flatMap((message) => {
      if (message.ReceiptHandle === undefined) return []
      this.#remember(message.ReceiptHandle, receivedAtMs)
      const { MessageId, Body, Attributes, MessageAttributes, ReceiptHandle } = message
      const attributes: Record<string, string> = {}
      for (const [name, value] of Object.entries(Attributes ?? {})) attributes[name.toLowerCase()] = value
      for (const [name, { StringValue }] of Object.entries(MessageAttributes ?? {})) {
        if (StringValue !== undefined) attributes[name.toLowerCase()] = StringValue
      }
      return {
        id: MessageId ?? ReceiptHandle,
        receipt: ReceiptHandle,
        body: Buffer.from(Body ?? '', 'utf8'),
        attributes,
        deliveries: countOf(Attributes?.ApproximateReceiveCount),
        sentAtMs: countOf(Attributes?.SentTimestamp),
        visibleAtMs: receivedAtMs + visibilityS * 1_000,
      }
    })
  }

  async extend(messages: readonly QueueMessage[], visibleAfterMs: number): Promise<readonly ExtendResult[]> {
    const nowMs = this.#options.clock.now()
    const results = await this.#batches(messages, async (sdk, entries) => {
      const asked: (Entry & { VisibilityTimeout: number })[] = []
      const tooOld: Failure[] = []
      for (const entry of entries) {
        const receivedAtMs = this.#receivedAtMs.get(entry.ReceiptHandle) ?? nowMs
        const leftMs = receivedAtMs + HELD_MS_MAX - HELD_MARGIN_MS - nowMs
        if (leftMs <= 0) tooOld.push({ Id: entry.Id, Code: 'MessageNotInflight' })
        else asked.push({ ...entry, VisibilityTimeout: seconds(visibleAfterMs, leftMs) })
      }
      if (asked.length === 0) return tooOld
      const answer = await sdk.client.send(
        new sdk.sdk.ChangeMessageVisibilityBatchCommand({
          QueueUrl: this.#options.queueUrl,
          Entries: asked,
        }),
      )
      return [...tooOld, ...(answer.Failed ?? [])]
    })
    return results.map((isDone) => (isDone ? 'extended' : 'lost'))
  }

  async acknowledge(messages: readonly QueueMessage[]): Promise<readonly AcknowledgeResult[]> {
    const results = await this.#batches(messages, async (sdk, entries) => {
      const answer = await sdk.client.send(
        new sdk.sdk.DeleteMessageBatchCommand({ QueueUrl: this.#options.queueUrl, Entries: entries }),
      )
      return answer.Failed ?? []
    })
    for (const { receipt } of messages) this.#receivedAtMs.delete(receipt)
    return results.map((isDone) => (isDone ? 'acknowledged' : 'lost'))
  }

  async depth(): Promise<QueueDepth> {
    const answer = await this.#call(undefined, ({ sdk, client }) =>
      client.send(
        new sdk.GetQueueAttributesCommand({
          QueueUrl: this.#options.queueUrl,
          AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'],
        }),
      ),
    )
    return {
      waiting: countOf(answer.Attributes?.ApproximateNumberOfMessages),
      inFlight: countOf(answer.Attributes?.ApproximateNumberOfMessagesNotVisible),
      oldestAgeMs: null,
    }
  }

  async close(): Promise<void> {
    const sdk = await this.#sdk
    sdk?.client.destroy()
  }

  /** Whether each of the messages was done with; false where its receipt is lost. */
  async #batches(
    messages: readonly QueueMessage[],
    send: (sdk: Sdk, entries: Entry[]) => Promise<readonly Failure[]>,
  ): Promise<boolean[]> {
    const results: boolean[] = []
    for (let from = 0; from < messages.length; from += BATCH_MAX) {
      const entries = messages
        .slice(from, from + BATCH_MAX)
        .map(({ receipt }, at) => ({ Id: String(at), ReceiptHandle: receipt }))
      const failed = await this.#call(undefined, (sdk) => send(sdk, entries))
      const lost = failed.filter(({ Code }) => isLostReceipt(Code))
      const unclear = failed.find((failure) => !lost.includes(failure))
      if (unclear) {
        const name = unclear.Code ?? ''
        const status = /Throttl|Limit/i.test(name) ? 429 : 500
        const cause = { name, message: unclear.Message ?? '', $metadata: { httpStatusCode: status } }
        throw classify(cause, this.#options.clock.now())
      }
      for (const { Id, ReceiptHandle } of entries) {
        const isLost = lost.some((failure) => failure.Id === Id)
        if (isLost) this.#receivedAtMs.delete(ReceiptHandle)
        results.push(!isLost)
      }
    }
    return results
  }

  async #call<T>(
    signal: AbortSignal | undefined,
    fn: (sdk: Sdk, abort: { abortSignal?: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted()
    this.#sdk ??= this.#load()
    const sdk = await this.#sdk
    try {
      return await fn(sdk, signal ? { abortSignal: signal } : {})
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason
      throw thrown instanceof TidemarkError ? thrown : classify(thrown, this.#options.clock.now())
    }
  }

  async #load(): Promise<Sdk> {
    const sdk = await import('@aws-sdk/client-sqs')
    const timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS
    const client = new sdk.SQSClient({
      ...awsConfig(this.#options),
      requestHandler: {
        connectionTimeout: timeoutMs,
        requestTimeout: WAIT_MS_MAX + timeoutMs,
        throwOnRequestTimeout: true,
      },
    })
    return { sdk, client }
  }

  #remember(receipt: string, atMs: number): void {
    this.#receivedAtMs.set(receipt, atMs)
    if (this.#receivedAtMs.size <= RECEIPTS_MAX) return
    const [oldest] = this.#receivedAtMs.keys()
    if (oldest !== undefined) this.#receivedAtMs.delete(oldest)
  }
}

/** Whole seconds that are no more than asked for, except that a part of a second is not nothing. */
function seconds(ms: number, msMax: number): number {
  const boundMs = Math.min(Math.max(0, ms), msMax)
  return boundMs > 0 ? Math.max(1, Math.floor(boundMs / 1_000)) : 0
}

function countOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null
}
