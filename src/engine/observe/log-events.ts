/**
 * Turns the engine's events into log lines: trouble as warnings, what a person wants to know as info, single jobs
 * as debug. A flood of one sort of trouble (ten thousand failing jobs) becomes a few lines and a count.
 */
import { formatCount, formatDuration } from '../../base/format.ts'
import type { EventStream, JobHappening, NumberedEvent } from './events.ts'
import type { LogFields, Logger, LogLevel } from './log.ts'

/** Lines about single jobs or items of one sort, per minute; the rest is counted. */
export const FLOOD_LINES_MAX = 20
const FLOOD_MS = 60_000
const FLOODS_MAX = 1_000
/** While the ledger is away, everything that needs it fails several times a second: it is said this often. */
export const AWAY_AGAIN_MS = 60_000

type Line = {
  level: LogLevel
  message: string
  fields?: LogFields
  /** Lines of one sort that may come by the thousand. */
  flood?: string
}

/** Returns how to stop. Jobs that go well are followed only if the level asks for them when this is called. */
export function logEvents(events: EventStream, logger: Logger): () => void {
  const floods = new FloodGate(logger)
  const outage = new Outage()
  const jobs = logger.enabled(JOB_LEVELS.done) || ('troubled' as const)
  const stop = events.on(
    (event) => {
      // These come by the ten thousand: no text is made for a line that nobody will see.
      if (event.type === 'job' && !logger.enabled(JOB_LEVELS[event.what])) return
      const line = event.type === 'ledger' ? outage.lineOf(event) : lineOf(event)
      if (!line || !logger.enabled(line.level)) return
      const { level, message, fields, flood } = line
      if (flood === undefined || floods.passes(flood, event.at)) logger.log(level, message, fields)
      if (event.type === 'engine' && event.what === 'stopped') floods.flush()
    },
    { jobs },
  )
  return () => {
    stop()
    floods.flush()
  }
}

/** States: there → away (said at once, then once a minute) → there (said once, with how long it took). */
class Outage {
  #away: { sinceMs: number; saidMs: number } | undefined
  #isSaidBack = false

  lineOf(event: Of<'ledger'>): Line | undefined {
    const away = this.#away
    if (event.what === 'up') {
      this.#away = undefined
      // Each part of the engine that waited for it says so.
      if (!away && this.#isSaidBack) return undefined
      this.#isSaidBack = true
      return away
        ? { level: 'info', message: `the ledger is back, after ${formatDuration(event.at - away.sinceMs)}` }
        : lineOf(event)
    }
    if (!away) {
      this.#away = { sinceMs: event.at, saidMs: event.at }
      return lineOf(event)
    }
    if (event.at - away.saidMs < AWAY_AGAIN_MS) return undefined
    away.saidMs = event.at
    const forText = formatDuration(event.at - away.sinceMs)
    return { level: 'warn', message: `the ledger is still away, for ${forText} by now: ${event.detail}` }
  }
}

type Flood = { sinceMs: number; lines: number; unsaid: number }

class FloodGate {
  readonly #logger: Logger
  readonly #floods = new Map<string, Flood>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  passes(sort: string, atMs: number): boolean {
    let flood = this.#floods.get(sort)
    if (!flood || atMs - flood.sinceMs >= FLOOD_MS || atMs < flood.sinceMs) {
      this.#sayRest(sort)
      if (this.#floods.size >= FLOODS_MAX) this.flush()
      flood = { sinceMs: atMs, lines: 0, unsaid: 0 }
      this.#floods.set(sort, flood)
    }
    flood.lines += 1
    if (flood.lines <= FLOOD_LINES_MAX) return true
    flood.unsaid += 1
    return false
  }

