/** A line chart by uPlot: in the colours of the theme, as wide as its place, and as a table for who cannot see it. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import '../styles/charts.css'
import { formatClock, formatCount, formatShort } from '../format.ts'
import { useStore } from '../store.ts'
import { colours } from '../theme.ts'
import { tableRows } from './series-window.ts'

export type ChartSeries = {
  title: string
  /** A custom property: `--accent`. */
  colour: string
  look?: 'area' | 'line' | 'dashed' | 'bars'
  /** `right` has a scale of its own; `own` one that is not shown, and stays low: for what happens now and then. */
  side?: 'left' | 'right' | 'own'
}

export type ChartProps = {
  /** What it shows, for screen readers. */
  label: string
  /** How it stands now, in a sentence. */
  summary: string
  series: readonly ChartSeries[]
  /** Times in seconds, then a list for each series. */
  data: (number | null)[][]
  heightPx?: number
  /** After values: `/s`. */
  unit?: string
}

const TABLE_ROWS_MAX = 20

export function Chart(props: ChartProps) {
  const { label, summary, series, data, heightPx = 180, unit = '' } = props
  return (
    <figure class="chart">
      <figcaption class="chart-caption">
        <ul class="legend" aria-hidden="true">
          {series.map((one, at) => (
            <li key={one.title}>
              <span
                class={`legend-sign legend-${one.look ?? 'line'}`}
                style={{ color: `var(${one.colour})` }}
              />
              {one.title} <b class="num">{figure(data[at + 1]?.at(-1), unit)}</b>
            </li>
          ))}
        </ul>
        <span class="visually-hidden">{`${label}. ${summary}`}</span>
      </figcaption>
      <Canvas {...props} heightPx={heightPx} />
      <details class="chart-table">
        <summary>As a table</summary>
        <ChartTable {...props} />
      </details>
    </figure>
  )
}

function Canvas({ series, data, heightPx = 180, unit = '' }: ChartProps) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const latest = useRef(data)
  latest.current = data
  const drawnWith = useStore(colours)
  const shape = JSON.stringify(series)
  // Made anew only when its looks change.
  useEffect(() => {
    const element = host.current
    if (!element) return
    const size = () => ({ width: Math.max(100, element.clientWidth), height: heightPx })
    const options = { ...optionsOf(element, series, unit), ...size() }
    const made = new uPlot(options, latest.current as uPlot.AlignedData, element)
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize(size()))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [shape, heightPx, unit, drawnWith])
  useEffect(() => {
    plot.current?.setData(data as uPlot.AlignedData)
  }, [data])
  return <div ref={host} class="chart-canvas" aria-hidden="true" style={{ blockSize: heightPx }} />
}

function optionsOf(host: HTMLElement, series: readonly ChartSeries[], unit: string): uPlot.Options {
  const colour = (name: string): string => resolved(host, `var(${name})`)
  const font = `11px ${getComputedStyle(host).fontFamily}`
  const axis = {
    stroke: colour('--muted'),
    font,
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  const values = (_: uPlot, splits: number[]): string[] => splits.map((value) => formatShort(value))
  const hasRight = series.some(({ side }) => side === 'right')
  return {
    width: 100,
    height: 100,
    padding: [8, hasRight ? 0 : 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    // From zero, and never without height: small changes of a steady rate must not look like an upheaval.
    scales: { x: { time: true }, y: { range: fromZero }, right: { range: fromZero }, own: { range: low } },
    axes: [
      { ...axis, size: 26, gap: 6, space: 90, grid: { show: false }, values: clockValues },
      { ...axis, size: 42, space: 34, values },
      ...(hasRight
        ? [{ ...axis, scale: 'right', side: 1 as const, size: 34, space: 34, values, grid: { show: false } }]
        : []),
    ],
    series: [{}, ...series.map((one) => seriesOf(one, colour(one.colour)))],
    plugins: [hoverPlugin(series, unit)],
  }
}

const fromZero = (_: uPlot, _min: number, max: number): [number, number] => [
  0,
  Math.max(1, (max || 0) * 1.12),
]

const low = (_: uPlot, _min: number, max: number): [number, number] => [0, Math.max(4, (max || 0) * 4)]

const clockValues = (_: uPlot, splits: number[], _axis: number, _space: number, stepS: number): string[] =>
  splits.map((at) => (stepS < 60 ? formatClock(at * 1000) : shortClock.format(at * 1000)))
const shortClock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })

function seriesOf(one: ChartSeries, stroke: string): uPlot.Series {
  const base: uPlot.Series = {
    label: one.title,
    scale: one.side === undefined || one.side === 'left' ? 'y' : one.side,
    stroke,
    width: 1.75,
    points: { show: false },
  }
  if (one.look === 'area') return { ...base, fill: faded(stroke, 0.16) }
  if (one.look === 'dashed') return { ...base, dash: [5, 4], width: 1.5 }
  if (one.look === 'bars') {
    return { ...base, width: 0, fill: stroke, paths: uPlot.paths.bars?.({ size: [0.9, 6, 2] }) }
  }
  return base
}

/** The values under the pointer, as a small note that follows it. */
function hoverPlugin(series: readonly ChartSeries[], unit: string): uPlot.Plugin {
  const note = document.createElement('div')
  note.className = 'chart-hover'
  return {
    hooks: {
      init: (plot) => void plot.over.append(note),
      setCursor: (plot) => {
        const { idx, left = -1 } = plot.cursor
        const at = idx == null ? null : plot.data[0][idx]
        note.hidden = at == null || left < 0
        if (at == null || idx == null) return
        const lines = series.map((one, n) => `${one.title} ${figure(plot.data[n + 1]?.[idx], unit)}`)
        note.textContent = [formatClock(at * 1000), ...lines].join('\n')
        const isRight = left > plot.over.clientWidth / 2
        note.style.transform = `translateX(${Math.round(left)}px) translateX(${isRight ? 'calc(-100% - 10px)' : '10px'})`
      },
    },
  }
}

function ChartTable({ label, series, data, unit = '' }: ChartProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <section class="table-scroll" aria-label={`${label}, as a table`} tabIndex={0}>
      <table class="table">
        <caption class="visually-hidden">{label}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ title }) => (
              <th key={title} scope="col" class="cell-end">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tableRows(data[0] ?? [], TABLE_ROWS_MAX).map((row) => (
            <tr key={row}>
              <th scope="row">{formatClock((data[0]?.[row] ?? 0) * 1000)}</th>
              {series.map(({ title }, at) => (
                <td key={title} class="cell-end">
                  {figure(data[at + 1]?.[row], unit)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

const figure = (value: number | null | undefined, unit: string): string =>
  value == null ? '–' : `${formatCount(Math.round(value * 10) / 10)}${unit}`

/** A canvas knows no custom properties: what the browser makes of them is read off an element. */
function resolved(host: HTMLElement, value: string): string {
  const probe = document.createElement('span')
  probe.style.color = value
  host.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function faded(colour: string, alpha: number): string {
  const parts = colour.match(/^rgb\((\d+), (\d+), (\d+)\)$/)
  return parts ? `rgb(${parts[1]} ${parts[2]} ${parts[3]} / ${alpha})` : colour
}
