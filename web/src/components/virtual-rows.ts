/** Which rows of a long list are in sight: the arithmetic of a table that draws only those. */
export type RowWindow = { from: number; to: number; beforePx: number; afterPx: number }

/** Beyond this, browsers clip the height of an element; the rest is reached by narrowing the filter. */
const HEIGHT_PX_MAX = 15_000_000

export function rowWindow(input: {
  rows: number
  rowPx: number
  scrollPx: number
  heightPx: number
  /** Drawn above and below what is in sight, so that quick scrolling shows no gaps. */
  extraRows?: number
}): RowWindow {
  const { rows, rowPx, scrollPx, heightPx, extraRows = 8 } = input
  const shown = Math.min(rows, Math.floor(HEIGHT_PX_MAX / rowPx))
  const first = Math.floor(Math.max(0, scrollPx) / rowPx) - extraRows
  const count = Math.ceil(heightPx / rowPx) + 2 * extraRows
  const from = Math.max(0, Math.min(first, shown - count))
  const to = Math.min(shown, from + count)
  return { from, to, beforePx: from * rowPx, afterPx: (shown - to) * rowPx }
}
