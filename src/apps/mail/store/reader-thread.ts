/**
 * The thread that reads and searches, so that neither holds up the main thread. What parses mail is loaded when it is
 * first needed: most threads live for one command, and half of what they take is their start.
 */
import { workerData } from 'node:worker_threads'
import { serve } from '../../../ledger/thread-service.ts'
import type { Query } from '../query/query.ts'
import { ArchiveReader, type EntryArgs, type StoredArgs } from './archive-reader.ts'
import type { SearchOptions, StatsBy } from './contract.ts'
import { countShards, facetShards, searchShards } from './search.ts'
import { statsOfShards } from './stats.ts'
import type { ShardVerification, VerifyFile } from './verify.ts'

export type ReaderData = { folder: string; archiveId: string; asks: 'all' | 'few' }

const reader = new ArchiveReader(workerData as ReaderData)
/** The shard that is being verified, in a thread that does nothing else. */
let verification: ShardVerification | undefined
const verifying = (): Promise<typeof import('./verify.ts')> => import('./verify.ts')

serve(
  {
    stored: (args: StoredArgs) => reader.stored(args),
    message: (id: string) => reader.message(id),
    thread: (threadId: string) => reader.thread(threadId),
    raw: (id: string) => reader.raw(id),
    text: (id: string) => reader.text(id),
    messageWithText: (id: string) => reader.messageWithText(id),
    attachment: ({ id, index }: { id: string; index: number }) => reader.attachment(id, index),
    prove: (ids: readonly string[]) => reader.prove(ids),
    entries: (args: EntryArgs) => reader.entries(args),
    shards: () => reader.shardInfos(),
    attachmentFiles: () => reader.attachmentFileInfos(),
    search: ({ query, options }: { query: Query; options: SearchOptions }) =>
      searchShards(reader.shards, query, options),
    count: ({ query, options }: { query: Query; options: SearchOptions }) =>
      countShards(reader.shards, query, options),
    facets: ({ query, options }: { query: Query; options: SearchOptions }) =>
      facetShards(reader.shards, query, options),
    stats: ({ by, limit }: { by: StatsBy; limit: number | undefined }) =>
      statsOfShards(reader.shards, by, limit),
    filesToVerify: async (only: readonly string[] | undefined) =>
      (await verifying()).filesToVerify(reader, only),
    checkFile: async (file: VerifyFile) => (await verifying()).checkFile(reader, file),
    beginVerify: async (shard: string) => {
      const { ShardVerification } = await verifying()
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
