/** What `tidemark status` reads and prints. Nothing here counts jobs: the ledger keeps tallies. */

import type { CliContext } from '../../app/command.ts'
import { needsOf, shownStreams } from '../../app/look.ts'
import type { Need } from '../../app/need.ts'
import type { AppLook } from '../../app/runtime.ts'
import { type LedgerPlace, lookAtLedger } from '../../app/with-ledger.ts'
import { apps } from '../../apps/registry.ts'
import { formatCount } from '../../base/format.ts'
import { clockTime, distance, isoTime, moment } from '../../base/moment.ts'
import { plural } from '../../base/wording.ts'
import { DATABASE_NAMES } from '../../config/location.ts'
import { hostName, type ListedEngine, listEngines, liveCount } from '../../engine/observe/engines.ts'
import type { AlertRow } from '../../ledger/alerts.ts'
import type { PauseRow } from '../../ledger/control.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { PAGE_MAX, type StreamStatus } from '../../ledger/queries.ts'
import { STAGES } from '../../ledger/states.ts'
import type { Output } from '../output/output.ts'
import { engineJson } from './engines.ts'
import { noCounts, type StageCounts } from './stats.ts'
import { judge, type Verdict } from './verdict.ts'

/** Beyond this many, "at least" is exact enough. */
const BAD_PAGES_MAX = 20
const LINES_SHOWN_MAX = 20
/** The engine's own jobs come and go on schedules; they are not somebody's work. */
const HOUSEKEEPING = 'engine.'

type Status = {
  engines: ListedEngine[]
  streams: StreamStatus[]
  pauses: PauseRow[]
  jobs: StageCounts
  badItems: { count: number; atLeast: boolean }
  alerts: AlertRow[]
  needs: Need[]
  now: number
}

export async function showStatus(
  context: CliContext,
  options: { startCommand: string | undefined },
): Promise<void> {
  const { output } = context
  await lookAtLedger(context, {
    look: async ({ ledger, ...place }) => {
      const status = await readStatus(ledger)
      const verdict = judge({
        jobs: status.jobs,
        badItems: status.badItems,
        unbalanced: sumOf(status.streams, 'unbalanced'),
        openSegments: sumOf(status.streams, 'segments') - sumOf(status.streams, 'settled_segments'),
        enginesLive: liveCount(status.engines),
        pauses: status.pauses.length,
        needs: status.needs.map(needText),
        startCommand: options.startCommand,
      })
      if (output.json) output.value(statusJson(place, status, verdict))
      else printStatus(output, { place, status, verdict })
      context.exitCode = verdict.exitCode
    },
    missing: (place) => output.json && output.value(statusJson(place, nothing(), judgeNothing())),
  })
}

async function readStatus(ledger: Ledger): Promise<Status> {
  const jobs = noCounts()
  for (const { kind, stage, n } of await ledger.tallies())
    if (!kind.startsWith(HOUSEKEEPING)) jobs[stage] += n
  const streams = await ledger.streams()
  const looks = await appLooks(streams, ledger)
  return {
    engines: await listEngines(ledger),
    streams: await shownStreams(looks, streams),
    pauses: await ledger.pauses(),
    jobs,
    badItems: await countBad(ledger),
    alerts: await ledger.alerts(),
    needs: await needsOf(looks.map(([, look]) => look)),
    now: ledger.now(),
  }
}

/** Apps tell of their own, where they have anything: what they keep is in tables of theirs. */
async function appLooks(streams: readonly StreamStatus[], ledger: Ledger): Promise<[string, AppLook][]> {
  const there = apps.filter(({ name }) => streams.some((stream) => stream.name.startsWith(`${name}:`)))
  return Promise.all(there.map(async (app): Promise<[string, AppLook]> => [app.name, await app.look(ledger)]))
}

function needText({ stream, text }: Need): string {
  return `${stream.slice(stream.indexOf(':') + 1)}: ${text}`
}

/** As the apps show them. */
export async function streamsShown(ledger: Ledger): Promise<StreamStatus[]> {
  const streams = await ledger.streams()
  return shownStreams(await appLooks(streams, ledger), streams)
}

function nothing(): Status {
  return {
    engines: [],
    streams: [],
    pauses: [],
    jobs: noCounts(),
    badItems: { count: 0, atLeast: false },
    alerts: [],
    needs: [],
    now: 0,
  }
}

function judgeNothing(): Verdict {
  return { state: 'settled', text: 'There is no ledger yet.', exitCode: 0 }
}

async function countBad(ledger: Ledger): Promise<Status['badItems']> {
  let count = 0
  let after: number | undefined
  for (let page = 0; page < BAD_PAGES_MAX; page++) {
    const rows = await ledger.badItems({ after, limit: PAGE_MAX })
    count += rows.length
    if (rows.length < PAGE_MAX) return { count, atLeast: false }
    after = rows.at(-1)!.id
  }
  return { count, atLeast: true }
}

function printStatus(
  output: Output,
  { place, status, verdict }: { place: Omit<LedgerPlace, 'config'>; status: Status; verdict: Verdict },
): void {
  const { engines, streams, pauses, alerts, now } = status
  output.line(`Ledger   ${place.where} (${DATABASE_NAMES[place.database]})`)
  const live = liveCount(engines)
  output.line(`Engines  ${live === 0 ? 'none is running' : `${live} running`}`)
  for (const line of shorten(engines.map((engine) => engineText(engine, now)))) output.line(`  ${line}`)
  output.line(`Jobs     ${jobsText(status.jobs)}`)
  output.line(`Bad      ${badText(status.badItems)}`)
  section(output, 'Needs you', status.needs.map(needText))
  section(
    output,
    'Paused',
    pauses.map((pause) => pauseText(pause, now)),
  )
  section(
    output,
    'Alerts',
    alerts.map((alert) => alertText(alert, now)),
  )
  if (streams.length > 0) {
    output.line('')
    printStreams(output, streams, now)
  }
  output.line('')
  output.line(verdict.text)
}

