/**
 * Numbers, sizes, durations and times in the reader's own language, rounded to what can be taken in at a glance.
 * Formatters are built once: building one costs more than a thousand uses of it.
 */

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

const BYTE_UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte', 'petabyte'] as const
const DURATION_UNITS = [
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', SECOND_MS],
] as const

/** From coarse to fine: the first that fits at least once. */
const AGO_UNITS = [
  ['year', 365 * DAY_MS],
  ['month', 30 * DAY_MS],
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', SECOND_MS],
] as const

const UNKNOWN = '–'

export function createFormat(options: { locale?: string; timeZone?: string } = {}) {
  const amounts = amountFormat(options.locale)
  const times = timeFormat(options)
  return {
    ...amounts,
    ...times,

    /** A place on a stream's axis: seconds since the epoch for mail, else a number. */
    formatPosition: (stream: string, position: number): string => {
      if (!stream.startsWith('mail:')) return amounts.formatCount(position)
      return position <= 0 ? 'the oldest' : times.formatUtcDay(position * SECOND_MS)
    },
  }
}

function amountFormat(locale: string | undefined) {
  const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 })
  const fine = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 })
  const short = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 })
  const shares = [0, 1, 2].map(
    (digits) => new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: digits }),
  )
  const unitOf = unitFormats(locale)

  /** `12,345`; fractions only below ten, where they matter. */
  const formatCount = (count: number): string => {
    if (!Number.isFinite(count)) return UNKNOWN
    return Number.isInteger(count) || Math.abs(count) >= 10 ? whole.format(count) : fine.format(count)
  }

  /** `1.2M`, for where there is no room. */
  const formatShort = (count: number): string => (Number.isFinite(count) ? short.format(count) : UNKNOWN)

  /** `61%`, `0.25%`: more digits the smaller it is; never 100% before the end, nor 0% after the beginning. */
  const formatShare = (share: number): string => {
    if (!Number.isFinite(share)) return UNKNOWN
    if (share < 1 && share > 0.9999) return shares[2]!.format(0.9999)
    if (share > 0 && share < 0.0001) return `< ${shares[2]!.format(0.0001)}`
    const digits =
      share >= 0.995 && share < 1 ? 2 : Math.abs(share) >= 0.1 ? 0 : Math.abs(share) >= 0.01 ? 1 : 2
    return shares[digits]!.format(share)
  }

  /** `4.8/s`; below one a second by the minute, so that slow is not nothing. */
  const formatRate = (perSecond: number): string => {
    if (!Number.isFinite(perSecond) || perSecond <= 0) return `${whole.format(0)}/s`
    if (perSecond >= 0.95) return `${formatCount(Math.round(perSecond * 10) / 10)}/s`
    const perMinute = perSecond * 60
    return perMinute >= 0.95
      ? `${formatCount(Math.round(perMinute * 10) / 10)}/min`
      : `< ${whole.format(1)}/min`
  }

  /** kB, MB and GB are powers of 1000: `2.1 GB`. */
  const formatBytes = (bytes: number): string => {
    if (!Number.isFinite(bytes)) return UNKNOWN
    let amount = bytes
    let unit = 0
    // 999.6 kB would be rounded to "1,000 kB".
    while (unit < BYTE_UNITS.length - 1 && Math.abs(amount) >= (unit === 0 ? 1000 : 999.5)) {
      amount /= 1000
      unit += 1
    }
    // Spelled out by Intl, which is no good in a column.
    if (unit === 0) return `${whole.format(amount)} B`
    return unitOf(BYTE_UNITS[unit]!, 'short', unit > 0 && Math.abs(amount) < 9.95 ? 1 : 0).format(amount)
  }
  return { formatCount, formatShort, formatShare, formatRate, formatBytes }
}

