/** The frontier as a strip: neighbours of the same kind are drawn as one, so that a strip is a few shapes. */
import type { FrontierView } from '../../../src/app/schemas.ts'

export type CellKind = 'done' | 'bad' | 'active' | 'waiting'
export type Run = { kind: CellKind; from: number; cells: number }

export function cellKind(cell: Pick<FrontierView['cells'][number], 'state' | 'bad'>): CellKind {
  if (cell.bad > 0) return 'bad'
  return cell.state === 'settled' ? 'done' : cell.state
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
