/** The job explorer: any job out of millions, by kind, state, stream and age. */
import { useQuery } from '@tanstack/preact-query'
import { Link } from 'wouter-preact'
import type { JobView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { StageBadge } from '../components/badge.tsx'
import { Button } from '../components/button.tsx'
import type { Column } from '../components/data-table.tsx'
import { PagedTable } from '../components/data-table.tsx'
import { EmptyNote } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { Time } from '../components/values.tsx'
import { formatCount, formatDuration, formatPlural, formatShare } from '../format.ts'
import { jobLink, workLink } from '../links.ts'
import { usePagedList } from '../paged-list.ts'
import { keys, useOverview } from '../queries.ts'
import { useSearchParam } from '../search-params.ts'
import { streamTitle } from '../stream-name.ts'
import { type FilterParams, filterOf } from '../work/job-filter.ts'
import { JobFilters } from '../work/job-filters.tsx'
import '../styles/work.css'

const PAGE_ROWS = 100

export function JobsPage() {
  const params: FilterParams = {
    state: useSearchParam('state'),
    kind: useSearchParam('kind'),
    stream: useSearchParam('stream'),
    age: useSearchParam('age'),
    parent: useSearchParam('parent'),
    segment: useSearchParam('segment'),
  }
  const filter = filterOf(params)
  const list = usePagedList<JobView>({
    key: ['jobs', filter],
    page: (cursor, signal) => api.jobs({ ...filter, cursor, limit: PAGE_ROWS }, signal),
  })
  const kinds = useKinds(list.rows)
  return (
    <>
      <PageTitle
        title="Jobs"
        crumbs={[{ text: 'Work', href: workLink() }]}
        lead="Every piece of work in the ledger, the newest first."
      />
      <div class="stack">
        <JobFilters params={params} kinds={kinds} />
        <PagedTable
          list={list}
          // Another filter begins at the top.
          key={JSON.stringify(filter)}
          caption="Jobs, the newest first"
          columns={COLUMNS}
          keyOf={({ id }) => id}
          rowHref={({ id }) => jobLink(id)}
          heightPx={Math.max(360, innerHeight - 320)}
          empty={
            <EmptyNote title="No job is like that">
              Take a part of the filter away. Jobs that ended well are removed from the ledger after a while.
            </EmptyNote>
          }
        />
        <div class="ends list-foot">
          <p class="muted small num">
            {list.isComplete
              ? formatPlural(list.rows.length, 'job')
              : `${formatPlural(list.rows.length, 'job')} loaded`}
            {list.isLive ? '' : '; this far down the list stands still'}
          </p>
          {list.isLive ? null : (
            <Button small icon="retry" onClick={() => void list.refetch()}>
              Refresh
            </Button>
          )}
        </div>
      </div>
    </>
  )
}

/** Kinds that are seen somewhere: there is no list of all. */
function useKinds(rows: readonly JobView[]): string[] {
  const { data: overview } = useOverview()
  const { data: schedules } = useQuery({
    queryKey: keys.schedules,
    queryFn: ({ signal }) => api.schedules(signal),
    staleTime: 60_000,
  })
  const seen = [...rows, ...(overview?.running ?? []), ...(schedules?.items ?? [])]
  return [...new Set(seen.map(({ kind }) => kind))].sort()
}

const COLUMNS: readonly Column<JobView>[] = [
  {
    id: 'job',
    title: 'Job',
    cell: ({ id, what, key }) => (
      <Link class="wrap-narrow" href={jobLink(id)} title={key ?? undefined}>
        {what} <span class="muted num">{id}</span>
      </Link>
    ),
  },
  { id: 'state', title: 'State', width: '10rem', cell: ({ stage }) => <StageBadge stage={stage} /> },
  {
    id: 'stream',
    title: 'Stream',
    low: true,
    cell: ({ stream }) => (stream === null ? <span class="muted">–</span> : streamTitle(stream).title),
  },
  { id: 'about', title: 'About', low: true, rest: true, cell: (job) => <About job={job} /> },
  {
    // Not its attempts: every claim is one, also where the job was handed back untouched.
    id: 'failures',
    title: 'Failures',
    align: 'end',
    low: true,
    width: '5rem',
    cell: ({ failures }) => formatCount(failures),
  },
  { id: 'took', title: 'Took', align: 'end', low: true, width: '6rem', cell: tookText },
  {
    id: 'created',
    title: 'Created',
    low: true,
    width: '9rem',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
]

function About({ job }: { job: JobView }) {
  const { error, note, progress, items, state } = job
  if (error) {
    return (
      <span class={state === 'failed' ? 'is-danger' : 'muted'} title={error}>
        {error}
      </span>
    )
  }
  if (state === 'claimed' && progress) {
    const { done = 0, total, label = '' } = progress
    return <>{[label, total ? formatShare(done / total) : ''].filter(Boolean).join(' · ')}</>
  }
  return (
    <span class="muted" title={note ?? undefined}>
      {note ?? (items > 0 ? formatPlural(items, 'item') : '')}
    </span>
  )
}

function tookText({ claimedAt, settledAt }: JobView): string {
  return claimedAt === null || settledAt === null ? '–' : formatDuration(Math.max(0, settledAt - claimedAt))
}
