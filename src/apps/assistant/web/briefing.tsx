/** What came, what waits, and what was done, since yesterday. */
import { Link } from 'wouter-preact'
import { Card } from '../../../../web/src/components/card.tsx'
import { Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import type { BriefingView } from '../api/schemas.ts'
import { threadLink, useBriefing } from './queries.ts'

export function Briefing() {
  const briefing = useBriefing()
  return (
    <Loaded query={briefing} waiting={<Skeleton height="12rem" />}>
      {({ items }) => (
        <>
          {items.map((one) => (
            <OfAccount key={one.account} briefing={one} />
          ))}
        </>
      )}
    </Loaded>
  )
}

function OfAccount({ briefing }: { briefing: BriefingView }) {
  const [first, second] = briefing.text.split('\n')
  return (
    <Card title={briefing.account}>
      <div class="stack">
        <p>{first}</p>
        <p class="muted">{second}</p>
        <Threads title="Drafts for you to look at" threads={briefing.drafts} />
        <Threads title="Asks for something" threads={briefing.actions} />
        <Threads title="To pay" threads={briefing.payments} />
        <Threads title="Waiting" threads={briefing.waiting} />
        <p class="muted small">
          Since <Time at={briefing.sinceMs} show="full" />
        </p>
      </div>
    </Card>
  )
}

function Threads({ title, threads }: { title: string; threads: BriefingView['drafts'] }) {
  if (threads.length === 0) return null
  return (
    <div>
      <h3>{title}</h3>
      <ul class="assist-sources">
        {threads.map((one) => (
          <li key={one.thread} class="assist-text">
            <Link href={threadLink(one)}>{one.subject || '(no subject)'}</Link>{' '}
            <span class="muted small">{one.sender}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
