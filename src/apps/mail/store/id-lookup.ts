/** Which shard has which ids: many ids in one statement per shard, and only those that it may have. */
import type { TidemarkError } from '../../../base/errors.ts'
import type { BytesRow } from './message-bytes.ts'
import type { ShardReader } from './shard-reader.ts'
import { isUnreadable } from './store-errors.ts'

/** Ids in one statement. */
const IDS_MAX = 1_000

export type Lookup = {
  found: Map<string, string>
  missing: string[]
  /** Shards that could not be looked into: what is missing may be there. */
  unreadable: TidemarkError[]
}

export function shardsOfIds(reader: ShardReader, ids: readonly string[], shards: readonly string[]): Lookup {
  const found = new Map<string, string>()
  const unreadable: TidemarkError[] = []
  let missing = [...new Set(ids)]
  const hints = reader.hints('id', missing)
  for (const shard of shards) {
    if (missing.length === 0) break
    const asked = hints(shard).filter((id) => !found.has(id))
    if (asked.length === 0) continue
    try {
      for (const { id } of bytesRowsOf(reader, shard, asked)) found.set(id, shard)
      missing = missing.filter((id) => !found.has(id))
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown
      unreadable.push(thrown)
    }
  }
  return { found, missing, unreadable }
}

/** The rows of those ids that this shard has. */
export function bytesRowsOf(reader: ShardReader, shard: string, ids: readonly string[]): BytesRow[] {
  const rows: BytesRow[] = []
  for (let start = 0; start < ids.length; start += IDS_MAX) {
    const page = JSON.stringify(ids.slice(start, start + IDS_MAX))
    const sql = 'SELECT pos, id, bytes, sha256 FROM messages WHERE id IN (SELECT value FROM json_each(?))'
    rows.push(...(reader.guarded(shard, () => reader.prepare(shard, sql).all(page)) as unknown as BytesRow[]))
  }
  return rows
}
