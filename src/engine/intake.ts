/** From what apps ask for to rows: kinds, payloads and stream names checked, sizes routed to lanes. */
import type { ClaimedJob, NewJob, NewSegment, SegmentCount, Tx, Work } from '../ledger/contract.ts'
import { type JobRequest, toNewJob } from './kinds.ts'
import type { Streams } from './streams.ts'

/** Work from outside any job: all of it is written, or nothing. */
export type EngineWork = {
  effects?: (tx: Tx) => void | Promise<void>
  segments?: readonly NewSegment[]
  counts?: readonly SegmentCount[]
  cursors?: readonly { streamId: number; value: string }[]
  jobs?: readonly JobRequest[]
  /** Runs when all of `jobs` have settled. */
  followUp?: JobRequest
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

  async toWork(work: EngineWork): Promise<Work> {
    const wanted = [...(work.jobs ?? []), ...(work.followUp ? [work.followUp] : [])]
    for (const name of new Set(wanted.map((job) => job.options.stream))) {
      if (name !== undefined && this.#streams.known(name) === undefined) await this.#streams.open(name)
    }
    const toJob = (job: JobRequest): NewJob => {
      const { stream } = job.options
      return toNewJob(job, stream === undefined ? 0 : this.#streams.id(stream), this.#bulkBytes)
    }
    return {
      effects: work.effects,
      segments: work.segments,
      counts: work.counts,
      cursors: work.cursors,
      jobs: work.jobs?.map(toJob),
      followUp: work.followUp && toJob(work.followUp),
    }
  }
}
