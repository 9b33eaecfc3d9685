/** A job as the API tells it. */

import type { JobDetail, JobView } from '../../app/schemas.ts'
import { progressView, type WorkTexts } from '../../app/state-views.ts'
import { redactText, redactValue } from '../../base/redaction.ts'
import type { Engine } from '../../engine/engine.ts'
import { hostName, type ListedEngine } from '../../engine/observe/engines.ts'
import { explainJob } from '../../engine/observe/job-explanation.ts'
import { errorText, failureCount, parsedJson } from '../../engine/observe/job-texts.ts'
import type { JobRow } from '../../ledger/contract.ts'
import type { DependencyRow, JobDetail as JobSight } from '../../ledger/queries.ts'
import { type JobState, nextJobState, stageOf } from '../../ledger/states.ts'

/** A payload beyond this is cut: a page shows it, nobody reads it to its end. */
const PAYLOAD_CHARS_MAX = 100_000
const ERRORS_MAX = 50

type JobLink = JobDetail['children'][number]

export function jobView(job: JobRow, texts: WorkTexts): JobView {
  const { id, kind, stream, key, lane, priority, state, items, attempt, owner } = job
  return {
    id,
    kind,
    what: texts(job),
    stream,
    segment: job.segment_id,
    parent: job.parent_id,
    key,
    lane,
    priority,
    state,
    stage: stageOf(state, job.wait),
    runAt: job.run_at,
    items,
    attempt,
    failures: failureCount(job),
    owner,
    progress: progressView(job.progress),
    error: errorOf(job.error),
    note: job.note === null ? null : redactText(job.note),
    noteCode: job.note_code,
    createdAt: job.created_at,
    claimedAt: job.claimed_at,
    settledAt: job.settled_at,
  }
}

export type DetailInput = {
  sight: JobSight
  children: readonly JobRow[]
  engines: readonly ListedEngine[]
  now: number
  texts: WorkTexts
  kinds: Engine['kinds']
}

export function jobDetailView({ sight, children, engines, now, texts, kinds }: DetailInput): JobDetail {
  const { job } = sight
  const explanation = explainJob({ detail: sight, engines, now, reader: 'page' })
  const isStopping = job.cancel_requested === 1
  return {
    ...jobView(job, texts),
    payload: shownInput(kinds, job),
    checkpoint: parsedContent(job.checkpoint),
    explanation: explanation.map(redactText),
    errors: sight.errors.slice(0, ERRORS_MAX).map(({ attempt, at, kind, code, message }) => ({
      attempt,
      at,
      kind,
      code,
      message: redactText(message),
    })),
    lease: leaseOf(sight, engines),
    dependsOn: sight.waitsFor.flatMap((one) => dependencyLink(one, texts)),
    dependents: sight.neededBy.flatMap((one) => dependencyLink(one, texts)),
    children: children.map((child) => link(child, child.state, texts)),
    canRetry: nextJobState(job.state, 'redo') !== 'refused',
    canCancel: nextJobState(job.state, 'cancel') !== 'refused' && !isStopping,
  }
}

function leaseOf({ job, owner }: JobSight, engines: readonly ListedEngine[]): JobDetail['lease'] {
  if (job.state !== 'claimed' || !owner) return null
  const alive = engines.some(({ id, liveness }) => id === owner.id && liveness === 'live')
  return { worker: owner.id, name: owner.name, host: hostName(owner.host), until: owner.lease_until, alive }
}

/** What was pruned is no longer there to be linked to. */
function dependencyLink({ id, kind, state, wait, error }: DependencyRow, texts: WorkTexts): JobLink[] {
  return kind === null || state === null ? [] : [link({ id, kind, wait, error }, state, texts)]
}

function link(
  { id, kind, wait, error, items = 1 }: Pick<JobRow, 'id' | 'kind' | 'wait' | 'error'> & { items?: number },
  state: JobState,
  texts: WorkTexts,
): JobLink {
  return { id, kind, what: texts({ kind, items }), state, stage: stageOf(state, wait), error: errorOf(error) }
}

function errorOf(error: string | null): string | null {
  const text = errorText(error)
  return text === undefined ? null : redactText(text)
}

/** As its kind has it for people. */
function shownInput(kinds: Engine['kinds'], { kind: name, payload }: JobRow): unknown {
  const kind = kinds.find(name)
  const parsed = kind?.describe?.input && kind.payload.safeParse(parsedJson(payload))
  return parsedContent(parsed?.success ? JSON.stringify(kind?.describe?.input?.(parsed.data)) : payload)
}

function parsedContent(text: string | null): unknown {
  if (text === null || text.length <= PAYLOAD_CHARS_MAX) return redactValue(parsedJson(text))
  return `${redactText(text.slice(0, PAYLOAD_CHARS_MAX))}…`
}
