/** What is kept, as rows. Numbers are read as such from both databases. */
import type { Tx } from '../../../ledger/contract.ts'
import type { ShardState } from '../shard-states.ts'

export type ShardRow = {
  pipeline: string
  id: string
  uri: string
  version: string
  version_id: string | null
  sequencer: string | null
  state: ShardState
  /** Of whoever publishes. */
  token: string | null
  /** The position: so many records are behind it, good and bad ones. */
  records: number
  byte: number | null
  line: number | null
  shape: string | null
  eof: number
  published: number
  quarantined: number
  size: number | null
  /** Its records are hidden until its end, because those of an older version are seen until then. */
  is_staged: number
  code: string | null
  reason: string | null
  attempts: number
  takeovers: number
  announced_at: number | null
  listed_at: number | null
  /** The last listing that showed it. */
  listing: number | null
  created_at: number
  updated_at: number
  settled_at: number | null
  /** What became of the object itself, or why it was left: see dispose.ts. */
  disposed: string | null
  /** Where its bytes are then: an address, or on which machine they are kept; and which version, or their SHA-256. */
  disposed_to: string | null
  disposed_version: string | null
  /** The store had it when it was asked so late, by whoever took it away. */
  shown_at: number | null
  /** Of a bad one: the listing that was the last to have begun then. Only later ones can tell that it is gone. */
  bad_in: number | null
}

/** What of a shard is read where there may be many: all but the data that a message carried. */
export const SHARD_COLUMNS = `pipeline, id, uri, version, version_id, sequencer, state, token, records, byte, line,
  shape, eof, published, quarantined, size, is_staged, code, reason, attempts, takeovers, announced_at, listed_at,
  listing, created_at, updated_at, settled_at, disposed, disposed_to, disposed_version, shown_at, bad_in`

export type PipelineRow = {
  name: string
  /** Of the listing under way, or the last one. */
  generation: number
  cursor: string | null
  /** The location that is listed, or was last. */
  listing_of: string | null
  listing_at: number | null
  listing_n: number
  listing_before: number
  listed_generation: number | null
  listed_at: number | null
  listed_n: number | null
  /** Of these, so many that were changed before the start. */
  listed_before: number | null
  /** Objects in places that are left out: not among those that were listed. */
  listing_left_out: number
  listed_left_out: number
  /** Stored shards that are there no more, and how many records these have; skipped ones by their reason. */
  pruned: number
  pruned_records: number
  pruned_older: number
  pruned_replaced: number
  messages: number
  duplicates: number
  dropped: number
  unparsed: number
  acknowledged: number
  extensions: number
  released: number
  received_at: number | null
  problem: string | null
  problem_at: number | null
  /** What the queue said of itself, and when; null where it does not tell. */
  queue_waiting: number | null
  queue_in_flight: number | null
  queue_oldest_at: number | null
  queue_noted_at: number | null
}

export type QuarantineRow = {
  pipeline: string
  shard: string
  /** Of the object, from its shard. */
  uri: string
  at: number
  from_byte: number | null
  from_line: number | null
  line: number | null
  code: string
  reason: string
  excerpt: Uint8Array
  created_at: number
  tried_at: number | null
}

export type UnparsedRow = {
  pipeline: string
  message: string
  code: string
  reason: string
  excerpt: Uint8Array
  deliveries: number
  first_at: number
  last_at: number
}

/**
 * The column is one of the texts of a JSON array that is the parameter. As a join PostgreSQL would read all shards of a
 * pipeline, as long as it does not know how many these have become, or finds that they are not that many.
 */
export function oneOf({ dialect }: Tx, column: string): string {
  return dialect === 'sqlite'
    ? `${column} IN (SELECT value FROM json_each(?))`
    : `${column} = ANY (ARRAY(SELECT jsonb_array_elements_text(?::jsonb)))`
}

/** The shards of a pipeline whose ids are in a JSON array, these being the parameters: each by its key. */
export function shardsById({ dialect }: Tx, columns: string): string {
  return dialect === 'sqlite'
    ? `SELECT ${columns} FROM ingest_shards WHERE pipeline = ? AND id IN (SELECT value FROM json_each(?))`
    : `SELECT s.* FROM (SELECT ?::text AS pipeline, jsonb_array_elements_text(?::jsonb) AS id) AS given
         CROSS JOIN LATERAL (SELECT ${columns} FROM ingest_shards
           WHERE pipeline = given.pipeline AND id = given.id LIMIT 1) AS s`
}

/** `a = b` where both may be missing. */
export function sameAs({ dialect }: Tx, column: string): string {
  return dialect === 'sqlite' ? `${column} IS ?` : `${column} IS NOT DISTINCT FROM ?`
}

export function forUpdate({ dialect }: Tx): string {
  return dialect === 'postgres' ? 'FOR UPDATE' : ''
}
