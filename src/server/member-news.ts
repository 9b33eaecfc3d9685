/**
 * What members are told live: that something of theirs has changed, and not what. They ask for it then, by the routes
 * that are for them.
 *
 * The events of the server only say when to look. What is looked at is the member's own (how far their accounts are),
 * under the access of that moment, and only if that has changed are they told. So an event that is about others tells a
 * member nothing, not even that it happened: nothing is sent, and what is sent has no number to count others by.
 */
import type { CancelTimer, Clock } from '../base/clock.ts'
import { fingerprint } from './etag.ts'
import type { EventHub } from './event-hub.ts'

export const NEWS_MS_MIN = 2_000
/** Before a look there is a pause of at least so many times as long as the last one took. */
const REST_FACTOR = 10

export type MemberNewsOptions = {
  hub: EventHub
  clock: Clock
  /** All that a member's pages show of how things are; looked up anew each time. */
  stateOf: (userId: number) => Promise<unknown>
}

type Watched = {
  listeners: Set<() => void>
  /** Undefined before the first look: whoever comes is told once, since their page may be older than that look. */
  seen: string | undefined
  cancel: CancelTimer | undefined
  isLooking: boolean
  isStale: boolean
  tookMs: number
}

export class MemberNews {
  readonly #options: MemberNewsOptions
  readonly #users = new Map<number, Watched>()
  #unsubscribe: (() => void) | undefined

  constructor(options: MemberNewsOptions) {
    this.#options = options
  }

  /** All pages of one user share a look. */
  watch(userId: number, tell: () => void): () => void {
    const watched = this.#users.get(userId) ?? {
      listeners: new Set(),
      seen: undefined,
      cancel: undefined,
      isLooking: false,
      isStale: false,
      tookMs: 0,
    }
    this.#users.set(userId, watched)
    const listener = (): void => tell()
    watched.listeners.add(listener)
    watched.seen = undefined
    this.#unsubscribe ??= this.#options.hub.subscribe(() => {
      for (const [id, one] of this.#users) this.#lookSoon(id, one)
    })
    this.#lookSoon(userId, watched)
    return () => {
      watched.listeners.delete(listener)
      if (watched.listeners.size === 0) this.#forget(userId, watched)
    }
  }

  close(): void {
    for (const [userId, watched] of this.#users) this.#forget(userId, watched)
  }

  #forget(userId: number, watched: Watched): void {
    watched.cancel?.()
    watched.cancel = undefined
    watched.listeners.clear()
    if (this.#users.get(userId) === watched) this.#users.delete(userId)
    if (this.#users.size > 0) return
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  /** Of many events at once, one look; of events during a look, one more. */
  #lookSoon(userId: number, watched: Watched): void {
    watched.isStale = true
    if (watched.cancel || watched.isLooking || watched.listeners.size === 0) return
    const restMs = Math.max(NEWS_MS_MIN, watched.tookMs * REST_FACTOR)
    watched.cancel = this.#options.clock.timer(restMs, () => {
      watched.cancel = undefined
      void this.#look(userId, watched)
    })
  }

  async #look(userId: number, watched: Watched): Promise<void> {
    const { clock } = this.#options
    const fromMs = clock.monotonicMs()
    watched.isLooking = true
    watched.isStale = false
    try {
      const print = fingerprint(await this.#options.stateOf(userId))
      if (print !== watched.seen) for (const tell of watched.listeners) tell()
      watched.seen = print
    } catch {
      // What cannot be looked up is not told; the next event makes for another look.
    } finally {
      watched.isLooking = false
      watched.tookMs = clock.monotonicMs() - fromMs
    }
    if (watched.isStale) this.#lookSoon(userId, watched)
  }
}
