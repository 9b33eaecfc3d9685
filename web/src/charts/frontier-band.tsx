/** The shapes of a frontier in one line: done, under way, waiting and bad, each cell from its edge to the next. */
import type { FrontierView } from '../../../src/app/schemas.ts'
import { badBoxes, runsOf } from './frontier-runs.ts'

export const BAND_HEIGHT = 10

export type BandProps = {
  cells: FrontierView['cells']
  /** Where each cell begins and the last one ends: see `edgesOf`. */
  edges: readonly number[]
}

export function FrontierBand({ cells, edges }: BandProps) {
  return (
    <>
      {runsOf(cells).map(({ kind, from, cells: count }) => (
        <rect
          key={from}
          class={`cell-${kind}`}
          x={edges[from]}
          y={0}
          width={edges[from + count]! - edges[from]!}
          height={BAND_HEIGHT}
        />
      ))}
      {badBoxes(cells, edges, BAND_HEIGHT).map((box) => (
        <rect key={`bad ${box.x}`} class="cell-bad" {...box} />
      ))}
    </>
  )
}
