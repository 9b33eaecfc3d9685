/** `tidemark jobs show ID`: everything that a person needs to know about one job. */

import type { CliContext } from '../../app/command.ts'
import { withLedger } from '../../app/with-ledger.ts'
import { UsageError } from '../../base/errors.ts'
import { formatBytes, formatCount } from '../../base/format.ts'
import { isoTime, moment } from '../../base/moment.ts'
import { redactValue } from '../../base/redaction.ts'
import { type ListedEngine, listEngines, liveCount } from '../../engine/observe/engines.ts'
import { dependencyText, explainJob } from '../../engine/observe/job-explanation.ts'
import { failureCount, parsedJson } from '../../engine/observe/job-texts.ts'
import type { SegmentRow } from '../../ledger/contract.ts'
import type { JobDetail } from '../../ledger/queries.ts'
import { engineJson } from './engines.ts'
import { jobJson } from './row.ts'

const TEXT_LINES_MAX = 30
const TEXT_CHARS_MAX = 2_000
const ERRORS_SHOWN_MAX = 10
const NAMED_MAX = 5

type Shown = {
  detail: JobDetail
  engines: ListedEngine[]
  segment: SegmentRow | undefined
  explanation: string[]
  now: number
}

export async function showJob(context: CliContext, id: number): Promise<void> {
  await withLedger(context, async ({ ledger }) => {
    const detail = await ledger.job(id)
    if (!detail) {
      throw new UsageError(`There is no job #${id}.`, {
        code: 'job-unknown',
        hint: 'It may have been pruned. `tidemark jobs list` shows what there is.',
      })
    }
    const engines = await listEngines(ledger)
    const now = ledger.now()
    const explanation = explainJob({ detail, engines, now })
    const shown = {
      detail,
      engines,
      segment: detail.job.segment_id === null ? undefined : await ledger.segment(detail.job.segment_id),
      explanation,
      now,
    }
    if (context.output.json) context.output.value(shownJson(shown))
    else for (const line of shownLines(shown)) context.output.line(line)
  })
}

function shownLines({ detail, segment, explanation, now }: Shown): string[] {
  const { job, errors } = detail
  const failures = failureCount(job)
  const lines = [`Job #${job.id}: ${job.kind}, ${job.state}`, ...explanation.map((text) => `  ${text}`), '']
  const fact = (name: string, text: string | undefined): void => {
    if (text) lines.push(`${name.padEnd(FACT_WIDTH)}${text}`)
  }
  fact('Stream', job.stream ?? undefined)
  fact('Segment', segment ? segmentText(segment) : job.segment_id === null ? undefined : `#${job.segment_id}`)
  fact('Key', job.key ?? undefined)
  fact('Lane', `${job.lane}, priority ${job.priority}`)
  fact('Size', job.size === null ? undefined : formatBytes(job.size))
  fact('Items', job.items === 1 ? undefined : formatCount(job.items))
  fact('Created', moment(job.created_at, now))
  fact('Claimed', job.claimed_at === null ? undefined : moment(job.claimed_at, now))
  fact('Settled', job.settled_at === null ? undefined : moment(job.settled_at, now))
  fact('Times taken', formatCount(job.attempt))
  fact('Failures', failures === 0 ? undefined : formatCount(failures))
  fact('Parent', job.parent_id === null ? undefined : `job #${job.parent_id}`)
  fact('Children', childrenText(detail))
  fact('After', jobsText(detail.waitsFor))
  fact('Needed by', jobsText(detail.neededBy))
  if (errors.length > 0) lines.push(...errorLines(detail, now))
  lines.push('', 'Payload', ...textLines(job.payload))
  if (job.checkpoint !== null) lines.push('', 'Checkpoint', ...textLines(job.checkpoint))
  return lines
}

const FACT_WIDTH = 13

function segmentText(segment: SegmentRow): string {
  const { listed, stored, gone, skipped, bad, open_jobs } = segment
  const label = segment.label ? ` ${segment.label}` : ''
  const accounted = `${stored} stored + ${gone} gone + ${skipped} skipped + ${bad} bad`
  return `#${segment.id}${label}, ${segment.state}: ${listed} listed, ${accounted}, ${open_jobs} jobs open`
}

function childrenText({ job, children }: JobDetail): string | undefined {
  const counts = Object.entries(children).map(([state, n]) => `${formatCount(n)} ${state}`)
  return counts.length === 0 ? undefined : `${counts.join(', ')} (tidemark jobs list --parent ${job.id})`
}

function jobsText(rows: JobDetail['neededBy']): string | undefined {
  const named = rows.slice(0, NAMED_MAX).map(dependencyText).join(', ')
  const more = rows.length - NAMED_MAX
  return more > 0 ? `${named} and ${formatCount(more)} more` : named || undefined
}

function errorLines({ errors }: JobDetail, now: number): string[] {
  const shown = errors
    .slice(0, ERRORS_SHOWN_MAX)
    .map(({ attempt, at, kind, message }) => `  attempt ${attempt}, ${moment(at, now)}: ${kind}: ${message}`)
  const more = errors.length - ERRORS_SHOWN_MAX
  return ['', 'Errors, the last one first', ...shown, ...(more > 0 ? [`  and ${more} more`] : [])]
}

/** JSON in its readable form, without secrets and not for pages on end. */
function textLines(text: string): string[] {
  const value = redactValue(parsedJson(text))
  const pretty = typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)
  const lines = pretty.slice(0, TEXT_CHARS_MAX).split('\n')
  const shown = lines.slice(0, TEXT_LINES_MAX).map((line) => `  ${line}`)
  if (lines.length <= TEXT_LINES_MAX && pretty.length <= TEXT_CHARS_MAX) return shown
  return [...shown, `  … ${formatCount(text.length)} characters in all; --json prints them`]
}

function shownJson({ detail, engines, segment, explanation }: Shown) {
  const { job, waitsFor, neededBy, children, errors, owner, pausedBy } = detail
  const edge = ({ id, kind, state, on_failure, met }: JobDetail['waitsFor'][number]) => ({
    id,
    kind,
    state,
    onFailure: on_failure,
    met: met === 1,
  })
  const holder = engines.find(({ id }) => id === job.owner)
  return {
    ...jobJson(job),
    explanation,
    payload: parsedJson(job.payload),
    checkpoint: parsedJson(job.checkpoint),
    dependencies: waitsFor.map(edge),
    dependents: neededBy.map(edge),
    children,
    errors: errors.map(({ attempt, at, kind, message }) => ({ attempt, at: isoTime(at), kind, message })),
    heldBy: job.state === 'claimed' && owner ? holderJson(owner, holder) : null,
    pausedBy,
    segmentCounts: segment ? segmentJson(segment) : null,
    engines: liveCount(engines),
  }
}

function holderJson(owner: NonNullable<JobDetail['owner']>, seen: ListedEngine | undefined) {
  if (seen) return engineJson(seen)
  const { id, name, host, pid, lease_until } = owner
  return { id, name, host, pid, state: 'gone', leaseUntil: isoTime(lease_until) }
}

function segmentJson({ id, label, state, open_jobs, listed, stored, gone, skipped, bad }: SegmentRow) {
  return { id, label, state, openJobs: open_jobs, listed, stored, gone, skipped, bad }
}
