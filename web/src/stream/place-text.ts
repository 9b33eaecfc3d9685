/** Places on a stream's axis: days as they are, anything finer with its time of day. */
import { formatPosition, formatTime } from '../format.ts'

const DAY_S = 86_400

export function placeText(stream: string, position: number): string {
  const isDay = !stream.startsWith('mail:') || position <= 0 || position % DAY_S === 0
  return isDay ? formatPosition(stream, position) : formatTime(position * 1000)
}
