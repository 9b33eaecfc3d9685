/**
 * Rates by the time of day: the first entry that holds now decides, otherwise the rates outside the
 * timetable. An entry that ends before it begins goes across midnight and belongs to the day on which
 * it begins. Pure: the caller says what time it is and how far local time is from UTC.
 */
import { UsageError } from '../../base/errors.ts'

export type Weekday = 'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun'

/** Bytes a second; what is left out (or null) is not limited. */
export type Rates = { upload?: number | null; download?: number | null; combined?: number | null }

export type TimetableEntry = { from: string; to: string; days?: readonly Weekday[]; rates: Rates }

/** Minutes that local time is ahead of UTC at that moment. */
export type OffsetMinutes = (nowMs: number) => number

/** The day that 1 January 1970 was comes first. */
const DAYS: readonly Weekday[] = ['thu', 'fri', 'sat', 'sun', 'mon', 'tue', 'wed']
const DAY_MINUTES = 24 * 60
const MINUTE_MS = 60_000

type Entry = { fromMinute: number; toMinute: number; days: ReadonlySet<Weekday>; rates: Rates }

export class Timetable {
  readonly #entries: readonly Entry[]
  readonly #otherwise: Rates
  readonly #offset: OffsetMinutes

  constructor(entries: readonly TimetableEntry[], otherwise: Rates, offset: OffsetMinutes) {
    this.#entries = entries.map(parseEntry)
    this.#otherwise = checkRates(otherwise, 'outside the timetable')
    this.#offset = offset
  }

  ratesAt(nowMs: number): Rates {
    const minute = localMinute(nowMs, this.#offset)
    return this.#entries.find((entry) => holdsAt(entry, minute))?.rates ?? this.#otherwise
  }

  /**
   * When to look again: the next minute at which an entry begins or ends, or the next full hour, since
   * local time itself may jump (daylight saving). Infinity without entries.
   */
  nextLookMs(nowMs: number): number {
    if (this.#entries.length === 0) return Number.POSITIVE_INFINITY
    const minute = Math.floor(localMinute(nowMs, this.#offset))
    const ahead = this.#entries
      .flatMap((entry) => [entry.fromMinute, entry.toMinute])
      .map((edge) => minutesUntil(edge, minute))
    const minutes = Math.min(60 - (minute % 60), ...ahead)
    return (Math.floor(nowMs / MINUTE_MS) + minutes) * MINUTE_MS
  }
}

/** Minutes of local time since 1 January 1970. */
function localMinute(nowMs: number, offset: OffsetMinutes): number {
  return nowMs / MINUTE_MS + offset(nowMs)
}

function holdsAt(entry: Entry, localMinutes: number): boolean {
  const day = Math.floor(localMinutes / DAY_MINUTES)
  const minute = localMinutes - day * DAY_MINUTES
  const began = (daysAgo: number): boolean => entry.days.has(DAYS[(day - daysAgo + 7) % 7]!)
  if (entry.fromMinute < entry.toMinute) {
    return minute >= entry.fromMinute && minute < entry.toMinute && began(0)
  }
  return (minute >= entry.fromMinute && began(0)) || (minute < entry.toMinute && began(1))
}

function minutesUntil(edge: number, localMinutes: number): number {
  const minute = localMinutes % DAY_MINUTES
  const ahead = (edge - minute + 2 * DAY_MINUTES) % DAY_MINUTES
  return ahead === 0 ? DAY_MINUTES : ahead
}

function parseEntry(entry: TimetableEntry): Entry {
  const label = `${entry.from} to ${entry.to}`
  const unknown = entry.days?.find((day) => !DAYS.includes(day))
  if (unknown !== undefined) {
    throw new UsageError(`The timetable entry ${label} names the day "${unknown}".`, {
      hint: 'Days are mon, tue, wed, thu, fri, sat, sun.',
    })
  }
  return {
    fromMinute: parseTime(entry.from, label) % DAY_MINUTES,
    toMinute: parseTime(entry.to, label),
    days: new Set(entry.days ?? DAYS),
    rates: checkRates(entry.rates, `of the timetable entry ${label}`),
  }
}

function parseTime(text: string, label: string): number {
  const match = /^(\d{1,2}):(\d{2})$/.exec(text)
  const minutes = match ? Number(match[1]) * 60 + Number(match[2]) : Number.NaN
  if (match && Number(match[2]) < 60 && minutes <= DAY_MINUTES) return minutes
  throw new UsageError(`The timetable entry ${label} has "${text}" where a time of day belongs.`, {
    hint: 'Write times as 08:00 or 18:30, from 00:00 to 24:00.',
  })
}

function checkRates(rates: Rates, where: string): Rates {
  for (const [direction, rate] of Object.entries(rates)) {
    if (rate === null || rate === undefined || (rate >= 0 && Number.isFinite(rate))) continue
    throw new UsageError(`The ${direction} rate ${where} is ${rate}; it must be a number of bytes a second.`)
  }
  return rates
}
