/** From what apps ask for to rows: kinds, payloads and stream names checked, sizes routed to lanes. */
import type { ClaimedJob, NewJob, NewSegment, RowLocks, SegmentCount, Tx, Work } from '../ledger/contract.ts'
import { checkFields, checkSegmentFields, type Fields } from './fields.ts'
import type { JobRequest } from './job-kind.ts'
import { checkRequests, toNewJob } from './kinds.ts'
import type { Streams } from './streams.ts'

/** Work from outside any job: all of it is written, or nothing. */
export type EngineWork = {
  effects?: (tx: Tx) => void | Promise<void>
  locks?: RowLocks
  /** See Work. */
  turn?: string
  segments?: readonly NewSegment[]
  counts?: readonly SegmentCount[]
  cursors?: readonly { streamId: number; value: string }[]
  jobs?: readonly JobRequest[]
  /** Runs when all of `jobs` have settled. */
  followUp?: JobRequest
}

const WORK_FIELDS: Fields<EngineWork> = {
  effects: true,
  locks: true,
  turn: true,
  segments: true,
  counts: true,
  cursors: true,
  jobs: true,
  followUp: true,
}

export class Intake {
  readonly #streams: Streams
  readonly #bulkBytes: number

  constructor(streams: Streams, bulkBytes: number) {
    this.#streams = streams
    this.#bulkBytes = bulkBytes
  }

  /** A child belongs to its parent's stream unless it says otherwise. */
  childOf(parent: ClaimedJob, wanted: JobRequest): NewJob {
    const { stream } = wanted.options
    return toNewJob(
      wanted,
      stream === undefined ? parent.streamId : this.#streams.id(stream),
      this.#bulkBytes,
    )
  }

  /** `within`: a transaction under way, in which streams that are not known yet are opened. */
  async toWork(work: EngineWork, within?: Tx): Promise<Work> {
    checkFields('The work to write', work, WORK_FIELDS)
    checkSegmentFields('the work to write', work)
    checkRequests('Jobs to write', work.jobs)
    if (work.followUp !== undefined) checkRequests('The follow-up', [work.followUp])
    const wanted = [...(work.jobs ?? []), ...(work.followUp ? [work.followUp] : [])]
    const idOf = await this.#openStreams(wanted, within)
    const toJob = (job: JobRequest): NewJob => toNewJob(job, idOf(job.options.stream), this.#bulkBytes)
    return {
      effects: work.effects,
      locks: work.locks,
      turn: work.turn,
      segments: work.segments,
      counts: work.counts,
      cursors: work.cursors,
      jobs: work.jobs?.map(toJob),
      followUp: work.followUp && toJob(work.followUp),
    }
  }

  async #openStreams(
    wanted: readonly JobRequest[],
    within?: Tx,
  ): Promise<(name: string | undefined) => number> {
    // Learned for this call only: a transaction that is rolled back takes the stream with it.
    const opened = new Map<string, number>()
    for (const { options } of wanted) {
      const name = options.stream
      if (name === undefined || opened.has(name) || this.#streams.known(name) !== undefined) continue
      opened.set(name, (await this.#streams.open(name, { within })).id)
    }
    return (name) => (name === undefined ? 0 : (opened.get(name) ?? this.#streams.id(name)))
  }
}
