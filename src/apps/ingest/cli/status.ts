/** What `tidemark ingest status` says of a pipeline. */
import { pauseOf } from '../../../app/cli/ending.ts'
import type { Standing, StatusReporter } from '../../../app/cli/noun.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { distance } from '../../../base/moment.ts'
import { readAttendance } from '../../../engine/observe/engines.ts'
import { ingestApp } from '../app.ts'
import { ingestRuntime } from '../runtime.ts'
import { booksText, isBalanced, isOpen, type PipelineStatus, pipelineStatus, type Reason } from '../status.ts'

export const reportPipeline: StatusReporter = async (runtime, source) => {
  const { ledger, ingest } = ingestRuntime(runtime)
  const status = await pipelineStatus(ingest.tables, source.name)
  const pause = await pauseOf(openedSources(ingestApp, runtime), source)
  const { isAttended } = await readAttendance(ledger)
  const location = await ingest.pipelines.get(source.name).then(
    ({ config }) => config.location,
    () => null,
  )
  // Before the first listing nobody knows what is there.
  const isUnknown = location !== null && status.listing === null && status.listingUnderWay === null
  const known = standingOf(status, { isAttended, isPaused: pause !== undefined })
  const standing = isUnknown && known === 'settled' ? (isAttended ? 'going' : 'stopped') : known
  const text = isUnknown ? `not listed yet; read what is there with: tidemark ingest sync ${source.name}` : ''
  const lines = [
    `${source.name}: ${pause ? 'paused' : status.problem ? 'cannot be read' : text || STANDING_TEXTS[standing]}`,
    ...(pause ? [`  paused      ${pause.reason}`] : []),
    `  books       ${booksText(status)}`,
    ...reasonLines('skipped', (status.listing ?? status.objects).skippedBy),
    ...reasonLines('bad', (status.listing ?? status.objects).badBy),
    ...reasonLines('gone', status.objects.goneBy, '; these are listed no more'),
    ...reasonLines('afterwards', status.afterwards),
    ...reasonLines('unread', status.messages.unparsedBy),
    ...moreLines(status, ledger.now()),
  ]
  return { lines, json: { ...status, state: standing, pauseReason: pause?.reason ?? null }, standing }
}

const STANDING_TEXTS: Partial<Record<Standing, string>> = {
  wrong: 'its books do not agree with its listing; list anew with: tidemark ingest reconcile',
  stopped: 'stopped before it was done',
  going: 'on its way',
  bad: 'settled, but for bad objects',
  settled: 'settled',
}

function standingOf(
  status: PipelineStatus,
  { isAttended, isPaused }: { isAttended: boolean; isPaused: boolean },
): Standing {
  if (isPaused || status.problem || !isBalanced(status)) return 'wrong'
  if (isOpen(status)) return isAttended ? 'going' : 'stopped'
  return status.objects.bad > 0 ? 'bad' : 'settled'
}

function reasonLines(what: string, reasons: readonly Reason[], more = ''): string[] {
  if (reasons.length === 0) return []
  const parts = reasons.map(({ code, count }) => `${formatCount(count)} ${code}`)
  return [`  ${what.padEnd(11)} ${parts.join(', ')}${more}`]
}

function* moreLines(status: PipelineStatus, nowMs: number): Generator<string> {
  const { listing, listingUnderWay, objects, messages, problem } = status
  yield `  records     ${formatCount(status.records)} in the index, ${formatCount(status.quarantined)} in quarantine, of ${formatBytes(status.bytes)}`
  if (listing) yield `  listed      ${distance(listing.atMs, nowMs)}`
  if (listing && listing.leftOut > 0)
    yield `  left out    ${formatCount(listing.leftOut)} where objects were moved to: these are not read`
  if (listing && objects.total !== listing.total)
    yield `  versions    ${formatCount(objects.total)} of objects were ever seen`
  if (listingUnderWay) yield `  listing     ${formatCount(listingUnderWay.listed)} so far`
  if (messages.received > 0) {
    const parts = [
      `${formatCount(messages.received)} received`,
      `${formatCount(messages.acknowledged)} acknowledged`,
    ]
    parts.push(`${formatCount(messages.duplicates)} duplicates`, `${formatCount(messages.dropped)} dropped`)
    if (messages.unparsed > 0) parts.push(`${formatCount(messages.unparsed)} not understood`)
    yield `  messages    ${parts.join(', ')}`
  }
  if (messages.extensions > 0 || messages.released > 0)
    yield `  held        ${formatCount(messages.extensions)} extensions, ${formatCount(messages.released)} given back`
  if (status.queueDepth) yield `  queue       ${depthText(status.queueDepth, nowMs)}`
  if (status.oldestOnTheirWayMs !== null) yield `  oldest      ${distance(status.oldestOnTheirWayMs, nowMs)}`
  if (status.takeovers > 0) yield `  takeovers   ${formatCount(status.takeovers)}`
  if (problem) yield `  problem     ${problem.text} (${distance(problem.atMs, nowMs)})`
}

function depthText(
  { waiting, inFlight, oldestAtMs, notedAtMs }: NonNullable<PipelineStatus['queueDepth']>,
  nowMs: number,
): string {
  const parts = [`looked at ${distance(notedAtMs, nowMs)}`]
  if (waiting !== null) parts.push(`${formatCount(waiting)} waiting`)
  if (inFlight !== null) parts.push(`${formatCount(inFlight)} in hand`)
  if (oldestAtMs !== null) parts.push(`the oldest sent ${distance(oldestAtMs, nowMs)}`)
  return parts.join(', ')
}
