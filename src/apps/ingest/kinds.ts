/** What the jobs of ingest are given: what they share, their payloads, and each other's kinds, which jobs.ts makes. */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { JobKind } from '../../engine/index.ts'
import type { Obstacles } from '../../engine/obstacles.ts'
import type { IndexWriter } from '../../search/contract.ts'
import type { MappedRecord, Mapping, OpenRecords } from './contract.ts'
import type { KeptObjects } from './kept-objects.ts'
import type { Pipelines } from './pipelines.ts'
import type { IngestSettings } from './settings.ts'
import type { ShardRow } from './store/rows.ts'
import type { IngestTables } from './store/tables.ts'

export type MapRecord = (value: Readonly<Record<string, unknown>>, mapping: Mapping) => MappedRecord

export type IngestDeps = {
  pipelines: Pipelines
  tables: IngestTables
  clock: Clock
  settings: IngestSettings
  /** Made ready to be written to. */
  index: () => Promise<IndexWriter>
  openRecords: OpenRecords
  mapRecord: MapRecord
  kept: KeptObjects
  /** For receivers of this process: what they hold may be acknowledged. */
  settled: (pipeline: string, shards: readonly SettledShard[]) => void
}

/** With what was told of it before it was read. */
export type SettledShard = Pick<ShardRow, 'id' | 'sequencer'>

export const OfPipeline = z.object({ pipeline: z.string() })
export const OfShard = z.object({
  pipeline: z.string(),
  shard: z.string(),
  uri: z.string(),
  version: z.string(),
})
export const OfShards = z.object({ pipeline: z.string(), shards: z.array(z.string()) })
export const Replay = z.object({
  pipeline: z.string(),
  shard: z.string(),
  at: z.array(z.number()).optional(),
})

export type PipelinePayload = z.output<typeof OfPipeline>
export type ShardPayload = z.output<typeof OfShard>
export type SomeShardsPayload = z.output<typeof OfShards>
export type ReplayPayload = z.output<typeof Replay>

export type IngestKinds = IngestDeps & {
  object: JobKind<ShardPayload>
  some: JobKind<SomeShardsPayload>
  list: JobKind<PipelinePayload>
  sweep: JobKind<PipelinePayload>
  dispose: JobKind<ShardPayload>
  replay: JobKind<ReplayPayload>
  tidy: JobKind<PipelinePayload>
  forget: JobKind<PipelinePayload>
  obstacles: Obstacles<'cloud'>
}
