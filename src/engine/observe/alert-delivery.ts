/**
 * Carries alerts to where people see them. Everything happens in the background and is bounded: so many alerts on
 * their way, so many tries, so long for each. What cannot be delivered is reported and dropped.
 */
import type { CancelTimer, Clock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { NewAlert } from '../../ledger/alerts.ts'

export type SentAlert = NewAlert & { at: number }

export type AlertSink = {
  name: string
  /** Must give up when the signal aborts. A `permanent` error is not tried again. */
  send: (alert: SentAlert, signal: AbortSignal) => Promise<void>
}

export type AlertDeliveryOptions = {
  clock: Clock
  sinks: readonly AlertSink[]
  onError: (error: unknown, sink: string) => void
}

export const DELIVERY_WAITS_MS = [1_000, 10_000] as const
export const DELIVERY_TIMEOUT_MS = 10_000
const UNDER_WAY_MAX = 100
const CLOSE_GRACE_MS = 5_000

export class AlertDelivery {
  readonly #options: AlertDeliveryOptions
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<void>>()

  constructor(options: AlertDeliveryOptions) {
    this.#options = options
  }

  send(alert: SentAlert): void {
    const { sinks, onError } = this.#options
    for (const sink of sinks) {
      if (this.#underWay.size >= UNDER_WAY_MAX || this.#closing.signal.aborted) {
        onError(new TidemarkError('too many alerts are on their way', { kind: 'transient' }), sink.name)
        continue
      }
      const delivery = this.#deliver(sink, alert)
        .catch((error: unknown) => onError(error, sink.name))
        .finally(() => this.#underWay.delete(delivery))
      this.#underWay.add(delivery)
    }
  }

  async close({ graceMs = CLOSE_GRACE_MS }: { graceMs?: number } = {}): Promise<void> {
    const cancel = this.#options.clock.timer(graceMs, () => this.#closing.abort(), { keepAlive: true })
    await Promise.all(this.#underWay)
    cancel()
    this.#closing.abort()
  }

  async #deliver(sink: AlertSink, alert: SentAlert): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        return await this.#once(sink, alert)
      } catch (error) {
        const waitMs = DELIVERY_WAITS_MS[tries]
        const lasting = error instanceof TidemarkError && error.kind === 'permanent'
        if (waitMs === undefined || lasting || this.#closing.signal.aborted) throw error
        await this.#wait(waitMs)
      }
    }
  }

  async #once(sink: AlertSink, alert: SentAlert): Promise<void> {
    const attempt = new AbortController()
    const signal = AbortSignal.any([attempt.signal, this.#closing.signal])
    let cancel: CancelTimer = () => {}
    // A sink that ignores its signal is left behind.
    const gaveUp = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      const late = new TidemarkError(`no answer within ${DELIVERY_TIMEOUT_MS / 1_000} s`, {
        kind: 'transient',
      })
      cancel = this.#options.clock.timer(DELIVERY_TIMEOUT_MS, () => attempt.abort(late))
    })
    try {
      await Promise.race([sink.send(alert, signal), gaveUp])
    } finally {
      cancel()
    }
  }

  /** Ends early when closing: then the next try is the last. */
  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.timer(ms, resolve)
      this.#closing.signal.addEventListener(
        'abort',
        () => {
          cancel()
          resolve()
        },
        { once: true },
      )
    })
  }
}

export type WebhookOptions = {
  url: string
  fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Who is speaking: the name of the installation. */
  from?: string
}

/** Posts JSON with a `text` that chat services show as it is. The address is a secret and never named. */
export function webhookSink({ url, fetch, from = 'tidemark' }: WebhookOptions): AlertSink {
  return {
    name: 'the webhook',
    async send({ at, ...alert }, signal) {
      const body = JSON.stringify({ from, ...alert, at: new Date(at).toISOString() })
      let answer: Response
      try {
        answer = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
          signal,
          // Followed, a redirect would carry the alert to wherever it points.
          redirect: 'manual',
        })
      } catch (cause) {
        throw new TidemarkError('the webhook could not be reached', { kind: 'transient', cause })
      }
      await answer.body?.cancel()
      if (answer.ok) return
      const again = answer.status === 408 || answer.status === 429 || answer.status >= 500
      throw new TidemarkError(`the webhook answered ${answer.status}`, {
        kind: again ? 'transient' : 'permanent',
      })
    },
  }
}
