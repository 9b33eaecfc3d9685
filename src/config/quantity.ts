/**
 * Sizes and rates as people write them: `10MB`, `1.5 GiB`, `10MB/s`, `100Mbit/s`, `unlimited`.
 * kB, MB and GB are powers of 1000; KiB, MiB and GiB are powers of 1024.
 */

/** Bytes a second; null is no limit. */
export type Rate = number | null

const BYTE_UNITS: Record<string, number> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
}

/** Lines are sold in bits. */
const BIT_UNITS: Record<string, number> = { bit: 1 / 8, kbit: 1e3 / 8, mbit: 1e6 / 8, gbit: 1e9 / 8 }

/** Bytes, or undefined when the text is no size. A bare number is bytes. */
export function parseBytes(input: string | number): number | undefined {
  return parseAmount(String(input), BYTE_UNITS)
}

/** Bytes a second, null for `unlimited`, or undefined when the text is no rate. */
export function parseRate(input: string | number): Rate | undefined {
  const text = String(input).trim()
  if (/^unlimited$/i.test(text)) return null
  const amount = parseAmount(text.replace(/\s*\/\s*s$/i, ''), { ...BYTE_UNITS, ...BIT_UNITS })
  return amount === undefined || amount < 1 ? undefined : amount
}

function parseAmount(text: string, units: Record<string, number>): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim())
  if (!match) return undefined
  const factor = match[2] ? units[match[2].toLowerCase()] : 1
  if (factor === undefined) return undefined
  const bytes = Math.round(Number(match[1]) * factor)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** In the largest unit that is exact to two digits, so that what is shown can be read back. */
export function formatBytes(bytes: number): string {
  for (const [unit, factor] of [
    ['TB', 1e12],
    ['GB', 1e9],
    ['MB', 1e6],
    ['kB', 1e3],
  ] as const) {
    const amount = bytes / factor
    if (amount >= 1 && Number(amount.toFixed(2)) === amount) return `${amount}${unit}`
  }
  return `${bytes}B`
}

export function formatRate(rate: Rate): string {
  return rate === null ? 'unlimited' : `${formatBytes(rate)}/s`
}
