/**
 * Reads quarantined records again: exactly those, in one pass over their object. One that reads now (the mapping or a limit
 * is another) is published in the transaction that takes it out of quarantine.
 */
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { plural } from '../../base/wording.ts'
import { type JobRequest, type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { ReadItem, ReadShape } from './contract.ts'
import type { IngestKinds, ReplayPayload } from './kinds.ts'
import { openBytes } from './object-bytes.ts'
import { keyOf, type PipelineConfig, streamOf } from './pipeline.ts'
import { REPLACED } from './plan.ts'
import { RECORD_GRANT, recordDocument } from './record-document.ts'
import { objectLocks } from './store/locks.ts'
import { leaveQuarantine, stayInQuarantine } from './store/pipelines.ts'
import type { QuarantineRow, ShardRow } from './store/rows.ts'
import { lockShard } from './store/shards.ts'

const PAGE = 500
const PAGES_MAX = 2_000

export async function runReplay(kinds: IngestKinds, job: RunContext<ReplayPayload>): Promise<Outcome> {
  const { pipeline, shard } = job.payload
  const row = await kinds.tables.shard(pipeline, shard)
  if (!row) return { skip: 'nothing is known of its object any more', code: 'unknown-shard' }
  if (row.state === 'skipped') return { skip: REPLACED, code: 'replaced' }
  const { config } = await kinds.pipelines.get(pipeline)
  const replaying: Replaying = { kinds, job, shard: row, config, published: 0, bad: 0 }
  const wanted = wantedRecords(kinds, job.payload)
  for (let next = await wanted.next(); !next.done; ) next = await pass(replaying, next.value, wanted)
  const { published, bad } = replaying
  return {
    jobs: await disposal(replaying),
    note: `${published} ${plural(published, 'record')} published, ${bad} still in quarantine`,
  }
}

type Replaying = {
  kinds: IngestKinds
  job: RunContext<ReplayPayload>
  shard: ShardRow
  config: PipelineConfig
  published: number
  bad: number
}

/** In their order. */
async function* wantedRecords(
  { tables }: IngestKinds,
  { pipeline, shard, at }: ReplayPayload,
): AsyncGenerator<QuarantineRow, undefined> {
  const some = at && new Set(at)
  let after = { shard, at: -1 }
  for (let page = 0; page < PAGES_MAX; page++) {
    const rows = await tables.quarantine({ pipeline, shard, after, limit: PAGE })
    for (const row of rows) if (!some || some.has(row.at)) yield row
    if (rows.length < PAGE) return
    after = { shard, at: rows.at(-1)!.at }
  }
}

/** From one record to the last one that is wanted, or to where the object reads no further. Answers what is left. */
async function pass(
  replaying: Replaying,
  first: QuarantineRow,
  wanted: AsyncGenerator<QuarantineRow, undefined>,
): Promise<IteratorResult<QuarantineRow, undefined>> {
  let one = first
  for await (const item of itemsFrom(replaying, first)) {
    if (item.kind !== 'unread' && item.at !== one.at) continue
    await settleOne(replaying, one, item)
    const next = await wanted.next()
    if (next.done || item.kind === 'unread') return next
    one = next.value
  }
  throw new TidemarkError(`Reading ${one.shard} ended without a word.`, { kind: 'bug' })
}

type Unread = { kind: 'unread'; code: string; reason: string }

/** Always ends with why there is nothing more. */
async function* itemsFrom(
  { kinds, job, shard, config }: Replaying,
  { at, from_byte, from_line }: QuarantineRow,
): AsyncGenerator<ReadItem | Unread, undefined> {
  try {
    const { items } = await kinds.openRecords({
      open: await openBytes(kinds, shard, job.signal),
      name: keyOf(shard.uri),
      options: config.read,
      shape: shard.shape === null ? null : (JSON.parse(shard.shape) as ReadShape),
      from: { records: at, byte: from_byte, line: from_line },
      limits: kinds.settings.limits,
      signal: job.signal,
    })
    yield* items
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted || (error.kind !== 'gone' && error.kind !== 'permanent')) throw thrown
    yield { kind: 'unread', code: error.code ?? 'unreadable', reason: error.message }
    return
  }
  yield { kind: 'unread', code: 'not-there', reason: 'the object ends before it' }
}

async function settleOne(replaying: Replaying, one: QuarantineRow, item: ReadItem | Unread): Promise<void> {
  const { kinds, job, shard } = replaying
  const nowMs = kinds.clock.now()
  if (item.kind !== 'record') {
    const { code, reason } = item
    await job.commit({ effects: (tx) => stayInQuarantine(tx, one, { code, reason, nowMs }) })
    replaying.bad += 1
  } else if (await publishOne(replaying, one, item)) replaying.published += 1
  job.progress({ done: replaying.published + replaying.bad, unit: 'items', label: keyOf(shard.uri) })
}

/** False where another did it, or its object was replaced meanwhile. */
async function publishOne(
  { kinds, job, shard, config }: Replaying,
  one: QuarantineRow,
  { value, place }: Extract<ReadItem, { kind: 'record' }>,
): Promise<boolean> {
  const of = { pipeline: one.pipeline, shard: one.shard, uri: shard.uri, version: shard.version }
  const document = recordDocument(of, one.at, kinds.mapRecord(value, config.mapping), place.line)
  const index = await kinds.index()
  let isPublished = false
  await job.commit({
    locks: objectLocks(shard.pipeline, [shard.uri]),
    effects: async (tx) => {
      // Whether it is seen is decided by what the shard is now: whoever ends or replaces it waits for this lock.
      const now = await lockShard(tx, shard)
      isPublished = now !== undefined && now.state !== 'skipped' && (await leaveQuarantine(tx, one))
      if (!isPublished) return
      const isSeen = now!.state === 'stored' || now!.is_staged === 0
      const seenBy = isSeen ? { principal: streamOf(one.pipeline), grant: RECORD_GRANT } : {}
      await index.append(tx, [document], { ...seenBy, isEmbedded: config.isEmbedded })
    },
  })
  return isPublished
}

/** What was left because of its quarantine can be disposed of now. */
async function disposal({ kinds, config, shard: { pipeline, id } }: Replaying): Promise<JobRequest[]> {
  const now = await kinds.tables.shard(pipeline, id)
  if (config.after.do === 'keep' || now?.state !== 'stored' || now.quarantined > 0) return []
  return [request(kinds.dispose, { pipeline, shard: id, uri: now.uri, version: now.version })]
}
