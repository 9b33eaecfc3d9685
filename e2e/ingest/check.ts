/** What must be true at the end of a history, by what the simulator holds. */
import { SERVICE, shardRange, streamOf } from '../../src/apps/ingest/pipeline.ts'
import { isBalanced, pipelineStatus } from '../../src/apps/ingest/status.ts'
import type { ShardRow } from '../../src/apps/ingest/store/rows.ts'
import type { Life } from './life.ts'
import type { KnownVersion } from './objects.ts'
import { type OracleWorld, OVERWRITES, PIPELINES, type PipelineName, queueOf } from './world.ts'

const PAGE = 1_000

export async function differences(world: OracleWorld, life: Life): Promise<string[]> {
  await world.allLooked()
  const wrong = [...world.early]
  for (const pipeline of PIPELINES) {
    const found = await readPipeline(world, life, pipeline)
    wrong.push(...checkRecords(world, found), ...checkQuarantine(found))
    wrong.push(...(await checkBooks(world, found)), ...checkQueue(world, pipeline))
  }
  return wrong
}

type Found = {
  pipeline: PipelineName
  shards: ReadonlyMap<string, ShardRow>
  /** Places of records, by shard: all that the index has, and what a reader finds. */
  kept: ReadonlyMap<string, ReadonlySet<number>>
  seen: ReadonlyMap<string, ReadonlySet<number>>
  titles: ReadonlyMap<string, string>
  quarantine: ReadonlyMap<string, ReadonlySet<number>>
  known: ReadonlyMap<string, KnownVersion>
}

async function readPipeline(world: OracleWorld, life: Life, pipeline: PipelineName): Promise<Found> {
  const rows = await world.tables.shards({ pipeline, after: '', limit: 100_000 })
  const quarantine = await world.tables.quarantine({ pipeline, after: { shard: '', at: -1 }, limit: 100_000 })
  const documents = await world.ledger.driver.read((tx) =>
    tx.all<{ ref: string; title: string }>(`SELECT ref, title FROM search_documents WHERE source = ?`, [
      SERVICE,
    ]),
  )
  const known = [...world.known.values()].filter((one) => one.pipeline === pipeline)
  return {
    pipeline,
    shards: new Map(rows.map((row) => [row.id, row])),
    kept: await places(life, pipeline, undefined),
    seen: await places(life, pipeline, streamOf(pipeline)),
    titles: new Map(documents.map(({ ref, title }) => [ref, title])),
    quarantine: grouped(quarantine.map(({ shard, at }) => ({ shard, at: Number(at) }))),
    known: new Map(known.map((one) => [one.shard, one])),
  }
}

async function places(
  { search }: Life,
  pipeline: PipelineName,
  principal: string | undefined,
): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
  const all: { shard: string; at: number }[] = []
  let after = ''
  for (;;) {
    const refs = await search.refs({ source: SERVICE, after, limit: PAGE, ...(principal && { principal }) })
    for (const ref of refs) {
      const [name, shard = '', at] = ref.split('/')
      if (name === pipeline) all.push({ shard, at: Number(at) })
    }
    if (refs.length < PAGE) return grouped(all)
    after = refs.at(-1)!
  }
}

function grouped(all: readonly { shard: string; at: number }[]): Map<string, Set<number>> {
  const by = new Map<string, Set<number>>()
  for (const { shard, at } of all) by.set(shard, (by.get(shard) ?? new Set()).add(at))
  return by
}

const list = (numbers: Iterable<number>): string => [...numbers].sort((a, b) => a - b).join(' ')
const same = (one: ReadonlySet<number>, other: ReadonlySet<number>): boolean =>
  one.symmetricDifference(other).size === 0
const NONE: ReadonlySet<number> = new Set()

