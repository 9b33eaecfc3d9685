/**
 * Many small objects by one job, in one transaction: what each of them would cost alone, a job, three commits and some
 * twenty statements, is paid once for all. Only what is simple is done so: objects that nobody has begun to read, that
 * have no other version, and whose records are one batch. All others get a job of their own, in the same commit.
 *
 * The transaction checks of each shard what `takeShard` and `moveShard` check. Where one of them is not what it was, all
 * of it is rolled back and looked at anew. Where that fails, each gets a job of
 * its own: only the one that is at fault becomes bad.
 */
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import type { JobRequest, Outcome, RunContext } from '../../engine/index.ts'
import type { NewDocument } from '../../search/contract.ts'
import { Batch } from './batch.ts'
import type { IngestKinds, SomeShardsPayload } from './kinds.ts'
import { openBytes } from './object-bytes.ts'
import { pastObstacles } from './obstacles.ts'
import { keyOf, type PipelineConfig, streamOf } from './pipeline.ts'
import { disposeJob, objectJob, SMALL_BYTES_MAX } from './placing.ts'
import { RECORD_GRANT } from './record-document.ts'
import { objectLocks } from './store/locks.ts'
import { putQuarantine } from './store/pipelines.ts'
import type { QuarantineRow, ShardRow } from './store/rows.ts'
import { type StoredAtOnce, shardsOfUris, storeShards } from './store/shards.ts'

/** At a time, by one job. */
const READS_MAX = 8

export async function runSomeObjects(
  kinds: IngestKinds,
  job: RunContext<SomeShardsPayload>,
): Promise<Outcome> {
  const { pipeline, shards } = job.payload
  const rows = await kinds.tables.open(pipeline, shards)
  const [first] = rows
  if (!first) return { skip: 'all of them are settled', code: 'settled' }
  if (job.job.failures > 0) {
    const jobs = rows.map((row) => objectJob(kinds, pipeline, { ...row, sizeBytes: row.size }))
    return { jobs, note: `${rows.length} objects, each by itself`, code: 'apart' }
  }
  return pastObstacles(kinds, job, first, async () => {
    try {
      return await readSome(kinds, job, rows)
    } catch (thrown) {
      throw job.signal.aborted ? thrown : triedApart(thrown)
    }
  })
}

/** May be the fault of one of them alone: however lasting it is, there is another try, which takes them apart. */
function triedApart(thrown: unknown): unknown {
  const { kind, message } = asTidemarkError(thrown)
  if (kind === 'transient' || kind === 'auth' || kind === 'throttled') return thrown
  return new TidemarkError(message, { kind: 'transient', code: 'apart', cause: thrown })
}

type Read = { row: ShardRow; documents: readonly NewDocument[]; bad: Batch['bad']; stored: StoredAtOnce }

async function readSome(
  kinds: IngestKinds,
  job: RunContext<SomeShardsPayload>,
  rows: readonly ShardRow[],
): Promise<Outcome> {
  const { pipeline } = job.payload
  const { config } = await kinds.pipelines.get(pipeline)
  const uris = rows.map(({ uri }) => uri)
  const known = await kinds.tables.ledger.driver.read((tx) =>
    shardsOfUris(tx, { pipeline, uris, isLocked: false, isLive: true }, 'uri'),
  )
  const versions = Map.groupBy(known, ({ uri }) => uri)
  const simple = rows.filter((row) => isUntouched(row) && versions.get(row.uri)?.length === 1)
  const read = await readAll(kinds, job, { rows: simple, config })
  const isRead = new Set(read.map(({ row }) => row.id))
  const jobs: JobRequest[] = rows
    .filter(({ id }) => !isRead.has(id))
    .map((row) => objectJob(kinds, pipeline, { ...row, sizeBytes: row.size }))
  if (config.after.do !== 'keep') {
    for (const { row } of read) jobs.push(disposeJob(kinds, pipeline, row))
  }
  await publish(kinds, job, { read, jobs, config })
  kinds.settled(
    pipeline,
    read.map(({ row }) => row),
  )
  return { note: `${read.length} objects` }
}

