/**
 * The alert board: what holds now, who was told, and when. Each condition of each target is sent at most once an
 * hour over all processes (the ledger keeps the time), again at once only when it gets worse.
 *
 *   quiet ──raise──▶ raised (sent, or silent within the hour) ──clear, or nobody raises it any more──▶ quiet
 *
 * - A process clears what it raised itself, and what whoever raised it has not confirmed for `STALE_MS`.
 * - A critical alert that becomes a warning stays critical for an hour, so that a value that swings around its
 *   threshold does not send each time.
 * - While the ledger is away this process keeps the hour by itself: that very trouble is worth an alert.
 * - A sink that fails never hurts: a few tries in the background, then a note.
 */
import type { Clock } from '../../base/clock.ts'
import { redactText } from '../../base/redaction.ts'
import type { NewAlert } from '../../ledger/alerts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { AlertDelivery, type AlertSink } from './alert-delivery.ts'
import type { AlertVerdict } from './alert-rules.ts'
import type { EventStream } from './events.ts'

export type { AlertSink } from './alert-delivery.ts'

export const QUIET_MS = 3_600_000
/** An alert that nobody confirms for this long is over; boards confirm every minute or so. */
export const STALE_MS = 15 * 60_000
const RAISED_MAX = 1_000

export type AlertBoardOptions = {
  ledger: Pick<Ledger, 'now' | 'raiseAlert' | 'clearAlert' | 'alerts'>
  clock: Clock
  events: EventStream
  sinks?: readonly AlertSink[]
  quietMs?: number
  /** A sink that gave up, or a ledger that could not be asked. */
  onError?: (error: unknown, doing: string) => void
}

type Raised = { alert: NewAlert; criticalAt: number; sentAt: number }

export class AlertBoard {
  readonly #options: AlertBoardOptions
  readonly #quietMs: number
  readonly #delivery: AlertDelivery
  readonly #raised = new Map<string, Raised>()

  constructor(options: AlertBoardOptions) {
    this.#options = options
    this.#quietMs = options.quietMs ?? QUIET_MS
    this.#delivery = new AlertDelivery({
      clock: options.clock,
      sinks: options.sinks ?? [],
      onError: (error, sink) => options.onError?.(error, `send an alert to ${sink}`),
    })
  }

  /** What holds according to this process. */
  get raised(): NewAlert[] {
    return [...this.#raised.values()].map(({ alert }) => alert)
  }

  /** Raises what a look around found and clears what it no longer found. Never throws. */
  async update({ alerts, covers }: AlertVerdict): Promise<void> {
    const held = new Set(alerts.map(keyOf))
    for (const alert of alerts) await this.raise(alert)
    const covered = (condition: string): boolean => (covers as ReadonlySet<string>).has(condition)
    for (const [key, { alert }] of [...this.#raised]) {
      if (covered(alert.condition) && !held.has(key)) await this.clear(alert.condition, alert.target)
    }
    await this.#clearStale((alert) => covered(alert.condition) && !held.has(keyOf(alert)))
  }

  /** True if it was sent: new, worse than before, or silent for an hour. Never throws. */
  async raise(wanted: NewAlert): Promise<boolean> {
    const { ledger, events } = this.#options
    const now = ledger.now()
    const known = this.#raised.get(keyOf(wanted))
    const alert = {
      ...wanted,
      text: redactText(wanted.text),
      severity: this.#heldSeverity(wanted, known, now),
    }
    const due = await this.#isDue(alert, known, now)
    this.#remember({
      alert,
      criticalAt: wanted.severity === 'critical' ? now : (known?.criticalAt ?? Number.NEGATIVE_INFINITY),
      sentAt: due ? now : (known?.sentAt ?? Number.NEGATIVE_INFINITY),
    })
    if (!due) return false
    events.emit({ type: 'alert', what: 'raised', ...alert })
    this.#delivery.send({ ...alert, at: now })
    return true
  }

  /** True if it was raised. Never throws. */
  async clear(condition: string, target: string): Promise<boolean> {
    const { ledger, events, onError } = this.#options
    const key = keyOf({ condition, target })
    const known = this.#raised.get(key)
    try {
      const cleared = await ledger.clearAlert(condition, target)
      this.#raised.delete(key)
      if (cleared && known) events.emit({ type: 'alert', what: 'cleared', ...known.alert })
      return cleared
    } catch (error) {
      // Still remembered: the next update tries again.
      onError?.(error, `clear the alert ${condition}`)
      return false
    }
  }

  /** Waits a while for alerts that are on their way. */
  close(options: { graceMs?: number } = {}): Promise<void> {
    return this.#delivery.close(options)
  }

  async #isDue(alert: NewAlert, known: Raised | undefined, now: number): Promise<boolean> {
    const { ledger, onError } = this.#options
    const worse = known?.alert.severity === 'warning' && alert.severity === 'critical'
    try {
      const due = await ledger.raiseAlert(alert, this.#quietMs)
      // What was sent while the ledger was away counts, too.
      return due && (worse || !known || now - known.sentAt >= this.#quietMs)
    } catch (error) {
      onError?.(error, `note the alert ${alert.condition}`)
      return worse || !known || now - known.sentAt >= this.#quietMs
    }
  }

  #heldSeverity(alert: NewAlert, known: Raised | undefined, now: number): NewAlert['severity'] {
    return known && now - known.criticalAt < this.#quietMs ? 'critical' : alert.severity
  }

  #remember(raised: Raised): void {
    const key = keyOf(raised.alert)
    const oldest = this.#raised.keys().next().value
    if (!this.#raised.has(key) && this.#raised.size >= RAISED_MAX && oldest !== undefined)
      this.#raised.delete(oldest)
    this.#raised.set(key, raised)
  }

  async #clearStale(isOver: (alert: NewAlert) => boolean): Promise<void> {
    const { ledger, events, onError } = this.#options
    try {
      const before = ledger.now() - STALE_MS
      for (const alert of await ledger.alerts()) {
        if (alert.last_at >= before || !isOver(alert)) continue
        const { condition, target, severity, text } = alert
        if (await ledger.clearAlert(condition, target)) {
          events.emit({ type: 'alert', what: 'cleared', condition, target, severity, text })
        }
      }
    } catch (error) {
      onError?.(error, 'look through old alerts')
    }
  }
}

function keyOf({ condition, target }: Pick<NewAlert, 'condition' | 'target'>): string {
  return `${condition} ${target}`
}
