/** What an operator of a search language is, and how values that many of them take are read. */
import type { Tree } from './query.ts'

/** What stood behind an operator's colon. */
export type OperatorValue = {
  text: string
  isQuoted: boolean
  /** A star stood right behind the closing quote. */
  isOpenEnded: boolean
}

/** Says what is wrong with a value; the parser adds where. */
export class BadValue extends Error {}

export type Operator<L, S> = {
  /** For messages: what may stand behind the colon. */
  allows: string
  read(value: OperatorValue, surroundings: S): Tree<L>
}

export const SPAN_ALLOWS = 'a number and d, m or y, such as 3d, 2m or 1y'

const DAY_MS = 86_400_000

/** When a time such as `3d` ago was. */
export function spanStart(text: string, now: number): number {
  const match = /^(\d{1,4})([dmy])$/i.exec(text)
  if (!match) throw new BadValue(`this must be ${SPAN_ALLOWS}`)
  return timeAgo({ now, amount: Number(match[1]), unit: match[2]!.toLowerCase() })
}

/** Months and years go by the calendar: a month before March 31 is the last day of February. */
function timeAgo({ now, amount, unit }: { now: number; amount: number; unit: string }): number {
  if (unit === 'd') return now - amount * DAY_MS
  const then = new Date(now)
  const day = then.getUTCDate()
  then.setUTCDate(1)
  then.setUTCMonth(then.getUTCMonth() - (unit === 'y' ? 12 * amount : amount))
  const daysInMonth = new Date(Date.UTC(then.getUTCFullYear(), then.getUTCMonth() + 1, 0)).getUTCDate()
  then.setUTCDate(Math.min(day, daysInMonth))
  return then.getTime()
}

export type Day = { year: number; month: number; day: number }

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{3})?Z$/

/**
 * A moment, a day, or seconds since 1970. Whole seconds need nine digits, so that a year or `20240131` is not taken for a
 * moment in 1970; a decimal point makes any number one of seconds, so that every moment can be written.
 */
export function readInstant(
  text: string,
  { allows, midnight }: { allows: string; midnight: (day: Day) => number },
): number {
  const seconds = /^(-?)(\d{9,11}|(?:\d{1,13})\.(\d{1,3}))$/.exec(text)
  if (seconds) {
    const [whole = '0', fraction = ''] = seconds[2]!.split('.')
    const ms = Number(whole) * 1_000 + Number(fraction.padEnd(3, '0'))
    return seconds[1] && ms > 0 ? -ms : ms
  }
  if (/^\d{12,}$/.test(text)) {
    throw new BadValue('this looks like milliseconds; it must be seconds since 1970, or YYYY/MM/DD')
  }
  if (INSTANT.test(text) && !Number.isNaN(Date.parse(text))) return Date.parse(text)
  const date = /^(\d{4})([/-])(\d{1,2})\2(\d{1,2})$/.exec(text)
  if (!date) throw new BadValue(`this must be ${allows}`)
  return midnight({ year: Number(date[1]), month: Number(date[3]), day: Number(date[4]) })
}
