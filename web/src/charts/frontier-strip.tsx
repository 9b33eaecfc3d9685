/** A stream's whole axis in one line: done, under way, waiting, with bad items; and where the mark stands. */
import '../styles/frontier-strip.css'
import { Skeleton } from '../components/notes.tsx'
import { formatPlural, formatPosition, formatShare } from '../format.ts'
import { useFrontier } from '../queries.ts'
import { markCell, runsOf } from './frontier-runs.ts'

const CELLS = 160

export function FrontierStrip({ stream }: { stream: string }) {
  const { data } = useFrontier(stream, { cells: CELLS })
  if (!data) {
    return (
      <div class="strip">
        <Skeleton height="1.75rem" />
        <p class="strip-ends"> </p>
      </div>
    )
  }
  const { cells } = data
  if (cells.length === 0) {
    return (
      <div class="strip">
        <div class="strip-none" />
        <p class="strip-ends">Not cut into slices yet</p>
      </div>
    )
  }
  const settled = cells.reduce((sum, cell) => sum + cell.settled, 0)
  const share = settled / Math.max(1, data.segments)
  const label = `${formatShare(share)} of ${formatPlural(data.segments, 'slice')} done; the mark stands at ${formatPosition(stream, data.markAt)}`
  const markAt = markCell(data)
  return (
    <div class="strip">
      <svg
        class="strip-picture"
        viewBox={`0 0 ${cells.length} 10`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {runsOf(cells).map(({ kind, from, cells: width }) => (
          <rect key={from} class={`cell-${kind}`} x={from} y={0} width={width} height={10} />
        ))}
      </svg>
      <span class="strip-mark" style={{ insetInlineStart: `${(markAt / cells.length) * 100}%` }} />
      <p class="strip-ends" aria-hidden="true">
        <span>{formatPosition(stream, cells[0]!.from > 0 ? cells[0]!.from : cells[0]!.to)}</span>
        <span>{formatPosition(stream, cells.at(-1)!.to)}</span>
      </p>
    </div>
  )
}
