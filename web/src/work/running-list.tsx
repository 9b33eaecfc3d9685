/** What runs now, with progress. Jobs come and go every second: the place stays as large as it was needed before. */
import { useRef } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { RunningView } from '../../../src/app/schemas.ts'
import { ProgressBar } from '../components/progress-bar.tsx'
import { formatBytes, formatCount, formatDuration, formatPlural } from '../format.ts'
import { jobLink, jobsLink } from '../links.ts'
import { useNow } from '../queries.ts'
import { streamTitle } from '../stream-name.ts'
import { useSlots } from './slots.ts'

const SHOWN_MAX = 12

export type RunningListProps = {
  jobs: readonly RunningView[]
  empty: string
  /** So many are shown at most, and on wide screens there is always room for them. */
  room?: number
  /** Who runs it; said where there are several. */
  workerOf?: (id: number) => string | undefined
}

export function RunningList({ jobs, empty, room, workerOf }: RunningListProps) {
  const shownMax = room ?? SHOWN_MAX
  const most = useRef(0)
  const shown = useSlots(jobs, shownMax)
  most.current = Math.max(most.current, shown.length)
  const rest = Math.max(0, jobs.length - shownMax)
  return (
    <div class="running-place" style={{ '--slots': most.current, '--room': room ?? 0 }}>
      {jobs.length === 0 ? <p class="muted">{empty}</p> : null}
      <ul class="running-grid">
        {shown.map((job, at) =>
          job ? (
            <li key={at}>
              <RunningJob job={job} worker={workerOf?.(job.id)} />
            </li>
          ) : (
            <li key={at} class="running-job" aria-hidden="true" />
          ),
        )}
      </ul>
      <p class="small running-rest">
        {rest > 0 ? (
          <Link href={jobsLink({ state: 'claimed' })}>and {formatPlural(rest, 'job')} more</Link>
        ) : null}
      </p>
    </div>
  )
}

export function RunningJob({ job, worker }: { job: RunningView; worker?: string | undefined }) {
  const now = useNow()
  const ageMs = now - job.startedAt
  const name = job.label ? `${job.what}: ${job.label}` : job.what
  const amount = job.unit === 'bytes' ? formatBytes : formatCount
  const where = [job.stream ? streamTitle(job.stream).title : '', worker ?? '']
  return (
    <div class="running-job">
      <div class="ends">
        <Link href={jobLink(job.id)} class="truncate">
          {name}
        </Link>
        <span class="muted small num">
          {ageMs < 1000 ? '< 1s' : formatDuration(Math.floor(ageMs / 1000) * 1000)}
        </span>
      </div>
      <ProgressBar done={job.done} total={job.total} label={`Progress of ${name}, job ${job.id}`} />
      <div class="ends muted small">
        <span class="truncate">{where.filter(Boolean).join(' · ')}</span>
        <span class="num">
          {job.total === null
            ? job.done > 0 && amount(job.done)
            : `${amount(job.done)} of ${amount(job.total)}`}
        </span>
      </div>
    </div>
  )
}
