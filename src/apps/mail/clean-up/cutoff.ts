/** How people say what a run is about: how old mail must be, and that they mean it. */
import { UsageError } from '../../../base/errors.ts'

const AGE = /^(\d{1,4})\s*(d|w|mo|y)$/i
const DAY_MS = 86_400_000

/** When a message must have arrived before, to be older than `text`. Months and years are those of the calendar. */
export function cutoffOf(text: string, nowMs: number): number {
  const [, amount, unit] = AGE.exec(text.trim()) ?? []
  if (amount === undefined || unit === undefined) {
    const hint = /^\d+\s*m$/i.test(text.trim())
      ? `Months are written mo: ${Number.parseInt(text, 10)}mo.`
      : 'Write it like 90d, 26w, 18mo or 2y.'
    throw new UsageError(`"${text}" is not an age.`, { hint })
  }
  const n = Number(amount)
  const date = new Date(nowMs)
  switch (unit.toLowerCase()) {
    case 'd':
      return nowMs - n * DAY_MS
    case 'w':
      return nowMs - n * 7 * DAY_MS
    case 'mo':
      return monthsBefore(date, n)
    default:
      return monthsBefore(date, n * 12)
  }
}

/** The 31st of a month that has none is its last day. */
function monthsBefore(date: Date, months: number): number {
  const before = new Date(date)
  before.setUTCDate(1)
  before.setUTCMonth(before.getUTCMonth() - months)
  const days = new Date(Date.UTC(before.getUTCFullYear(), before.getUTCMonth() + 1, 0)).getUTCDate()
  before.setUTCDate(Math.min(date.getUTCDate(), days))
  return before.getTime()
}

/** What is typed out before anything is deleted for good. */
export function confirmationText(messages: number): string {
  return `delete ${messages} ${messages === 1 ? 'message' : 'messages'}`
}
