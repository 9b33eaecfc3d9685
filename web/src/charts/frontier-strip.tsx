/** A stream's whole axis in one line: done, under way, waiting, with bad items; and where the mark stands. */
import '../styles/frontier-strip.css'
import { Skeleton } from '../components/notes.tsx'
import { formatPlural, formatShare } from '../format.ts'
import { useFrontier } from '../queries.ts'
import { placeText } from '../stream/cell-text.ts'
import { cellOffset, edgesOf, WIDTH } from '../stream/picture-shapes.ts'
import { BAND_HEIGHT, FrontierBand } from './frontier-band.tsx'
import { markCell } from './frontier-runs.ts'

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
  const label = `${formatShare(share)} of ${formatPlural(data.segments, 'slice')} done; complete up to ${placeText(stream, data.markAt)}`
  // As wide as in the large picture: a place here is the same place there.
  const edges = edgesOf(cells)
  const markAt = cellOffset(edges, markCell(data))
  return (
    <div class="strip">
      <svg
        class="strip-picture"
        viewBox={`0 0 ${WIDTH} ${BAND_HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        <FrontierBand cells={cells} edges={edges} />
      </svg>
      <span class="strip-mark" style={{ insetInlineStart: `${(markAt / WIDTH) * 100}%` }} />
      <p class="strip-ends" aria-hidden="true">
        <span>{placeText(stream, cells[0]!.from > 0 ? cells[0]!.from : cells[0]!.to)}</span>
        <span>{placeText(stream, cells.at(-1)!.to)}</span>
      </p>
    </div>
  )
}
