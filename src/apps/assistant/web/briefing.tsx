/** What came, what waits, and what was done, since yesterday. */
import { Link } from 'wouter-preact'
import { Card } from '../../../../web/src/components/card.tsx'
import { Loaded, Skeleton } from '../../../../web/src/components/notes.tsx'
import { Time } from '../../../../web/src/components/values.tsx'
import { formatCount } from '../../../../web/src/format.ts'
import type { BriefingView, ThreadView } from '../api/schemas.ts'
import { threadLink, useBriefing } from './queries.ts'
import { CATEGORY_TEXTS } from './words.ts'

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
  const { account, came, waiting, done, followUps } = briefing
  const total = came.reduce((sum, { count }) => sum + count, 0)
  return (
    <Card title={account}>
      <div class="stack">
        <p>
          {total === 0
            ? 'No mail came.'
            : `${formatCount(total)} came: ${came.map(({ category, count }) => `${formatCount(count)} ${CATEGORY_TEXTS[category].toLowerCase()}`).join(', ')}.`}
        </p>
        <p>
          {done.length === 0
            ? 'Nothing was done.'
            : `Done: ${done.map(({ what, count }) => `${formatCount(count)} ${what}`).join(', ')}.`}
        </p>
        <Threads title="Waits for you" threads={waiting} />
        <Threads title="No answer came" threads={followUps} />
        <p class="muted small">
          Since <Time at={briefing.fromMs} show="full" />
        </p>
      </div>
    </Card>
  )
}

function Threads({ title, threads }: { title: string; threads: readonly ThreadView[] }) {
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
