/** Keeps the catalogue in step with the shards, for one writer thread; catalogue.ts says what that means. */
import type { ArchiveFile, ListedShard } from './archive-file.ts'
import type { ArchiveLocks } from './archive-locks.ts'
import { CatalogueWriter, type Keys } from './catalogue.ts'
import type { ArchiveCheck, ArchiveMark } from './contract.ts'
import type { ShardReader } from './shard-reader.ts'
import type { ShardWriter } from './shard-writer.ts'
import { isUnreadable } from './store-errors.ts'

/** Ids in one answer: who asks takes them down, and asks again. */
const DROPPED_MAX = 5_000

export type CoverageOptions = {
  archive: ArchiveFile
  locks: ArchiveLocks
  reader: ShardReader
  writer: (name: string) => ShardWriter
}

export class Coverage {
  readonly #options: CoverageOptions
  readonly #catalogue: CatalogueWriter

  constructor(options: CoverageOptions) {
    this.#options = options
    this.#catalogue = new CatalogueWriter(options.archive)
  }

  /** Brings the catalogue up to date with shards that it does not cover. The caller holds no lock. */
  update(): void {
    const { archive, locks, reader } = this.#options
    if (reader.catalogue.uncovered()?.length === 0) return
    locks.alone(() => {
      this.#catalogue.make()
      this.#catalogue.forget(archive.read().shards)
      for (const shard of reader.catalogue.uncovered() ?? []) {
        try {
          this.add(shard)
        } catch (thrown) {
          if (!isUnreadable(thrown)) throw thrown
          reader.catalogue.noteUnreadable(shard.name)
        }
      }
    })
  }

  /** All of a shard. The caller holds the lock alone, or the year's lock of a shard that was made just now. */
  add(shard: ListedShard): void {
    const { reader, writer } = this.#options
    const { name } = shard
    reader.shards()
    if (reader.generation(name) === null) writer(name).beginCount()
    const generation = reader.generation(name)!
    const sql = 'SELECT id, thread_id AS threadId, message_id AS messageId FROM messages'
    reader.guarded(name, () => {
      const messages = reader.prepare(name, sql).iterate() as unknown as Iterable<Keys>
      this.#catalogue.cover(shard, generation, messages)
    })
  }

  /** A transaction of a shard, with what the catalogue needs before and behind it. */
  around<Result>(writer: ShardWriter, shard: ListedShard, keys: readonly Keys[], work: () => Result): Result {
    if (keys.length > 0) this.#catalogue.note(shard, keys)
    const before = writer.generation
    const result = work()
    const replaces = keys.flatMap((one) => one.replaces ?? [])
    const replaced = replaces.length > 0 ? writer.without(replaces) : []
    this.#catalogue.confirm(shard, { before, after: writer.generation, replaced })
    return result
  }

  opened(shard: ListedShard, writer: ShardWriter): void {
    this.#catalogue.opened(shard, writer.generation)
  }

  closed(shard: ListedShard, generation: number): void {
    this.#catalogue.closed(shard, generation)
  }

  /** Looks at every file: whether it is the one that was written last, and what it no longer has if it is not. */
  check(): ArchiveCheck {
    const { archive, locks, reader } = this.#options
    reader.shards()
    reader.catalogue.recheck()
    this.update()
    if (this.#catalogue.hasOthers(archive.read().shards)) {
      locks.alone(() => this.#catalogue.forget(archive.read().shards))
    }
    const listed = new Map(archive.read().shards.map((shard) => [shard.name, shard]))
    for (const [name, generation] of reader.catalogue.lookedInto()) {
      const shard = listed.get(name)
      if (shard) this.#catalogue.closed(shard, generation)
    }
    return {
      mark: locks.shared(() => this.#catalogue.mark()),
      older: this.#catalogue.older(),
      dropped: this.#catalogue.dropped(DROPPED_MAX),
    }
  }

  mark(): ArchiveMark {
    this.update()
    return this.#options.locks.shared(() => this.#catalogue.mark())
  }

  stores(): number {
    this.update()
    return this.#catalogue.stores()
  }

  /** A word to be remembered by whoever comes next; undefined forgets it. */
  remember(key: string, value: string | undefined): void {
    this.update()
    this.#catalogue.remember(key, value)
  }

  remembered(key: string): string | undefined {
    this.update()
    return this.#catalogue.remembered(key)
  }

  takenDown(ids: readonly string[]): void {
    this.#catalogue.takenDown(ids)
  }

  close(): void {
    this.#catalogue.close()
  }
}
