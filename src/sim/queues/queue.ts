/**
 * A queue of the simulated cloud, whichever protocol speaks of it: an SQS queue, or a subscription of Pub/Sub.
 *
 * A message is visible, or hidden (delivered and not yet acknowledged, delayed, or held), or has left the queue:
 *
 *   sent ──▶ visible ◀──time, or given back── hidden ──acknowledged──▶ left
 *               └────────── received ────────────▲
 *   visible, and received too often ──▶ left (dead-lettered); older than the retention ──▶ left (expired)
 *
 * Invariants:
 * - every message ever sent stays in `messages` with what became of it
 * - only the newest receipt of a message extends or acknowledges it
 * - of an ordered group nothing is delivered while one of it is hidden, and what comes back goes to its old place
 * - time is the clock's: nothing becomes visible or expires by itself, but before the next look at the queue
 */
import type { Clock } from '../../base/clock.ts'

export type QueueAttribute = { type: string; value: string }

export type QueueSettings = {
  visibilityMs: number
  delayMs: number
  retentionMs: number
  /** Groups are delivered in order, and repeated sendings are dropped. */
  isOrdered: boolean
  /** Identity of a sending without a dedup id is its body. */
  isByContent: boolean
  /** How long a message can be kept hidden from its delivery on. */
  heldMsMax: number | null
  deadLetter: { queue: DeadLetters; receivesMax: number } | null
}

/** Where messages go that were received too often. */
export type DeadLetters = { name: string; acceptDead(message: SimMessage, from: string): void }

export type SentMessage = {
  /** Of whoever sends to several queues at once. */
  id?: string
  body: string
  attributes?: Readonly<Record<string, QueueAttribute>>
  group?: string
  dedupId?: string
  delayMs?: number
}

export type MessageOutcome = 'waiting' | 'acknowledged' | 'dead-lettered' | 'expired' | 'purged'

/** One that was sent, and what became of it. */
export type SimMessage = {
  readonly id: string
  /** Rises with every message of the queue. */
  readonly sequence: number
  readonly body: string
  readonly attributes: Readonly<Record<string, QueueAttribute>>
  readonly group: string | null
  readonly dedupId: string | null
  readonly sentAtMs: number
  /** Where it died before it came here. */
  readonly from: string | null
  readonly receives: { receipt: string; atMs: number; by: string }[]
  /** Hidden until then. */
  visibleAtMs: number
  outcome: MessageOutcome
  outcomeAtMs: number | null
  outcomeBy: string | null
}

export type ReceiveOptions = { max: number; waitMs: number; visibilityMs?: number; by: string }

export type ExtendOutcome = 'extended' | 'unknown' | 'stale' | 'visible' | 'too-long'
export type AcknowledgeOutcome = 'acknowledged' | 'unknown' | 'stale' | 'expired'

const DEDUP_MS = 5 * 60_000

type Waiter = { options: ReceiveOptions; resolve(taken: SimMessage[]): void }

export class SimQueue {
  readonly name: string
  readonly settings: QueueSettings
  /** Every one ever sent, in the order of sending. */
  readonly messages: SimMessage[] = []
  /** Sendings that were dropped as repetitions. */
  repeated = 0
  readonly #clock: Clock
  readonly #newId: () => string
  #visible: SimMessage[] = []
  readonly #hidden = new Set<SimMessage>()
  readonly #byReceipt = new Map<string, SimMessage>()
  readonly #byId = new Map<string, SimMessage>()
  readonly #dedup = new Map<string, { message: SimMessage; atMs: number }>()
  #waiters: Waiter[] = []
  /** Nothing becomes visible or expires before. */
  #dueMs = Number.POSITIVE_INFINITY
  #cancelTimer: (() => void) | undefined
  #sequence = 0

  constructor(name: string, options: { clock: Clock; newId: () => string; settings: QueueSettings }) {
    this.name = name
    this.settings = options.settings
    this.#clock = options.clock
    this.#newId = options.newId
  }

  send(input: SentMessage): SimMessage {
    const nowMs = this.#clock.now()
    const dedup = this.#dedupKey(input)
    const earlier = dedup === undefined ? undefined : this.#dedup.get(dedup)
    if (earlier && nowMs - earlier.atMs < DEDUP_MS) {
      this.repeated += 1
      return earlier.message
    }
    const message = this.#add(input, { id: input.id ?? this.#newId(), sentAtMs: nowMs, from: null })
    if (dedup !== undefined) this.#dedup.set(dedup, { message, atMs: nowMs })
    this.#wake()
    return message
  }

