/**
 * Stall detection: which running jobs have shown no progress for longer than their kind allows. They are
 * aborted and retried by whoever asks; here is only the decision.
 *
 * Silence counts only while this process was awake. After a laptop's sleep, a SIGSTOP or a long blocked event
 * loop every job looks silent although none had a chance to speak, so silence begins anew at the awakening.
 */
export type RunningJob = {
  id: number
  kind: string
  /** Monotonic time of the last sign of progress, or of the start. */
  progressMs: number
}

export type StalledJob = { id: number; kind: string; silentMs: number }

export type StallQuestion = {
  nowMs: number
  /** Monotonic time since when this process has been awake without a break. */
  awakeSinceMs: number
  /** The kind's limit; Infinity for kinds that may be silent. */
  stallMsOf: (kind: string) => number
}

export function stalledJobs(running: Iterable<RunningJob>, question: StallQuestion): StalledJob[] {
  const { nowMs, awakeSinceMs, stallMsOf } = question
  const stalled: StalledJob[] = []
  for (const { id, kind, progressMs } of running) {
    const silentMs = nowMs - Math.max(progressMs, awakeSinceMs)
    if (silentMs >= stallMsOf(kind)) stalled.push({ id, kind, silentMs })
  }
  return stalled
}

/** Checks that come this many times later than planned mean that the process was not awake. */
const LATE_FACTOR = 3

/** Asks `stalledJobs` regularly and knows when it was asleep. Reports a job once per silence. */
export class StallWatch {
  readonly #everyMs: number
  readonly #stallMsOf: (kind: string) => number
  readonly #reported = new Map<number, number>()
  #checkedMs: number | undefined
  #awakeSinceMs = Number.NEGATIVE_INFINITY

  constructor(options: { everyMs: number; stallMsOf: (kind: string) => number }) {
    this.#everyMs = options.everyMs
    this.#stallMsOf = options.stallMsOf
  }

  /** To be called every `everyMs`. */
  check(running: readonly RunningJob[], nowMs: number): StalledJob[] {
    const lateBy = this.#checkedMs === undefined ? 0 : nowMs - this.#checkedMs
    if (lateBy > this.#everyMs * LATE_FACTOR) this.#awakeSinceMs = nowMs
    this.#checkedMs = nowMs
    const stalled = stalledJobs(running, {
      nowMs,
      awakeSinceMs: this.#awakeSinceMs,
      stallMsOf: this.#stallMsOf,
    })
    const progressOf = new Map(running.map((job) => [job.id, job.progressMs]))
    for (const [id, progressMs] of this.#reported) {
      if (progressOf.get(id) !== progressMs) this.#reported.delete(id)
    }
    const fresh = stalled.filter(({ id }) => !this.#reported.has(id))
    for (const { id } of fresh) this.#reported.set(id, progressOf.get(id)!)
    return fresh
  }
}
