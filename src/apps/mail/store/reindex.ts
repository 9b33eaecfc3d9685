/**
 * Writes anew what follows from the raw bytes: texts, headers and the search index. A page is read and derived without
 * any lock, and committed in one transaction together with how far it is; a message that was replaced meanwhile was
 * derived anew by who replaced it, and is left alone. So others may read and write, and whoever is interrupted goes on.
 *
 * A run is remembered in the catalogue until it is over, and by every shard that it has done: the next one goes on.
 */
import type { ArchiveFile } from './archive-file.ts'
import type { ArchiveLocks } from './archive-locks.ts'
import type { AttachmentReader } from './attachment-files.ts'
import type { Keys } from './catalogue.ts'
import { compressed } from './compression.ts'
import type { Coverage } from './coverage.ts'
import { readRaw } from './message-bytes.ts'
import { derivedOf } from './prepared-message.ts'
import type { ShardReader } from './shard-reader.ts'
import type { MessageRow } from './shard-row.ts'
import type { Rederived, ShardWriter } from './shard-writer.ts'
import { isDamaged } from './store-errors.ts'

const PAGE_MESSAGES_MAX = 100
const PAGE_BYTES_MAX = 8 * 1_048_576
const RUN = 'reindex'

export type ReindexArgs = {
  shards: readonly string[] | undefined
  only: ReadonlyMap<string, readonly string[]> | undefined
  run: string | null
}
export type ReindexFile = { shard: string; total: number; after: number | null }
export type ReindexPageArgs = { shard: string; after: number | null; ids: readonly string[] | undefined }
export type ReindexPage = { messages: number; last: number | null; isOver: boolean; damaged: string[] }

export type ReindexEnd = { shard: string; run: string | null; isWhole: boolean }

type Row = Pick<MessageRow, 'pos' | 'id' | 'thread_id' | 'bytes' | 'sha256'>

export type ReindexingOptions = {
  archive: ArchiveFile
  locks: ArchiveLocks
  reader: ShardReader
  coverage: Coverage
  contents: AttachmentReader
  /** A transaction of a shard, counted. */
  counted: (shard: string, keys: readonly Keys[], work: (writer: ShardWriter) => void) => void
}

export class Reindexing {
  readonly #options: ReindexingOptions

  constructor(options: ReindexingOptions) {
    this.#options = options
  }

  /** The name of the run that is to be gone on with, or of a new one. */
  begin(nowMs: number): string {
    const { coverage } = this.#options
    const known = coverage.remembered(RUN)
    if (known !== undefined) return known
    // No two are the same, whatever the clock does.
    const run = `${nowMs}-${coverage.stores()}`
    coverage.remember(RUN, run)
    return run
  }

  /** What there is to do; a shard that was begun goes on `after`. */
  files({ shards, only, run }: ReindexArgs): ReindexFile[] {
    const { reader } = this.#options
    const names = reader.shards().map(({ name }) => name)
    if (only) {
      const wanted = names.filter((name) => only.has(name))
      return wanted.map((shard) => ({ shard, total: only.get(shard)!.length, after: null }))
    }
    return names
      .filter((name) => (shards ? shards.includes(name) : this.#meta(name, 'reindex_run') !== run))
      .map((shard) => {
        const total = reader.guarded(shard, () =>
          reader.prepare(shard, 'SELECT count(*) AS n FROM messages').get(),
        )
        const after = this.#meta(shard, 'reindexed_to')
        return { shard, total: (total as { n: number }).n, after: after === undefined ? null : Number(after) }
      })
  }

  page({ shard, after, ids }: ReindexPageArgs): ReindexPage {
    const { reader, contents, locks, counted } = this.#options
    reader.shards()
    const rows = this.#rows(shard, after, ids)
    const page: ReindexPage = { messages: 0, last: after, isOver: false, damaged: [] }
    const keys: Keys[] = []
    const derived: Rederived[] = []
    let bytes = 0
    for (const row of rows) {
      if (bytes >= PAGE_BYTES_MAX) break
      page.messages += 1
      page.last = row.pos
      bytes += row.bytes
      try {
        const raw = readRaw({ shards: reader, contents }, shard, row)
        const made = derivedOf(raw, row.sha256)
        keys.push({ id: row.id, threadId: row.thread_id, messageId: made.messageId })
        const text = compressed(Buffer.from(made.text, 'utf8'))
        derived.push({ pos: row.pos, bytes: raw.byteLength, sha256: row.sha256, derived: made, text })
      } catch (thrown) {
        if (!isDamaged(thrown)) throw thrown
        page.damaged.push(row.id)
      }
    }
    page.isOver = page.messages === rows.length && rows.length < PAGE_MESSAGES_MAX
    if (derived.length > 0) {
      locks.shared(() => counted(shard, keys, (writer) => writer.rederive(derived, ids ? null : page.last)))
    }
    return page
  }

  endOf({ shard, ...end }: ReindexEnd): void {
    const { locks, counted } = this.#options
    locks.shared(() => counted(shard, [], (writer) => writer.endRederive(end)))
  }

  end(): void {
    this.#options.coverage.remember(RUN, undefined)
  }

  #rows(shard: string, after: number | null, ids: readonly string[] | undefined): Row[] {
    const { reader } = this.#options
    const only = ids ? 'AND id IN (SELECT value FROM json_each(?))' : ''
    const sql = `SELECT pos, id, thread_id, bytes, sha256 FROM messages WHERE pos > ? ${only} ORDER BY pos LIMIT ?`
    const values = [...(ids ? [JSON.stringify(ids)] : []), PAGE_MESSAGES_MAX]
    return reader.guarded(shard, () =>
      reader.prepare(shard, sql).all(after ?? Number.MIN_SAFE_INTEGER, ...values),
    ) as unknown as Row[]
  }

  #meta(shard: string, key: string): string | undefined {
    const { reader } = this.#options
    const row = reader.guarded(shard, () =>
      reader.prepare(shard, 'SELECT value FROM meta WHERE key = ?').get(key),
    )
    return (row as { value: string } | undefined)?.value
  }
}
