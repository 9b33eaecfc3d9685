/**
 * When a schedule fires, as text:
 *
 *   every 15m                          intervals: s, m, h, d, w and sums of them (`every 1h30m`)
 *   cron 0 3 * * *                     minute, hour, day of month, month, day of week, in UTC
 *   cron 0 3 * * MON-FRI Europe/Berlin the same in a time zone, which comes last
 *   cron @daily Europe/Berlin          @hourly, @daily, @weekly, @monthly, @yearly
 *
 * Without a zone cron means UTC and not the machine's zone, so that all processes agree on the time.
 *
 * When clocks change, a run at a fixed time happens exactly once a day: one that falls into the skipped hour
 * happens when that hour is over, one in the repeated hour happens the first time.
 */
import { Cron } from 'croner'
import { UsageError } from '../base/errors.ts'
import { parseDuration } from '../base/format.ts'

export type ScheduleSpec =
  | { type: 'every'; ms: number }
  | { type: 'cron'; pattern: string; zone: string; cron: Pick<Cron, 'nextRun'> }

const EVERY_MS_MIN = 1_000
/** Longer than this is almost certainly a slip of the unit. */
const EVERY_MS_MAX = 366 * 86_400_000
const CRON_FIELDS = 5
const NICKNAMES = new Set(['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually'])
const HINT = 'Write "every 15m", "cron 0 3 * * *" (UTC) or "cron 0 3 * * * Europe/Berlin".'

export function parseSpec(text: string): ScheduleSpec {
  const words = text.trim().split(/\s+/)
  const [first = '', ...rest] = words
  if (/^every$/i.test(first)) return parseEvery(text, rest.join(' '))
  if (/^cron$/i.test(first)) return parseCron(text, rest)
  throw new UsageError(`"${text}" is not a schedule.`, { hint: HINT })
}

/**
 * The first time after `afterMs`. Intervals keep their rhythm from `anchorMs` (a time at which the schedule
 * was due), so that a late run does not push all later ones back.
 */
export function nextAfter(spec: ScheduleSpec, afterMs: number, anchorMs = afterMs): number {
  if (spec.type === 'every') {
    const steps = Math.floor((afterMs - anchorMs) / spec.ms) + 1
    return anchorMs + steps * spec.ms
  }
  const next = spec.cron.nextRun(new Date(afterMs))
  if (next) return next.getTime()
  throw new UsageError(`"cron ${spec.pattern}" never comes.`, { hint: 'Check the day and the month.' })
}

function parseEvery(text: string, duration: string): ScheduleSpec {
  const ms = parseDuration(duration)
  if (ms === undefined) {
    throw new UsageError(`"${text}" is not a schedule: "${duration}" is not a length of time.`, {
      hint: 'Write a number and s, m, h, d or w, such as "every 15m" or "every 1h30m".',
    })
  }
  if (ms < EVERY_MS_MIN || ms > EVERY_MS_MAX) {
    throw new UsageError(`"${text}" is not a schedule: it must be from one second to 366 days.`)
  }
  return { type: 'every', ms }
}

function parseCron(text: string, words: readonly string[]): ScheduleSpec {
  const fields = words[0]?.startsWith('@') ? 1 : CRON_FIELDS
  const pattern = words.slice(0, fields).join(' ')
  const [zone = 'UTC', ...extra] = words.slice(fields)
  if (words.length < fields || extra.length > 0) {
    throw new UsageError(`"${text}" is not a schedule: cron takes five fields and perhaps a time zone.`, {
      hint: HINT,
    })
  }
  if (fields === 1 && !NICKNAMES.has(pattern.toLowerCase())) {
    throw new UsageError(`"${text}" is not a schedule: there is no ${pattern}.`, {
      hint: `Use one of ${[...NICKNAMES].join(', ')}, or five fields.`,
    })
  }
  if (!isZone(zone)) {
    throw new UsageError(`"${text}" is not a schedule: there is no time zone called ${zone}.`, {
      hint: 'Use a name such as UTC, Europe/Berlin or America/New_York.',
    })
  }
  const spec: ScheduleSpec = { type: 'cron', pattern, zone, cron: parsePattern(text, pattern, zone) }
  // Only to see that it comes at all; a day that no month has is refused here and not at night.
  nextAfter(spec, 0)
  return spec
}

function parsePattern(text: string, pattern: string, zone: string): Cron {
  try {
    return new Cron(pattern, { mode: '5-part', timezone: zone })
  } catch (cause) {
    const reason = (cause as Error).message.replace(/^CronPattern: /, '')
    throw new UsageError(`"${text}" is not a schedule: ${reason.replace(/\.$/, '')}.`, { hint: HINT, cause })
  }
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false // RangeError is how Intl says that it does not know the zone
  }
}
