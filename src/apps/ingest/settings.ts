/** The settings of object ingest, and what they mean. */
import { about, bytes, defineSection, type SectionValues, whole } from '../../config/section.ts'
import type { Config } from '../../config/settings.ts'
import type { ReadLimits } from './contract.ts'

export const ingestSection = defineSection('ingest', {
  receive_wait_seconds: whole({ min: 0, max: 20 }, 20, 'how long a queue is asked to wait for messages', {
    onPage: true,
  }),
  commit_seconds: whole(
    { min: 1, max: 3_600 },
    60,
    'how long a commit may take; a shard of which nothing was heard for twice as long is looked after',
  ),
  visibility_seconds: whole(
    { min: 10, max: 43_200 },
    180,
    'for how long a received message is invisible to others at first',
  ),
  extension_seconds: whole({ min: 10, max: 43_200 }, 60, 'by how much that is extended, again and again'),
  margin_seconds: whole({ min: 0, max: 60 }, 4, 'how long an extension may take'),
  window_days: whole(
    { min: 1, max: 3_650 },
    14,
    'after so long a stored object that is listed no more is known by its records only; at least the retention of the queue',
  ),
  on_their_way_max: whole(
    { min: 1, max: 1_000_000 },
    1_000,
    'announced objects of a pipeline that are on their way before it receives no more',
  ),
  batch_bytes: bytes.prefault('5MB').register(about, {
    allowed: 'a size such as "5MB"',
    purpose: 'how much of an object is published at a time',
    unit: 'bytes',
  }),
  batch_records: whole({ min: 1, max: 10_000 }, 1_000, 'how many records are published at a time'),
  record_bytes_max: bytes.prefault('1MB').register(about, {
    allowed: 'a size such as "1MB"',
    purpose: 'a longer record is quarantined',
    unit: 'bytes',
  }),
  expansion_max: whole(
    { min: 2, max: 100_000 },
    1_000,
    'to how many bytes one of a compressed object may grow',
  ),
  bad_records_max: whole(
    { min: 0, max: 1_000_000 },
    10_000,
    'of one object that may be quarantined; with more, the object is bad',
  ),
  unparsed_max: whole({ min: 1, max: 100_000 }, 1_000, 'messages that nobody understood that are shown'),
  patience_minutes: whole(
    { min: 0, max: 1440 },
    10,
    'how long a sync waits for a store that is out of reach; with --watch it does so without end',
  ),
  workers_max: whole({ min: 1, max: 64 }, 8, 'objects that one process reads at a time'),
})

export const sections = [ingestSection]

declare module '../../config/settings.ts' {
  interface Config {
    ingest: SectionValues<typeof ingestSection>
  }
}

export type IngestSettings = {
  receiveWaitMs: number
  commitMs: number
  visibilityMs: number
  extensionMs: number
  marginMs: number
  windowMs: number
  onTheirWayMax: number
  batchBytes: number
  batchRecords: number
  badRecordsMax: number
  unparsedMax: number
  workersMax: number
  limits: ReadLimits
}

const SECOND_MS = 1_000
const DAY_MS = 86_400_000

/** What a test or a command says about one run, over the configuration. */
export type IngestOverrides = Partial<IngestSettings>

export function ingestSettingsOf({ ingest }: Config, overrides: IngestOverrides = {}): IngestSettings {
  return {
    receiveWaitMs: ingest.receive_wait_seconds * SECOND_MS,
    commitMs: ingest.commit_seconds * SECOND_MS,
    visibilityMs: ingest.visibility_seconds * SECOND_MS,
    extensionMs: ingest.extension_seconds * SECOND_MS,
    marginMs: ingest.margin_seconds * SECOND_MS,
    windowMs: ingest.window_days * DAY_MS,
    onTheirWayMax: ingest.on_their_way_max,
    batchBytes: ingest.batch_bytes,
    batchRecords: ingest.batch_records,
    badRecordsMax: ingest.bad_records_max,
    unparsedMax: ingest.unparsed_max,
    workersMax: ingest.workers_max,
    limits: { recordBytesMax: ingest.record_bytes_max, expansionMax: ingest.expansion_max },
    ...overrides,
  }
}
