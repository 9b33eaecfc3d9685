/**
 * Numbers as people read them: rounded to what can be taken in at a glance. Settings that must read back
 * exactly are the configuration's own business.
 */
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'] as const

/** kB, MB and GB are powers of 1000: `2.1 GB`. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '? B'
  let amount = Math.abs(bytes)
  let unit = 0
  // 999.6 kB would be rounded to "1000 kB".
  while (unit < BYTE_UNITS.length - 1 && roundedTo(amount, unit) >= 1000) {
    amount /= 1000
    unit += 1
  }
  const sign = bytes < 0 ? '-' : ''
  return `${sign}${roundedTo(amount, unit)} ${BYTE_UNITS[unit]}`
}

function roundedTo(amount: number, unit: number): number {
  return unit > 0 && amount < 9.95 ? Math.round(amount * 10) / 10 : Math.round(amount)
}

/** `12,345`; fractions only below ten, where they matter. */
export function formatCount(count: number): string {
  if (!Number.isFinite(count)) return '?'
  const rounded =
    Number.isInteger(count) || Math.abs(count) >= 10 ? Math.round(count) : Math.round(count * 10) / 10
  const [whole = '0', fraction] = String(Math.abs(rounded)).split('.')
  const grouped = whole.includes('e') ? whole : whole.replace(/\B(?=(?:\d{3})+$)/g, ',')
  return `${rounded < 0 ? '-' : ''}${grouped}${fraction ? `.${fraction}` : ''}`
}

/** `0.25 %`, `61 %`: more digits the smaller it is, so that a small share never reads as none. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return '? %'
  const percent = share * 100
  const digits = Math.abs(percent) >= 10 ? 0 : Math.abs(percent) >= 1 ? 1 : 2
  const text = String(Number(percent.toFixed(digits)))
  return text === '0' && percent > 0 ? '< 0.01 %' : `${text === '-0' ? '0' : text} %`
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

const DURATION_UNITS = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['min', MINUTE_MS],
  ['s', SECOND_MS],
] as const

/** The two largest units: `250 ms`, `4.2 s`, `1 min 5 s`, `3 h 20 min`, `12 d`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '?'
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (Math.round(ms) < SECOND_MS) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${Math.round(ms / 100) / 10} s`
  // Rounded to the smaller of the two units shown, then cut up: never "1 h 60 min".
  const step = ms < HOUR_MS ? SECOND_MS : ms < 10 * DAY_MS ? (ms < DAY_MS ? MINUTE_MS : HOUR_MS) : DAY_MS
  let left = Math.round(ms / step) * step
  const parts: string[] = []
  for (const [unit, unitMs] of DURATION_UNITS) {
    const n = Math.floor(left / unitMs)
    left -= n * unitMs
    if (n > 0) parts.push(`${unit === 'd' ? formatCount(n) : n} ${unit}`)
  }
  return parts.slice(0, 2).join(' ')
}

const PARSED_UNITS: Record<string, number> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  min: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
}

/** Milliseconds of `90s`, `15m`, `1h30m`, `24 h`, `2w`; undefined when the text is no duration. */
export function parseDuration(text: string): number | undefined {
  const compact = text.trim().toLowerCase().replaceAll(/\s+/g, '')
  if (!/^(?:\d+(?:\.\d+)?[a-z]+)+$/.test(compact)) return undefined
  let ms = 0
  let lastUnitMs = Number.POSITIVE_INFINITY
  for (const [, amount, unit] of compact.matchAll(/(\d+(?:\.\d+)?)([a-z]+)/g)) {
    const unitMs = PARSED_UNITS[unit!]
    // Each unit once, large before small: "30m1h" is more likely a slip than meant.
    if (unitMs === undefined || unitMs >= lastUnitMs) return undefined
    lastUnitMs = unitMs
    ms += Number(amount) * unitMs
  }
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined
}
