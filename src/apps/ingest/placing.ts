/** From what somebody told of to shards and their jobs: the same for messages, listings, and what took an object's place. */
import type { ObjectHead, ObjectPage } from '../../cloud/object-store.ts'
import { type JobRequest, request } from '../../engine/index.ts'
import type { RowLocks, Tx } from '../../ledger/contract.ts'
import type { AnnouncedObject } from './contract.ts'
import { storableUri } from './envelope.ts'
import type { IngestKinds } from './kinds.ts'
import { type PipelineConfig, SERVICE, shardId, shardRange, streamOf } from './pipeline.ts'
import { distinct, type Found, isLater, placementOf } from './plan.ts'
import type { ShardState } from './shard-states.ts'
import { objectLocks } from './store/locks.ts'
import { type Placed, type Placing, placeShards, shardsOfUris } from './store/shards.ts'

/** Of objects that are read together: how many, and how large one may be by what is told of it. */
const TOGETHER_MAX = 100
export const SMALL_BYTES_MAX = 64 * 1024

export function foundOf(
  uri: string,
  version: { id: string; versionId?: string; sequencer?: string } | null,
  more: Pick<Found, 'sizeBytes' | 'isCurrent'> & { data?: Uint8Array },
): Found {
  return {
    id: shardId(uri, version?.id ?? ''),
    uri,
    version: version?.id ?? '',
    versionId: version?.versionId ?? null,
    sequencer: version?.sequencer ?? null,
    sizeBytes: more.sizeBytes,
    isCurrent: more.isCurrent,
    data: more.data ?? null,
  }
}

/** Whoever names no version means what is there now: that is asked for, so that an overwrite is not taken for a repetition. */
export async function foundByMessage(
  kinds: Pick<IngestKinds, 'pipelines'>,
  pipeline: string,
  { uri, version, sizeBytes }: AnnouncedObject,
  signal: AbortSignal,
): Promise<Found> {
  if (version) return foundOf(uri, version, { sizeBytes, isCurrent: false })
  const head = await (await kinds.pipelines.store(pipeline, uri)).head(uri, signal)
  return foundByHead(uri, head)
}

function foundByHead(uri: string, head: ObjectHead | undefined): Found {
  return foundOf(uri, head?.version ?? null, { sizeBytes: head?.sizeBytes ?? null, isCurrent: true })
}

/** One whose name no database keeps is told by the nearest one, under which it is not found: it is bad, and stops nothing. */
export function foundByListing({ uri, version, sizeBytes }: ObjectPage['objects'][number]): Found {
  return foundOf(storableUri(uri), version, { sizeBytes, isCurrent: true })
}

export type PreparedPlacing = {
  /** In a transaction. Answers in the order of what was found, without repetitions. */
  place(tx: Tx): Promise<Placed[]>
  found: readonly Found[]
  locks: RowLocks
  /** Of all that may be open afterwards. A job that has nothing to do ends at once. */
  jobs: readonly JobRequest[]
}

/** Looks at what is known, outside of any transaction; `place` looks again, and decides. */
export async function preparePlacing(
  kinds: IngestKinds,
  pipeline: string,
  all: readonly Found[],
  { listing }: Pick<Placing, 'listing'> = {},
): Promise<PreparedPlacing> {
  const found = distinct(all)
  const { overwrites, after } = (await kinds.pipelines.get(pipeline)).config
  const known = await kinds.tables.states(
    pipeline,
    found.map(({ id }) => id),
  )
  // Also of those that are known: they may be pruned before they are placed, and are known by their records from then on.
  const prefixes = new Map(found.map(({ id }) => [shardRange(pipeline, id).prefix, id]))
  const index = await kinds.index()
  const inIndex = new Map<string, number>()
  for (const prefix of await index.knownPrefixes(SERVICE, [...prefixes.keys()])) {
    const id = prefixes.get(prefix)!
    // What was replaced is pruned when its records are gone.
    const one = known.get(id)
    if (one?.state === 'skipped') continue
    inIndex.set(id, one?.published ?? (await index.countRange({ source: SERVICE, prefix })))
  }
  const back = await backFromBad(kinds, pipeline, {
    found: found.filter(({ id }) => isUnread(known.get(id)?.state)),
    overwrites,
  })
  const staleMs = kinds.clock.now() - 2 * kinds.settings.commitMs
  const mayBeOpen = (found: Found): boolean => {
    const one = known.get(found.id)
    switch (one?.state) {
      case 'skipped':
        return found.isCurrent || found.sequencer !== null
      case 'stored':
        // Put there again: what is being read now may replace it before it is placed.
        return overwrites === 'replace' && isLater(found, one)
      case 'bad':
      case 'gone':
        return back.has(found.id)
      case 'open':
        // What nobody has begun with has its job since it was placed, alone or together with others.
        return one.token !== null || one.updated_at < staleMs
      default:
        return false
    }
  }
  /** It was taken away, and somebody has put the same there again. */
  const isBack = (found: Found): boolean => {
    const one = known.get(found.id)
    // One that was pruned is known by its records, and was not taken away: see store/shards.ts. Where it was pruned behind
    // our look, it has a row by now, and no job.
    const isPruned = !one || (one.code === 'known' && one.disposed === null)
    if (isPruned && inIndex.has(found.id)) return after.do !== 'keep'
    if (one?.state !== 'stored' || !isTakenAway(after, one.disposed)) return false
    return found.isCurrent || isLater(found, one)
  }
  const isNew = ({ id }: Found): boolean => known.get(id) === undefined && !inIndex.has(id)
  return {
    found,
    locks: objectLocks(
      pipeline,
      found.map(({ uri }) => uri),
    ),
    jobs: [
      ...newObjectJobs(kinds, pipeline, found.filter(isNew)),
      ...found.filter(mayBeOpen).map((one) => objectJob(kinds, pipeline, one)),
      ...found.filter(isBack).map((one) => disposeJob(kinds, pipeline, one)),
    ],
    place: (tx) => {
      const placing = { pipeline, overwrites, nowMs: kinds.clock.now(), listing, inIndex }
      return placeShards(tx, placing, found)
    },
  }
}

