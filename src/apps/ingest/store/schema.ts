/**
 * What object ingest keeps in the ledger's database besides jobs and records.
 *
 *   ingest_pipelines   one for each pipeline: its last listing and the one under way, and what was counted
 *   ingest_shards      one for each version of each object: see shard-states.ts
 *   ingest_quarantine  one for each record that could not be read
 *   ingest_unparsed    messages that nobody understood, the newest
 *
 * Versions of one object are read in the order of their ids: an index without the id lets SQLite read all shards of the
 * pipeline in that order instead.
 *
 * Whoever publishes for a shard changes its row by one statement that checks token and position. Whoever ends one, and
 * with it others of the same object, first locks all of them in the order of their ids.
 */
import type { Tx } from '../../../ledger/contract.ts'

export function ingestSchema(dialect: Tx['dialect']): string[][] {
  const isSqlite = dialect === 'sqlite'
  const w = isSqlite
    ? { int: 'INTEGER', text: 'TEXT', bytes: 'BLOB', keyed: ' STRICT, WITHOUT ROWID', strict: ' STRICT' }
    : { int: 'BIGINT', text: 'TEXT COLLATE "C"', bytes: 'BYTEA', keyed: '', strict: '' }
  return [
    [
      `CREATE TABLE ingest_pipelines (
        name ${w.text} PRIMARY KEY, generation ${w.int} NOT NULL DEFAULT 0, cursor ${w.text},
        listing_of ${w.text}, listing_at ${w.int}, listing_n ${w.int} NOT NULL DEFAULT 0, listing_before ${w.int} NOT NULL DEFAULT 0,
        listed_generation ${w.int}, listed_at ${w.int}, listed_n ${w.int}, listed_before ${w.int},
        pruned ${w.int} NOT NULL DEFAULT 0, pruned_records ${w.int} NOT NULL DEFAULT 0,
        pruned_older ${w.int} NOT NULL DEFAULT 0, pruned_replaced ${w.int} NOT NULL DEFAULT 0,
        messages ${w.int} NOT NULL DEFAULT 0,
        duplicates ${w.int} NOT NULL DEFAULT 0, dropped ${w.int} NOT NULL DEFAULT 0,
        unparsed ${w.int} NOT NULL DEFAULT 0, acknowledged ${w.int} NOT NULL DEFAULT 0,
        extensions ${w.int} NOT NULL DEFAULT 0, released ${w.int} NOT NULL DEFAULT 0,
        received_at ${w.int}, problem ${w.text}, problem_at ${w.int})${w.keyed}`,
      `CREATE TABLE ingest_shards (
        pipeline ${w.text} NOT NULL, id ${w.text} NOT NULL, uri ${w.text} NOT NULL, version ${w.text} NOT NULL,
        version_id ${w.text}, sequencer ${w.text}, state ${w.text} NOT NULL,
        token ${w.text}, records ${w.int} NOT NULL DEFAULT 0, byte ${w.int}, line ${w.int}, shape ${w.text},
        eof ${w.int} NOT NULL DEFAULT 0, published ${w.int} NOT NULL DEFAULT 0,
        quarantined ${w.int} NOT NULL DEFAULT 0, size ${w.int}, is_staged ${w.int} NOT NULL DEFAULT 0,
        code ${w.text}, reason ${w.text}, attempts ${w.int} NOT NULL DEFAULT 0, takeovers ${w.int} NOT NULL DEFAULT 0,
        announced_at ${w.int}, listed_at ${w.int}, listing ${w.int}, created_at ${w.int} NOT NULL,
        updated_at ${w.int} NOT NULL, settled_at ${w.int}, disposed ${w.text}, data ${w.bytes},
        PRIMARY KEY (pipeline, id))${w.strict}`,
      `CREATE INDEX ingest_shards_uri ON ingest_shards(pipeline, uri, id)`,
      `CREATE INDEX ingest_shards_state ON ingest_shards(pipeline, state, updated_at)`,
      `CREATE INDEX ingest_shards_page ON ingest_shards(pipeline, state, id)`,
      `CREATE INDEX ingest_shards_settled ON ingest_shards(pipeline, state, settled_at)`,
      `CREATE INDEX ingest_shards_live ON ingest_shards(pipeline, uri, id) WHERE state <> 'skipped'`,
      `CREATE INDEX ingest_shards_swept ON ingest_shards(pipeline, state, id) WHERE state = 'skipped' AND published > 0`,
      `CREATE INDEX ingest_shards_taken ON ingest_shards(pipeline, takeovers) WHERE takeovers > 0`,
      `CREATE INDEX ingest_shards_listing ON ingest_shards(pipeline, listing, state)`,
      `CREATE TABLE ingest_quarantine (
        pipeline ${w.text} NOT NULL, shard ${w.text} NOT NULL, at ${w.int} NOT NULL, from_byte ${w.int},
        from_line ${w.int}, line ${w.int}, code ${w.text} NOT NULL, reason ${w.text} NOT NULL,
        excerpt ${w.bytes} NOT NULL, created_at ${w.int} NOT NULL, tried_at ${w.int},
        PRIMARY KEY (pipeline, shard, at))${w.keyed}`,
      `CREATE TABLE ingest_unparsed (
        pipeline ${w.text} NOT NULL, message ${w.text} NOT NULL, code ${w.text} NOT NULL, reason ${w.text} NOT NULL,
        excerpt ${w.bytes} NOT NULL, deliveries ${w.int} NOT NULL, first_at ${w.int} NOT NULL,
        last_at ${w.int} NOT NULL, PRIMARY KEY (pipeline, message))${w.keyed}`,
      `CREATE INDEX ingest_unparsed_last ON ingest_unparsed(pipeline, last_at)`,
    ],
    ['queue_waiting', 'queue_in_flight', 'queue_oldest_at', 'queue_noted_at'].map(
      (column) => `ALTER TABLE ingest_pipelines ADD COLUMN ${column} ${w.int}`,
    ),
    ['disposed_to', 'disposed_version'].map(
      (column) => `ALTER TABLE ingest_shards ADD COLUMN ${column} ${w.text}`,
    ),
    [`CREATE INDEX ingest_shards_disposed ON ingest_shards(pipeline, disposed) WHERE disposed IS NOT NULL`],
    // All that the books are counted from: a tenth of the bytes of the rows.
    [
      `DROP INDEX ingest_shards_listing`,
      `CREATE INDEX ingest_shards_books ON ingest_shards(pipeline, state, code, listing, published, quarantined, size)`,
    ],
    [
      `ALTER TABLE ingest_pipelines ADD COLUMN listing_left_out ${w.int} NOT NULL DEFAULT 0`,
      `ALTER TABLE ingest_pipelines ADD COLUMN listed_left_out ${w.int} NOT NULL DEFAULT 0`,
    ],
    // A shard is written twice, and each index with it: those that only few need have only these.
    [
      ...['state', 'page', 'settled'].map((name) => `DROP INDEX ingest_shards_${name}`),
      `CREATE INDEX ingest_shards_open ON ingest_shards(pipeline, updated_at) WHERE state = 'open'`,
      `CREATE INDEX ingest_shards_page ON ingest_shards(pipeline, state, id) WHERE state <> 'stored'`,
      `CREATE INDEX ingest_shards_settled ON ingest_shards(pipeline, state, settled_at) WHERE settled_at IS NOT NULL`,
    ],
    [`ALTER TABLE ingest_shards ADD COLUMN shown_at ${w.int}`],
    [`ALTER TABLE ingest_shards ADD COLUMN bad_in ${w.int}`],
  ]
}
