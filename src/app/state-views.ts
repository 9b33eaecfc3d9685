/** Rows of the ledger and snapshots of the engine, as the API tells them. Pure. */

import { redactText } from '../base/redaction.ts'
import type { Engine } from '../engine/engine.ts'
import type { BudgetSnapshot } from '../engine/limits/budget.ts'
import { hostName, type ListedEngine } from '../engine/observe/engines.ts'
import { parsedJson } from '../engine/observe/job-texts.ts'
import type { LiveSnapshot } from '../engine/observe/live.ts'
import { workText } from '../engine/observe/progress.ts'
import type { AlertRow } from '../ledger/alerts.ts'
import type { BadRow, JobRow, SegmentRow } from '../ledger/contract.ts'
import type { ScheduleRow } from '../ledger/schedules.ts'
import type {
  AlertView,
  BadView,
  BudgetView,
  RunningView,
  ScheduleView,
  SegmentView,
  WorkerView,
} from './schemas.ts'

export function alertView(row: AlertRow): AlertView {
  const { condition, target, severity, text, first_at, last_at, count } = row
  return { condition, target, severity, text: redactText(text), since: first_at, last: last_at, count }
}

export function workerView(engine: ListedEngine, here: number): WorkerView {
  return {
    id: engine.id,
    name: engine.name,
    host: hostName(engine.host),
    pid: Number(engine.pid),
    startedAt: engine.started_at,
    heartbeatAt: engine.heartbeat_at,
    leaseUntil: engine.lease_until,
    isHere: engine.id === here,
    alive: engine.liveness === 'live',
  }
}

export function budgetView(budget: BudgetSnapshot): BudgetView {
  const { name, rate, ceiling, pausedUntilMs, workers, running, waiting, throttles, p50Ms, p95Ms } = budget
  const pausedUntil = pausedUntilMs > 0 ? Math.round(pausedUntilMs) : null
  return { name, rate, ceiling, pausedUntil, workers, running, waiting, throttles, p50Ms, p95Ms }
}

/** What a job of a kind does, for people. */
export type WorkTexts = (job: { kind: string; items: number }) => string

export function workTexts({ kinds }: Pick<Engine, 'kinds'>): WorkTexts {
  return ({ kind, items }) => workText(kinds.find(kind)?.describe, { kind, things: items })
}

export function runningView(job: LiveSnapshot['running'][number], texts: WorkTexts): RunningView {
  const { id, kind, stream, lane, label, done, total, unit, startedAt, things } = job
  const what = texts({ kind, items: things })
  return { id, kind, what, stream, lane, label, done, total, unit, startedAt: Math.round(startedAt) }
}

/** What another process runs, as far as the ledger knows: its progress is saved every few seconds. */
export function heldView(job: JobRow, texts: WorkTexts): RunningView {
  const progress = progressView(job.progress)
  const { id, kind, stream, lane } = job
  return {
    id,
    kind,
    what: texts(job),
    stream,
    lane,
    label: progress?.label ?? null,
    done: progress?.done ?? 0,
    total: progress?.total ?? null,
    unit: progress?.unit === 'bytes' ? 'bytes' : 'items',
    startedAt: job.claimed_at ?? job.created_at,
  }
}

export type ProgressView = { done?: number; total?: number; unit?: string; label?: string }

export function progressView(text: string | null): ProgressView | null {
  const parsed = parsedJson(text)
  if (typeof parsed !== 'object' || parsed === null) return null
  const { done, total, unit, label } = parsed as Record<string, unknown>
  return {
    ...(typeof done === 'number' ? { done } : {}),
    ...(typeof total === 'number' ? { total } : {}),
    ...(typeof unit === 'string' ? { unit } : {}),
    ...(typeof label === 'string' ? { label } : {}),
  }
}

export function segmentView(row: SegmentRow): SegmentView {
  const { id, from_at, to_at, state, label, open_jobs, listed, stored, gone, skipped, bad } = row
  return {
    id,
    from: from_at,
    to: to_at,
    state,
    label,
    openJobs: open_jobs,
    listed,
    stored,
    gone,
    skipped,
    bad,
  }
}

export function badView(row: BadRow): BadView {
  const { id, stream, kind, item, error_kind, first_seen, last_tried, tries } = row
  return {
    id,
    stream,
    kind,
    item,
    reason: redactText(row.reason),
    errorKind: error_kind,
    firstSeen: first_seen,
    lastTried: last_tried,
    tries,
  }
}

export function scheduleView(row: ScheduleRow, stream: string | null): ScheduleView {
  const { name, kind, spec, next_at, last_at } = row
  return { name, kind, spec, stream, nextAt: next_at, lastAt: last_at }
}