function timeFormat({ locale, timeZone }: { locale?: string; timeZone?: string }) {
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  const full = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone })
  const exact = new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'long', timeZone })
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone })
  const utcDay = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' })
  const clock = new Intl.DateTimeFormat(locale, { timeStyle: 'medium', timeZone })
  const unitOf = unitFormats(locale)

  /** The two largest units: `250ms`, `4.2s`, `1m 5s`, `3h 20m`, `12d`. */
  const formatDuration = (ms: number): string => {
    if (!Number.isFinite(ms)) return UNKNOWN
    if (ms < 0) return `−${formatDuration(-ms)}`
    if (Math.round(ms) < SECOND_MS) return unitOf('millisecond', 'narrow', 0).format(Math.round(ms))
    if (ms < 9_950) return unitOf('second', 'narrow', 1).format(Math.round(ms / 100) / 10)
    // Rounded to the smaller of the two units shown, then cut up: never "1h 60m".
    const step = ms < HOUR_MS ? SECOND_MS : ms < DAY_MS ? MINUTE_MS : ms < 10 * DAY_MS ? HOUR_MS : DAY_MS
    let left = Math.round(ms / step) * step
    const parts: string[] = []
    for (const [unit, unitMs] of DURATION_UNITS) {
      const n = Math.floor(left / unitMs)
      left -= n * unitMs
      if (n > 0) parts.push(unitOf(unit, 'narrow', 0).format(n))
    }
    return parts.slice(0, 2).join(' ')
  }

  /** `5 minutes ago`, `in 2 hours`, `now`. */
  const formatAgo = (at: number, now: number): string => {
    const deltaMs = at - now
    if (!Number.isFinite(deltaMs)) return UNKNOWN
    for (const [unit, unitMs] of AGO_UNITS) {
      if (Math.abs(deltaMs) >= unitMs) return relative.format(Math.trunc(deltaMs / unitMs), unit)
    }
    return relative.format(0, 'second')
  }

  const dated = (format: Intl.DateTimeFormat) => (at: number) =>
    Number.isFinite(at) && Math.abs(at) <= 8.64e15 ? format.format(at) : UNKNOWN
  /** `16 Nov 2025, 01:25` */
  const formatTime = dated(full)
  /** With weekday, seconds and zone, for tooltips. */
  const formatExact = dated(exact)
  const formatDay = dated(day)
  /** Slices of mail are whole days in UTC: anywhere else they would read as the evening before. */
  const formatUtcDay = dated(utcDay)
  /** `01:25:09` */
  const formatClock = dated(clock)

  /** A stream's mark: times are localised, anything else is shown as the stream writes it. */
  const formatMark = (mark: string | null): string => {
    if (mark === null || mark === '') return UNKNOWN
    const at = /^\d{4}-\d{2}-\d{2}(?:T|$)/.test(mark) ? Date.parse(mark) : Number.NaN
    if (Number.isNaN(at)) return mark
    return mark.length <= 10 || /T00:00:00(?:\.000)?Z$/.test(mark) ? formatUtcDay(at) : formatTime(at)
  }
  return {
    formatDuration,
    formatAgo,
    formatTime,
    formatExact,
    formatDay,
    formatUtcDay,
    formatClock,
    formatMark,
  }
}

function unitFormats(locale: string | undefined) {
  const known = new Map<string, Intl.NumberFormat>()
  return (unit: string, unitDisplay: 'short' | 'narrow', digits: number): Intl.NumberFormat => {
    const key = `${unit} ${unitDisplay} ${digits}`
    const format =
      known.get(key) ??
      new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay, maximumFractionDigits: digits })
    known.set(key, format)
    return format
  }
}

export const {
  formatCount,
  formatShort,
  formatShare,
  formatRate,
  formatBytes,
  formatDuration,
  formatAgo,
  formatTime,
  formatExact,
  formatDay,
  formatClock,
  formatMark,
  formatPosition,
} = createFormat()

/** `1 slice`, `2 slices`, with the number as people read it. */
export function formatPlural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`
}
