/** When something happened, as records write it. Without a zone it is UTC: the reader's own says nothing about a log. */

/** Years 1970 to 2286 in each unit; which one it is, the size tells. */
const SECONDS_MAX = 1e10
const MILLISECONDS_MAX = 1e13
const MICROSECONDS_MAX = 1e16
const NANOSECONDS_MAX = 1e19
/** 1973: a smaller number is more likely a count. */
const SECONDS_MIN = 1e8

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const TIME_CHARS_MAX = 64

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ]+(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)? *(Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?$/i
const SLASHED = /^(\d{4})\/(\d{2})\/(\d{2}) (\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?()$/
/** `10/Oct/2000:13:55:36 -0700`, of web servers. */
const COMMON_LOG = /^\[?(\d{1,2})\/([A-Za-z]{3})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) *([+-]\d{4})?\]?$/
/** `Tue, 10 Oct 2000 13:55:36 GMT` */
const MAIL =
  /^(?:[A-Za-z]{3}, *)?(\d{1,2}) ([A-Za-z]{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) *(Z|UTC|GMT|[+-]\d{4})?$/
/** `Tue Oct 10 13:55:36.123 2000`, of C and of web servers' errors. */
const C_TIME = /^(?:[A-Za-z]{3} +)?([A-Za-z]{3}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))? (\d{4})$/

/** Milliseconds since 1970, or undefined where it is no time. */
export function parseTime(value: unknown): number | undefined {
  if (typeof value === 'number') return fromEpoch(value)
  if (typeof value !== 'string' || value.length > TIME_CHARS_MAX) return undefined
  const text = value.trim()
  if (/^\d{9,19}(\.\d{1,9})?$/.test(text)) return fromEpoch(Number(text))
  const iso = ISO.exec(text) ?? SLASHED.exec(text)
  if (iso) {
    const [, year, month, day, hour, minute, second, fraction, zone] = iso
    return moment([year, Number(month), day, hour, minute, second], { fraction, zone })
  }
  const log = COMMON_LOG.exec(text) ?? MAIL.exec(text)
  if (log) {
    const [, day, month, year, hour, minute, second, zone] = log
    return moment([year, monthOf(month!), day, hour, minute, second], { zone })
  }
  const [, month, day, hour, minute, second, fraction, year] = C_TIME.exec(text) ?? []
  return month === undefined
    ? undefined
    : moment([year, monthOf(month), day, hour, minute, second], { fraction })
}

function fromEpoch(value: number): number | undefined {
  if (!(value >= SECONDS_MIN && value < NANOSECONDS_MAX)) return undefined
  if (value < SECONDS_MAX) return Math.floor(value * 1_000)
  if (value < MILLISECONDS_MAX) return Math.floor(value)
  return Math.floor(value < MICROSECONDS_MAX ? value / 1_000 : value / 1_000_000)
}

function monthOf(name: string): number {
  return MONTHS.indexOf(name.toLowerCase()) + 1
}

function moment(
  parts: readonly (string | number | undefined)[],
  { fraction, zone }: { fraction?: string; zone?: string },
): number | undefined {
  const [year, month, day, hour, minute, second] = parts.map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  if (month < 1 || month > 12 || day < 1 || hour > 24 || minute > 59 || second > 60) return undefined
  const ms = fraction === undefined ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'))
  // Years below 100 would be taken for those of the last century; nothing was recorded in them.
  if (year < 1_000 || day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return undefined
  return Date.UTC(year, month - 1, day, hour, minute, second, ms) - zoneMs(zone)
}

function zoneMs(zone: string | undefined): number {
  const [, sign, hours, minutes] = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone ?? '') ?? []
  if (sign === undefined) return 0
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes ?? 0)) * 60_000
}
