/** How fast it goes, and what holds it back. */
import { useMemo } from 'preact/hooks'
import { formatCount, formatPlural, formatRate } from '../format.ts'
import { Chart } from './chart.tsx'
import { columnsOf, type SeriesPoint } from './series-window.ts'

type Props = { points: readonly SeriesPoint[]; stepS: number; heightPx?: number }

export function ThroughputChart({ points, stepS, heightPx }: Props) {
  const data = useMemo(() => columnsOf(points, [({ rate }) => rate], stepS), [points, stepS])
  return (
    <Chart
      label="Items settled a second"
      summary={`Now ${formatRate(points.at(-1)?.rate ?? 0)}.`}
      series={[{ title: 'Settled', colour: '--accent', look: 'area' }]}
      data={data}
      unit="/s"
      heightPx={heightPx}
    />
  )
}

/** What is used of a budget against what is allowed, and the calls that were refused. */
export function LimiterChart({ points, stepS, heightPx, budget }: Props & { budget: string }) {
  const data = useMemo(() => {
    const of = (name: 'used' | 'allowed' | 'throttled') => (point: SeriesPoint) =>
      point.budgets[budget]?.[name]
    return columnsOf(points, [of('used'), of('allowed'), of('throttled')], stepS)
  }, [points, budget, stepS])
  const now = points.at(-1)?.budgets[budget]
  const refused = points.reduce((sum, point) => sum + (point.budgets[budget]?.throttled ?? 0), 0)
  return (
    <Chart
      label={`Units a second of the budget ${budget}, used and allowed, and refused calls`}
      summary={`Now ${formatCount(now?.used ?? 0)} of ${formatCount(now?.allowed ?? 0)}; ${formatPlural(refused, 'call')} refused in this time.`}
      series={[
        { title: 'Used', colour: '--accent', look: 'area' },
        { title: 'Allowed', colour: '--muted', look: 'dashed' },
        { title: 'Refused', colour: '--danger', look: 'bars', side: 'own' },
      ]}
      data={data}
      heightPx={heightPx}
    />
  )
}

export function WorkersChart({ points, stepS, heightPx }: Props) {
  const data = useMemo(
    () => columnsOf(points, [({ running }) => running, ({ waiting }) => waiting], stepS),
    [points, stepS],
  )
  const now = points.at(-1)
  return (
    <Chart
      label="Jobs that run and jobs that wait for a worker"
      summary={`Now ${formatPlural(now?.running ?? 0, 'job')} running, ${formatCount(now?.waiting ?? 0)} waiting.`}
      series={[
        { title: 'Running', colour: '--accent', look: 'area' },
        { title: 'Waiting', colour: '--muted', look: 'line', side: 'right' },
      ]}
      data={data}
      heightPx={heightPx}
    />
  )
}
