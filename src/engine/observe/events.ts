/**
 * The engine's event stream: what happened, in order, for whoever listens (logs, metrics, a live page).
 *
 * Events are numbered, and the last ones are kept, so that a listener that was away can ask for what it missed.
 * Nobody listening costs next to nothing: `wants` is asked before an event about a single job is made.
 */
import type { Clock } from '../../base/clock.ts'
import type { JobError } from '../../ledger/contract.ts'

export type JobHappening =
  | 'started'
  | 'done'
  | 'skipped'
  | 'retried'
  | 'postponed'
  | 'failed'
  | 'canceled'
  | 'split'
  | 'stalled'
  | 'lost'

export type EngineEvent =
  | {
      type: 'job'
      what: JobHappening
      id: number
      kind: string
      stream: string | null
      attempt: number
      ms?: number
      error?: JobError
      detail?: string
    }
  | { type: 'mark'; stream: string; mark: string; position: number }
  | { type: 'bad'; stream: string | null; kind: string; item: string; reason: string }
  | { type: 'lease'; what: 'lost' | 'reclaimed'; owner: number; jobs: number }
  | {
      type: 'budget'
      what: 'throttled' | 'rate'
      name: string
      rate: number | null
      pausedUntil: number | null
    }
  | {
      type: 'alert'
      what: 'raised' | 'cleared'
      condition: string
      target: string
      severity: 'warning' | 'critical'
      text: string
    }
  | { type: 'pause'; what: 'paused' | 'resumed'; scope: string; target: string; code: string; reason: string }
  | { type: 'ledger'; what: 'down' | 'up'; detail: string }
  | { type: 'schedule'; name: string; jobId: number }
  /** What an app has to say to the log; `code` is the sort of it, of which many may come. */
  | { type: 'note'; app: string; level: 'info' | 'warn'; code: string; text: string }
  | {
      type: 'engine'
      what: 'started' | 'stopping' | 'stopped' | 'listener-failed'
      owner: number
      detail?: string
    }

export type NumberedEvent = EngineEvent & { seq: number; at: number }
export type EventListener = (event: NumberedEvent) => void

const KEPT_MAX = 1_000
const TROUBLE: ReadonlySet<JobHappening> = new Set(['retried', 'failed', 'split', 'stalled', 'lost'])

export class EventStream {
  readonly #clock: Clock
  readonly #listeners = new Set<{ fn: EventListener; jobs: boolean | 'troubled' }>()
  readonly #kept: NumberedEvent[] = []
  #seq = 0
  #jobListeners = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Events about single jobs come by the ten thousand: `jobs: false` leaves them out, `'troubled'` keeps those
   * about jobs that did not go well, which are made in any case.
   */
  on(fn: EventListener, options: { jobs?: boolean | 'troubled' } = {}): () => void {
    const entry = { fn, jobs: options.jobs ?? true }
    this.#listeners.add(entry)
    if (entry.jobs === true) this.#jobListeners += 1
    return () => {
      if (this.#listeners.delete(entry) && entry.jobs === true) this.#jobListeners -= 1
    }
  }

  get wantsJobs(): boolean {
    return this.#jobListeners > 0
  }

  emit(event: EngineEvent): void {
    const numbered = { ...event, seq: ++this.#seq, at: this.#clock.now() } as NumberedEvent
    this.#kept.push(numbered)
    if (this.#kept.length > KEPT_MAX * 2) this.#kept.splice(0, KEPT_MAX)
    for (const listener of this.#listeners) {
      const wanted =
        event.type !== 'job' || listener.jobs === true || (listener.jobs && TROUBLE.has(event.what))
      if (wanted) this.#tell(listener, numbered)
    }
  }

  /** A listener that throws is broken: it hears nothing more, the others hear that, and the work goes on. */
  #tell(listener: { fn: EventListener; jobs: boolean | 'troubled' }, event: NumberedEvent): void {
    try {
      listener.fn(event)
    } catch (thrown) {
      this.#listeners.delete(listener)
      if (listener.jobs === true) this.#jobListeners -= 1
      const detail = thrown instanceof Error ? thrown.message : String(thrown)
      this.emit({ type: 'engine', what: 'listener-failed', owner: 0, detail })
    }
  }

  /** What came after `seq`; undefined if some of it is no longer kept. */
  since(seq: number): NumberedEvent[] | undefined {
    const first = this.#kept[0]
    if (first && seq < first.seq - 1) return undefined
    return this.#kept.filter((event) => event.seq > seq)
  }
}
