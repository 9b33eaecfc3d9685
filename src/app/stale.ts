/**
 * Notices sources that have gone silent: their service was not heard for longer than their own schedule lets expect, or
 * nothing of what is open moves although it could. For the alert "stale"; how long is too long is the rule's to say.
 *
 * What counts is what this process has watched: a sign is taken from the ledger, and the silence is counted from when it
 * was seen to change. So a source has its full time again after a start, after a pause, after its service has throttled
 * it, and after the machine has slept.
 *
 *   unwatched ──begin──▶ watched ──a sign changes, a pause, a throttle, a gap between two looks──▶ watched anew
 */
import type { Clock } from '../base/clock.ts'
import { asTidemarkError } from '../base/errors.ts'
import type { Engine } from '../engine/engine.ts'
import type { AnyJobKind } from '../engine/job-kind.ts'
import type { AlertInputs } from '../engine/observe/alert-rules.ts'
import type { PauseRow } from '../ledger/control.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { StreamStatus } from '../ledger/queries.ts'
import { needsOf } from './look.ts'
import type { OpenApp } from './runtime.ts'
import type { Source, Sources } from './sources.ts'

/** Streams are summed up for it, which takes a while where there are very many segments. */
export const LOOK_MS = 120_000
/** Looks that are further apart mean that the machine slept, or that its clock was set. */
export const GAP_MS = 3 * LOOK_MS
/** Of those that wait: enough to find one that could run. */
const PENDING_SEEN = 50

export type StaleInput = NonNullable<AlertInputs['stale']>[number]

export type StaleWatchOptions = {
  ledger: Ledger
  clock: Clock
  apps: ReadonlyMap<string, Pick<OpenApp, 'sources' | 'needs'>>
  engine: () => Pick<Engine, 'limits' | 'kinds' | 'events'> | undefined
}

type Sign = { value: string; sinceMs: number }

export class StaleWatch {
  readonly #options: StaleWatchOptions
  readonly #signs = new Map<string, Sign>()
  #isBegun = false
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #last: StaleInput[] | undefined

  constructor(options: StaleWatchOptions) {
    this.#options = options
  }

  /** From now on sources are followed here. Who brings one up to date once knows nothing of the others. */
  begin(): void {
    this.#isBegun = true
  }

