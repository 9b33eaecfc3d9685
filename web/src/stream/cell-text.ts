/** What there is to say about a cell of a frontier: where, how far, how much. */
import { appPages } from '../../../src/apps/pages.ts'
import type { AppPages } from '../app-pages.ts'
import { formatCount, formatPlural, formatPosition, formatTime } from '../format.ts'
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

/** Places on a stream's axis: days as they are, anything finer with its time of day. */
const DAY_S = 86_400

export function placeText(stream: string, position: number): string {
  if (!stream.startsWith('mail:')) return ofApp(stream)?.place?.(position) ?? formatCount(position)
  const isDay = position <= 0 || position % DAY_S === 0
  return isDay ? formatPosition(stream, position) : formatTime(position * 1000)
}

const ofApp = (stream: string): AppPages['stream'] =>
  appPages.find(({ name }) => stream.startsWith(`${name}:`))?.stream
