/** The points a chart shows: new ones join, old ones leave, gaps stay gaps. */
import type { SeriesView } from '../../../src/app/schemas.ts'

export type SeriesPoint = SeriesView['points'][number]
export type ChartSpan = 'minutes' | 'day'

export const SPANS: Record<ChartSpan, { stepS: 1 | 60; windowS: number; refetchMs: number }> = {
  minutes: { stepS: 1, windowS: 600, refetchMs: 2_000 },
  day: { stepS: 60, windowS: 86_400, refetchMs: 30_000 },
}

/** Both are sorted by time. A point that came again replaces the one before: its second was not over yet. */
export function joinPoints(
  before: readonly SeriesPoint[],
  fresh: readonly SeriesPoint[],
  windowS: number,
): SeriesPoint[] {
  const firstFresh = fresh[0]
  if (!firstFresh) return [...before]
  const kept = before.filter(({ at }) => at < firstFresh.at)
  const fromS = fresh.at(-1)!.at - windowS
  return [...kept, ...fresh].filter(({ at }) => at >= fromS)
}

/** From which time on to ask: the last point once more, or the whole window. */
export function sinceOf(
  before: readonly SeriesPoint[],
  span: { stepS: number; windowS: number },
  nowS: number,
): number {
  const last = before.at(-1)
  const windowFrom = Math.floor(nowS - span.windowS)
  return last ? Math.max(windowFrom, Math.floor(last.at - span.stepS)) : windowFrom
}

/** Columns for uPlot: times, then one list for each figure; null where nothing was measured. */
export function columnsOf(
  points: readonly SeriesPoint[],
  figures: readonly ((point: SeriesPoint) => number | null | undefined)[],
  stepS: number,
): (number | null)[][] {
  const columns: (number | null)[][] = [[], ...figures.map(() => [])]
  let lastAt = Number.NEGATIVE_INFINITY
  for (const point of points) {
    // Nothing was measured for a while: a line across it would be made up.
    if (point.at - lastAt > 5 * stepS && columns[0]!.length > 0) add(columns, lastAt + stepS, [])
    const values = figures.map((figure) => figure(point) ?? null)
    add(columns, point.at, values)
    lastAt = point.at
  }
  return columns
}

function add(columns: (number | null)[][], at: number, values: readonly (number | null)[]): void {
  columns[0]!.push(at)
  for (let n = 1; n < columns.length; n++) columns[n]!.push(values[n - 1] ?? null)
}

/** The budgets that occur, the busiest first. */
export function budgetNames(points: readonly SeriesPoint[]): string[] {
  const used = new Map<string, number>()
  for (const { budgets } of points) {
    for (const [name, budget] of Object.entries(budgets)) used.set(name, (used.get(name) ?? 0) + budget.used)
  }
  return [...used].sort(([a, x], [b, y]) => y - x || a.localeCompare(b)).map(([name]) => name)
}

/** For the table beside a chart: so many rows, the newest first, evenly taken. */
export function tableRows(times: readonly (number | null)[], rowsMax: number): number[] {
  const step = Math.max(1, Math.ceil(times.length / rowsMax))
  const rows: number[] = []
  for (let at = times.length - 1; at >= 0; at -= step) rows.push(at)
  return rows
}
