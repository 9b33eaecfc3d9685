/** The thread that reads and searches, so that neither holds up the main thread. */
import { workerData } from 'node:worker_threads'
import type { Query } from '../query/query.ts'
import type { SearchOptions, StatsBy } from './contract.ts'
import { type EntryArgs, ReaderDesk, type StoredArgs } from './reader-desk.ts'
import { countShards, searchShards } from './search.ts'
import { statsOfShards } from './stats.ts'
import { serve } from './thread-service.ts'
import { checkFile, filesToVerify, ShardVerification, type VerifyFile } from './verify.ts'

export type ReaderData = { folder: string; archiveId: string; asks: 'all' | 'few' }

const desk = new ReaderDesk(workerData as ReaderData)
/** The shard that is being verified, in a thread that does nothing else. */
let verification: ShardVerification | undefined

serve(
  {
    stored: (args: StoredArgs) => desk.stored(args),
    message: (id: string) => desk.message(id),
    thread: (threadId: string) => desk.thread(threadId),
    raw: (id: string) => desk.raw(id),
    text: (id: string) => desk.text(id),
    attachment: ({ id, index }: { id: string; index: number }) => desk.attachment(id, index),
    prove: (ids: readonly string[]) => desk.prove(ids),
    entries: (args: EntryArgs) => desk.entries(args),
    shards: () => desk.shardInfos(),
    attachmentFiles: () => desk.attachmentFileInfos(),
    search: ({ query, options }: { query: Query; options: SearchOptions }) =>
      searchShards(desk.shards, query, options),
    count: ({ query, options }: { query: Query; options: SearchOptions }) =>
      countShards(desk.shards, query, options),
    stats: ({ by, limit }: { by: StatsBy; limit: number | undefined }) =>
      statsOfShards(desk.shards, by, limit),
    filesToVerify: (only: readonly string[] | undefined) => filesToVerify(desk, only),
    checkFile: (file: VerifyFile) => checkFile(desk, file),
    beginVerify: (shard: string) => {
      verification?.close()
      verification = new ShardVerification(desk, shard)
    },
    verifyPage: () => verification!.page(),
  },
  () => {
    verification?.close()
    desk.close()
  },
)
