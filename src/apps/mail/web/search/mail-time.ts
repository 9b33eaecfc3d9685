/** When a message came, as short as it can be told: the clock today, the day this year, else with its year. */
import { formatDay } from '../../../../../web/src/format.ts'

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })

export function mailTime(at: number, now: number): string {
  if (!Number.isFinite(at) || Math.abs(at) > 8.64e15) return formatDay(at)
  const then = new Date(at)
  const today = new Date(now)
  if (then.toDateString() === today.toDateString()) return clock.format(at)
  return then.getFullYear() === today.getFullYear() ? dayOfYear.format(at) : formatDay(at)
}