  flush(): void {
    for (const sort of this.#floods.keys()) this.#sayRest(sort)
    this.#floods.clear()
  }

  #sayRest(sort: string): void {
    const unsaid = this.#floods.get(sort)?.unsaid ?? 0
    if (unsaid > 0) this.#logger.warn(`${sort}: ${formatCount(unsaid)} more within a minute`)
  }
}

const JOB_LEVELS: Record<JobHappening, LogLevel> = {
  started: 'debug',
  done: 'debug',
  skipped: 'debug',
  retried: 'debug',
  postponed: 'debug',
  canceled: 'debug',
  split: 'debug',
  failed: 'warn',
  stalled: 'warn',
  lost: 'warn',
}

export function lineOf(event: NumberedEvent): Line {
  switch (event.type) {
    case 'job':
      return jobLine(event)
    case 'mark':
      return { level: 'debug', message: `the mark of ${event.stream} moved to ${event.mark}` }
    case 'bad': {
      const of = event.stream === null ? '' : ` of ${event.stream}`
      const message = `isolated the bad item ${event.item}${of}: ${event.reason}`
      return { level: 'warn', message, fields: { kind: event.kind }, flood: `bad items of ${event.kind}` }
    }
    case 'lease':
      return leaseLine(event)
    case 'budget':
      return budgetLine(event)
    case 'alert':
      return alertLine(event)
    case 'pause': {
      const what = event.scope === 'all' ? 'everything' : `the ${event.scope} ${event.target}`
      const reason = event.reason && event.what === 'paused' ? `: ${event.reason}` : ''
      return { level: 'info', message: `${event.what} ${what}${reason}` }
    }
    case 'ledger':
      return event.what === 'down'
        ? { level: 'warn', message: `the ledger is away: ${event.detail}` }
        : { level: 'info', message: `the ledger is back: ${event.detail}` }
    case 'schedule':
      return { level: 'info', message: `the schedule ${event.name} fired`, fields: { job: event.jobId } }
    case 'note': {
      const { app, level, code, text } = event
      return { level, message: `${app}: ${text}`, fields: { code }, flood: `${app} ${code}` }
    }
    case 'engine': {
      const detail = event.detail === undefined ? '' : `: ${event.detail}`
      return {
        level: 'info',
        message: `the engine is ${event.what}${detail}`,
        fields: { owner: event.owner },
      }
    }
  }
}

type Of<Type extends NumberedEvent['type']> = Extract<NumberedEvent, { type: Type }>

function jobLine(event: Of<'job'>): Line {
  const { what, id, kind, stream, attempt, ms, error, detail } = event
  const reason = error?.message ?? detail
  const level = JOB_LEVELS[what]
  return {
    level,
    message: `job #${id} ${kind} ${WORDS[what]}${reason ? `: ${reason}` : ''}`,
    fields: {
      ...(stream === null ? {} : { stream }),
      attempt,
      ...(ms === undefined ? {} : { ms: Math.round(ms * 10) / 10 }),
      ...(error ? { errorKind: error.kind } : {}),
    },
    flood: level === 'debug' ? undefined : `${kind} ${WORDS[what]}`,
  }
}

const WORDS: Record<JobHappening, string> = {
  started: 'started',
  done: 'is done',
  skipped: 'was skipped',
  retried: 'will be tried again',
  postponed: 'was postponed',
  canceled: 'was canceled',
  split: 'was split',
  failed: 'failed for good',
  stalled: 'made no progress and was stopped',
  lost: 'was taken over by another process',
}

function leaseLine({ what, owner, jobs }: Of<'lease'>): Line {
  const count = `${formatCount(jobs)} ${jobs === 1 ? 'job' : 'jobs'}`
  return what === 'lost'
    ? { level: 'warn', message: `lost the lease of ${count}: others run them now`, fields: { owner } }
    : { level: 'warn', message: `took back ${count} from a process that is gone`, fields: { owner } }
}

function budgetLine({ what, name, rate, pausedUntil, at }: Of<'budget'>): Line {
  const pause =
    pausedUntil !== null && pausedUntil > at ? ` and paused it for ${formatDuration(pausedUntil - at)}` : ''
  const allowed = rate === null ? undefined : `${formatCount(rate)} units/s`
  return what === 'throttled'
    ? {
        level: 'info',
        message: `${name} throttled us${pause}`,
        fields: allowed === undefined ? undefined : { rate: allowed },
        flood: `${name} throttled us`,
      }
    : { level: 'debug', message: `the rate of ${name} is now ${allowed}` }
}

function alertLine({ what, condition, target, severity, text }: Of<'alert'>): Line {
  const fields = { condition, ...(target ? { target } : {}), severity }
  if (what === 'cleared') return { level: 'info', message: `over: ${text}`, fields }
  return { level: severity === 'critical' ? 'error' : 'warn', message: text, fields }
}
