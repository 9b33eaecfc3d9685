/** A stream as pages show it: its counts, how fast it is, when it will be done, and a sentence. Pure. */

import type { StreamView } from '../../app/schemas.ts'
import { formatCount, formatDuration } from '../../base/format.ts'
import { counted, plural } from '../../base/wording.ts'
import { type PauseRow, SIGN_IN } from '../../ledger/control.ts'
import type { StreamStatus } from '../../ledger/queries.ts'

export type StreamSight = {
  row: StreamStatus
  pauses: readonly PauseRow[]
  rate: number
  failedJobs: number
  badItems: number
  /** How many items there will be when all are listed, where its app knows. */
  whole?: number | undefined
  /** What its app knows of that waits for somebody. */
  need?: string | undefined
}

/** `ann@example.com` of `mail:ann@example.com`. */
export function displayName(stream: string): string {
  return stream.slice(stream.indexOf(':') + 1) || stream
}

export function needsSignIn({ scope, code }: PauseRow): boolean {
  return scope === 'stream' && code === SIGN_IN
}

export function streamView(sight: StreamSight): StreamView {
  const { row, rate } = sight
  const [listed, stored, gone, skipped, bad] = [row.listed, row.stored, row.gone, row.skipped, row.bad].map(
    Number,
  ) as [number, number, number, number, number]
  const pause = pauseOf(sight)
  const onTheirWay = Math.max(0, listed - stored - gone - skipped - bad)
  const etaMs = pause === undefined ? etaOf(sight, onTheirWay) : null
  const health = healthOf(sight, pause)
  return {
    name: row.name,
    mark: row.mark,
    markAt: Number(row.mark_at),
    markMovedAt: row.moved_at,
    cursor: row.cursor,
    paused: pause !== undefined,
    pauseCode: pause?.code ?? null,
    pauseReason: pause?.reason ?? null,
    segments: Number(row.segments),
    settledSegments: Number(row.settled_segments),
    listed,
    stored,
    gone,
    skipped,
    bad,
    onTheirWay,
    whole: Math.max(listed, sight.whole ?? 0),
    unbalanced: Number(row.unbalanced),
    rate: Math.round(rate * 100) / 100,
    etaMs,
    health,
    summary: summaryOf(sight, { pause, onTheirWay, etaMs, health }),
  }
}

/** Its own pause says more than one of everything. */
function pauseOf({ row, pauses }: StreamSight): PauseRow | undefined {
  return (
    pauses.find(({ scope, target }) => scope === 'stream' && target === row.name) ??
    pauses.find(({ scope }) => scope === 'all')
  )
}

/** Where nobody knows how much is not listed yet, each segment that is not is taken to hold as much as one that is. */
function etaOf({ row, rate, whole }: StreamSight, onTheirWay: number): number | null {
  const open = Number(row.open_segments)
  const ended = Number(row.segments) - open
  if (open > 0 && ended === 0 && whole === undefined) return null
  const listed = Number(row.listed)
  const unlisted =
    open === 0 ? 0 : whole === undefined ? (open * listed) / ended : Math.max(0, whole - listed)
  const remaining = onTheirWay + unlisted
  return remaining > 0 && rate > 0 ? Math.round((remaining / rate) * 1_000) : null
}

function healthOf({ row, failedJobs, need }: StreamSight, pause: PauseRow | undefined): StreamView['health'] {
  if (pause && needsSignIn(pause)) return 'trouble'
  if (pause) return 'paused'
  if (failedJobs > 0 || Number(row.unbalanced) > 0 || need !== undefined) return 'trouble'
  return Number(row.segments) > Number(row.settled_segments) ? 'working' : 'ok'
}

type Seen = {
  pause: PauseRow | undefined
  onTheirWay: number
  etaMs: number | null
  health: StreamView['health']
}

function summaryOf({ row, failedJobs, badItems, need }: StreamSight, seen: Seen): string {
  const { pause, health } = seen
  if (pause && needsSignIn(pause)) return `${displayName(row.name)} must sign in again.`
  if (pause) return `Paused: ${pause.reason.replace(/\.$/, '')}.`
  const trouble = troubleText({ failedJobs, unbalanced: Number(row.unbalanced) })
  if (trouble) return trouble
  if (need !== undefined) return need
  if (health === 'working') return workingText(row, seen)
  if (Number(row.segments) === 0) return 'Nothing is listed yet.'
  if (badItems === 0) return 'All is settled.'
  return `All is settled, but for ${formatCount(badItems)} bad ${plural(badItems, 'item')}.`
}

export function troubleText({ failedJobs, unbalanced }: { failedJobs: number; unbalanced: number }): string {
  const parts: string[] = []
  if (failedJobs > 0) parts.push(`${counted(failedJobs, 'job')} failed.`)
  if (unbalanced > 0) {
    const slices = counted(unbalanced, 'slice')
    const them = plural(unbalanced, 'it', 'them')
    parts.push(`The counts of ${slices} do not agree: it is complete up to ${them}, and no further.`)
  }
  return parts.join(' ')
}

function workingText(row: StreamStatus, { onTheirWay, etaMs }: Seen): string {
  const parts = [
    `${formatCount(Number(row.settled_segments))} of ${formatCount(Number(row.segments))} ${plural(Number(row.segments), 'slice')} settled`,
  ]
  if (onTheirWay > 0)
    parts.push(`${counted(onTheirWay, 'item')} on ${plural(onTheirWay, 'its', 'their')} way`)
  if (etaMs !== null) parts.push(leftText(etaMs))
  return `${parts.join(', ')}.`
}

/** `about 3 h left`: no more exact than it can be known. */
export function leftText(etaMs: number): string {
  const stepMs =
    etaMs < 60_000 ? 5_000 : etaMs < 3_600_000 ? 60_000 : etaMs < 36_000_000 ? 600_000 : 3_600_000
  return `about ${formatDuration(Math.max(stepMs, Math.round(etaMs / stepMs) * stepMs))} left`
}