function isTakenAway({ do: wanted }: PipelineConfig['after'], disposed: string | null | undefined): boolean {
  return (wanted === 'move' || wanted === 'delete') && (disposed === 'moved' || disposed === 'deleted')
}

type Announced = { id: string; uri: string; version: string; sizeBytes: number | null }

/** Of shards that are new: small ones together. */
function newObjectJobs(kinds: IngestKinds, pipeline: string, all: readonly Announced[]): JobRequest[] {
  const small = all.filter(({ sizeBytes, uri }) => isSmall(sizeBytes) && !uri.startsWith('message:'))
  if (small.length < 2) return all.map((one) => objectJob(kinds, pipeline, one))
  const jobs = all.filter((one) => !small.includes(one)).map((one) => objectJob(kinds, pipeline, one))
  const stream = streamOf(pipeline)
  for (let from = 0; from < small.length; from += TOGETHER_MAX) {
    const shards = small.slice(from, from + TOGETHER_MAX).map(({ id }) => id)
    jobs.push(request(kinds.some, { pipeline, shards }, { stream }))
  }
  return jobs
}

function isSmall(sizeBytes: number | null): boolean {
  return sizeBytes !== null && sizeBytes <= SMALL_BYTES_MAX
}

/** The job of a shard that is open. */
export function objectJob(
  { object }: Pick<IngestKinds, 'object'>,
  pipeline: string,
  { id, uri, version, sizeBytes }: Announced,
): JobRequest {
  const size = sizeBytes === null ? {} : { size: sizeBytes }
  return request(object, { pipeline, shard: id, uri, version }, { stream: streamOf(pipeline), ...size })
}

export function disposeJob(
  { dispose }: Pick<IngestKinds, 'dispose'>,
  pipeline: string,
  { id: shard, uri, version }: Pick<Found, 'id' | 'uri' | 'version'>,
): JobRequest {
  return request(dispose, { pipeline, shard, uri, version }, { stream: streamOf(pipeline) })
}

function isUnread(state: ShardState | undefined): boolean {
  return state === 'bad' || state === 'gone'
}

/** A job would read any bad one again: only those that are put there anew get one. */
async function backFromBad(
  { tables }: Pick<IngestKinds, 'tables'>,
  pipeline: string,
  { found, overwrites }: { found: readonly Found[]; overwrites: 'replace' | 'append' },
): Promise<ReadonlySet<string>> {
  if (found.length === 0) return new Set()
  const uris = [...new Set(found.map(({ uri }) => uri))]
  const rows = await tables.ledger.driver.read((tx) => shardsOfUris(tx, { pipeline, uris, isLocked: false }))
  const isBack = (one: Found): boolean => {
    const same = rows.find(({ id }) => id === one.id)
    const others = rows.filter(({ id, uri }) => id !== one.id && uri === one.uri)
    return placementOf(one, { same, others, isInIndex: false }, overwrites).act === 'reopen'
  }
  return new Set(found.filter(isBack).map(({ id }) => id))
}

/** What the store has under this address now, where it has something. */
export async function placeCurrent(
  kinds: IngestKinds,
  pipeline: string,
  uri: string,
  signal: AbortSignal,
): Promise<PreparedPlacing> {
  const head = await (await kinds.pipelines.store(pipeline, uri)).head(uri, signal)
  return preparePlacing(kinds, pipeline, head ? [foundByHead(uri, head)] : [])
}
