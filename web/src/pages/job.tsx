/** One job: how it stands and why, who holds it, what failed, what it hangs on. */
import { useQuery } from '@tanstack/preact-query'
import { useParams } from 'wouter-preact'
import type { JobDetail } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { StageBadge } from '../components/badge.tsx'
import { Button, ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { useConfirm } from '../components/confirm.tsx'
import { EmptyNote, ErrorNote, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { formatPlural } from '../format.ts'
import { JobErrors, JobFacts, JobJson, JobProgress } from '../job/job-cards.tsx'
import { JobGraph } from '../job/job-graph.tsx'
import { jobsLink, workLink } from '../links.ts'
import { ApiError } from '../problem.ts'
import { keys, useAction } from '../queries.ts'
import '../styles/work.css'
import '../styles/job.css'

const CRUMBS = [
  { text: 'Work', href: workLink() },
  { text: 'Jobs', href: jobsLink() },
]

export function JobPage() {
  const text = useParams<{ id: string }>().id ?? ''
  const id = /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0
  const { data, error, refetch } = useQuery({
    queryKey: [...keys.job, id],
    queryFn: ({ signal }) => api.job(id, signal),
    enabled: id > 0,
  })
  const isMissing = id === 0 || (error instanceof ApiError && error.status === 404)
  return (
    <>
      <PageTitle
        title={data ? data.what : id > 0 ? `Job ${id}` : 'Job'}
        crumbs={CRUMBS}
        lead={
          data ? (
            <StageBadge stage={data.stage} />
          ) : isMissing ? undefined : (
            <Skeleton width="6rem" height="1.5rem" />
          )
        }
      >
        {data ? <JobActions job={data} /> : null}
      </PageTitle>
      {isMissing ? (
        <EmptyNote title="There is no such job" action={<ButtonLink href={jobsLink()}>Find jobs</ButtonLink>}>
          Jobs that ended well are removed from the ledger after a while.
        </EmptyNote>
      ) : null}
      {error && !data && !isMissing ? <ErrorNote error={error} retry={refetch} /> : null}
      {!data && !error && !isMissing ? <Waiting /> : null}
      {data && !isMissing ? <JobBody key={data.id} job={data} /> : null}
    </>
  )
}

function Waiting() {
  return (
    <Card>
      <Skeleton lines={6} />
    </Card>
  )
}

function JobActions({ job }: { job: JobDetail }) {
  const confirm = useConfirm()
  const invalidates = [keys.job, keys.jobs, ['list', 'jobs']]
  const retry = useAction({ run: api.retryJob, invalidates })
  const cancel = useAction({ run: api.cancelJob, invalidates })
  const onCancel = async (): Promise<void> => {
    const children =
      job.children.length > 0 ? ` and ${formatPlural(job.children.length, 'job')} that came from it` : ''
    const isSure = await confirm({
      title: `Cancel “${job.what}”?`,
      text:
        job.state === 'claimed'
          ? `It runs now${children ? `, with${children.slice(4)}` : ''}: it is asked to stop, and what it has stored stays. Its slice cannot be completed without it until you retry it.`
          : `This job${children} will not run. Its slice cannot be completed without it until you retry it.`,
      action: 'Cancel the job',
      danger: true,
    })
    if (isSure) await cancel.start(job.id)
  }
  return (
    <>
      {job.canRetry ? (
        <Button kind="primary" icon="retry" busy={retry.busy} onClick={() => void retry.start(job.id)}>
          Retry
        </Button>
      ) : null}
      {job.canCancel ? (
        <Button icon="close" busy={cancel.busy} onClick={() => void onCancel()}>
          Cancel…
        </Button>
      ) : null}
    </>
  )
}

function JobBody({ job }: { job: JobDetail }) {
  return (
    <div class="job-page">
      <div class="stack">
        <Card title="How it stands" tone={job.state === 'failed' ? 'danger' : 'neutral'}>
          <JobProgress job={job} />
          {job.explanation.length === 0 ? <p class="muted">There is nothing to say about it.</p> : null}
          <div class="explanation">
            {job.explanation.map((sentence, at) => (
              <p key={at}>{sentence}</p>
            ))}
          </div>
        </Card>
        <JobGraph job={job} />
        <JobErrors job={job} />
        <JobJson
          title="Checkpoint"
          value={job.checkpoint}
          none="None: it would begin at its beginning."
          isOpen
        />
        <JobJson title="Input" value={job.payload} none="It takes none." />
      </div>
      <JobFacts job={job} />
    </div>
  )
}
