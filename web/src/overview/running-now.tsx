import { Link } from 'wouter-preact'
import type { Overview, RunningView } from '../../../src/app/schemas.ts'
import { Card } from '../components/card.tsx'
import { Skeleton } from '../components/notes.tsx'
import { ProgressBar } from '../components/progress-bar.tsx'
import { formatBytes, formatCount, formatDuration } from '../format.ts'
import { jobLink, workLink } from '../links.ts'
import { useNow } from '../queries.ts'
import { streamTitle } from '../stream-name.ts'
import { useSlots } from '../work/slots.ts'

/** What fits beside the charts; the work page has all. */
const SHOWN_MAX = 7

export function RunningNow({ overview }: { overview: Overview | undefined }) {
  const running = overview?.running ?? []
  const shown = useSlots(running, SHOWN_MAX)
  const more = running.length - SHOWN_MAX
  return (
    <Card
      title="Running now"
      actions={<Link href={workLink()}>{more > 0 ? `All ${formatCount(running.length)}` : 'Work'}</Link>}
    >
      {overview ? null : <Skeleton lines={4} />}
      {overview && running.length === 0 ? (
        <div class="running-list">
          <p class="muted">Nothing runs at the moment.</p>
        </div>
      ) : null}
      {running.length > 0 ? (
        <ul class="running-list">
          {shown.map((job, at) =>
            job ? (
              <li key={at}>
                <Running job={job} />
              </li>
            ) : (
              <li key={at} class="running-free" aria-hidden="true" />
            ),
          )}
        </ul>
      ) : null}
    </Card>
  )
}

function Running({ job }: { job: RunningView }) {
  const ageMs = useNow() - job.startedAt
  const name = job.label ?? job.kind
  const amount = job.unit === 'bytes' ? formatBytes : formatCount
  return (
    <div class="running">
      <div class="running-head">
        <Link href={jobLink(job.id)} class="truncate">
          {name} <span class="muted num">#{job.id}</span>
        </Link>
        <span class="muted small num">
          {ageMs < 1000 ? '< 1s' : formatDuration(Math.floor(ageMs / 1000) * 1000)}
        </span>
      </div>
      <ProgressBar done={job.done} total={job.total} label={`Progress of ${name}`} />
      <div class="running-foot">
        <span class="truncate">{job.stream ? streamTitle(job.stream).title : job.kind}</span>
        <span class="num">
          {job.total === null
            ? job.done > 0 && amount(job.done)
            : `${amount(job.done)} of ${amount(job.total)}`}
        </span>
      </div>
    </div>
  )
}
