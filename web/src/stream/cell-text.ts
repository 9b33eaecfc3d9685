/** What there is to say about a cell of a frontier: where, how far, how much. */
import { formatCount, formatPlural } from '../format.ts'
import { placeText } from './place-text.ts'
import type { Cell } from './zoom.ts'

export function cellText(stream: string, cell: Cell): [place: string, state: string, items: string] {
  const place = `${placeText(stream, cell.from)} to ${placeText(stream, cell.to)}`
  const accounted = cell.stored + cell.gone + cell.skipped + cell.bad
  const bad = cell.bad > 0 ? `, ${formatCount(cell.bad)} of them bad` : ''
  const items =
    cell.listed === 0
      ? cell.state === 'waiting'
        ? 'not listed yet'
        : 'no items'
      : `${formatCount(accounted)} of ${formatPlural(cell.listed, 'item')} accounted for${bad}`
  return [place, stateText(cell), items]
}

function stateText({ segments, settled, state }: Cell): string {
  if (segments <= 1) return { settled: 'done', active: 'under way', waiting: 'waiting' }[state]
  if (state === 'settled') return `all ${formatCount(segments)} slices done`
  if (state === 'waiting') return `${formatCount(segments)} slices waiting`
  return `${formatCount(settled)} of ${formatCount(segments)} slices done`
}
