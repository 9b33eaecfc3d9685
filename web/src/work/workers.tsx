/** Processes that take jobs, and what each holds. */
import { useQuery } from '@tanstack/preact-query'
import { Link } from 'wouter-preact'
import type { JobView, Overview, WorkerView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { Badge } from '../components/badge.tsx'
import { Card } from '../components/card.tsx'
import { Command } from '../components/copy-button.tsx'
import { Skeleton } from '../components/notes.tsx'
import { Time } from '../components/values.tsx'
import { formatPlural } from '../format.ts'
import { jobsLink } from '../links.ts'
import { keys } from '../queries.ts'

const HELD_MAX = 500

/** Jobs that somebody holds: they say who, which what runs here does not. */
export function useHeldJobs(): readonly JobView[] {
  const filter = { state: 'claimed', limit: HELD_MAX }
  const { data } = useQuery({
    queryKey: [...keys.jobs, filter],
    queryFn: ({ signal }) => api.jobs(filter, signal),
  })
  return data?.items ?? []
}

export function Workers({ overview, held }: { overview: Overview | undefined; held: readonly JobView[] }) {
  const workers = overview?.workers
  return (
    <Card title="Workers">
      {workers ? null : <Skeleton lines={3} />}
      {workers?.length === 0 ? (
        <p class="muted">
          No process takes jobs. Start one with <Command text="tidemark serve" />
        </p>
      ) : null}
      <ul class="worker-list">
        {workers?.map((worker) => (
          <li key={worker.id}>
            <Worker worker={worker} held={held.filter(({ owner }) => owner === worker.id)} />
          </li>
        ))}
      </ul>
    </Card>
  )
}

function Worker({ worker, held }: { worker: WorkerView; held: readonly JobView[] }) {
  const kinds = new Map<string, { what: string; count: number }>()
  for (const { kind, what } of held) kinds.set(kind, { what, count: (kinds.get(kind)?.count ?? 0) + 1 })
  return (
    <div class="worker">
      <div class="ends">
        <h3 class="truncate">
          {worker.name} <span class="muted num">#{worker.id}</span>
        </h3>
        <Badge tone={worker.alive ? 'accent' : 'warn'} dot>
          {worker.alive ? 'Answers' : 'Silent'}
        </Badge>
      </div>
      <p class="worker-does num">
        {held.length === 0 ? 'Holds no job.' : `Holds ${formatPlural(held.length, 'job')}: `}
        {[...kinds].map(([kind, { what, count }], at) => (
          <span key={kind}>
            {at > 0 ? ', ' : ''}
            <Link href={jobsLink({ kind, state: 'claimed' })}>{what}</Link> × {count}
          </span>
        ))}
      </p>
      <p class="muted small">
        {worker.isHere ? 'This process' : worker.host}, process {worker.pid}; started{' '}
        <Time at={worker.startedAt} />; last heard of <Time at={worker.heartbeatAt} />
        {worker.alive ? '' : '. Its jobs are taken over by others as soon as its lease is over.'}
      </p>
    </div>
  )
}
