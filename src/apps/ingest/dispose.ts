/**
 * What becomes of an object that is stored: it is kept, or tagged by choice. It is never moved or deleted: what a mapping
 * names of its records is no copy of it. A tag is a promise too, so it needs proof, looked at anew just before: the shard is read to its end, the index has as many records of it as it published,
 * none is in quarantine, and the store still has that version.
 */
import { asTidemarkError } from '../../base/errors.ts'
import type { ObjectStore } from '../../cloud/object-store.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import type { IngestKinds, ShardPayload } from './jobs.ts'
import { shardRange } from './pipeline.ts'
import { versionOf } from './plan.ts'
import type { ShardRow } from './store/rows.ts'
import { noteDisposed } from './store/shards.ts'

export async function runDispose(kinds: IngestKinds, job: RunContext<ShardPayload>): Promise<Outcome> {
  const { pipeline, shard, uri } = job.payload
  const { config } = await kinds.pipelines.get(pipeline)
  const row = await kinds.tables.shard(pipeline, shard)
  if (config.after.do === 'keep' || !row) return { skip: 'it is kept', code: 'kept' }
  if (row.disposed === 'done') return { skip: 'it was done before', code: 'done' }
  const store = await kinds.pipelines.store(pipeline, uri)
  const left = (await missingProof(kinds, row)) ?? (await changed(store, row, job.signal))
  if (left) return { effects: (tx) => noteDisposed(tx, row, left.code), skip: left.reason, code: left.code }
  const how = await tag(store, row, config.after.tags)
  return {
    effects: (tx) => noteDisposed(tx, row, how),
    ...(how === 'done' ? { note: 'tagged' } : NOT_TAGGED[how]),
  }
}

type Left = { code: string; reason: string }

async function missingProof(kinds: IngestKinds, row: ShardRow): Promise<Left | undefined> {
  if (row.state !== 'stored' || row.eof !== 1) return { code: 'not-stored', reason: 'it is not stored' }
  if (row.quarantined > 0)
    return { code: 'quarantined', reason: `${row.quarantined} of its records are in quarantine` }
  const index = await kinds.index()
  const there = await index.countRange(shardRange(row.pipeline, row.id))
  if (there === row.published && row.published === row.records) return undefined
  return {
    code: 'not-proven',
    reason: `the index has ${there} of its ${row.records} records`,
  }
}

async function changed(store: ObjectStore, row: ShardRow, signal: AbortSignal): Promise<Left | undefined> {
  const head = await store.head(row.uri, signal)
  if (!head) return { code: 'gone', reason: 'it is not there any more' }
  return head.version.id === row.version
    ? undefined
    : { code: 'replaced', reason: 'it is another version now' }
}

const NOT_TAGGED = {
  unable: { skip: 'this store cannot tag objects', code: 'unable' },
  replaced: { skip: 'it is another version now', code: 'replaced' },
}

async function tag(
  store: ObjectStore,
  row: ShardRow,
  tags: Readonly<Record<string, string>>,
): Promise<'done' | keyof typeof NOT_TAGGED> {
  const version = versionOf(row)
  if (!version || !store.tag) return 'unable'
  try {
    await store.tag(row.uri, version, tags)
    return 'done'
  } catch (thrown) {
    // It went, or another took its place, since it was looked at.
    if (asTidemarkError(thrown).kind === 'gone') return 'replaced'
    throw thrown
  }
}
