/** Moments as people read them: on the machine's own clock face, with how far away they are. */
import { formatDuration } from './format.ts'

const SOON_MS = 1_000

/** `14:05:10`, or with its date when that is another day than `now`'s. */
export function clockTime(at: number, now: number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return String(at)
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':')
  return dayOf(date) === dayOf(new Date(now)) ? time : `${dayOf(date)} ${time}`
}

/** `in 3 min`, `5 s ago`, `now`. */
export function distance(at: number, now: number): string {
  const ms = at - now
  if (Math.abs(ms) < SOON_MS) return 'now'
  return ms > 0 ? `in ${formatDuration(ms)}` : `${formatDuration(-ms)} ago`
}

/** `14:05:10 (in 3 min)` */
export function moment(at: number, now: number): string {
  return `${clockTime(at, now)} (${distance(at, now)})`
}

/** The form for programs: UTC, to the millisecond. */
export function isoTime(at: number): string
export function isoTime(at: number | null): string | null
export function isoTime(at: number | null): string | null {
  if (at === null) return null
  const date = new Date(Number(at))
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString()
}

/** `2024-03-01 14:05 UTC` */
export function minuteText(at: number): string {
  return `${isoTime(at).slice(0, 16).replace('T', ' ')} UTC`
}

function dayOf(date: Date): string {
  return `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`
}

function twoDigits(n: number): string {
  return String(n).padStart(2, '0')
}
