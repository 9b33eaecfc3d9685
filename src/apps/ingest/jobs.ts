/**
 * Object ingest, as jobs. What is written when:
 *
 *   (receiver)      messages of a queue → commit: shards, ingest.object for each; acknowledged when these are settled
 *   ingest.list     a bucket, page by page → commit per page: shards, ingest.object for each, where to go on
 *   ingest.objects  many small ones that are new, in one commit; what is not simple gets a job of its own
 *   ingest.object   one version of one object → commit: that it is ours; per batch: records, quarantine, position;
 *                   at the end: that it is stored, what it replaces
 *   ingest.sweep    records of what was replaced leave the index, some at a time
 *   ingest.dispose  an object that is stored is tagged, moved or deleted, where that is asked for and proven
 *   ingest.replay   a quarantined record is read again → commit: the record, and that it is in quarantine no more
 *   ingest.tidy     shards that nobody needs any more go; those of which nothing was heard are looked after
 *   ingest.forget   all that is kept of a pipeline that is there no more
 *
 * A crash between any two of these repeats at most one page, or the reading of one batch.
 */
import { createHash } from 'node:crypto'
import { defineJob } from '../../engine/index.ts'
import type { AnyJobKind } from '../../engine/job-kind.ts'
import { Obstacles } from '../../engine/obstacles.ts'
import { runDispose } from './dispose.ts'
import { runForget } from './forget.ts'
import {
  type IngestDeps,
  type IngestKinds,
  OfPipeline,
  OfShard,
  OfShards,
  type PipelinePayload,
  Replay,
  type ReplayPayload,
  type ShardPayload,
} from './kinds.ts'
import { runListing } from './listing.ts'
import { runObject } from './object.ts'
import { itemOf, LIST_KIND, OBJECT_KIND } from './pipeline.ts'
import { runReplay } from './replay.ts'
import { runSomeObjects } from './small-objects.ts'
import { runSweep } from './sweep.ts'
import { runTidy } from './tidy.ts'

/** What is found is read before more is looked for. */
const LIST_PRIORITY = -1
const LATER_PRIORITY = -10
/** While one of them commits, another reads. */
const SOME_WORKERS = 3

export function ingestKinds(deps: IngestDeps): IngestKinds {
  const key = ({ pipeline }: PipelinePayload): string => pipeline
  const shardKey = ({ pipeline, shard }: ShardPayload): string => `${pipeline}/${shard}`
  const replayKey = ({ pipeline, shard, at }: ReplayPayload): string => {
    const some = at && createHash('sha256').update(at.join()).digest('hex').slice(0, 32)
    return `${pipeline}/${shard}/${some ?? 'all'}`
  }
  const items = { of: (payload: ShardPayload) => [itemOf(payload)], only: (payload: ShardPayload) => payload }
  const kinds: IngestKinds = {
    ...deps,
    obstacles: new Obstacles<'cloud'>(deps.clock),
    object: defineJob({
      kind: OBJECT_KIND,
      payload: OfShard,
      key: shardKey,
      lane: 'bulk',
      // Each holds a batch in memory.
      concurrency: deps.settings.workersMax,
      items,
      describe: { verb: 'reading', noun: 'object' },
      run: (job) => runObject(kinds, job),
    }),
    some: defineJob({
      kind: 'ingest.objects',
      payload: OfShards,
      lane: 'bulk',
      concurrency: SOME_WORKERS,
      describe: { verb: 'reading', noun: 'group of small objects' },
      run: (job) => runSomeObjects(kinds, job),
    }),
    list: defineJob({
      kind: LIST_KIND,
      payload: OfPipeline,
      key,
      lane: 'bulk',
      priority: LIST_PRIORITY,
      describe: { verb: 'listing', noun: 'bucket' },
      run: (job) => runListing(kinds, job),
    }),
    sweep: defineJob({
      kind: 'ingest.sweep',
      payload: OfPipeline,
      key,
      lane: 'bulk',
      priority: LATER_PRIORITY,
      describe: { verb: 'removing replaced records of', noun: 'pipeline' },
      run: (job) => runSweep(kinds, job),
    }),
    dispose: defineJob({
      kind: 'ingest.dispose',
      payload: OfShard,
      key: shardKey,
      lane: 'bulk',
      priority: LATER_PRIORITY,
      describe: { verb: 'disposing of', noun: 'object' },
      run: (job) => runDispose(kinds, job),
    }),
    replay: defineJob({
      kind: 'ingest.replay',
      payload: Replay,
      key: replayKey,
      lane: 'interactive',
      describe: { verb: 'reading again', noun: 'record' },
      run: (job) => runReplay(kinds, job),
    }),
    tidy: defineJob({
      kind: 'ingest.tidy',
      payload: OfPipeline,
      key,
      lane: 'bulk',
      priority: LATER_PRIORITY,
      describe: { verb: 'tidying', noun: 'pipeline' },
      run: (job) => runTidy(kinds, job),
    }),
    forget: defineJob({
      kind: 'ingest.forget',
      payload: OfPipeline,
      key,
      lane: 'bulk',
      describe: { verb: 'forgetting', noun: 'pipeline' },
      run: (job) => runForget(kinds, job),
    }),
  }
  return kinds
}

export function jobsOf(kinds: IngestKinds): AnyJobKind[] {
  const { object, some, list, sweep, dispose, replay, tidy, forget } = kinds
  return [object, some, list, sweep, dispose, replay, tidy, forget]
}
