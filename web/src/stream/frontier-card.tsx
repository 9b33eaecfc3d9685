import { useState } from 'preact/hooks'
import type { FrontierView } from '../../../src/app/schemas.ts'
import { Button } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { ErrorNote, Skeleton } from '../components/notes.tsx'
import { formatPlural } from '../format.ts'
import { useFrontier } from '../queries.ts'
import { setSearchParams, useSearchParam } from '../search-params.ts'
import { cellText, placeText } from './cell-text.ts'
import { FrontierPicture, useWidth } from './frontier-picture.tsx'
import { moved, type Stretch, stretchFrom, wider } from './zoom.ts'

const CELLS_MAX = 400
const CELL_PX_MIN = 3

/** What is looked at stands in the address: a link shows the same, and "back" leads out again. */
export function useStretch(): Stretch | undefined {
  return stretchFrom(useSearchParam('from'), useSearchParam('to'))
}

const show = (stretch: Stretch | undefined): void =>
  setSearchParams({ from: stretch?.from, to: stretch?.to }, { push: true })

export function FrontierCard({ name }: { name: string }) {
  const stretch = useStretch()
  const { ref, widthPx } = useWidth()
  const [looked, setLooked] = useState<number>()
  const cells = Math.min(CELLS_MAX, Math.floor((widthPx || CELLS_MAX * CELL_PX_MIN) / CELL_PX_MIN))
  const whole = useFrontier(name, { cells })
  const near = useFrontier(name, { cells, ...(stretch ?? {}) })
  const seen = near.data
  const span = { from: whole.data?.from ?? 0, to: whole.data?.to ?? 0 }
  const zoom = (to: Stretch | 'out' | 'whole'): void => {
    if (to !== 'out' && to !== 'whole') show(to)
    else if (stretch) show(to === 'out' ? wider(stretch, span) : undefined)
    setLooked(undefined)
  }
  const cell = looked === undefined ? undefined : seen?.cells[Math.min(looked, seen.cells.length - 1)]
  return (
    <Card
      title="Frontier"
      class="frontier-card"
      actions={<ZoomButtons stretch={stretch} whole={span} onZoom={zoom} onMove={show} />}
    >
      <p class="frontier-says num" aria-hidden="true">
        {cell ? <CellLine stream={name} cell={cell} /> : seen ? overall(seen, stretch) : ' '}
      </p>
      <div ref={ref} class="frontier-place">
        {near.error && !seen ? <ErrorNote error={near.error} retry={near.refetch} /> : null}
        {!seen && !near.error ? <Skeleton height="10rem" /> : null}
        {seen && seen.cells.length === 0 ? (
          <p class="muted">
            {stretch
              ? 'There is nothing in this stretch.'
              : 'Not cut into slices yet: the first listing is under way.'}
          </p>
        ) : null}
        {seen && seen.cells.length > 0 ? (
          <FrontierPicture
            frontier={seen}
            looked={looked}
            onLook={setLooked}
            onZoom={zoom}
            widthPx={widthPx}
          />
        ) : null}
      </div>
      <Legend />
    </Card>
  )
}

function CellLine({ stream, cell }: { stream: string; cell: FrontierView['cells'][number] }) {
  const [place, state, items] = cellText(stream, cell)
  return (
    <>
      <b>{place}</b>: {state}; {items}
    </>
  )
}

function overall({ stream, from, to, segments, cells }: FrontierView, stretch: Stretch | undefined): string {
  const settled = cells.reduce((sum, cell) => sum + cell.settled, 0)
  const done = `${formatPlural(settled, 'slice')} done of ${formatPlural(segments, 'slice')}`
  if (!stretch) return `The whole: ${done}.`
  return `${placeText(stream, from)} to ${placeText(stream, to)}: ${done}.`
}

function ZoomButtons(props: {
  stretch: Stretch | undefined
  whole: Stretch
  onZoom: (to: 'out' | 'whole') => void
  onMove: (to: Stretch) => void
}) {
  const { stretch, whole, onZoom, onMove } = props
  if (!stretch) return <span class="muted small">Click or drag to look closer</span>
  return (
    <>
      <Button
        small
        icon="back"
        aria-label="Earlier"
        disabled={stretch.from <= whole.from}
        onClick={() => onMove(moved(stretch, whole, -1))}
      />
      <Button
        small
        icon="next"
        aria-label="Later"
        disabled={stretch.to >= whole.to}
        onClick={() => onMove(moved(stretch, whole, 1))}
      />
      <Button small onClick={() => onZoom('out')}>
        Wider
      </Button>
      <Button small onClick={() => onZoom('whole')}>
        Show all
      </Button>
    </>
  )
}

const LEGEND = [
  { look: 'done', text: 'done' },
  { look: 'active', text: 'under way' },
  { look: 'waiting', text: 'waiting' },
  { look: 'bad', text: 'has bad items' },
  { look: 'mark', text: 'complete up to here: all before it is accounted for' },
] as const

function Legend() {
  return (
    <div class="frontier-foot">
      <ul class="frontier-legend">
        {LEGEND.map(({ look, text }) => (
          <li key={look}>
            <span class={`key key-${look}`} aria-hidden="true" />
            {text}
          </li>
        ))}
      </ul>
      <p class="muted small" id="frontier-keys">
        Bars show how many items lie where. Keys: arrows move, Enter looks closer, minus goes back out, Escape
        shows all.
      </p>
    </div>
  )
}
