/** What runs now, what waits, who does it, what is due, and what holds it back. */
import type { JobView, Overview, RunningView } from '../../../src/app/schemas.ts'
import { ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { ErrorNote, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { PauseButton } from '../components/source-buttons.tsx'
import { Stat } from '../components/stat.tsx'
import { formatCount, formatPlural } from '../format.ts'
import { jobsLink } from '../links.ts'
import { workText } from '../overview/share.ts'
import { useOverview } from '../queries.ts'
import { Limits } from '../work/limits.tsx'
import { RunningList } from '../work/running-list.tsx'
import { Schedules } from '../work/schedules.tsx'
import { useHeldJobs, Workers } from '../work/workers.tsx'
import '../styles/work.css'

export function WorkPage() {
  const { data, error, refetch } = useOverview()
  const held = useHeldJobs()
  return (
    <>
      <PageTitle title="Work" lead={data ? workText(data) : <Skeleton width="18rem" />}>
        <ButtonLink href={jobsLink()} icon="search">
          Find jobs
        </ButtonLink>
        {data ? (
          <PauseButton
            target={{ scope: 'all' }}
            isPaused={data.pauses.some(({ scope }) => scope === 'all')}
            what="everything"
          />
        ) : null}
      </PageTitle>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {error && !data ? null : (
        <div class="stack">
          <Stages overview={data} />
          <div class="lanes">
            {LANES.map((lane) => (
              <Lane key={lane.name} lane={lane} overview={data} held={held} />
            ))}
          </div>
          <Workers overview={data} held={held} />
          <Limits />
          <Schedules />
        </div>
      )}
    </>
  )
}

const STAGES = [
  { stage: 'claimed', label: 'Running', hint: 'or held by a worker', state: 'claimed' },
  { stage: 'ready', label: 'Ready', hint: 'wait for their turn', state: 'pending' },
  { stage: 'deps', label: 'Behind others', hint: 'wait for other jobs', state: 'pending' },
  { stage: 'time', label: 'Later', hint: 'wait for their time', state: 'pending' },
  { stage: 'failed', label: 'Failed', hint: 'need a look', state: 'failed' },
  { stage: 'done', label: 'Done', hint: 'still in the ledger', state: 'done' },
] as const

function Stages({ overview }: { overview: Overview | undefined }) {
  return (
    <Card>
      <h2 class="visually-hidden">Jobs by state</h2>
      <dl class="stats stages">
        {STAGES.map(({ stage, label, hint, state }) => {
          const count = overview?.jobs[stage] ?? 0
          return (
            <Stat
              key={stage}
              label={label}
              href={jobsLink({ state })}
              value={overview ? formatCount(count) : <Skeleton width="4ch" />}
              hint={hint}
              tone={stage === 'failed' && count > 0 ? 'danger' : 'neutral'}
            />
          )
        })}
      </dl>
    </Card>
  )
}

const LANES = [
  {
    name: 'interactive',
    title: 'Interactive lane',
    about: 'what somebody waits for; always has room',
    room: 4,
  },
  { name: 'bulk', title: 'Bulk lane', about: 'the long haul; gets what is left', room: 8 },
] as const

type LaneProps = { lane: (typeof LANES)[number]; overview: Overview | undefined; held: readonly JobView[] }

function Lane({ lane, overview, held }: LaneProps) {
  const running = overview?.running.filter((job: RunningView) => job.lane === lane.name) ?? []
  const names = new Map(overview?.workers.map(({ id, name }) => [id, name]))
  const owners = new Map(held.map(({ id, owner }) => [id, owner]))
  const workerOf = (id: number): string | undefined => {
    const owner = owners.get(id)
    return names.size > 1 && owner ? `${names.get(owner) ?? 'worker'} #${owner}` : undefined
  }
  return (
    <Card
      title={lane.title}
      actions={
        <span class="muted small num">{overview ? formatPlural(running.length, 'job') : ''} running</span>
      }
    >
      <p class="muted small lane-about">{lane.about}</p>
      {overview ? (
        <RunningList jobs={running} empty="Nothing runs in this lane." room={lane.room} workerOf={workerOf} />
      ) : (
        <Skeleton height="18.5rem" />
      )}
    </Card>
  )
}