  /** At most `max`, as soon as there is one; none when the time is over or the caller has gone. */
  receive(options: ReceiveOptions, gone: AbortSignal): Promise<SimMessage[]> | SimMessage[] {
    const taken = this.#take(options)
    if (taken.length > 0 || options.waitMs <= 0 || gone.aborted) return taken
    return new Promise((resolve) => {
      const end = (result: SimMessage[]): void => {
        cancel()
        gone.removeEventListener('abort', onGone)
        this.#waiters = this.#waiters.filter((one) => one !== waiter)
        if (this.#waiters.length === 0) this.#disarm()
        resolve(result)
      }
      const onGone = (): void => end([])
      const waiter: Waiter = { options, resolve: end }
      const cancel = this.#clock.timer(options.waitMs, () => end([]), { keepAlive: true })
      gone.addEventListener('abort', onGone, { once: true })
      this.#waiters.push(waiter)
      this.#arm()
    })
  }

  /** Hidden for so long from now on; 0 gives it back at once. */
  extend(receipt: string, ms: number): ExtendOutcome {
    this.#sweep()
    const message = this.#byReceipt.get(receipt)
    if (!message) return 'unknown'
    const last = message.receives.at(-1)
    if (message.outcome !== 'waiting' || last?.receipt !== receipt) return 'stale'
    const nowMs = this.#clock.now()
    if (!this.#hidden.has(message)) return 'visible'
    const { heldMsMax } = this.settings
    if (heldMsMax !== null && nowMs + ms > last.atMs + heldMsMax) return 'too-long'
    this.#hide(message, nowMs + ms)
    this.#wake()
    return 'extended'
  }

  acknowledge(receipt: string, by: string): AcknowledgeOutcome {
    this.#sweep()
    const message = this.#byReceipt.get(receipt)
    if (!message) return 'unknown'
    if (message.receives.at(-1)?.receipt !== receipt) return 'stale'
    if (message.outcome !== 'waiting') return 'acknowledged'
    if (this.settings.isOrdered && !this.#hidden.has(message)) return 'expired'
    this.#leave(message, 'acknowledged', by)
    // The next of its group may be what somebody waits for.
    this.#wake()
    return 'acknowledged'
  }

  /** With the id and the time of sending that it had. */
  acceptDead({ body, attributes, group, dedupId, id, sentAtMs }: SimMessage, from: string): void {
    const copy: SentMessage = { body, attributes, delayMs: 0 }
    if (group !== null) copy.group = group
    if (dedupId !== null) copy.dedupId = dedupId
    this.#add(copy, { id, sentAtMs, from })
    this.#wake()
  }

  purge(by: string): void {
    for (const message of [...this.#visible, ...this.#hidden]) this.#leave(message, 'purged', by)
  }

  /** `waiting` can be received now, `delayed` were never delivered yet. */
  depth(): { waiting: number; inFlight: number; delayed: number; oldestSentAtMs: number | null } {
    this.#sweep()
    let inFlight = 0
    let oldest = Number.POSITIVE_INFINITY
    for (const { receives, sentAtMs } of this.#hidden) {
      if (receives.length > 0) inFlight += 1
      oldest = Math.min(oldest, sentAtMs)
    }
    for (const { sentAtMs } of this.#visible) oldest = Math.min(oldest, sentAtMs)
    return {
      waiting: this.#visible.length,
      inFlight,
      delayed: this.#hidden.size - inFlight,
      oldestSentAtMs: oldest === Number.POSITIVE_INFINITY ? null : oldest,
    }
  }

  /** As it is now, by its id. */
  message(id: string): SimMessage | undefined {
    this.#sweep()
    return this.#byId.get(id)
  }

  /** As if its time were over: visible again, and the receipt good for nothing any more. */
  expireReceipt(id: string): boolean {
    const message = this.message(id)
    const last = message?.receives.at(-1)
    if (!message || !last || message.outcome !== 'waiting') return false
    // Known as a receipt of the message, and not as its newest.
    last.receipt = `${last.receipt}-expired`
    this.#hide(message, this.#clock.now())
    this.#wake()
    return true
  }

  /** Nobody gets it for so long, whatever they do. */
  hide(id: string, ms: number): boolean {
    const message = this.message(id)
    if (message?.outcome !== 'waiting') return false
    this.#hide(message, this.#clock.now() + ms)
    return true
  }

  #add(input: SentMessage, origin: Pick<SimMessage, 'id' | 'sentAtMs' | 'from'>): SimMessage {
    const nowMs = this.#clock.now()
    this.#sequence += 1
    const message: SimMessage = {
      ...origin,
      sequence: this.#sequence,
      body: input.body,
      attributes: input.attributes ?? {},
      group: input.group ?? null,
      dedupId: input.dedupId ?? null,
      receives: [],
      visibleAtMs: nowMs + (input.delayMs ?? this.settings.delayMs),
      outcome: 'waiting',
      outcomeAtMs: null,
      outcomeBy: null,
    }
    this.messages.push(message)
    this.#byId.set(message.id, message)
    this.#dueMs = Math.min(this.#dueMs, message.sentAtMs + this.settings.retentionMs)
    if (message.visibleAtMs > nowMs) this.#hide(message, message.visibleAtMs)
    else this.#visible.push(message)
    return message
  }

  #take({ max, visibilityMs = this.settings.visibilityMs, by }: ReceiveOptions): SimMessage[] {
    this.#sweep()
    if (this.#visible.length === 0) return []
    const nowMs = this.#clock.now()
    const taken = this.#pick(max)
    for (const message of taken) {
      const receipt = receiptOf(this.name, message)
      message.receives.push({ receipt, atMs: nowMs, by })
      this.#byReceipt.set(receipt, message)
      if (visibilityMs > 0) this.#moveToHidden(message, nowMs + visibilityMs)
      else this.#visible.push(message)
    }
    if (visibilityMs <= 0) this.#sortOrdered()
    return taken
  }

  /** Takes them out of what is visible. */
  #pick(max: number): SimMessage[] {
    const { isOrdered, deadLetter } = this.settings
    const blocked = new Set<string | null>()
    if (isOrdered) for (const { group } of this.#hidden) blocked.add(group)
    const taken: SimMessage[] = []
    const kept: SimMessage[] = []
    let at = 0
    for (; at < this.#visible.length && taken.length < max; at++) {
      const message = this.#visible[at]!
      if (isOrdered && blocked.has(message.group)) kept.push(message)
      else if (deadLetter && message.receives.length >= deadLetter.receivesMax)
        this.#die(message, deadLetter.queue)
      else taken.push(message)
    }
    // Without a copy of all that wait, of which there may be a hundred thousand.
    if (kept.length === 0) this.#visible.splice(0, at)
    else this.#visible = [...kept, ...this.#visible.slice(at)]
    return taken
  }

  #die(message: SimMessage, to: DeadLetters): void {
    message.outcome = 'dead-lettered'
    message.outcomeAtMs = this.#clock.now()
    to.acceptDead(message, this.name)
  }

  #leave(message: SimMessage, outcome: MessageOutcome, by: string): void {
    message.outcome = outcome
    message.outcomeAtMs = this.#clock.now()
    message.outcomeBy = by
    if (!this.#hidden.delete(message)) this.#visible = this.#visible.filter((one) => one !== message)
  }

  #hide(message: SimMessage, untilMs: number): void {
    if (!this.#hidden.has(message)) this.#visible = this.#visible.filter((one) => one !== message)
    this.#moveToHidden(message, untilMs)
  }

  #moveToHidden(message: SimMessage, untilMs: number): void {
    message.visibleAtMs = untilMs
    this.#hidden.add(message)
    this.#dueMs = Math.min(this.#dueMs, untilMs)
  }

  /** Lets come back what is due and go what is too old. A look at every message only when something is due. */
  #sweep(): void {
    const nowMs = this.#clock.now()
    if (nowMs < this.#dueMs) return
    let dueMs = Number.POSITIVE_INFINITY
    for (const message of this.#hidden) {
      if (message.visibleAtMs > nowMs) dueMs = Math.min(dueMs, message.visibleAtMs)
      else {
        this.#hidden.delete(message)
        this.#visible.push(message)
      }
    }
    const { retentionMs } = this.settings
    const kept: SimMessage[] = []
    for (const message of this.#visible) {
      const endMs = message.sentAtMs + retentionMs
      if (endMs > nowMs) {
        kept.push(message)
        dueMs = Math.min(dueMs, endMs)
      } else {
        message.outcome = 'expired'
        message.outcomeAtMs = nowMs
      }
    }
    this.#visible = kept
    this.#dueMs = dueMs
    this.#sortOrdered()
  }

  #sortOrdered(): void {
    if (this.settings.isOrdered) this.#visible.sort((one, other) => one.sequence - other.sequence)
  }

  #wake(): void {
    for (const waiter of [...this.#waiters]) {
      const taken = this.#take(waiter.options)
      if (taken.length === 0) break
      waiter.resolve(taken)
    }
    this.#arm()
  }

  /** While somebody waits, what comes back by time must be noticed. */
  #arm(): void {
    this.#disarm()
    if (this.#waiters.length === 0 || this.#dueMs === Number.POSITIVE_INFINITY) return
    this.#cancelTimer = this.#clock.timer(Math.max(1, this.#dueMs - this.#clock.now()), () => this.#wake())
  }

  #disarm(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  #dedupKey({ body, dedupId }: SentMessage): string | undefined {
    const { isOrdered, isByContent } = this.settings
    if (!isOrdered) return undefined
    return dedupId ?? (isByContent ? body : undefined)
  }
}

/** Opaque to clients, and another one for every delivery. */
function receiptOf(queue: string, { id, receives }: SimMessage): string {
  return `AQEB${Buffer.from(`${queue} ${id} ${receives.length + 1}`).toString('base64')}`
}
