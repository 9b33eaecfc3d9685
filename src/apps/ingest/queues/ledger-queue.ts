/**
 * A queue without any service: the inbox of one pipeline, in the ledger's database. What is pushed over HTTP or dropped
 * into a folder is durable from the commit on, and read by the same coordinator as every other queue.
 *
 * Invariants are those of the inbox (store/inbox.ts). Times are those of the ledger, by which all processes go.
 */
import type { Clock } from '../../../base/clock.ts'
import type {
  AcknowledgeResult,
  ExtendResult,
  Queue,
  QueueDepth,
  QueueLimits,
  QueueMessage,
} from '../../../cloud/queue.ts'
import type { Delivery, InboxRow, InboxTables } from '../store/inbox.ts'

export type LedgerQueueOptions = {
  inbox: InboxTables
  pipeline: string
  clock: Clock
  /** How long what is received is invisible to others. */
  visibilityMs?: number
  /** What other processes put in is looked for this often. */
  pollMs?: number
}

const VISIBILITY_MS = 180_000
const POLL_MS = 500
const DAY_MS = 86_400_000

export class LedgerQueue implements Queue {
  readonly limits: QueueLimits = {
    receiveMax: 100,
    waitMsMax: 60_000,
    extendMsMax: DAY_MS,
    heldMsMax: null,
  }
  readonly #options: LedgerQueueOptions

  constructor(options: LedgerQueueOptions) {
    this.#options = options
  }

  async receive(options: {
    max: number
    waitMs: number
    signal: AbortSignal
  }): Promise<readonly QueueMessage[]> {
    const { inbox, pipeline, clock, pollMs = POLL_MS } = this.#options
    const max = Math.min(Math.max(1, options.max), this.limits.receiveMax)
    const untilMs = clock.monotonicMs() + Math.min(Math.max(0, options.waitMs), this.limits.waitMsMax)
    for (;;) {
      options.signal.throwIfAborted()
      // Before it is looked, so that what comes in between wakes as well.
      const arrival = this.#arrival(options.signal)
      try {
        if (await inbox.hasVisible(pipeline)) {
          const messages = await this.#take(max)
          if (messages.length > 0) return messages
        }
        const leftMs = untilMs - clock.monotonicMs()
        if (leftMs <= 0) return []
        await arrival.within(Math.min(leftMs, pollMs))
      } finally {
        arrival.end()
      }
    }
  }

  async extend(messages: readonly QueueMessage[], visibleAfterMs: number): Promise<readonly ExtendResult[]> {
    const { inbox } = this.#options
    const forMs = Math.min(Math.max(0, visibleAfterMs), this.limits.extendMsMax)
    const done = await inbox.extend(messages.map(deliveryOf), inbox.ledger.now() + forMs)
    if (forMs === 0) inbox.arrived()
    return done.map((isDone) => (isDone ? 'extended' : 'lost'))
  }

  async acknowledge(messages: readonly QueueMessage[]): Promise<readonly AcknowledgeResult[]> {
    const done = await this.#options.inbox.acknowledge(messages.map(deliveryOf))
    return done.map((isDone) => (isDone ? 'acknowledged' : 'lost'))
  }

  async depth(): Promise<QueueDepth> {
    const { inbox, pipeline } = this.#options
    const { waiting, inFlight, oldestAt } = await inbox.depth(pipeline)
    const oldestAgeMs = oldestAt === null ? null : Math.max(0, inbox.ledger.now() - oldestAt)
    return { waiting, inFlight, oldestAgeMs }
  }

  async close(): Promise<void> {}

  async #take(max: number): Promise<QueueMessage[]> {
    const { inbox, pipeline, clock, visibilityMs = VISIBILITY_MS } = this.#options
    const ledgerMs = inbox.ledger.now()
    const readerMs = clock.now()
    const rows = await inbox.receive(pipeline, { max, visibleAtMs: ledgerMs + visibilityMs })
    return rows.map((row) => messageOf(row, readerMs + visibilityMs))
  }

  #arrival(signal: AbortSignal): { within(ms: number): Promise<void>; end(): void } {
    const { inbox, clock } = this.#options
    let hasCome = false
    let wake = (): void => {
      hasCome = true
    }
    const stop = inbox.onArrival(() => wake())
    const onAbort = (): void => wake()
    signal.addEventListener('abort', onAbort, { once: true })
    return {
      within: (ms) =>
        new Promise((resolve) => {
          if (hasCome || signal.aborted) return resolve()
          const cancel = clock.timer(ms, resolve, { keepAlive: true })
          wake = () => {
            cancel()
            resolve()
          }
        }),
      end: () => {
        stop()
        signal.removeEventListener('abort', onAbort)
      },
    }
  }
}

function messageOf(row: InboxRow, visibleAtMs: number): QueueMessage {
  return {
    id: String(row.id),
    receipt: `${row.id}:${row.deliveries}`,
    body: row.body,
    attributes: JSON.parse(row.attributes) as Record<string, string>,
    deliveries: row.deliveries,
    sentAtMs: row.sent_at,
    visibleAtMs,
  }
}

/** One that cannot be read is of no delivery. */
function deliveryOf({ receipt }: QueueMessage): Delivery {
  const match = /^(\d{1,15}):(\d{1,15})$/.exec(receipt)
  return match ? { id: Number(match[1]), deliveries: Number(match[2]) } : { id: -1, deliveries: -1 }
}