function checkRecords(world: OracleWorld, found: Found): string[] {
  const wrong: string[] = []
  const current = new Set(world.current(found.pipeline).map(({ shard }) => shard))
  const announced = world.announced(found.pipeline)
  for (const [shard, version] of found.known) {
    const tell = (what: string): void => {
      wrong.push(`${found.pipeline}: ${version.uri} ${shard} ${what} (${stateOf(found, shard)})`)
    }
    const seen = found.seen.get(shard) ?? NONE
    const good = new Set(version.titles.keys())
    const long = version.long.intersection(found.quarantine.get(shard) ?? NONE)
    for (const at of seen) {
      const title = found.titles.get(
        `${shardRange(found.pipeline, shard).prefix}${String(at).padStart(12, '0')}`,
      )
      if (title !== version.titles.get(at)) tell(`has "${title}" as record ${at}`)
    }
    if (version.isBroken) {
      const row = found.shards.get(shard)
      const end = row?.records ?? Math.max(-1, ...seen) + 1
      const beginning = new Set([...good].filter((at) => at < end))
      // While an older version is seen, and when a newer one took its place, nobody sees it.
      const mayBeHidden = row?.is_staged === 1 || row?.state === 'skipped'
      if (!same(seen, beginning) && !(mayBeHidden && seen.size === 0))
        tell(`is broken, and has records ${list(seen)}`)
      continue
    }
    switch (wantedOf(world, { shard, version, current, announced })) {
      case 'all':
        if (!same(seen, good))
          tell(`must have ${good.size} records, and misses ${list(good.difference(seen))}`)
        break
      case 'none':
        if (seen.size > 0) tell(`must not be seen any more, and has records ${list(seen)}`)
        if ((found.kept.get(shard)?.size ?? 0) > 0) tell(`still has records that nobody sees`)
        break
      case 'either': {
        // Of one that was overwritten in the middle the beginning stays; what was too long cannot be read again.
        const row = found.shards.get(shard)
        const end = row?.state === 'skipped' ? row.records : Number.POSITIVE_INFINITY
        const beginning = new Set([...good].filter((at) => at < end))
        if (seen.size > 0 && !same(seen.union(long), beginning))
          tell(`has a part of its records: ${list(seen)}`)
      }
    }
  }
  for (const shard of found.kept.keys()) {
    if (!found.known.has(shard))
      wrong.push(`${found.pipeline}: the index has records of ${shard}, which never was`)
  }
  return wrong
}

type Asked = { shard: string; version: KnownVersion; current: Set<string>; announced: Set<string> }

function wantedOf(
  world: OracleWorld,
  { shard, version, current, announced }: Asked,
): 'all' | 'none' | 'either' {
  if (current.has(shard)) return 'all'
  const pipeline = version.pipeline as PipelineName
  const now = world.current(pipeline).find(({ uri }) => uri === version.uri)
  if (OVERWRITES[pipeline] === 'replace') return now === undefined || now.isBroken ? 'either' : 'none'
  // Only what is current is listed, and only versions that are kept can be read later.
  const isAsked = announced.has(shard) && !world.forgotten.has(shard)
  return isAsked && world.isVersioned ? 'all' : 'either'
}

function stateOf({ shards }: Found, shard: string): string {
  const row = shards.get(shard)
  if (!row) return 'unknown'
  const { state, code, records, published, token, takeovers, sequencer } = row
  return JSON.stringify({ state, code, records, published, token, takeovers, sequencer })
}

function checkQuarantine({ pipeline, shards, quarantine, known }: Found): string[] {
  const wrong: string[] = []
  for (const [shard, version] of known) {
    const there = quarantine.get(shard) ?? NONE
    const row = shards.get(shard)
    const isExact =
      row?.state === 'stored'
        ? same(there.difference(version.long), version.bad)
        : there.isSubsetOf(version.bad.union(version.long))
    if (!isExact)
      wrong.push(`${pipeline}: ${version.uri} has ${list(there)} in quarantine, not ${list(version.bad)}`)
    if (row?.state === 'stored' && row.quarantined !== there.size)
      wrong.push(`${pipeline}: ${version.uri} says ${row.quarantined} in quarantine, and has ${there.size}`)
  }
  return wrong
}

async function checkBooks(world: OracleWorld, { pipeline, seen, shards }: Found): Promise<string[]> {
  const wrong: string[] = []
  const status = await pipelineStatus(world.tables, pipeline)
  const { listing, objects } = status
  const there = world.current(pipeline).length
  if (!listing || listing.total !== there)
    wrong.push(`${pipeline}: ${listing?.total} listed, and ${there} are there`)
  if (!isBalanced(status))
    wrong.push(`${pipeline}: ${listing?.shown} were shown, and ${listing?.total} counted`)
  if (objects.onTheirWay !== 0) wrong.push(`${pipeline}: ${objects.onTheirWay} are on their way at the end`)
  const row = (await world.tables.pipeline(pipeline))!
  const pruned = row.pruned + row.pruned_older + row.pruned_replaced
  if (objects.total !== shards.size + pruned)
    wrong.push(`${pipeline}: ${objects.total} counted of ${shards.size} and ${pruned} that were pruned`)
  for (const { id, uri, state, published, code } of shards.values()) {
    const found = seen.get(id)?.size ?? 0
    // What was pruned and is announced again is known by its records.
    if (state === 'stored' && published !== found && code !== 'known')
      wrong.push(`${pipeline}: ${uri} says ${published} published, and ${found} are found`)
  }
  return wrong
}

function checkQueue(world: OracleWorld, pipeline: PipelineName): string[] {
  const left = world.sim.sqs.queue(queueOf(pipeline)).messages.filter(({ outcome }) => outcome === 'waiting')
  return left.map(({ id, body }) => `${pipeline}: ${id} is left in the queue: ${body.slice(0, 200)}`)
}
