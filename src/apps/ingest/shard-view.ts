/** A shard as programs are told of it. */
import type { ReadShape } from './contract.ts'
import type { QuarantineRow, ShardRow, UnparsedRow } from './store/rows.ts'

export function shardView(row: ShardRow) {
  return {
    id: row.id,
    pipeline: row.pipeline,
    uri: row.uri,
    version: row.version,
    versionId: row.version_id,
    sequencer: row.sequencer,
    state: row.state,
    code: row.code,
    reason: row.reason,
    position: { records: row.records, byte: row.byte, line: row.line },
    isAtEnd: row.eof === 1,
    shape: row.shape === null ? null : (JSON.parse(row.shape) as ReadShape),
    published: row.published,
    quarantined: row.quarantined,
    sizeBytes: row.size,
    isStaged: row.is_staged === 1,
    token: row.token,
    attempts: row.attempts,
    takeovers: row.takeovers,
    announcedAtMs: row.announced_at,
    listedAtMs: row.listed_at,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    settledAtMs: row.settled_at,
    disposed: row.disposed,
    disposedTo: row.disposed_to,
  }
}

export function quarantineView(row: QuarantineRow) {
  return {
    shard: row.shard,
    uri: row.uri,
    at: row.at,
    line: row.line,
    fromByte: row.from_byte,
    code: row.code,
    reason: row.reason,
    excerpt: textOf(row.excerpt),
    createdAtMs: row.created_at,
    triedAtMs: row.tried_at,
  }
}

export function unparsedView(row: UnparsedRow) {
  return {
    message: row.message,
    code: row.code,
    reason: row.reason,
    excerpt: textOf(row.excerpt),
    deliveries: row.deliveries,
    firstAtMs: row.first_at,
    lastAtMs: row.last_at,
  }
}

/** What it was is not known to be text. */
function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}
