/** The shapes of the large picture: few paths, however many cells there are. */
import type { Cell } from './zoom.ts'

/** The picture is so many units wide. */
export const WIDTH = 1000

const settledOf = ({ stored, gone, skipped, bad }: Cell): number => stored + gone + skipped + bad

/**
 * Where each cell begins, and the last one ends: as wide as the time it covers, so that a year is a year. With two
 * exceptions: the first may reach back without an end, and is cut to the longest of the others; and those of a few
 * seconds stay wide enough to be seen.
 */
export function edgesOf(cells: readonly Pick<Cell, 'from' | 'to'>[]): number[] {
  const lengths = cells.map(({ from, to }) => Math.max(0, to - from))
  const others = Math.max(0, ...lengths.slice(1))
  if (others > 0) lengths[0] = Math.min(lengths[0]!, others)
  const least = sum(lengths) / WIDTH || 1
  const widths = lengths.map((length) => Math.max(length, least))
  const total = sum(widths)
  const edges = [0]
  for (const width of widths) edges.push(edges.at(-1)! + (width / total) * WIDTH)
  return edges
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0)

/** Which cell lies there; the nearest one outside of the picture. */
export function cellAt(edges: readonly number[], x: number): number {
  const after = edges.findIndex((edge, at) => at > 0 && edge > x)
  return after < 0 ? Math.max(0, edges.length - 2) : after - 1
}

/** A place that is counted in cells, such as 3.5 for the middle of the fourth. */
export function cellOffset(edges: readonly number[], cell: number): number {
  const at = Math.max(0, Math.min(edges.length - 2, Math.floor(cell)))
  const [start = 0, end = WIDTH] = [edges[at], edges[at + 1]]
  return start + (end - start) * Math.min(1, cell - at)
}

/** Narrower cells than this have no denser mail: a poll of a minute with a letter in it is no flood. */
const DENSITY_WIDTH_MIN = WIDTH / 400

/**
 * A bar for each cell, as high as it is full: its items by its width, so that its area is how much lies there. The lower
 * part is accounted for, the upper one is on its way. Heights go by the square root: next to a month of ten thousand
 * messages one of fifty is still seen.
 */
export function barsOf(cells: readonly Cell[], edges: readonly number[], height: number) {
  const densityOf = ({ listed }: Cell, at: number): number =>
    listed / Math.max(DENSITY_WIDTH_MIN, edges[at + 1]! - edges[at]!)
  const densities = cells.map(densityOf)
  const most = usualMost(densities, edges)
  const accounted: string[] = []
  const open: string[] = []
  cells.forEach((cell, at) => {
    if (cell.listed <= 0 || most === 0) return
    const tall = Math.max(1, height * Math.sqrt(Math.min(1, densities[at]! / most)))
    const done = tall * Math.min(1, settledOf(cell) / cell.listed)
    const box = (top: number, bottom: number): string =>
      `M${round(edges[at]!)} ${round(top)}H${round(edges[at + 1]!)}V${round(bottom)}H${round(edges[at]!)}z`
    if (done > 0) accounted.push(box(height - done, height))
    if (done < tall) open.push(box(height - tall, height - done))
  })
  return { accounted: accounted.join(''), open: open.join('') }
}

/** So much of the picture may be fuller than its highest bar shows. */
const FULLER_SHARE_MAX = 1 / 50

/** What makes a bar of full height: a day on which mail was listed hundreds of times does not flatten years beside it. */
function usualMost(densities: readonly number[], edges: readonly number[]): number {
  const widthOf = (at: number): number => edges[at + 1]! - edges[at]!
  const byDensity = densities.map((_, at) => at).sort((a, b) => densities[b]! - densities[a]!)
  let left = (edges.at(-1) ?? 0) * FULLER_SHARE_MAX
  for (const at of byDensity) {
    left -= widthOf(at)
    if (left < 0 && densities[at]! > 0) return densities[at]!
  }
  return densities[byDensity[0] ?? 0] ?? 0
}

/** About as far apart as they are wide. */
const SIGN_UNITS = 12

/** Where a sign points at bad items: in the middle of their cells, and one for neighbours that it would cover. */
export function badSigns(cells: readonly Cell[], edges: readonly number[]): number[] {
  const signs: number[] = []
  cells.forEach(({ bad }, cell) => {
    const at = cellOffset(edges, cell + 0.5)
    if (bad > 0 && at - (signs.at(-1) ?? -WIDTH) >= SIGN_UNITS) signs.push(at)
  })
  return signs
}

/** Cells whose beginnings are named under the picture: so far apart that the names do not touch. */
export function ticksOf(edges: readonly number[], ticksMax: number): number[] {
  const gap = WIDTH / ticksMax
  const ticks: number[] = []
  for (let at = 0; at < edges.length - 1; at++) {
    const last = ticks.at(-1)
    const isClear = last === undefined || edges[at]! - edges[last]! >= gap
    // The last one would be cut off at the edge.
    if (isClear && (at === 0 || edges[at]! <= WIDTH - gap * 0.8)) ticks.push(at)
  }
  return ticks
}

const round = (value: number): number => Math.round(value * 100) / 100
