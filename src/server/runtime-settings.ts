/** What the configuration means for the engine and the apps. */
import { join } from 'node:path'
import type { MailSettings } from '../apps/mail-archive/index.ts'
import type { Config } from '../config/settings.ts'
import type { AlertThresholds } from '../engine/alert-rules.ts'
import type { EngineOptions } from '../engine/engine.ts'

/** Jobs besides those that fetch: listing, following, archiving. */
const WORKERS_BESIDES = 4
const DAY_MS = 86_400_000

/** What a command says about one run, over the configuration. */
export type MailOverrides = Partial<Pick<MailSettings, 'sinceMs'>>

export function mailSettingsOf(
  { gmail, mail }: Config,
  home: string,
  overrides: MailOverrides = {},
): MailSettings {
  return {
    folder: join(home, 'mail'),
    apiUrl: gmail.api_url,
    tokenUrl: gmail.token_url,
    unitsPerMinute: gmail.units_per_minute,
    priceOfGet: gmail.price_of_get,
    requestsPerSecond: { start: gmail.requests_per_second_start, max: gmail.requests_per_second_max },
    workers: {
      start: Math.min(gmail.workers_start, gmail.workers_max),
      max: gmail.workers_max,
    },
    slice: mail.slice,
    sliceByLabel: mail.slice_by_label,
    batch: mail.batch,
    sinceMs: overrides.sinceMs,
    shardBy: mail.shard_by,
    shardBytesMax: mail.shard_max,
    metadataBytesMax: mail.metadata_max,
  }
}

/** What may change while the engine runs. */
export function engineSizeOf(config: Config): Pick<EngineOptions, 'workers' | 'window'> {
  return {
    workers: Math.max(config.engine.workers, config.gmail.workers_max + WORKERS_BESIDES),
    window: config.engine.window,
  }
}

export function retentionOf({ ledger }: Config): { settledKeptMs: number; failedKeptMs: number } {
  return {
    settledKeptMs: ledger.prune_after_days * DAY_MS,
    failedKeptMs: ledger.failed_after_days * DAY_MS,
  }
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
