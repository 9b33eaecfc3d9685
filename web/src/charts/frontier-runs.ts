/** The frontier as a strip: neighbours of the same kind are drawn as one, so that a strip is a few shapes. */
import type { FrontierView } from '../../../src/app/schemas.ts'

export type CellKind = 'done' | 'active' | 'waiting'
export type Run = { kind: CellKind; from: number; cells: number }

const cellKind = ({ state }: Cell): CellKind => (state === 'settled' ? 'done' : state)

type Cell = FrontierView['cells'][number]
export type Box = { x: number; y: number; width: number; height: number }

/** The least that is seen: of the picture's 1,000 units, and of the height. */
const BAD_WIDTH_MIN = 3
const BAD_HEIGHT_MIN = 0.2

/**
 * What is bad, as red boxes at the foot of the cells: a box has the share of its cell's area that bad items have of all
 * its items. Two of thousands are a small tick; a cell that is all bad is all red.
 */
export function badBoxes(cells: readonly Cell[], edges: readonly number[], height: number): Box[] {
  return cells.flatMap(({ bad, listed }, at) => {
    if (bad <= 0) return []
    const [start = 0, end = start] = [edges[at], edges[at + 1]]
    const share = Math.min(1, bad / Math.max(listed, bad))
    const tall = Math.max(share, BAD_HEIGHT_MIN)
    const width = Math.max(Math.min(BAD_WIDTH_MIN, end - start), ((end - start) * share) / tall)
    return [{ x: start + (end - start - width) / 2, y: height * (1 - tall), width, height: height * tall }]
  })
}

export function runsOf(cells: FrontierView['cells']): Run[] {
  const runs: Run[] = []
  cells.forEach((cell, at) => {
    const kind = cellKind(cell)
    const last = runs.at(-1)
    if (last?.kind === kind) last.cells += 1
    else runs.push({ kind, from: at, cells: 1 })
  })
  return runs
}

/** Where the mark stands, counted in cells: everything to the left is accounted for. */
export function markCell({ cells, markAt }: Pick<FrontierView, 'cells' | 'markAt'>): number {
  const at = cells.findIndex(({ to }) => to > markAt)
  if (at < 0) return cells.length
  const { from, to } = cells[at]!
  return at + Math.max(0, Math.min(1, (markAt - from) / (to - from || 1)))
}
