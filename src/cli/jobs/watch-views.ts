/** How `jobs watch` shows what it sees: a screen that is drawn again, lines, or JSON. */

import type { OpenedLedger } from '../../app/with-ledger.ts'
import type { TidemarkError } from '../../base/errors.ts'
import { formatCount, formatDuration } from '../../base/format.ts'
import { clockTime, distance, isoTime } from '../../base/moment.ts'
import { plural } from '../../base/wording.ts'
import { type ListedEngine, liveCount } from '../../engine/observe/engines.ts'
import { progressText } from '../../engine/observe/job-texts.ts'
import { type JobRow, LANES } from '../../ledger/contract.ts'
import type { StreamStatus } from '../../ledger/queries.ts'
import { STAGES } from '../../ledger/states.ts'
import { escapeControl } from '../output/escape.ts'
import type { Output } from '../output/output.ts'
import { alignedTable } from '../output/table.ts'
import { truncate } from '../output/text-width.ts'
import { engineJson } from './engines.ts'
import { jobJson } from './row.ts'
import type { StageCounts } from './stats.ts'

const HEIGHT_DEFAULT = 24
/** Rows of the screen for streams, so that jobs are seen too. */
const STREAMS_SHOWN_MAX = 8

/** Control sequences of terminals since the VT100. */
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'
const CLEAR_ALL = '\u001b[2J'
const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'

export type Snapshot = {
  at: number
  engines: ListedEngine[]
  jobs: StageCounts
  claimed: JobRow[]
  streams: StreamStatus[]
  moved: { stream: string; mark: string | null }[]
  /** Items a second over the last ten. */
  rate: number
}

export interface View {
  show(snapshot: Snapshot): void
  trouble(error: TidemarkError): void
  end(): void
}

export function screenView(output: Output, place: Pick<OpenedLedger, 'where'>): View {
  let drawn = false
  let lines: string[] = []
  const draw = (): void => {
    const height = (process.stdout.rows ?? HEIGHT_DEFAULT) - 1
    const fitting = lines.slice(0, height).map((line) => `${truncate(line, output.width)}${CLEAR_LINE}\n`)
    output.raw(`${drawn ? '' : HIDE_CURSOR + CLEAR_ALL}${HOME}${fitting.join('')}${CLEAR_BELOW}`)
    drawn = true
  }
  return {
    show(snapshot) {
      lines = screenLines(snapshot, { where: place.where, width: output.width })
      draw()
    },
    trouble(error) {
      lines = [`The ledger does not answer: ${escapeControl(error.message)}`, ...lines.slice(1)]
      draw()
    },
    end() {
      if (drawn) output.raw(SHOW_CURSOR)
    },
  }
}

function screenLines(snapshot: Snapshot, { where, width }: { where: string; width: number }): string[] {
  const { at, claimed, streams, jobs } = snapshot
  const lines = [
    `${clockTime(at, at)}  ${escapeControl(where)}  (Ctrl-C ends)`,
    summary(snapshot),
    laneText(snapshot),
  ]
  if (streams.length > 0) {
    // Those that move come first.
    const shown = [...streams]
      .sort((a, b) => (b.moved_at ?? 0) - (a.moved_at ?? 0))
      .slice(0, STREAMS_SHOWN_MAX)
    lines.push('', ...streamTable(shown, { at, width }))
    const more = streams.length - shown.length
    if (more > 0) lines.push(`and ${formatCount(more)} more ${plural(more, 'stream')}`)
  }
  if (claimed.length > 0) {
    lines.push('', ...claimedTable(claimed, { at, width }))
    if (jobs.claimed > claimed.length) lines.push(`and ${formatCount(jobs.claimed - claimed.length)} more`)
  }
  return lines
}

