/** A thread that writes: the shards of its years are written by it alone, as far as this process goes. */
import { workerData } from 'node:worker_threads'
import { type PackedError, packError, serve } from '../../../ledger/thread-service.ts'
import type { MessageChange } from '../message.ts'
import type { ListedShard } from './archive-file.ts'
import { type Applied, ArchiveWriter, type ArchiveWriterOptions } from './archive-writer.ts'
import type { ReindexArgs, ReindexEnd, ReindexPageArgs } from './reindex.ts'
import { shardOf, yearOf } from './shard-router.ts'
import type { SentAnswer, StoreArgs } from './write-queue.ts'

export type WriterData = ArchiveWriterOptions & { thread: number; threads: number }

export type SentApplied = Omit<Applied, 'unreadable'> & { unreadable: PackedError[] }

const data = workerData as WriterData
const writer = new ArchiveWriter(data)
const reindexing = writer.reindexing()

serve(
  {
    store({ messages, buffer, nowMs }: StoreArgs): SentAnswer[] {
      const fetched = messages.map(({ start, end, ...message }) => ({
        ...message,
        raw: new Uint8Array(buffer, start, end - start),
      }))
      const answers = writer
        .store(fetched, nowMs)
        .map((answer) => ('error' in answer ? { error: packError(answer.error) } : answer))
      // A megabyte or more that nobody looks at again: given back now, and not when garbage is next collected.
      buffer.transfer(0)
      return answers
    },
    apply(changes: readonly MessageChange[]): SentApplied {
      const applied = writer.apply(changes, isOurs)
      return { ...applied, unreadable: applied.unreadable.map(packError) }
    },
    check: () => writer.check(),
    mark: () => writer.mark(),
    beginReindex: (nowMs: number) => reindexing.begin(nowMs),
    filesToReindex: (args: ReindexArgs) => reindexing.files(args),
    reindexPage: (args: ReindexPageArgs) => reindexing.page(args),
    endReindexOf: (args: ReindexEnd) => reindexing.endOf(args),
    endReindex: () => reindexing.end(),
    takenDown: (ids: readonly string[]) => writer.takenDown(ids),
    salvage: ({ nowMs }: { nowMs: number }) => writer.salvage(nowMs),
    setAside: ({ name, nowMs }: { name: string; nowMs: number }) => writer.setAside(name, nowMs),
  },
  () => writer.close(),
)

function isOurs({ name }: ListedShard): boolean {
  const { fromMs } = shardOf(name)!
  return yearOf(fromMs) % data.threads === data.thread
}
