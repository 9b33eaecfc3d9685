/**
 * A queue of another service, as three functions: receive, extend visibility, acknowledge. Every client of one
 * implements this, and is held to it by one suite.
 */

/**
 * Any queue that delivers at least once. Everything else that a service can do is left alone: correctness rests on
 * shards, not on the queue.
 */
export interface Queue {
  readonly limits: QueueLimits
  /** Waits up to `waitMs` for at least one message; none is no error. What is received is invisible to others. */
  receive(options: { max: number; waitMs: number; signal: AbortSignal }): Promise<readonly QueueMessage[]>
  /**
   * Others do not get these before `visibleAfterMs` from now, as far as `limits` allow; 0 gives them back at once. Each
   * answers for itself: a receipt that is not valid any more, or held for as long as it can be, is `lost`, and no error.
   * A call that fails may be repeated as a whole, and so may `acknowledge`.
   */
  extend(messages: readonly QueueMessage[], visibleAfterMs: number): Promise<readonly ExtendResult[]>
  /** Removes them for good. Removing one that is gone is no error; `lost` where the receipt is too old to tell. */
  acknowledge(messages: readonly QueueMessage[]): Promise<readonly AcknowledgeResult[]>
  /** How many wait, as far as the service tells. */
  depth(): Promise<QueueDepth>
  close(): Promise<void>
}

export type ExtendResult = 'extended' | 'lost'
export type AcknowledgeResult = 'acknowledged' | 'lost'

export type QueueDepth = { waiting: number | null; inFlight: number | null; oldestAgeMs: number | null }

export type QueueLimits = {
  /** Messages in one call. */
  receiveMax: number
  /** A longer wait is cut to this. */
  waitMsMax: number
  /** The longest extension that the service grants at once. */
  extendMsMax: number
  /** From the first receipt on, whatever is extended; null where there is no such end. SQS: 12 hours. */
  heldMsMax: number | null
}

export type QueueMessage = {
  /** Of the queue; the same when it is delivered again, where the service does that. */
  id: string
  /** What this delivery is acknowledged by. */
  receipt: string
  body: Uint8Array
  /** Attributes and headers, names in lower case. */
  attributes: Readonly<Record<string, string>>
  /** How often it was delivered, this time included; null where the service does not tell. */
  deliveries: number | null
  sentAtMs: number | null
  /** Until when it is invisible to others if nobody extends that, by the reader's clock. */
  visibleAtMs: number
}
