import type { ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import type { JobDetail } from '../../../src/app/schemas.ts'
import { Badge } from '../components/badge.tsx'
import { Card } from '../components/card.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { ProgressBar } from '../components/progress-bar.tsx'
import { Time } from '../components/values.tsx'
import { formatBytes, formatCount, formatDuration } from '../format.ts'
import { jobLink, jobsLink, streamLink } from '../links.ts'
import { useNow } from '../queries.ts'
import { streamTitle } from '../stream-name.ts'

export function JobProgress({ job }: { job: JobDetail }) {
  if (job.state !== 'claimed') return null
  const { done = 0, total = null, unit, label } = job.progress ?? {}
  const amount = unit === 'bytes' ? formatBytes : formatCount
  return (
    <div class="job-progress">
      <div class="ends">
        <span class="truncate">{label ?? 'Under way'}</span>
        <span class="num">{total === null ? amount(done) : `${amount(done)} of ${amount(total)}`}</span>
      </div>
      <ProgressBar done={done} total={total} label="Progress of this job" />
    </div>
  )
}

export function JobFacts({ job }: { job: JobDetail }) {
  const rows: readonly (readonly [string, ComponentChildren])[] = [
    [
      'Stream',
      job.stream === null ? null : <Link href={streamLink(job.stream)}>{streamTitle(job.stream).title}</Link>,
    ],
    ['Slice', job.segment === null ? null : <Link href={jobsLink({ segment: job.segment })}>its jobs</Link>],
    ['Came from', job.parent === null ? null : <Link href={jobLink(job.parent)}>job {job.parent}</Link>],
    [
      'Kind',
      <span key="kind" class="mono">
        {job.kind}
      </span>,
    ],
    ['Number', String(job.id)],
    ['Key', job.key === null ? null : <span class="mono">{job.key}</span>],
    ['Lane', job.lane],
    ['Priority', formatCount(job.priority)],
    ['Items', formatCount(job.items)],
    // Not its tries: a job that was handed back untouched, because its budget was closed, was taken all the same.
    ['Times taken', formatCount(job.attempt)],
    ['Failures', formatCount(job.failures)],
    ['Created', <Time key="created" at={job.createdAt} show="full" />],
    ['Runs from', job.runAt === null ? null : <Time at={job.runAt} show="full" />],
    ['Taken', job.claimedAt === null ? null : <Time at={job.claimedAt} show="full" />],
    ['Settled', job.settledAt === null ? null : <Time at={job.settledAt} show="full" />],
    ['Took', tookText(job)],
    ['Note', job.note],
  ]
  return (
    <div class="stack">
      {job.lease ? <Lease lease={job.lease} /> : null}
      <Card title="Facts">
        <dl class="facts">
          {rows
            .filter(([, value]) => value !== null)
            .map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd class="num">{value}</dd>
              </div>
            ))}
        </dl>
      </Card>
    </div>
  )
}

function tookText({ claimedAt, settledAt }: JobDetail): string | null {
  return claimedAt === null || settledAt === null ? null : formatDuration(Math.max(0, settledAt - claimedAt))
}

function Lease({ lease }: { lease: NonNullable<JobDetail['lease']> }) {
  const now = useNow()
  const leftMs = lease.until - now
  return (
    <Card
      title="Lease"
      tone={lease.alive ? 'neutral' : 'warn'}
      actions={
        <Badge tone={lease.alive ? 'accent' : 'warn'} dot>
          {lease.alive ? 'Answers' : 'Silent'}
        </Badge>
      }
    >
      <p>
        Held by <b>{lease.name}</b> <span class="muted">#{lease.worker}</span> on {lease.host}.
      </p>
      <p class="muted small num">
        {leftMs > 0
          ? `Its lease lasts ${formatDuration(Math.ceil(leftMs / 1000) * 1000)} more, and is renewed as long as it answers.`
          : 'Its lease is over: another worker takes the job over.'}
      </p>
    </Card>
  )
}

export function JobErrors({ job }: { job: JobDetail }) {
  return (
    <Card
      title={
        job.errors.length > 0 ? `Failed attempts (${formatCount(job.errors.length)})` : 'Failed attempts'
      }
    >
      {job.errors.length === 0 ? <p class="muted">None.</p> : null}
      <ol class="attempts">
        {job.errors.map(({ attempt, at, kind, message }) => (
          <li key={`${attempt} ${at}`}>
            <div class="ends">
              <b class="num">Attempt {formatCount(attempt)}</b>
              <span class="row small">
                <Badge tone="danger">{kind}</Badge>
                <span class="muted">
                  <Time at={at} />
                </span>
              </span>
            </div>
            <p class="any-break">{message}</p>
          </li>
        ))}
      </ol>
    </Card>
  )
}

/** What a job was given or keeps for its next attempt, as it is in the ledger. */
export function JobJson(props: { title: string; value: unknown; none: string; isOpen?: boolean }) {
  const { title, value, none, isOpen } = props
  if (value === null || value === undefined) {
    return (
      <Card title={title}>
        <p class="muted">{none}</p>
      </Card>
    )
  }
  const text = JSON.stringify(value, null, 2)
  return (
    <Card title={title} actions={<CopyButton text={text} label={`the ${title.toLowerCase()}`} />}>
      <details open={isOpen}>
        <summary>{text.length > 2 ? 'All of it' : 'Empty'}</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
        <pre class="json" tabIndex={0}>
          {text}
        </pre>
      </details>
    </Card>
  )
}
