/** The settings of the sync of files, and what they mean. */
import { z } from 'zod'
import { onedriveSection } from '../../cloud/onedrive/settings.ts'
import { about, bytes, choice, defineSection, type SectionValues, whole } from '../../config/section.ts'
import type { Config } from '../../config/settings.ts'
import type { BandwidthSpec } from '../../engine/limits/bandwidth.ts'
import type { FilesSettings } from './folder-pair.ts'

const ROOTS_MAX = 50

export const filesSection = defineSection('files', {
  parallel_downloads: whole({ min: 1, max: 64 }, 8, 'files downloaded at once'),
  parallel_uploads: whole({ min: 1, max: 64 }, 8, 'files uploaded at once'),
  parallel_checkers: whole({ min: 1, max: 64 }, 8, 'files hashed at once'),
  chunk_size: bytes.prefault('10MiB').register(about, {
    allowed: 'a size such as "10MiB", up to 60MiB; it is rounded down to a multiple of 320 KiB',
    purpose: 'how much of a large file is sent at a time',
    unit: 'bytes',
  }),
  disk_reserve: bytes.prefault('1GB').register(about, {
    allowed: 'a size such as "1GB"',
    purpose: 'room on the disk that downloads leave free',
    unit: 'bytes',
  }),
  trash_days: whole(
    { min: 1, max: 3650 },
    30,
    'how long files deleted or replaced here are kept, by time that Tidemark saw pass',
  ),
  trash_max: bytes.optional().register(about, {
    allowed: 'a size such as "50GB"',
    purpose: 'how large the trash of a folder may grow before its oldest files go; no limit without it',
    unit: 'bytes',
  }),
  poll_seconds: whole({ min: 5, max: 86_400 }, 60, 'how often changes in OneDrive are asked for', {
    onPage: true,
  }),
  scan_minutes: whole({ min: 1, max: 10_080 }, 60, 'how often the whole folder is looked through', {
    onPage: true,
  }),
  debounce_ms: whole({ min: 0, max: 60_000 }, 2_000, 'quiet after a change before it is looked at'),
  patience_minutes: whole(
    { min: 0, max: 1440 },
    10,
    'how long a sync waits for OneDrive when it is out of reach; with --watch it does so without end',
  ),
  index: choice(['on', 'off'], 'on', 'whether files in step are found by the search over everything'),
  allowed_roots: z
    .array(z.string().min(1).max(4_096))
    .max(ROOTS_MAX)
    .default([])
    .register(about, {
      allowed: `a list of up to ${ROOTS_MAX} paths such as "/home/ann"`,
      purpose:
        'where the dashboard may add folders; without it in your home, and nowhere if others reach the server',
    }),
})

export const sections = [onedriveSection, filesSection]

declare module '../../config/settings.ts' {
  interface Config {
    files: SectionValues<typeof filesSection>
  }
}

const SILENCE_MS = 60_000
const CHUNK_STEP_BYTES = 320 * 1024
const CHUNK_BYTES_MAX = 60 * 1024 * 1024 - CHUNK_STEP_BYTES

export function filesSettingsOf({ onedrive, files, bandwidth }: Config): FilesSettings {
  const chunk = Math.min(files.chunk_size, CHUNK_BYTES_MAX)
  return {
    apiUrl: onedrive.api_url,
    authUrl: onedrive.auth_url,
    tokenUrl: onedrive.token_url,
    deviceUrl: onedrive.device_url,
    requestsPerSecondStart: onedrive.requests_per_second_start,
    requestsPerSecondMax: onedrive.requests_per_second_max,
    parallelDownloads: files.parallel_downloads,
    parallelUploads: files.parallel_uploads,
    parallelCheckers: files.parallel_checkers,
    chunkBytes: Math.max(CHUNK_STEP_BYTES, chunk - (chunk % CHUNK_STEP_BYTES)),
    reserveBytes: files.disk_reserve,
    trashDays: files.trash_days,
    trashBytesMax: files.trash_max ?? Number.POSITIVE_INFINITY,
    debounceMs: files.debounce_ms,
    pollMs: files.poll_seconds * 1000,
    scanMs: files.scan_minutes * 60_000,
    silenceMs: SILENCE_MS,
    bandwidth: toBandwidthSpec(bandwidth),
  }
}

function toBandwidthSpec({ timetable, ...rates }: Config['bandwidth']): BandwidthSpec {
  return {
    ...rates,
    timetable: timetable.map(({ from, to, days, ...other }) => ({
      from,
      to,
      rates: { ...rates, ...other },
      ...(days ? { days } : {}),
    })),
  }
}
