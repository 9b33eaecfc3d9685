/** Times in search queries: epoch seconds, dates (midnight in California, as in Gmail), and ages. */

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

/** `1388552400`, `2014/01/31`, `2014-1-31` or `1/31/2014`; undefined when it is none of them. */
export function dateMs(text: string): number | undefined {
  if (/^\d{1,12}$/.test(text)) return Number(text) * 1000
  const yearFirst = /^(\d{4})[/-](\d{1,2})[/-](\d{1,2})$/.exec(text)
  if (yearFirst) return pacificMidnight(Number(yearFirst[1]), Number(yearFirst[2]), Number(yearFirst[3]))
  const yearLast = /^(\d{1,2})[/-](\d{1,2})[/-](\d{4})$/.exec(text)
  if (yearLast) return pacificMidnight(Number(yearLast[3]), Number(yearLast[1]), Number(yearLast[2]))
  return undefined
}

/** The moment `2d`, `3m` or `1y` (also `12h`) before now. */
export function relativeMs(text: string, nowMs: number): number | undefined {
  const match = /^(\d{1,5})([hdmy])$/i.exec(text)
  if (!match) return undefined
  const count = Number(match[1])
  const unit = match[2]!.toLowerCase()
  if (unit === 'h') return nowMs - count * HOUR_MS
  if (unit === 'd') return nowMs - count * DAY_MS
  const date = new Date(nowMs)
  if (unit === 'm') date.setUTCMonth(date.getUTCMonth() - count)
  else date.setUTCFullYear(date.getUTCFullYear() - count)
  return date.getTime()
}

const pacificHour = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/Los_Angeles',
  hour: '2-digit',
  hourCycle: 'h23',
})

function pacificMidnight(year: number, month: number, day: number): number | undefined {
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined
  const standard = Date.UTC(year, month - 1, day, 8)
  // In summer it is already one o'clock there.
  return pacificHour.format(standard) === '01' ? standard - HOUR_MS : standard
}
