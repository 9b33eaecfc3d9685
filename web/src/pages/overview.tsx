/** Ten seconds: what it is doing, how far it got, what needs somebody. */
import { useState } from 'preact/hooks'
import type { Overview } from '../../../src/app/schemas.ts'
import { LimiterChart, ThroughputChart, WorkersChart } from '../charts/engine-charts.tsx'
import { useSeries } from '../charts/series-query.ts'
import { budgetNames, type ChartSpan, SPANS } from '../charts/series-window.ts'
import { ButtonLink } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { named, Segmented, Select } from '../components/form.tsx'
import { EmptyNote, ErrorNote, Skeleton } from '../components/notes.tsx'
import { PageTitle } from '../components/page-title.tsx'
import { Stat } from '../components/stat.tsx'
import { formatCount, formatPlural, formatRate, formatShare } from '../format.ts'
import { jobsLink, settingsLink } from '../links.ts'
import { NeedsYou } from '../overview/needs-you.tsx'
import { RunningNow } from '../overview/running-now.tsx'
import { totalsOf, useShare, workText } from '../overview/share.ts'
import { StreamCard, StreamCardSkeleton } from '../overview/stream-card.tsx'
import { useOverview } from '../queries.ts'
import '../styles/overview.css'
import '../styles/work.css'

export function OverviewPage() {
  const { data, error, refetch } = useOverview()
  return (
    <>
      <PageTitle title="Overview" lead={data ? workText(data) : <Skeleton width="18rem" />} />
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {error && !data ? null : (
        <div class="overview">
          <Totals overview={data} />
          <div class="overview-side">
            <div class="overview-needs" id="needs-you" tabIndex={-1}>
              <NeedsYou overview={data} />
            </div>
            <div class="overview-running">
              <RunningNow overview={data} />
            </div>
          </div>
          <div class="overview-main">
            <Streams overview={data} />
            <Charts />
          </div>
        </div>
      )}
    </>
  )
}

function Totals({ overview }: { overview: Overview | undefined }) {
  const share = useShare(overview?.streams ?? [])
  const totals = overview ? totalsOf(overview) : undefined
  const line = (text: (known: NonNullable<typeof totals>) => string) =>
    totals ? text(totals) : <Skeleton width="5ch" />
  return (
    <Card class="overview-totals">
      <h2 class="visually-hidden">All streams together</h2>
      <dl class="stats totals">
        <Stat
          label="Accounted for"
          value={line(() => (share === null ? '–' : formatShare(share)))}
          hint={line(({ settled, whole }) => `${formatCount(settled)} of ${formatCount(whole)}`)}
        />
        <Stat
          label="Speed"
          value={line(({ rate }) => formatRate(rate))}
          hint={line(({ rate, running }) =>
            rate > 0 ? 'over the last minute' : running > 0 ? 'nothing settled just now' : 'nothing to do',
          )}
        />
        <Stat
          label="Jobs"
          href={jobsLink()}
          value={line(({ running }) => formatCount(running))}
          hint={line(({ waiting }) => `running; ${formatCount(waiting)} waiting`)}
        />
        <Stat
          label="Set aside"
          tone={totals && totals.bad > 0 ? 'danger' : 'neutral'}
          value={line(({ bad }) => formatCount(bad))}
          hint={line(({ bad }) => (bad > 0 ? 'could not be fetched' : 'no bad items'))}
        />
        <Stat
          label="Engines"
          value={line(({ engines }) => formatCount(engines))}
          hint={line(({ silent }) =>
            silent > 0 ? `${formatPlural(silent, 'one', 'others')} silent` : 'all answer',
          )}
          tone={totals && totals.silent > 0 ? 'warn' : 'neutral'}
        />
      </dl>
    </Card>
  )
}

function Streams({ overview }: { overview: Overview | undefined }) {
  if (overview && overview.streams.length === 0) {
    return (
      <section class="overview-streams" aria-label="Streams">
        <EmptyNote
          title="Nothing is copied yet"
          action={
            <ButtonLink href={settingsLink()} kind="primary" icon="person">
              Connect an account
            </ButtonLink>
          }
        >
          First connect a Gmail or OneDrive account. Tidemark begins to copy at once; you can watch it here,
          and find what is copied under Find anything.
        </EmptyNote>
      </section>
    )
  }
  return (
    <section class="overview-streams stack" aria-label="Streams">
      {overview ? (
        overview.streams.map((stream) => <StreamCard key={stream.name} stream={stream} />)
      ) : (
        <StreamCardSkeleton />
      )}
    </section>
  )
}

const SPAN_OPTIONS = [
  { value: 'minutes', text: '10 minutes' },
  { value: 'day', text: '24 hours' },
] as const

function Charts() {
  const [span, setSpan] = useState<ChartSpan>('minutes')
  const [wanted, setWanted] = useState<string>()
  const { data: points = [], error, refetch } = useSeries(span)
  const names = budgetNames(points)
  const budget = wanted !== undefined && names.includes(wanted) ? wanted : names[0]
  const { stepS } = SPANS[span]
  return (
    <section class="overview-charts" aria-label="Speed and limits">
      <div class="section-head">
        <h2>Speed and limits</h2>
        <Segmented label="Time shown" options={SPAN_OPTIONS} value={span} onChange={setSpan} />
      </div>
      {error && points.length === 0 ? <ErrorNote error={error} retry={refetch} /> : null}
      <Card title="Throughput" level={3} class="chart-wide">
        <ThroughputChart points={points} stepS={stepS} heightPx={150} />
      </Card>
      <Card
        title="Limiter"
        level={3}
        actions={
          names.length > 1 ? (
            <Select
              class="input input-small"
              aria-label="Budget shown"
              value={budget ?? ''}
              options={named(names)}
              onChange={setWanted}
            />
          ) : (
            <span class="muted small">{budget ?? ''}</span>
          )
        }
      >
        <LimiterChart points={points} stepS={stepS} budget={budget ?? ''} />
      </Card>
      <Card title="Jobs running and waiting" level={3}>
        <WorkersChart points={points} stepS={stepS} />
      </Card>
    </section>
  )
}