  /**
   * Undefined where nothing is watched, or where it cannot be told: then nothing is said. An app that fails here must not
   * keep the other alerts from being raised.
   */
  async look(): Promise<readonly StaleInput[] | undefined> {
    if (!this.#isBegun) return undefined
    const nowMs = this.#options.clock.now()
    const sinceLastMs = nowMs - this.#lookedAtMs
    if (sinceLastMs >= 0 && sinceLastMs < LOOK_MS) return this.#last
    if (sinceLastMs < 0 || sinceLastMs > GAP_MS) this.#signs.clear()
    this.#lookedAtMs = nowMs
    this.#last = await this.#lookAround(nowMs).catch((thrown: unknown) => {
      const text = `Whether sources have gone silent cannot be told just now: ${asTidemarkError(thrown).message}`
      this.#options.engine()?.events.emit({ type: 'note', app: 'alerts', level: 'warn', code: 'stale', text })
      return undefined
    })
    return this.#last
  }

  async #lookAround(nowMs: number): Promise<StaleInput[]> {
    const { ledger, apps } = this.#options
    const pauses = await ledger.pauses()
    const rows = new Map((await ledger.streams()).map((row) => [row.name, row]))
    const needs = new Set((await needsOf(apps.values())).map(({ stream }) => stream))
    const progress = await this.#progressByStream()
    const found: StaleInput[] = []
    const seen = new Set<string>()
    for (const { sources } of apps.values()) {
      const everyMs = sources.pollMs?.()
      if (everyMs === undefined) continue
      for (const source of await sources.list()) {
        const row = rows.get(source.stream)
        if (!row || isPaused(pauses, source, sources) || this.#isThrottled(source, sources)) continue
        // One that is taken out at this moment is not there any more; the next look does not list it.
        const heardAtMs = await sources.heardAtMs?.(source).catch(() => undefined)
        const moved = `${row.mark_at} ${row.listed} ${accounted(row)} ${progress.get(source.stream) ?? ''}`
        const keys = { heard: `heard ${source.stream}`, moved: `moved ${source.stream}` }
        seen.add(keys.heard).add(keys.moved)
        const unheardMs = this.#unchangedMs(keys.heard, `${heardAtMs} ${moved}`, nowMs)
        const unmovedMs = this.#unchangedMs(keys.moved, moved, nowMs)
        const about = { stream: source.stream, name: source.name, everyMs, ...whyOf(sources, source) }
        // Where neither is the case any more, that nothing is heard says it all.
        const isStuck =
          (heardAtMs === undefined || unmovedMs > unheardMs) &&
          isOpen(row) &&
          !needs.has(source.stream) &&
          (await this.#canRun(source, pauses))
        if (isStuck) found.push({ ...about, what: 'moved', quietMs: unmovedMs, heardAtMs: heardAtMs ?? null })
        else if (heardAtMs !== undefined)
          found.push({ ...about, what: 'heard', quietMs: unheardMs, heardAtMs })
      }
    }
    for (const key of this.#signs.keys()) if (!seen.has(key)) this.#signs.delete(key)
    return found
  }

  #unchangedMs(key: string, value: string, nowMs: number): number {
    const known = this.#signs.get(key)
    if (known?.value === value) return nowMs - known.sinceMs
    this.#signs.set(key, { value, sinceMs: nowMs })
    return 0
  }

  /** A large file that is on its way for hours counts nothing, and moves. */
  async #progressByStream(): Promise<Map<string, string>> {
    const texts = new Map<string, string>()
    for (const { stream, id, progress } of await this.#options.ledger.heldJobs()) {
      if (stream !== null) texts.set(stream, `${texts.get(stream) ?? ''} ${id} ${progress}`)
    }
    return texts
  }

  /** A budget that its own jobs wait for is closed: the service has answered, and said to wait. */
  #isThrottled({ stream }: Source, { kinds = new Set() }: Sources): boolean {
    const engine = this.#options.engine()
    if (!engine) return false
    const nowMs = this.#options.clock.now()
    const closed = engine.limits
      .snapshot()
      .budgets.filter(({ pausedUntilMs, rate }) => pausedUntilMs > nowMs || rate === 0)
    if (closed.length === 0) return false
    const own = new Set([...kinds].map((kind) => budgetOf(engine.kinds.find(kind), stream)))
    return closed.some(({ name }) => own.has(name))
  }

  /** Something waits for nothing but a worker. What waits for its hour waits rightly. */
  async #canRun({ stream }: Source, pauses: readonly PauseRow[]): Promise<boolean> {
    const { ledger } = this.#options
    const pausedKinds = new Set(pauses.filter(({ scope }) => scope === 'kind').map(({ target }) => target))
    const pending = await ledger.jobs({ stream, state: 'pending', limit: PENDING_SEEN })
    if (pending.some(({ wait, kind }) => wait === null && !pausedKinds.has(kind))) return true
    return (await ledger.jobs({ stream, state: 'claimed', limit: 1 })).length > 0
  }
}

function budgetOf(kind: AnyJobKind | undefined, stream: string): string | undefined {
  if (typeof kind?.budget !== 'function') return kind?.budget
  try {
    return kind.budget(stream)
  } catch {
    // Of an account that is not there any more; its jobs are held back, and an alert of its own says so.
    return undefined
  }
}

function isPaused(pauses: readonly PauseRow[], { stream }: Source, { kinds }: Sources): boolean {
  return pauses.some(
    ({ scope, target }) =>
      scope === 'all' ||
      (scope === 'stream' && target === stream) ||
      (scope === 'kind' && kinds?.has(target) === true),
  )
}

const accounted = ({ stored, gone, skipped, bad }: StreamStatus): number =>
  [stored, gone, skipped, bad].reduce((sum, n) => sum + Number(n), 0)

const isOpen = ({ segments, settled_segments }: StreamStatus): boolean =>
  Number(segments) > Number(settled_segments)

function whyOf(sources: Sources, source: Source): { why?: string } {
  const why = sources.obstacle?.(source)?.error.message
  return why === undefined ? {} : { why }
}
