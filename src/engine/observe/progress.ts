/**
 * The live picture of what is running, in memory: how far each job got, a sentence for people, and when it will be
 * done. Durable counts are the ledger's; what is here is gone with the process.
 *
 * A job is on the board from `start`, or its first report, to `end`. Invariants: at most one entry per job, `done` never above a known
 * total as shown, `lastProgressAt` moves only when something really changed.
 */
import type { Clock } from '../../base/clock.ts'
import { formatBytes, formatCount } from '../../base/format.ts'
import { type Eta, type EtaQuestion, estimate, RateMeter } from './eta.ts'

export type ProgressUnit = 'bytes' | 'items'

export type ProgressReport = { done?: number; total?: number; unit?: ProgressUnit; label?: string }

export type StartedJob = { id: number; kind: string; stream: string | null } & ProgressReport

export type JobProgress = {
  id: number
  kind: string
  stream: string | null
  label: string | null
  done: number
  /** Null while nobody knows. */
  total: number | null
  unit: ProgressUnit
  startedAt: number
  lastProgressAt: number
}

/** "downloading 3 files": the verb of what is running and what it is about. */
export type KindWords = { verb: string; noun: string; plural?: string }

export type ProgressWords = {
  describe: (kind: string) => KindWords | undefined
  waiting: number
}

export class ProgressBoard {
  readonly #clock: Clock
  readonly #jobs = new Map<number, JobProgress>()
  readonly #meters = new Map<string, RateMeter>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#jobs.size
  }

  start({ id, kind, stream, ...report }: StartedJob): void {
    const now = this.#clock.now()
    this.#jobs.set(id, {
      id,
      kind,
      stream,
      label: report.label ?? null,
      done: amount(report.done) ?? 0,
      total: amount(report.total) ?? null,
      unit: report.unit ?? 'items',
      startedAt: now,
      lastProgressAt: now,
    })
  }

  /** True if it was news: the same numbers again are no progress, only a word without numbers is a sign of life. */
  update(id: number, report: ProgressReport): boolean {
    const job = this.#jobs.get(id)
    if (!job) return false
    const done = amount(report.done) ?? job.done
    const total = amount(report.total) ?? job.total
    const unit = report.unit ?? job.unit
    const label = report.label ?? job.label
    const moved = done !== job.done || total !== job.total || unit !== job.unit || label !== job.label
    if (!moved && report.done !== undefined) return false
    if (unit === job.unit && done > job.done)
      this.#meter(job.kind, unit).add(done - job.done, this.#clock.monotonicMs())
    Object.assign(job, { done, total, unit, label, lastProgressAt: this.#clock.now() })
    return true
  }

  /** Like `update`, for a job that need not be on the board yet: most jobs end without ever reporting. */
  report(job: Pick<StartedJob, 'id' | 'kind' | 'stream'>, report: ProgressReport): boolean {
    if (!this.#jobs.has(job.id)) this.start(job)
    return this.update(job.id, report)
  }

  /** `items`: what was settled with it; what it had reported of them is not counted twice. */
  end({ id, kind }: { id: number; kind: string }, { items }: { items: number }): void {
    const job = this.#jobs.get(id)
    if (job) this.#jobs.delete(id)
    const reported = job?.unit === 'items' ? Math.min(job.done, items) : 0
    if (items > reported) this.#meter(kind, 'items').add(items - reported, this.#clock.monotonicMs())
  }

  /** Oldest first. */
  running(): JobProgress[] {
    return [...this.#jobs.values()].map((job) => ({ ...job }))
  }

  summary(words: ProgressWords): string {
    return summarize(this.#jobs.values(), words)
  }

  /** When `remaining` of the kind will be done, at the rate at which its work has been going here. */
  eta(kind: string, unit: ProgressUnit, question: Omit<EtaQuestion, 'rate'>): Eta {
    return estimate({ ...question, rate: this.#meter(kind, unit).measured(this.#clock.monotonicMs()) })
  }

  #meter(kind: string, unit: ProgressUnit): RateMeter {
    const key = `${kind} ${unit}`
    let meter = this.#meters.get(key)
    if (!meter) {
      meter = new RateMeter(this.#clock.monotonicMs())
      this.#meters.set(key, meter)
    }
    return meter
  }
}

/** What else is running is summed up. */
const GROUPS_MAX = 4

type Group = { words: KindWords; jobs: number; things: number; bytes: number }

/** `things`: how many of what its kind is about the job is about; one, if left out. */
export type RunningJob = Pick<JobProgress, 'kind' | 'done' | 'total' | 'unit'> & { things?: number }

/** `downloading 3 files (2.1 GB), uploading 5 (340 MB), 12 waiting`. */
export function summarize(running: Iterable<RunningJob>, { describe, waiting }: ProgressWords): string {
  const groups = new Map<string, Group>()
  for (const { kind, done, total, unit, things = 1 } of running) {
    const words = describe(kind) ?? { verb: 'running', noun: kind, plural: kind }
    const key = `${words.verb} ${words.noun}`
    const group = groups.get(key) ?? { words, jobs: 0, things: 0, bytes: 0 }
    group.jobs += 1
    group.things += things
    if (unit === 'bytes') group.bytes += Math.max(total ?? 0, done)
    groups.set(key, group)
  }
  const all = [...groups.values()]
  const parts = all.slice(0, GROUPS_MAX).map((group, i) => groupText(group, all[i - 1]))
  const others = all.slice(GROUPS_MAX).reduce((jobs, group) => jobs + group.jobs, 0)
  if (others > 0) parts.push(`${formatCount(others)} other ${others === 1 ? 'job' : 'jobs'}`)
  if (waiting > 0) parts.push(`${formatCount(waiting)} waiting`)
  return parts.join(', ') || 'idle'
}

const nounOf = (words: KindWords, things: number): string =>
  things === 1 ? words.noun : (words.plural ?? pluralOf(words.noun))

/** `Fetching 25 messages`, `Listing a slice`: of one job. A kind without words is called by its name. */
export function workText(
  words: KindWords | undefined,
  { kind, things }: { kind: string; things: number },
): string {
  if (!words) return kind
  const one = `${/^[aeiou]/i.test(words.noun) ? 'an' : 'a'} ${words.noun}`
  const text = `${words.verb} ${things > 1 ? `${formatCount(things)} ${nounOf(words, things)}` : one}`
  return text[0]!.toUpperCase() + text.slice(1)
}

function groupText({ words, things, bytes }: Group, before: Group | undefined): string {
  const noun = nounOf(words, things)
  // "downloading 3 files, uploading 5": said once, it is understood.
  const understood = before?.words.noun === words.noun
  return `${words.verb} ${formatCount(things)}${understood ? '' : ` ${noun}`}${bytes > 0 ? ` (${formatBytes(bytes)})` : ''}`
}

function pluralOf(noun: string): string {
  if (/[^aeiou]y$/.test(noun)) return `${noun.slice(0, -1)}ies`
  return /(?:s|x|z|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`
}

/** What handlers report may be anything. */
function amount(n: number | undefined): number | undefined {
  return n !== undefined && Number.isFinite(n) ? Math.max(0, n) : undefined
}
