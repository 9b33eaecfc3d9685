/** Date headers as programs of four decades wrote them. What cannot be read is null. */

const DATE_CHARS_MAX = 200
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const MINUTE_MS = 60_000

/** Minutes ahead of UTC. RFC 5322 knows the American ones; the rest are in use. */
const ZONES = new Map<string, number>(
  Object.entries({
    ut: 0,
    utc: 0,
    gmt: 0,
    z: 0,
    wet: 0,
    est: -300,
    edt: -240,
    cst: -360,
    cdt: -300,
    mst: -420,
    mdt: -360,
    pst: -480,
    pdt: -420,
    akst: -540,
    akdt: -480,
    hst: -600,
    bst: 60,
    west: 60,
    cet: 60,
    met: 60,
    mez: 60,
    cest: 120,
    mest: 120,
    mesz: 120,
    eet: 120,
    eest: 180,
    msk: 180,
    msd: 240,
    jst: 540,
    kst: 540,
    aest: 600,
    aedt: 660,
    nzst: 720,
    nzdt: 780,
  }),
)

type DateParts = {
  day: number | null
  month: number | null
  year: number | null
  time: { hours: number; minutes: number; seconds: number; ms: number } | null
  zoneMinutes: number | null
  afternoon: boolean | null
}

/** Milliseconds since the epoch; a date without a zone is taken as UTC. */
export function parseDate(value: string): number | null {
  const text = value.slice(0, DATE_CHARS_MAX)
  const iso = /^\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]+(.*))?$/s.exec(text)
  const parts: DateParts = {
    day: null,
    month: null,
    year: null,
    time: null,
    zoneMinutes: null,
    afternoon: null,
  }
  if (iso) {
    Object.assign(parts, { year: Number(iso[1]), month: Number(iso[2]) - 1, day: Number(iso[3]) })
    for (const token of tokens(spaced(iso[4] ?? ''))) take(parts, token)
  } else {
    for (const token of tokens(text)) take(parts, token)
  }
  return instant(parts)
}

/** `10:00:00Z` and `10:00:00+02:00` as two words. */
function spaced(text: string): string {
  return text.replace(/(\d)(Z|[+-]\d)/gi, '$1 $2')
}

function tokens(text: string): string[] {
  return text
    .replace(/\([^()]*\)/g, ' ')
    .replace(/(\d)-([a-z]{3,9})-(\d)/gi, '$1 $2 $3')
    .split(/[\s,()]+/)
    .filter((token) => token !== '')
}

function take(parts: DateParts, token: string): void {
  const zone = zoneOf(token)
  const word = token.toLowerCase()
  if (/^\d{1,2}[:.]\d{1,2}/.test(token)) takeTime(parts, token)
  else if (/^\d+$/.test(token)) takeNumber(parts, token)
  else if (zone !== null && parts.time) parts.zoneMinutes ??= zone
  else if (word === 'am' || word === 'pm') parts.afternoon = word === 'pm'
  else if (/^[a-z]{3,9}\.?$/.test(word)) {
    const month = MONTHS.indexOf(word.slice(0, 3))
    if (month !== -1) parts.month ??= month
  }
}

function takeTime(parts: DateParts, token: string): void {
  const [clock = '', zone = ''] = spaced(token).split(' ')
  const fields = clock.split(/[:.,]/)
  parts.time ??= {
    hours: Number(fields[0]),
    minutes: Number(fields[1]),
    seconds: Number.parseInt(fields[2] ?? '0', 10),
    ms: fields[3] ? Math.floor(Number(`0.${fields[3].slice(0, 6)}`) * 1_000) : 0,
  }
  if (zone) parts.zoneMinutes ??= zoneOf(zone)
}

/** The day comes before the year, except in the form of C's asctime, where it stands before the time too. */
function takeNumber(parts: DateParts, token: string): void {
  if (token.length <= 2 && parts.day === null) parts.day = Number(token)
  else if (token.length <= 4 && parts.year === null) parts.year = fullYear(token)
}

/** RFC 5322, section 4.3: two digits up to 49 are of this century, three count from 1900. */
function fullYear(token: string): number {
  const year = Number(token)
  if (token.length <= 2) return year + (year < 50 ? 2_000 : 1_900)
  return token.length === 3 ? year + 1_900 : year
}

function zoneOf(token: string): number | null {
  const numeric = /^(?:gmt|utc?)?([+-])(\d{1,2}):?(\d{2})?$/i.exec(token)
  if (numeric) {
    const minutes = Number(numeric[2]) * 60 + Number(numeric[3] ?? '0')
    return minutes > 24 * 60 ? null : numeric[1] === '-' ? -minutes : minutes
  }
  const word = token.toLowerCase()
  // Military letters were defined the wrong way round once: RFC 5322 takes them as unknown.
  return ZONES.get(word) ?? (/^[a-z]$/.test(word) ? 0 : null)
}

const YEAR_MIN = 1_900
const YEAR_MAX = 9_999

function instant(parts: DateParts): number | null {
  const { day, month, year, time } = parts
  if (day === null || month === null || year === null) return null
  const { hours, minutes, seconds, ms } = time ?? { hours: 0, minutes: 0, seconds: 0, ms: 0 }
  if (year < YEAR_MIN || year > YEAR_MAX || month > 11 || day < 1 || day > 31) return null
  if (month < 0 || hours > 24 || minutes > 59 || !(seconds <= 60)) return null
  let hour = hours
  if (parts.afternoon !== null && hours <= 12) hour = (hours % 12) + (parts.afternoon ? 12 : 0)
  const utcMs = Date.UTC(year, month, day, hour, minutes, seconds, ms)
  // 31 April and the like: the calendar must have the day.
  if (new Date(Date.UTC(year, month, day)).getUTCDate() !== day) return null
  return utcMs - (parts.zoneMinutes ?? 0) * MINUTE_MS
}
