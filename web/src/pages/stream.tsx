/** One stream: the frontier as a picture, its books, what was set aside, and its slices. */
import { Link, useParams } from 'wouter-preact'
import type { Overview, StreamView } from '../../../src/app/schemas.ts'
import { HealthBadge } from '../components/badge.tsx'
import { BalanceLine } from '../components/balance-line.tsx'
import { ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { EmptyNote, ErrorNote, Note, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { PauseButton } from '../components/source-buttons.tsx'
import { Stat } from '../components/stat.tsx'
import { Time } from '../components/values.tsx'
import { formatCount, formatDuration, formatMark, formatPlural, formatRate, formatShare } from '../format.ts'
import { jobsLink, overviewLink, pathPart, streamLink } from '../links.ts'
import { useShare } from '../overview/share.ts'
import { useOverview } from '../queries.ts'
import { BadItems } from '../stream/bad-items.tsx'
import { FrontierCard, useStretch } from '../stream/frontier-card.tsx'
import { SegmentList } from '../stream/segment-list.tsx'
import { streamTitle } from '../stream-name.ts'
import { RunningList } from '../work/running-list.tsx'
import '../styles/frontier-strip.css'
import '../styles/work.css'
import '../styles/stream.css'

export function StreamPage() {
  const name = pathPart(useParams<{ name: string }>().name)
  const { data, error, refetch } = useOverview()
  const stream = data?.streams.find((one) => one.name === name)
  const { title } = streamTitle(name)
  return (
    <>
      <PageTitle
        title={title}
        crumbs={[{ text: 'Overview', href: overviewLink() }]}
        lead={stream ? stream.summary : data ? undefined : <Skeleton width="20rem" />}
      >
        {data && stream ? <StreamActions stream={stream} pauses={data.pauses} /> : null}
      </PageTitle>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {data && !stream ? (
        <EmptyNote
          title="There is no such stream"
          action={<ButtonLink href={overviewLink()}>To the overview</ButtonLink>}
        >
          Nothing is called {name}. It may have been disconnected since.
        </EmptyNote>
      ) : null}
      {stream || (!data && !error) ? (
        <StreamBody key={name} name={name} stream={stream} overview={data} />
      ) : null}
    </>
  )
}

function StreamActions({ stream, pauses }: { stream: StreamView; pauses: Overview['pauses'] }) {
  const { name } = stream
  return (
    <>
      <HealthBadge health={stream.health} />
      <ButtonLink href={jobsLink({ stream: name })} icon="work">
        Jobs
      </ButtonLink>
      <PauseButton
        target={{ scope: 'stream', target: name }}
        isPaused={pauses.some((one) => one.scope === 'stream' && one.target === name)}
      />
    </>
  )
}

type BodyProps = { name: string; stream: StreamView | undefined; overview: Overview | undefined }

function StreamBody({ name, stream, overview }: BodyProps) {
  const stretch = useStretch()
  const running = overview?.running.filter((job) => job.stream === name) ?? []
  return (
    <div class="stack">
      {overview && stream ? <PauseNote stream={stream} pauses={overview.pauses} /> : null}
      <FrontierCard name={name} />
      <Counters stream={stream} />
      <BadItems stream={name} count={stream?.bad ?? 0} />
      <SegmentList stream={name} stretch={stretch} />
      <Card title="Running now">
        <RunningList jobs={running} empty="Nothing of this stream runs at the moment." />
      </Card>
    </div>
  )
}

function PauseNote({ stream, pauses }: { stream: StreamView; pauses: Overview['pauses'] }) {
  const pause = pauses.find(
    ({ scope, target }) => scope === 'all' || (scope === 'stream' && target === stream.name),
  )
  if (!pause) return null
  return (
    <Note tone="warn" title={pause.scope === 'all' ? 'Everything is paused' : 'This stream is paused'}>
      <p>
        {pause.reason}, <Time at={pause.at} />. What runs ends normally; nothing new begins until it is
        resumed.
      </p>
    </Note>
  )
}

function Counters({ stream }: { stream: StreamView | undefined }) {
  const line = (text: (known: StreamView) => string) => (stream ? text(stream) : <Skeleton width="6ch" />)
  const share = useShare(stream ? [stream] : [])
  return (
    <Card title="Books">
      <dl class="stats books">
        <Stat
          label="Complete up to"
          value={line(({ mark }) => formatMark(mark))}
          hint={
            stream?.markMovedAt ? (
              <>
                moved <Time at={stream.markMovedAt} />
              </>
            ) : (
              'has not moved yet'
            )
          }
        />
        <Stat
          label="Accounted for"
          value={line(() => (share === null ? '–' : formatShare(share)))}
          hint={line(({ onTheirWay }) => `${formatCount(onTheirWay)} on their way`)}
        />
        <Stat
          label="Slices done"
          value={line(({ settledSegments }) => formatCount(settledSegments))}
          hint={line(({ segments }) => `of ${formatCount(segments)}`)}
        />
        <Stat
          label="Speed"
          value={line(({ rate }) => formatRate(rate))}
          hint={line(({ etaMs }) =>
            etaMs !== null && etaMs > 0 ? `${formatDuration(etaMs)} left` : 'over the last minute',
          )}
        />
      </dl>
      {stream ? (
        <BalanceLine counts={stream} badHref={`${streamLink(stream.name)}#bad`} />
      ) : (
        <Skeleton lines={2} />
      )}
      {stream && stream.unbalanced > 0 ? (
        <p class="is-danger small">
          {formatPlural(stream.unbalanced, 'slice')} of which all work is done{' '}
          {stream.unbalanced === 1 ? 'does' : 'do'} not add up.{' '}
          <Link href={jobsLink({ stream: stream.name, state: 'canceled' })}>Jobs that were cancelled</Link>{' '}
          may have left items out; retry them.
        </p>
      ) : null}
    </Card>
  )
}
