/**
 * Which shard a message belongs to: pure. A shard's name says its period and part:
 *
 *   2020  2020-q3  2020-m07      a year, a quarter, a month
 *   2020-2  2020-q3-2            the second part of a period that grew too large
 *   earlier                      everything before 1970
 *
 * Periods are those of UTC: the same message goes to the same shard on every machine.
 */
import type { ShardPeriod } from './contract.ts'
import { POS_PER_SECOND } from './schema.ts'

export type TimeRange = { fromMs: number; toMs: number }

export type Period = TimeRange & { name: string }

/** What a clock can show at all; what claims to be outside is taken for the nearest that is inside. */
export const INTERNAL_MS_MAX = 8_640_000_000_000_000
const YEAR_MAX = 9_999
const SECOND_MAX = Date.UTC(YEAR_MAX, 11, 31, 23, 59, 59) / 1_000
const SECOND_MIN = -INTERNAL_MS_MAX / 1_000
const MONTHS: Record<ShardPeriod, number> = { month: 1, quarter: 3, year: 12 }
const EARLIER: Period = { name: 'earlier', fromMs: -INTERNAL_MS_MAX, toMs: 0 }
const SHARD_NAME = /^(?:earlier|(\d{4})(?:-q([1-4])|-m(0[1-9]|1[0-2]))?)(?:-([1-9]\d{0,5}))?$/

/** A time that can be kept and compared: hostile input is made harmless here, once. */
export function sanitizedMs(internalMs: number): number {
  if (Number.isNaN(internalMs)) return 0
  return Math.max(-INTERNAL_MS_MAX, Math.min(INTERNAL_MS_MAX, Math.trunc(internalMs)))
}

export function periodOf(internalMs: number, shardBy: ShardPeriod): Period {
  const ms = clampedMs(internalMs)
  if (ms < 0) return EARLIER
  const date = new Date(ms)
  const months = MONTHS[shardBy]
  const year = date.getUTCFullYear()
  const first = Math.floor(date.getUTCMonth() / months) * months
  return { name: periodName(year, first, shardBy), ...monthsFrom(year, first, months) }
}

/** The period and part that a name stands for; undefined where it is no shard's name. */
export function shardOf(name: string): (Period & { part: number }) | undefined {
  const match = SHARD_NAME.exec(name)
  if (!match) return undefined
  const [, year, quarter, month, partText] = match
  const part = partText === undefined ? 1 : Number(partText)
  if (partText === '1') return undefined
  const period = partText === undefined ? name : name.slice(0, -partText.length - 1)
  if (year === undefined) return { ...EARLIER, part }
  const months = quarter ? 3 : month ? 1 : 12
  const first = quarter ? (Number(quarter) - 1) * 3 : month ? Number(month) - 1 : 0
  return { name: period, part, ...monthsFrom(Number(year), first, months) }
}

export function partName(period: string, part: number): string {
  return part === 1 ? period : `${period}-${part}`
}

/** Messages of one year are written by one thread, whatever the policy: all shards that may hold an id are its own. */
export function yearOf(internalMs: number): number {
  const ms = clampedMs(internalMs)
  return ms < 0 ? 1_969 : new Date(ms).getUTCFullYear()
}

/** The first position of the second in which the message came. */
export function firstPosOf(internalMs: number): number {
  const second = Math.floor(sanitizedMs(internalMs) / 1_000)
  return Math.max(SECOND_MIN, Math.min(SECOND_MAX, second)) * POS_PER_SECOND
}

/** Does a message stand where its time of arrival puts it? `overrunSeconds`: by how much a full second moved others. */
export function isInPlace(row: { pos: number; internal_ms: number }, overrunSeconds: number): boolean {
  const first = firstPosOf(row.internal_ms)
  return row.pos >= first && row.pos < first + (1 + overrunSeconds) * POS_PER_SECOND
}

function clampedMs(internalMs: number): number {
  return Math.min(sanitizedMs(internalMs), SECOND_MAX * 1_000)
}

function periodName(year: number, firstMonth: number, shardBy: ShardPeriod): string {
  const text = String(year).padStart(4, '0')
  if (shardBy === 'year') return text
  if (shardBy === 'quarter') return `${text}-q${firstMonth / 3 + 1}`
  return `${text}-m${String(firstMonth + 1).padStart(2, '0')}`
}

function monthsFrom(year: number, first: number, months: number): TimeRange {
  const isLast = year === YEAR_MAX && first + months === 12
  // The last period also takes what claims to be later still.
  return {
    fromMs: Date.UTC(year, first),
    toMs: isLast ? INTERNAL_MS_MAX + 1 : Date.UTC(year, first + months),
  }
}