function section(output: Output, title: string, lines: readonly string[]): void {
  if (lines.length === 0) return
  output.line(title)
  for (const line of shorten(lines)) output.line(`  ${line}`)
}

function shorten(lines: readonly string[]): string[] {
  const more = lines.length - LINES_SHOWN_MAX
  return more > 0 ? [...lines.slice(0, LINES_SHOWN_MAX), `and ${formatCount(more)} more`] : [...lines]
}

function engineText({ id, name, host, pid, liveness, ...at }: ListedEngine, now: number): string {
  const who = `#${id} ${name} on ${hostName(host)}, pid ${pid}`
  const since = `since ${clockTime(at.started_at, now)}`
  if (liveness === 'live') return `${who}, ${since}, last heartbeat ${distance(at.heartbeat_at, now)}`
  const what = liveness === 'dead' ? 'its process has ended' : 'silent, its lease ran out'
  return `${who}: ${what} (last heartbeat ${distance(at.heartbeat_at, now)}); the next engine takes its jobs`
}

function jobsText(jobs: StageCounts): string {
  const words: Record<keyof StageCounts, string> = {
    ready: 'ready',
    deps: 'after other jobs',
    time: 'later',
    claimed: 'claimed',
    done: 'done',
    skipped: 'skipped',
    canceled: 'canceled',
    failed: 'failed',
  }
  const parts = STAGES.filter((stage) => jobs[stage] !== 0).map(
    (stage) => `${formatCount(jobs[stage])} ${words[stage]}`,
  )
  return parts.length === 0 ? 'none' : parts.join(', ')
}

function badText({ count, atLeast }: Status['badItems']): string {
  return count === 0
    ? 'no items'
    : `${atLeast ? 'at least ' : ''}${formatCount(count)} ${plural(count, 'item')}`
}

function pauseText({ scope, target, reason, at }: PauseRow, now: number): string {
  const what = scope === 'all' ? 'everything' : `${scope} ${target}`
  return `${what}, since ${moment(at, now)}: ${reason}`
}

function alertText({ severity, condition, target, text, first_at, count }: AlertRow, now: number): string {
  const often = count > 1 ? `, ${formatCount(count)} times` : ''
  return `${severity} ${condition} ${target}, since ${moment(first_at, now)}${often}: ${text}`
}

function printStreams(output: Output, streams: readonly StreamStatus[], now: number): void {
  const count = (title: keyof StreamStatus & string) => ({
    title,
    value: (stream: StreamStatus) => formatCount(Number(stream[title])),
    align: 'right' as const,
  })
  output.listing<StreamStatus>({
    columns: [
      { title: 'stream', value: ({ name, paused }) => (paused ? `${name} (paused)` : name) },
      { title: 'complete up to', value: ({ mark }) => mark ?? '-' },
      { title: 'moved', value: ({ moved_at }) => (moved_at === null ? 'never' : distance(moved_at, now)) },
      {
        title: 'segments',
        value: ({ settled_segments, segments }) =>
          `${formatCount(settled_segments)}/${formatCount(segments)}`,
        align: 'right',
      },
      ...(['listed', 'stored', 'gone', 'skipped', 'bad'] as const).map(count),
      { title: 'adds up', value: balanceText },
    ],
    rows: streams,
  })
}

/** `listed = stored + gone + skipped + bad`, or by how much it does not yet. */
function balanceText(stream: StreamStatus): string {
  const open = stream.listed - stream.stored - stream.gone - stream.skipped - stream.bad
  if (stream.unbalanced > 0) return `no: ${formatCount(stream.unbalanced)} segments do not`
  return open === 0 ? 'yes' : `${formatCount(open)} to do`
}

function sumOf(
  streams: readonly StreamStatus[],
  field: 'unbalanced' | 'segments' | 'settled_segments',
): number {
  return streams.reduce((sum, stream) => sum + Number(stream[field]), 0)
}

function statusJson(place: Omit<LedgerPlace, 'config'>, status: Status, verdict: Verdict) {
  const { engines, streams, pauses, jobs, badItems, alerts, needs } = status
  return {
    ledger: { database: place.database, where: place.where },
    engines: engines.map(engineJson),
    streams: streams.map((stream) => ({
      name: stream.name,
      mark: stream.mark,
      markMovedAt: isoTime(stream.moved_at),
      paused: Boolean(stream.paused),
      segments: Number(stream.segments),
      settledSegments: Number(stream.settled_segments),
      listed: Number(stream.listed),
      stored: Number(stream.stored),
      gone: Number(stream.gone),
      skipped: Number(stream.skipped),
      bad: Number(stream.bad),
      unbalanced: Number(stream.unbalanced),
    })),
    pauses: pauses.map(({ scope, target, reason, code, at }) => ({
      scope,
      target,
      reason,
      code,
      at: isoTime(at),
    })),
    jobs,
    badItems,
    alerts: alerts.map(({ condition, target, severity, text, first_at, last_at, count }) => ({
      condition,
      target,
      severity,
      text,
      since: isoTime(first_at),
      last: isoTime(last_at),
      count,
    })),
    needs,
    verdict: { state: verdict.state, text: verdict.text },
  }
}
