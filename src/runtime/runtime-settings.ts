/** What the configuration means for the engine. */
import type { OpenApp } from '../app/runtime.ts'
import type { Config } from '../config/settings.ts'
import type { EngineOptions } from '../engine/engine.ts'
import type { AlertThresholds } from '../engine/observe/alert-rules.ts'

const DAY_MS = 86_400_000

/** What may change while the engine runs. */
export function engineSizeOf(
  { engine }: Config,
  apps: Iterable<OpenApp>,
): Pick<EngineOptions, 'workers' | 'window'> {
  const wanted = [...apps].map((app) => app.workersMin?.() ?? 0)
  return { workers: Math.max(engine.workers, ...wanted), window: engine.window }
}

export function retentionOf({ ledger }: Config): { settledKeptMs: number; failedKeptMs: number } {
  return {
    settledKeptMs: ledger.prune_after_days * DAY_MS,
    failedKeptMs: ledger.failed_after_days * DAY_MS,
  }
}

/** What was done for users, and with whose eyes somebody searched. */
export function auditKeptMs({ ledger }: Config): number {
  return ledger.audit_after_days * DAY_MS
}

export function thresholdsOf({ alerts }: Config): Partial<AlertThresholds> {
  return {
    badWarnShare: alerts.bad_warn,
    badCriticalShare: alerts.bad_critical,
    badPerHourCritical: alerts.bad_per_hour_critical,
    throttledMs: alerts.throttled_minutes * 60_000,
    heartbeatMs: alerts.heartbeat_minutes * 60_000,
  }
}
