/** The settings of the Drive index, and what they mean. */
import { googleDriveSection } from '../../cloud/drive/settings.ts'
import { about, bytes, defineSection, type SectionValues, whole } from '../../config/section.ts'
import type { Config } from '../../config/settings.ts'

export const driveSection = defineSection('drive', {
  poll_minutes: whole({ min: 1, max: 1440 }, 5, 'how often changes are looked for', { onPage: true }),
  folder_check_minutes: whole(
    { min: 1, max: 10_080 },
    15,
    'how often the permissions of folders and shared drives are compared: Google does not tell of their changes',
  ),
  relist_hours: whole(
    { min: 1, max: 8_760 },
    24,
    'how often everything is listed anew: what nobody tells of (members of groups, accesses that ended) is found so',
  ),
  document_max: bytes.prefault('100MB').register(about, {
    allowed: 'a size such as "100MB"',
    purpose: 'larger documents are found by their names only',
    unit: 'bytes',
  }),
  patience_minutes: whole(
    { min: 0, max: 1440 },
    10,
    'how long a sync waits for Google Drive when it is out of reach; with --watch it does so without end',
  ),
})

export const sections = [googleDriveSection, driveSection]

declare module '../../config/settings.ts' {
  interface Config {
    drive: SectionValues<typeof driveSection>
  }
}

export type DriveSettings = {
  apiUrl: string
  tokenUrl: string
  unitsPerMinute: number
  workersMax: number
  folderCheckMs: number
  relistMs: number
  documentBytesMax: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** What a test or a command says about one run, over the configuration. */
export type DriveOverrides = Partial<Pick<DriveSettings, 'folderCheckMs' | 'relistMs'>>

export function driveSettingsOf(
  { google_drive, drive }: Config,
  overrides: DriveOverrides = {},
): DriveSettings {
  return {
    apiUrl: google_drive.api_url,
    tokenUrl: google_drive.token_url,
    unitsPerMinute: google_drive.units_per_minute,
    workersMax: google_drive.workers_max,
    folderCheckMs: overrides.folderCheckMs ?? drive.folder_check_minutes * MINUTE_MS,
    relistMs: overrides.relistMs ?? drive.relist_hours * HOUR_MS,
    documentBytesMax: drive.document_max,
  }
}
