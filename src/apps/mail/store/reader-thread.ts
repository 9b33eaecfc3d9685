/** The thread that reads and searches, so that neither holds up the main thread. */
import { workerData } from 'node:worker_threads'
import { serve } from '../../../ledger/thread-service.ts'
import type { Query } from '../query/query.ts'
import { ArchiveReader, type EntryArgs, type StoredArgs } from './archive-reader.ts'
import type { SearchOptions, StatsBy } from './contract.ts'
import { countShards, searchShards } from './search.ts'
import { statsOfShards } from './stats.ts'
import { checkFile, filesToVerify, ShardVerification, type VerifyFile } from './verify.ts'

export type ReaderData = { folder: string; archiveId: string; asks: 'all' | 'few' }

const reader = new ArchiveReader(workerData as ReaderData)
/** The shard that is being verified, in a thread that does nothing else. */
let verification: ShardVerification | undefined

serve(
  {
    stored: (args: StoredArgs) => reader.stored(args),
    message: (id: string) => reader.message(id),
    thread: (threadId: string) => reader.thread(threadId),
    raw: (id: string) => reader.raw(id),
    text: (id: string) => reader.text(id),
    attachment: ({ id, index }: { id: string; index: number }) => reader.attachment(id, index),
    prove: (ids: readonly string[]) => reader.prove(ids),
    entries: (args: EntryArgs) => reader.entries(args),
    shards: () => reader.shardInfos(),
    attachmentFiles: () => reader.attachmentFileInfos(),
    search: ({ query, options }: { query: Query; options: SearchOptions }) =>
      searchShards(reader.shards, query, options),
    count: ({ query, options }: { query: Query; options: SearchOptions }) =>
      countShards(reader.shards, query, options),
    stats: ({ by, limit }: { by: StatsBy; limit: number | undefined }) =>
      statsOfShards(reader.shards, by, limit),
    filesToVerify: (only: readonly string[] | undefined) => filesToVerify(reader, only),
    checkFile: (file: VerifyFile) => checkFile(reader, file),
    beginVerify: (shard: string) => {
      verification?.close()
      verification = new ShardVerification(reader, shard)
    },
    verifyPage: () => verification!.page(),
  },
  () => {
    verification?.close()
    reader.close()
  },
)
