/** What the API says about pipelines, their books, their objects, and what could not be read. */
import { z } from 'zod'
import { COMPRESSIONS, RECORD_FORMATS } from '../contract.ts'
import { SHARD_STATES } from '../shard-states.ts'

const ms = z.number().int()
const count = z.number().int().min(0)
const reasons = z.array(z.object({ code: z.string(), count }))

const balance = {
  total: count.describe('stored + skipped + bad + onTheirWay'),
  stored: count,
  skipped: count,
  bad: count,
  onTheirWay: count,
  skippedBy: reasons.describe('The skipped ones by reason'),
  badBy: reasons.describe('The bad ones by reason'),
}

export const pipelineStatusSchema = z.object({
  pipeline: z.string(),
  queue: z.string().describe('Where messages come from; `none` where it only lists'),
  location: z.string().nullable().describe('What is listed'),
  paused: z.boolean(),
  listing: z
    .object({
      ...balance,
      of: z.string().describe('What was listed'),
      atMs: ms,
      isCurrent: z.boolean().describe('No other listing is under way'),
      shown: count.describe('How many objects the listing counted as they came; the same as total'),
      leftOut: count.describe('Besides: objects in places where objects were moved to, which are not read'),
    })
    .nullable()
    .describe('The books: what the last complete listing showed, and what became of it'),
  listingUnderWay: z.object({ sinceMs: ms, listed: count }).nullable(),
  objects: z
    .object({
      ...balance,
      total: count.describe('stored + skipped + bad + onTheirWay + gone'),
      gone: count.describe('Bad ones that are in their bucket no more'),
      goneBy: reasons.describe('The gone ones by the reason why they were bad'),
    })
    .describe('Of all object versions that were ever announced or listed'),
  records: count.describe('In the index now'),
  quarantined: count,
  bytes: count,
  messages: z.object({
    received: count,
    duplicates: count,
    dropped: count,
    unparsed: count,
    unparsedBy: reasons.describe('Why messages were not read, of those that are shown'),
    acknowledged: count,
    extensions: count,
    released: count,
    lastAtMs: ms.nullable(),
  }),
  takeovers: count,
  afterwards: reasons.describe(
    'What became of objects that are stored: moved, deleted, or why they were left',
  ),
  oldestOnTheirWayMs: ms.nullable().describe('Since when the oldest object that is not settled is known'),
  recent: z
    .object({ seconds: count, objects: count, records: count, bytes: count })
    .describe('What was settled in the last so many seconds'),
  queueDepth: z
    .object({
      waiting: count.nullable(),
      inFlight: count.nullable(),
      oldestAtMs: ms.nullable().describe('When the oldest message was sent: in the queue, or in hand'),
      notedAtMs: ms,
    })
    .nullable()
    .describe('What was last heard from the queue; null where nobody receives, or did yet'),
  problem: z.object({ text: z.string(), atMs: ms }).nullable(),
})
export type PipelineStatusView = z.output<typeof pipelineStatusSchema>

export const shardSchema = z.object({
  id: z.string(),
  pipeline: z.string(),
  uri: z.string(),
  version: z.string(),
  versionId: z.string().nullable(),
  sequencer: z.string().nullable(),
  state: z.enum(SHARD_STATES),
  code: z.string().nullable(),
  reason: z.string().nullable(),
  position: z.object({ records: count, byte: count.nullable(), line: count.nullable() }),
  isAtEnd: z.boolean(),
  shape: z
    .object({
      format: z.enum(RECORD_FORMATS),
      compression: z.enum(COMPRESSIONS),
      header: z.array(z.string()).readonly().nullable(),
    })
    .nullable(),
  published: count.describe('Records of it that are in the index now'),
  quarantined: count,
  sizeBytes: count.nullable(),
  isStaged: z
    .boolean()
    .describe('Its records are hidden until its end: those of an older version are seen until then'),
  token: z.string().nullable().describe('Who publishes, or did last: the job and its attempt'),
  attempts: count,
  takeovers: count,
  announcedAtMs: ms.nullable(),
  listedAtMs: ms.nullable(),
  createdAtMs: ms,
  updatedAtMs: ms,
  settledAtMs: ms.nullable(),
  disposed: z.string().nullable().describe('What became of the object afterwards, or why it was left'),
  disposedTo: z
    .string()
    .nullable()
    .describe(
      'Where the bytes of an object are that was moved or deleted: an address, or kept: and a machine',
    ),
})
export type ShardView = z.output<typeof shardSchema>

export const quarantinedSchema = z.object({
  shard: z.string(),
  uri: z.string().describe('Of the object; empty where nothing is known of it any more'),
  at: count.describe('Counts the records of the object from 0'),
  line: count.nullable(),
  fromByte: count.nullable(),
  code: z.string(),
  reason: z.string(),
  excerpt: z.string(),
  createdAtMs: ms,
  triedAtMs: ms.nullable(),
})
export type QuarantinedView = z.output<typeof quarantinedSchema>

export const unparsedSchema = z.object({
  message: z.string(),
  code: z.string(),
  reason: z.string(),
  excerpt: z.string(),
  deliveries: count,
  firstAtMs: ms,
  lastAtMs: ms,
})
export type UnparsedView = z.output<typeof unparsedSchema>
