/** The frontier of a stream: how much lies where, what of it is done, and how far the mark has come. */
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { FrontierView } from '../../../src/app/schemas.ts'
import { BAND_HEIGHT, FrontierBand } from '../charts/frontier-band.tsx'
import { markCell } from '../charts/frontier-runs.ts'
import { cellText, placeText } from './cell-text.ts'
import { badSigns, barsOf, cellAt, cellOffset, edgesOf, ticksOf, WIDTH } from './picture-shapes.ts'
import { closer, type Stretch, stretchOf } from './zoom.ts'

const BARS_HEIGHT = 100
/** Between two dates under the picture. */
const TICK_PX_MIN = 150
/** A pointer that moved less was meant as a click. */
const DRAG_CELLS_MIN = 2

export type PictureProps = {
  frontier: FrontierView
  /** The cell that is looked at; undefined if none. */
  looked: number | undefined
  onLook: (at: number | undefined) => void
  onZoom: (to: Stretch | 'out' | 'whole') => void
  widthPx: number
}

export function FrontierPicture({ frontier, looked, onLook, onZoom, widthPx }: PictureProps) {
  const { cells, stream } = frontier
  const edges = useMemo(() => edgesOf(cells), [cells])
  const box = useRef<HTMLDivElement>(null)
  const [dragFrom, setDragFrom] = useState<number>()
  const at = looked === undefined ? undefined : Math.min(looked, cells.length - 1)
  const cellUnder = (event: PointerEvent): number => {
    const { left, width } = box.current!.getBoundingClientRect()
    return cellAt(edges, ((event.clientX - left) / width) * WIDTH)
  }
  const zoomTo = (stretch: Stretch | undefined): void => {
    if (stretch) onZoom(stretch)
  }
  const onUp = (event: PointerEvent): void => {
    const end = cellUnder(event)
    const start = dragFrom
    setDragFrom(undefined)
    if (start === undefined) return
    const isDrag = Math.abs(end - start) >= DRAG_CELLS_MIN
    zoomTo(isDrag ? stretchOf(cells, start, end) : closer(cells, end))
  }
  return (
    <div class="frontier-frame">
      <div
        ref={box}
        class="frontier-box"
        role="slider"
        tabIndex={0}
        aria-label="Slice looked at"
        aria-orientation="horizontal"
        aria-describedby="frontier-keys"
        aria-valuemin={1}
        aria-valuemax={cells.length}
        aria-valuenow={(at ?? 0) + 1}
        aria-valuetext={cellText(stream, cells[at ?? 0]!).join('. ')}
        onKeyDown={(event) => onKey(event, { at, cells, onLook, onZoom })}
        onFocus={(event) => {
          if (event.currentTarget.matches(':focus-visible')) onLook(at ?? 0)
        }}
        onBlur={() => onLook(undefined)}
        onPointerMove={(event) => onLook(cellUnder(event))}
        onPointerLeave={() => {
          setDragFrom(undefined)
          onLook(undefined)
        }}
        onPointerDown={(event) => {
          if (event.button === 0) setDragFrom(cellUnder(event))
        }}
        onPointerUp={onUp}
      >
        <Shapes cells={cells} edges={edges} />
        <Selection from={dragFrom ?? at} to={at} edges={edges} />
        <Mark frontier={frontier} edges={edges} />
      </div>
      <Axis frontier={frontier} edges={edges} ticksMax={Math.max(2, Math.floor(widthPx / TICK_PX_MIN))} />
    </div>
  )
}

type Edges = readonly number[]

const share = (units: number): string => `${(units / WIDTH) * 100}%`

