import { useQuery } from '@tanstack/preact-query'
import { Link } from 'wouter-preact'
import type { ScheduleView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { Card } from '../components/card.tsx'
import { type Column, DataTable } from '../components/data-table.tsx'
import { ErrorNote } from '../components/notes.tsx'
import { Time } from '../components/values.tsx'
import { jobsLink, streamLink } from '../links.ts'
import { keys } from '../queries.ts'
import { streamTitle } from '../stream-name.ts'

/** A schedule that was due has moved on; nothing tells so by itself. */
const REFETCH_MS = 15_000

const COLUMNS: readonly Column<ScheduleView>[] = [
  {
    id: 'name',
    title: 'Schedule',
    cell: ({ name, kind }) => (
      <Link class="wrap-narrow" href={jobsLink({ kind })} title={`Jobs of the kind ${kind}`}>
        {name}
      </Link>
    ),
  },
  { id: 'spec', title: 'When', low: true, cell: ({ spec }) => <span class="mono">{spec}</span> },
  {
    id: 'stream',
    title: 'Stream',
    low: true,
    cell: ({ stream }) =>
      stream === null ? (
        <span class="muted">–</span>
      ) : (
        <Link href={streamLink(stream)}>{streamTitle(stream).title}</Link>
      ),
  },
  { id: 'last', title: 'Last', low: true, width: '9rem', cell: ({ lastAt }) => <Time at={lastAt} /> },
  { id: 'next', title: 'Next', width: '9rem', cell: ({ nextAt }) => <Time at={nextAt} /> },
]

export function Schedules() {
  const { data, error, refetch, isPending } = useQuery({
    queryKey: keys.schedules,
    queryFn: ({ signal }) => api.schedules(signal),
    refetchInterval: REFETCH_MS,
  })
  return (
    <Card title="Schedules">
      {error && !data ? (
        <ErrorNote error={error} retry={refetch} />
      ) : (
        <DataTable
          caption="All schedules, by name"
          columns={COLUMNS}
          rows={data?.items ?? []}
          keyOf={({ name }) => name}
          loading={isPending}
          heightPx={320}
          empty={<p class="muted">Nothing is scheduled. Connected accounts bring their own schedules.</p>}
        />
      )}
    </Card>
  )
}
