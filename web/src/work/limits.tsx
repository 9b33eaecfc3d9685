/** Budgets: what is allowed, what is used, what was refused, and how that went. */
import { useQuery } from '@tanstack/preact-query'
import { useState } from 'preact/hooks'
import type { BudgetView } from '../../../src/app/schemas.ts'
import { api } from '../api.ts'
import { LimiterChart } from '../charts/engine-charts.tsx'
import { useSeries } from '../charts/series-query.ts'
import { type ChartSpan, type SeriesPoint, SPANS } from '../charts/series-window.ts'
import { Badge } from '../components/badge.tsx'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Segmented } from '../components/form.tsx'
import { EmptyNote, ErrorNote, Skeleton } from '../components/notes.tsx'
import { formatCount, formatDuration, formatPlural } from '../format.ts'
import { keys, useNow } from '../queries.ts'

/** Each has a chart that is drawn again every two seconds. */
const SHOWN_MAX = 4

const SPAN_OPTIONS = [
  { value: 'minutes', text: '10 minutes' },
  { value: 'day', text: '24 hours' },
] as const

export function Limits() {
  const [span, setSpan] = useState<ChartSpan>('minutes')
  const [isAll, setAll] = useState(false)
  const { data, error, refetch } = useQuery({
    queryKey: keys.limits,
    queryFn: ({ signal }) => api.limits(signal),
  })
  const { data: points = [] } = useSeries(span)
  const limits = data?.items ?? []
  const shown = isAll ? limits : limits.slice(0, SHOWN_MAX)
  return (
    <section class="stack" aria-labelledby="limits-title">
      <div class="ends">
        <h2 id="limits-title">Limits</h2>
        <Segmented label="Time shown" options={SPAN_OPTIONS} value={span} onChange={setSpan} />
      </div>
      {error && !data ? <ErrorNote error={error} retry={refetch} /> : null}
      {!data && !error ? <Skeleton height="16rem" /> : null}
      {data && limits.length === 0 ? (
        <EmptyNote title="Nothing is limited">Limits appear as soon as an account is connected.</EmptyNote>
      ) : null}
      <div class="limit-grid">
        {shown.map((budget) => (
          <Limit key={budget.name} budget={budget} points={points} stepS={SPANS[span].stepS} />
        ))}
      </div>
      {limits.length > shown.length ? (
        <div>
          <Button onClick={() => setAll(true)}>Show all {formatCount(limits.length)} limits</Button>
        </div>
      ) : null}
    </section>
  )
}

type LimitProps = { budget: BudgetView; points: readonly SeriesPoint[]; stepS: number }

function Limit({ budget, points, stepS }: LimitProps) {
  const { ceiling, p50Ms, p95Ms } = budget
  const facts = [
    ['Allowed', `${formatCount(Math.round(budget.rate * 10) / 10)}/s`],
    ['Ceiling', ceiling === null ? 'none' : `${formatCount(ceiling)}/s`],
    ['At once', `${formatCount(budget.running)} of ${formatCount(budget.workers)}`],
    ['Waiting', formatCount(budget.waiting)],
    ['Refused', formatCount(budget.throttles)],
    ['Calls take', p50Ms === null ? '–' : formatDuration(p50Ms)],
    ['Slowest 5%', p95Ms === null ? '–' : `over ${formatDuration(p95Ms)}`],
  ] as const
  return (
    <Card
      title={<span class="any-break">{budget.name}</span>}
      level={3}
      actions={<LimitState budget={budget} />}
    >
      <LimiterChart points={points} stepS={stepS} budget={budget.name} heightPx={150} />
      <dl class="fact-grid">
        {facts.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="num">{text}</dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}

function LimitState({ budget }: { budget: BudgetView }) {
  const now = useNow()
  const leftMs = (budget.pausedUntil ?? 0) - now
  if (leftMs > 0) return <Badge tone="warn">Waits {formatDuration(Math.ceil(leftMs / 1000) * 1000)}</Badge>
  if (budget.waiting > 0) return <Badge tone="neutral">{formatPlural(budget.waiting, 'call')} waiting</Badge>
  return <Badge tone="accent">Free</Badge>
}