function Shapes({ cells, edges }: { cells: FrontierView['cells']; edges: Edges }) {
  const bars = barsOf(cells, edges, BARS_HEIGHT)
  return (
    <>
      <svg
        class="frontier-bars"
        viewBox={`0 0 ${WIDTH} ${BARS_HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <path class="bar-open" d={bars.open} />
        <path class="bar-accounted" d={bars.accounted} />
      </svg>
      <svg
        class="frontier-band"
        viewBox={`0 0 ${WIDTH} ${BAND_HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <FrontierBand cells={cells} edges={edges} />
      </svg>
      <div class="frontier-bad">
        {badSigns(cells, edges).map((at) => (
          <span key={at} style={{ left: share(at) }} />
        ))}
      </div>
    </>
  )
}

function Selection(props: { from: number | undefined; to: number | undefined; edges: Edges }) {
  const { from, to, edges } = props
  if (from === undefined || to === undefined) return null
  const start = edges[Math.min(from, to)] ?? 0
  const end = edges[Math.max(from, to) + 1] ?? WIDTH
  return (
    <span
      class="frontier-selection"
      style={{ left: share(start), inlineSize: share(Math.max(0, end - start)) }}
    />
  )
}

function Mark({ frontier, edges }: { frontier: FrontierView; edges: Edges }) {
  const { cells, markAt, stream } = frontier
  // Outside of a stretch that is looked at closely; its edge would be a wrong place.
  if (markAt < cells[0]!.from || markAt > cells.at(-1)!.to) return null
  const at = cellOffset(edges, markCell(frontier))
  return (
    <>
      <span class="frontier-mark" style={{ left: share(at) }} />
      {/* Moved back by its share of its own width: it never reaches over an edge. */}
      <span class="mark-label" style={{ left: share(at), translate: `-${share(at)}` }}>
        {markAt <= 0 ? 'complete up to: nothing yet' : `complete up to ${placeText(stream, markAt)}`}
      </span>
    </>
  )
}

function Axis(props: { frontier: FrontierView; edges: Edges; ticksMax: number }) {
  const { frontier, edges, ticksMax } = props
  return (
    <div class="frontier-axis" aria-hidden="true">
      {ticksOf(edges, ticksMax).map((at) => (
        <span key={at} style={{ left: share(edges[at]!) }}>
          {placeText(frontier.stream, frontier.cells[at]!.from)}
        </span>
      ))}
    </div>
  )
}

type KeyTarget = Pick<PictureProps, 'onLook' | 'onZoom'> & {
  at: number | undefined
  cells: FrontierView['cells']
}

function onKey(
  event: JSX.TargetedKeyboardEvent<HTMLDivElement>,
  { at = 0, cells, onLook, onZoom }: KeyTarget,
): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const page = Math.max(1, Math.round(cells.length / 10))
  const steps: Record<string, number> = {
    ArrowRight: at + 1,
    ArrowLeft: at - 1,
    ArrowUp: at + 1,
    ArrowDown: at - 1,
    PageUp: at + page,
    PageDown: at - page,
    Home: 0,
    End: cells.length - 1,
  }
  const step = steps[event.key]
  const isIn = ['Enter', ' ', '+', '='].includes(event.key)
  if (step === undefined && !isIn && !['-', 'Escape', '0'].includes(event.key)) return
  event.preventDefault()
  if (step !== undefined) onLook(Math.max(0, Math.min(cells.length - 1, step)))
  else if (event.key === '-') onZoom('out')
  else if (!isIn) onZoom('whole')
  else {
    const stretch = closer(cells, at)
    if (stretch) onZoom(stretch)
  }
}

/** How wide its place is, as steps: a few pixels more must not ask for another picture. */
export function useWidth(stepPx = 100) {
  const ref = useRef<HTMLDivElement>(null)
  const [widthPx, setWidthPx] = useState(0)
  useEffect(() => {
    if (!ref.current) return
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidthPx(Math.max(stepPx, Math.floor(entry.contentRect.width / stepPx) * stepPx))
    })
    observer.observe(ref.current)
    return () => observer.disconnect()
  }, [stepPx])
  return { ref, widthPx }
}
