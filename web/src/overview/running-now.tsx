import { Link } from 'wouter-preact'
import type { Overview } from '../../../src/app/schemas.ts'
import { Card } from '../components/card.tsx'
import { Skeleton } from '../components/notes.tsx'
import { formatCount } from '../format.ts'
import { workLink } from '../links.ts'
import { RunningJob } from '../work/running-list.tsx'
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
                <RunningJob job={job} />
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
