/** What the configuration means for the engine and the apps. */
import { join } from 'node:path'
import type { FilesSettings } from '../apps/file-sync/drive.ts'
import type { MailSettings } from '../apps/mail-archive/index.ts'
import type { Config } from '../config/settings.ts'
import type { AlertThresholds } from '../engine/alert-rules.ts'
import type { EngineOptions } from '../engine/engine.ts'
import type { BandwidthSpec } from '../engine/limits/bandwidth.ts'

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

const SILENCE_MS = 60_000
const CHUNK_STEP_BYTES = 320 * 1024
const CHUNK_BYTES_MAX = 60 * 1024 * 1024 - CHUNK_STEP_BYTES

export function filesSettingsOf({ onedrive, files, bandwidth }: Config): FilesSettings {
  const chunk = Math.min(files.chunk_size, CHUNK_BYTES_MAX)
  return {
    ...{ apiUrl: onedrive.api_url, authUrl: onedrive.auth_url, tokenUrl: onedrive.token_url },
    deviceUrl: onedrive.device_url,
    requestsPerSecondStart: onedrive.requests_per_second_start,
    requestsPerSecondMax: onedrive.requests_per_second_max,
    ...{ parallelDownloads: files.parallel_downloads, parallelUploads: files.parallel_uploads },
    parallelCheckers: files.parallel_checkers,
    chunkBytes: Math.max(CHUNK_STEP_BYTES, chunk - (chunk % CHUNK_STEP_BYTES)),
    ...{ reserveBytes: files.disk_reserve, trashDays: files.trash_days, debounceMs: files.debounce_ms },
    ...{ pollMs: files.poll_seconds * 1000, scanMs: files.scan_minutes * 60_000 },
    silenceMs: SILENCE_MS,
    bandwidth: bandwidthOf(bandwidth),
  }
}

function bandwidthOf({ timetable, ...rates }: Config['bandwidth']): BandwidthSpec {
  return {
    ...rates,
    timetable: timetable.map(({ from, to, days, ...other }) => ({
      ...{ from, to, rates: { ...rates, ...other } },
      ...(days ? { days } : {}),
    })),
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
