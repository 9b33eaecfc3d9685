/**
 * Object ingest: files that a queue announces, each record in the index exactly once.
 *
 *   Queue ──receive──▶ envelopes ──▶ shards + jobs (one transaction) ──▶ ingest.object ──▶ ObjectStore ▸ RecordReader
 *     ▲                                                                       │ batch: records, quarantine, position
 *     └──────────── acknowledge, once every shard of the message is settled ◀─┘ token and position checked, one commit
 *
 * - pipeline: one configured source. It has a stream of its own, `ingest:<pipeline>`, and a queue, a listing, or both.
 * - shard: one version of one object, known by (pipeline, uri, version). It has a publish token, a position, EOF.
 * - message: what a queue delivers, at least once. It announces objects, or carries its data itself.
 * - position: how much of a shard is published. It moves in the transaction that publishes, and nowhere else.
 *
 * Invariants:
 * - what a batch publishes and the position after it are one transaction, which checks the token and the position before
 * - a message is acknowledged only after all its shards are settled in a committed transaction
 * - the same object version is published once, whatever the queue repeats, loses or reorders, however old
 * - a record that cannot be read is quarantined with position and reason, and stops nothing
 */
import type { ObjectBody, ObjectVersion } from '../../cloud/object-store.ts'

// --- Envelopes ---------------------------------------------------------------------------------------------------

/** What a message is about. A message that no envelope fits is `unknown`: it is left to the dead-letter queue, and shown. */
export type Envelope =
  | {
      kind: 'objects'
      format: EnvelopeFormat
      objects: readonly AnnouncedObject[]
      dropped: number
      /** Further objects of it, which cannot be read. */
      refused: readonly Refusal[]
    }
  /** The message carries its data itself. */
  | { kind: 'data'; format: EnvelopeFormat; data: Uint8Array }
  /** Nothing to do: a test event, a deletion. */
  | { kind: 'nothing'; format: EnvelopeFormat; code: string; reason: string }
  | { kind: 'unknown'; code: string; reason: string }

/** Why a message, or an object that it names, is not read. */
export type Refusal = { code: string; reason: string }

export type EnvelopeFormat = 's3' | 'sns' | 'eventbridge' | 'gcs' | 'plain'

export type AnnouncedObject = {
  /** `s3://bucket/key`, `gs://bucket/key`, `file:///…`, `https://…`; the key as it is, not encoded as in the event. */
  uri: string
  /** By which the bytes are known again, the same in an announcement and in a listing; null where nobody says. */
  version: ObjectVersion | null
  sizeBytes: number | null
  eventAtMs: number | null
}

// --- Records -----------------------------------------------------------------------------------------------------

export const RECORD_FORMATS = ['ndjson', 'json', 'csv', 'tsv', 'text', 'parquet', 'avro'] as const
export type RecordFormat = (typeof RECORD_FORMATS)[number]
export const COMPRESSIONS = ['none', 'gzip', 'zstd'] as const
export type Compression = (typeof COMPRESSIONS)[number]

/** How an object is read; `auto` goes by name, type and first bytes. */
export type ReadOptions = {
  format: RecordFormat | 'auto'
  compression: Compression | 'auto'
  /** JSON: which field of the object holds the records, `Records` for CloudTrail. Without it, whichever list is the only one. */
  recordsField?: string
  /** CSV and TSV. */
  header?: boolean
}

/**
 * What is read of an object, in its order, in bounded memory. `at` counts records from 0, bad ones too, and is the same
 * in every reading of the same bytes.
 */
export type ReadItem =
  | { kind: 'record'; at: number; place: RecordPlace; value: Readonly<Record<string, unknown>> }
  /** It cannot be read: not UTF-8, not JSON, longer than allowed. */
  | { kind: 'bad'; at: number; place: RecordPlace; code: string; reason: string; excerpt: Uint8Array }

export type RecordPlace = {
  /** Of the bytes as they are stored, where reading can begin again behind this record; null where it cannot. */
  endByte: number | null
  /** From 1, in formats with lines: the line in which the record ends. */
  line: number | null
}

/**
 * Where a reading goes on: behind record `records` - 1. `byte` is an `endByte` that was told for it, or null, and then
 * the object is read from its beginning and that many are passed over.
 */
export type ReadFrom = { records: number; byte: number | null; line: number | null }

/** What the reader found out about an object, or was told: stored with the position, so that a second reading is the same. */
export type ReadShape = {
  format: RecordFormat
  compression: Compression
  /** CSV and TSV: the names in the first row, which is then no record; null where it has none. */
  header: readonly string[] | null
  /** CSV and TSV. */
  separator?: string
  /** JSON: the records are a list, values one behind the other, or the list in `recordsField`. */
  layout?: 'list' | 'values' | 'field'
  recordsField?: string
}

/**
 * Fails with a TidemarkError of kind `permanent` where the object as a whole cannot be read any further (code
 * `truncated`, `corrupt`, `unknown-format`, `schema`, `bomb`, `too-large`): what came before counts.
 */
export type OpenRecords = (input: {
  /** Opens the object's bytes from there; asked once or, with a footer to read (Parquet), several times. */
  open: (fromByte: number) => Promise<ObjectBody>
  name: string
  options: ReadOptions
  shape: ReadShape | null
  from: ReadFrom
  limits: ReadLimits
  signal: AbortSignal
}) => Promise<{ shape: ReadShape; items: AsyncIterable<ReadItem> }>

export type ReadLimits = {
  /** Of one record as it is stored; longer ones are bad. */
  recordBytesMax: number
  /** Of what one compressed byte may become, as a bound against bombs. */
  expansionMax: number
}

// --- Mapping -----------------------------------------------------------------------------------------------------

/** Which fields of a record are what; paths as `detail.bucket.name`. What does not fit goes to `rescue`, never away. */
export type Mapping = {
  title?: string
  text: readonly string[]
  time?: string
  id?: string
  facets: readonly string[]
}

export type MappedRecord = {
  title: string
  text: string
  atMs: number | null
  id: string | null
  facets: readonly { name: string; value: string }[]
  /** Fields that the mapping names and that have another type than it needs, as they were. */
  rescue: Readonly<Record<string, unknown>>
}