/** Nobody has begun with it, and it lies in its store. */
function isUntouched(row: ShardRow): boolean {
  return row.token === null && row.records === 0 && row.published === 0 && !row.uri.startsWith('message:')
}

async function readAll(
  kinds: IngestKinds,
  job: RunContext<SomeShardsPayload>,
  { rows, config }: { rows: readonly ShardRow[]; config: PipelineConfig },
): Promise<Read[]> {
  const all: Read[] = []
  const failed: TidemarkError[] = []
  const left = [...rows]
  const readNext = async (): Promise<void> => {
    for (let row = left.shift(); row; row = left.shift()) {
      try {
        const read = await readOne(kinds, job, { row, config })
        if (read) all.push(read)
      } catch (thrown) {
        const error = asTidemarkError(thrown)
        // Not about this object: none of the others would do better.
        if (job.signal.aborted || error.kind === 'auth' || error.kind === 'throttled') throw thrown
        failed.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: READS_MAX }, readNext))
  const [error] = failed
  if (error?.kind === 'transient' && all.length === 0) throw error
  return all
}

/** Undefined where it is more than one batch: then it is not as small as was told. */
async function readOne(
  kinds: IngestKinds,
  job: RunContext<SomeShardsPayload>,
  { row, config }: { row: ShardRow; config: PipelineConfig },
): Promise<Read | undefined> {
  const { clock, settings } = kinds
  const { shape, items } = await kinds.openRecords({
    open: await openBytes(kinds, row, job.signal, { isInStore: true }),
    name: keyOf(row.uri),
    options: config.read,
    shape: null,
    from: { records: 0, byte: null, line: null },
    limits: settings.limits,
    signal: job.signal,
  })
  const of = { pipeline: row.pipeline, shard: row.id, uri: row.uri, version: row.version }
  const from = { records: 0, byte: null, line: null, published: 0, quarantined: 0 }
  const map = (value: Readonly<Record<string, unknown>>) => kinds.mapRecord(value, config.mapping)
  const limits = { batchBytes: SMALL_BYTES_MAX * 4, batchRecords: settings.batchRecords }
  const batch = new Batch({ of, from, map, clock, settings: limits })
  for await (const item of items) {
    if (batch.isFull()) return undefined
    batch.add(item)
  }
  const { documents, bad, to } = batch
  if (to.quarantined > settings.badRecordsMax) return undefined
  return { row, documents, bad, stored: { id: row.id, updatedAt: row.updated_at, to, shape } }
}

async function publish(
  kinds: IngestKinds,
  job: RunContext<SomeShardsPayload>,
  { read, jobs, config }: { read: readonly Read[]; jobs: readonly JobRequest[]; config: PipelineConfig },
): Promise<void> {
  const { pipeline } = job.payload
  const index = await kinds.index()
  const uris = read.map(({ row }) => row.uri)
  const documents = read.flatMap((one) => one.documents)
  const bad: Omit<QuarantineRow, 'uri' | 'tried_at'>[] = read.flatMap((one) => one.bad)
  const seenBy = { principal: streamOf(pipeline), grant: RECORD_GRANT, isEmbedded: config.isEmbedded }
  await job.commit({
    jobs,
    locks: objectLocks(pipeline, uris),
    effects: async (tx) => {
      if (read.length === 0) return
      // The checks come first: nothing is written for who has lost one of them.
      await storeShards(tx, {
        pipeline,
        token: `${job.id}.${job.attempt}`,
        nowMs: kinds.clock.now(),
        uris,
        all: read.map(({ stored }) => stored),
      })
      if (documents.length > 0) await index.append(tx, documents, seenBy)
      await putQuarantine(tx, bad)
    },
  })
}