function streamTable(rows: Snapshot['streams'], { at, width }: { at: number; width: number }): string[] {
  return alignedTable({
    columns: [
      { title: 'stream', value: ({ name, paused }) => (paused ? `${name} (paused)` : name) },
      { title: 'complete up to', value: ({ mark }) => mark ?? '-' },
      { title: 'moved', value: ({ moved_at }) => (moved_at === null ? 'never' : distance(moved_at, at)) },
      { title: 'listed', value: ({ listed }) => formatCount(Number(listed)), align: 'right' },
      { title: 'stored', value: ({ stored }) => formatCount(Number(stored)), align: 'right' },
      { title: 'bad', value: ({ bad }) => formatCount(Number(bad)), align: 'right' },
    ],
    rows,
    width,
  })
}

function claimedTable(rows: Snapshot['claimed'], { at, width }: { at: number; width: number }): string[] {
  // What reports progress runs for certain; the others may still wait in their worker's window.
  const sorted = [...rows].sort(
    (a, b) => Number(b.progress !== null) - Number(a.progress !== null) || a.id - b.id,
  )
  return alignedTable({
    columns: [
      { title: 'job', value: ({ id }) => id, align: 'right' },
      { title: 'kind', value: ({ kind }) => kind },
      { title: 'stream', value: ({ stream }) => stream ?? '-' },
      { title: 'lane', value: ({ lane }) => lane },
      { title: 'worker', value: ({ owner }) => `#${owner}`, align: 'right' },
      {
        title: 'for',
        value: ({ claimed_at }) => (claimed_at === null ? '' : formatDuration(Math.max(0, at - claimed_at))),
        align: 'right',
      },
      { title: 'progress', value: ({ progress }) => progressText(progress) ?? '' },
    ],
    rows: sorted,
    width,
  })
}

/** `1 engine, 12 claimed, 340 ready, 7 later, 85 items/s` */
function summary({ engines, jobs, rate }: Snapshot): string {
  const live = liveCount(engines)
  const waits = [
    `${formatCount(jobs.claimed)} claimed`,
    `${formatCount(jobs.ready)} ready`,
    ...(jobs.deps > 0 ? [`${formatCount(jobs.deps)} after other jobs`] : []),
    ...(jobs.time > 0 ? [`${formatCount(jobs.time)} later`] : []),
    ...(jobs.failed > 0 ? [`${formatCount(jobs.failed)} failed`] : []),
  ]
  const engineText = live === 0 ? 'no engine' : `${live} ${plural(live, 'engine')}`
  return [engineText, ...waits, `${formatCount(rate)} items/s`].join(', ')
}

function laneText({ claimed, jobs }: Snapshot): string {
  if (claimed.length < jobs.claimed)
    return `Lanes: of the last ${formatCount(claimed.length)}, ${laneCounts({ claimed })}`
  return `Lanes: ${laneCounts({ claimed })}`
}

function laneCounts({ claimed }: Pick<Snapshot, 'claimed'>): string {
  return LANES.map(
    (lane) => `${formatCount(claimed.filter((job) => job.lane === lane).length)} ${lane}`,
  ).join(', ')
}

/** One line when something has changed, for a file or another program. */
export function lineView(output: Output): View {
  let last = ''
  const say = (at: number, text: string): void => output.line(`${clockTime(at, at)}  ${text}`)
  return {
    show(snapshot) {
      for (const { stream, mark } of snapshot.moved) say(snapshot.at, `${stream}: complete up to ${mark}`)
      const text = summary(snapshot)
      if (text !== last) say(snapshot.at, text)
      last = text
    },
    trouble(error) {
      const text = `The ledger does not answer: ${error.message}`
      if (text !== last) output.line(text)
      last = text
    },
    end() {},
  }
}

export function jsonView(output: Output): View {
  return {
    show({ at, engines, jobs, claimed, streams, moved, rate }) {
      output.value({
        at: isoTime(at),
        engines: engines.map(engineJson),
        jobs: Object.fromEntries(STAGES.map((stage) => [stage, jobs[stage]])),
        itemsPerSecond: Number(rate.toFixed(3)),
        claimed: claimed.map(jobJson),
        streams: streams.map(({ name, mark, moved_at }) => ({ name, mark, markMovedAt: isoTime(moved_at) })),
        moved,
      })
    },
    trouble: ({ message, code }) => output.value({ error: { message, code } }),
    end() {},
  }
}
