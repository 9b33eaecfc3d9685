/** A closer look at a stretch of a frontier. */
import type { FrontierView } from '../../../src/app/schemas.ts'

export type Cell = FrontierView['cells'][number]
export type Stretch = { from: number; to: number }

/** A step shows about an eighth of what was shown before. */
const STEP = 8
/** So few slices can be told apart as they are. */
const CELLS_CLOSE = 6

/** From one cell to another, both included, in either order. */
export function stretchOf(cells: readonly Cell[], one: number, other: number): Stretch | undefined {
  const first = cells[Math.max(0, Math.min(one, other))]
  const last = cells[Math.min(cells.length - 1, Math.max(one, other))]
  return first && last ? { from: first.from, to: last.to } : undefined
}

export const isClose = (cells: readonly Cell[]): boolean =>
  cells.length <= CELLS_CLOSE && cells.every(({ segments }) => segments <= 1)

/** Around a cell; undefined where it is as close as it gets. */
export function closer(cells: readonly Cell[], at: number): Stretch | undefined {
  if (isClose(cells)) return undefined
  const shown = Math.max(
    cells[at] && cells[at].segments > 1 ? 1 : CELLS_CLOSE,
    Math.round(cells.length / STEP),
  )
  const first = Math.max(0, Math.min(cells.length - shown, at - Math.floor(shown / 2)))
  return stretchOf(cells, first, first + shown - 1)
}

/** Back out around the same middle; undefined for the whole. */
export function wider({ from, to }: Stretch, whole: Stretch): Stretch | undefined {
  const more = ((to - from) * (STEP - 1)) / 2
  const next = {
    from: Math.max(whole.from, Math.floor(from - more)),
    to: Math.min(whole.to, Math.ceil(to + more)),
  }
  return next.from <= whole.from && next.to >= whole.to ? undefined : next
}

/** To a neighbour, by half of what is shown. */
export function moved({ from, to }: Stretch, whole: Stretch, direction: -1 | 1): Stretch {
  const size = to - from
  const start = Math.max(whole.from, Math.min(whole.to - size, from + Math.round(size / 2) * direction))
  return { from: start, to: start + size }
}

/** From the address, where anybody may write anything. */
export function stretchFrom(from: string, to: string): Stretch | undefined {
  if (!/^-?\d{1,15}$/.test(from) || !/^-?\d{1,15}$/.test(to)) return undefined
  const stretch = { from: Number(from), to: Number(to) }
  return stretch.from < stretch.to ? stretch : undefined
}
