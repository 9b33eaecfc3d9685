/** What must be true at the end of a history, by what the simulator holds. */
import { compareSequencers } from '../../src/apps/ingest/envelope.ts'
import { SERVICE, shardRange, streamOf } from '../../src/apps/ingest/pipeline.ts'
import { isBalanced, pipelineStatus } from '../../src/apps/ingest/status.ts'
import type { ShardRow } from '../../src/apps/ingest/store/rows.ts'
import type { Life } from './life.ts'
import { type KnownVersion, RECORDS_MAX } from './objects.ts'
import { JUNK, type OracleWorld, OVERWRITES, PIPELINES, type PipelineName, queueOf } from './world.ts'

const PAGE = 1_000
/** Between the last look at an object and its removal. */
const REMOVAL_MS_MAX = 2_000

export async function differences(world: OracleWorld, life: Life): Promise<string[]> {
  await world.allLooked()
  const wrong = [...world.early, ...(await world.publishedStolen())]
  for (const pipeline of PIPELINES) {
    const found = await readPipeline(world, life, pipeline)
    wrong.push(...checkRecords(world, found), ...checkQuarantine(found))
    wrong.push(...(await checkSearch(world, life, found)), ...(await checkPlaces(world, found)))
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
  if (new Set(documents.map(({ ref }) => ref)).size !== documents.length)
    throw new Error('the index has two documents of one record')
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

/** By a word of its records, as people ask: what a reader may find is found, each record once, and by nobody else. */
async function checkSearch(world: OracleWorld, { search }: Life, found: Found): Promise<string[]> {
  const wrong: string[] = []
  const ask = { sort: 'newest', copies: 'apart', limit: RECORDS_MAX + 1, mode: 'words' } as const
  for (const [shard, { word, uri }] of found.known) {
    for (const reader of PIPELINES) {
      const { hits } = await search.search({
        ...ask,
        text: word,
        reader: { principals: [streamOf(reader)] },
        nowMs: world.clock.now(),
        signal: new AbortController().signal,
      })
      const places = hits.flatMap(({ ref }) => {
        const [, of, at] = ref.split('/')
        return of === shard ? [Number(at)] : []
      })
      const wanted = reader === found.pipeline ? (found.seen.get(shard) ?? NONE) : NONE
      if (places.length !== wanted.size || !same(new Set(places), wanted))
        wrong.push(
          `${found.pipeline}: ${uri} ${shard} is found by ${reader} as ${list(places)}, not ${list(wanted)}`,
        )
    }
  }
  return wrong
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
  const latest = new Set(world.latest(found.pipeline).map(({ shard }) => shard))
  const announced = world.announced(found.pipeline)
  for (const [shard, version] of found.known) {
    const tell = (what: string): void => {
      wrong.push(`${found.pipeline}: ${version.uri} ${shard} ${what} (${stateOf(found, shard)})`)
    }
    const seen = found.seen.get(shard) ?? NONE
    for (const at of seen) {
      const title = found.titles.get(
        `${shardRange(found.pipeline, shard).prefix}${String(at).padStart(12, '0')}`,
      )
      if (title !== version.titles.get(at)) tell(`has "${title}" as record ${at}`)
    }
    const said = bySaid(found, shard, version)
    if (said !== undefined) tell(said)
    const good = new Set(version.titles.keys())
    switch (wantedOf(world, { shard, version, latest, announced, rows: found.shards })) {
      case 'bad':
        if (found.shards.get(shard)?.state !== 'bad') tell(`is cut off, and must be bad`)
        break
      case 'all':
        if (!same(seen, good))
          tell(`must have ${good.size} records, and misses ${list(good.difference(seen))}`)
        break
      case 'none':
        if (seen.size > 0) tell(`must not be seen any more, and has records ${list(seen)}`)
        // What was read of a bad one stays, and is told with it.
        if ((found.kept.get(shard)?.size ?? 0) > 0 && !isUnread(found.shards.get(shard)?.state))
          tell(`still has records that nobody sees`)
    }
  }
  for (const shard of found.kept.keys()) {
    if (!found.known.has(shard))
      wrong.push(`${found.pipeline}: the index has records of ${shard}, which never was`)
  }
  return [...wrong, ...(OVERWRITES[found.pipeline] === 'replace' ? checkOneSeen(found) : [])]
}

/** Whatever is wanted of it: what is found is what its row says. */
function bySaid(found: Found, shard: string, version: KnownVersion): string | undefined {
  const seen = found.seen.get(shard) ?? NONE
  const row = found.shards.get(shard)
  const isReplacing = OVERWRITES[found.pipeline] === 'replace'
  const good = new Set(version.titles.keys())
  // What was too long while others read it, and could not be read again.
  const tooLong = version.long.intersection(found.quarantine.get(shard) ?? NONE)
  const isSeenUpTo = (end: number): boolean => {
    const beginning = new Set([...good].filter((at) => at < end))
    return same(seen.union(tooLong.intersection(beginning)), beginning)
  }
  if (!row) {
    if (seen.size === 0) return undefined
    // Only what is whole is known by its records alone, and only where versions stand beside each other.
    return isReplacing || !same(seen, good) ? `is not known, and has records ${list(seen)}` : undefined
  }
  if (row.records > version.readable) return `has ${row.records} records, and ${version.readable} are in it`
  switch (row.state) {
    case 'open':
      return 'is open at the end'
    case 'stored':
      if (version.isBroken) return 'is cut off, and stored'
      return isSeenUpTo(Number.POSITIVE_INFINITY) ? undefined : `is stored, and has records ${list(seen)}`
    case 'skipped':
      if (isReplacing) return seen.size === 0 ? undefined : `was replaced, and has records ${list(seen)}`
      return isSeenUpTo(row.records) ? undefined : `has records ${list(seen)} of ${row.records}`
    case 'bad':
    case 'gone':
      // While an older version is seen, nobody sees it.
      if (row.is_staged === 1 && seen.size === 0) return undefined
      return isSeenUpTo(row.records)
        ? undefined
        : `is ${row.state}, and has records ${list(seen)} of ${row.records}`
  }
}

const isUnread = (state: ShardRow['state'] | undefined): boolean => state === 'bad' || state === 'gone'

/** The old version or the new one, never both. */
function checkOneSeen({ pipeline, known, seen }: Found): string[] {
  const shown = [...known.values()].filter(({ shard }) => (seen.get(shard)?.size ?? 0) > 0)
  return [...Map.groupBy(shown, ({ uri }) => uri)]
    .filter(([, versions]) => versions.length > 1)
    .map(([uri, versions]) => `${pipeline}: of ${uri} are seen ${versions.map(({ shard }) => shard).join()}`)
}

type Asked = {
  shard: string
  version: KnownVersion
  latest: Set<string>
  announced: ReadonlyMap<string, string>
  rows: Found['shards']
}

/** `either`: whether anything of it is found depends on who was how fast; `bySaid` holds all the same. */
function wantedOf(
  world: OracleWorld,
  { shard, version, latest, announced, rows }: Asked,
): 'all' | 'none' | 'bad' | 'either' {
  const pipeline = version.pipeline as PipelineName
  const now = world.latest(pipeline).find(({ uri }) => uri === version.uri)
  if (now && isOvertaken(world, { now, announced, rows })) return 'either'
  if (latest.has(shard)) return version.isBroken ? 'bad' : 'all'
  // The store itself has said twice that it was not there, and nobody tells of what is not current.
  if (rows.get(shard)?.state === 'gone' && world.wasMissing.has(version.uri)) return 'either'
  // Only what is current is listed, and only versions that are kept can be read later.
  const isReadable = announced.has(shard) && world.isVersioned && !version.isBroken
  if (OVERWRITES[pipeline] === 'append') return isReadable ? 'all' : 'either'
  if (now !== undefined) return now.isBroken ? 'either' : 'none'
  // What was listed before it was announced has no sequencer by which others are newer.
  const isListed = [...rows.values()].some(({ uri, listed_at }) => uri === version.uri && listed_at !== null)
  return isReadable && world.isTakenAway(version) && !isListed ? 'all' : 'either'
}

/**
 * It was put there again, of which nobody was told, and taken away by us, before anybody was told of another version whose
 * sequencer is later than all that were told of this one. Whether that came after it, and was taken away by somebody else,
 * nobody but the store can know.
 */
function isOvertaken(
  world: OracleWorld,
  { now, announced, rows }: Pick<Asked, 'announced' | 'rows'> & { now: KnownVersion },
): boolean {
  const removedAtMs = world.removedAtMs(now)
  if (removedAtMs === undefined || OVERWRITES[now.pipeline as PipelineName] === 'append') return false
  return [...rows.values()].some(({ id, uri, sequencer, announced_at, created_at }) => {
    if (uri !== now.uri || id === now.shard || sequencer === null) return false
    const toldAtMs = Math.max(announced_at ?? 0, created_at)
    if (toldAtMs < removedAtMs - REMOVAL_MS_MAX) return false
    return compareSequencers(announced.get(now.shard) ?? '', sequencer) < 0
  })
}

function stateOf({ shards }: Found, shard: string): string {
  const row = shards.get(shard)
  if (!row) return 'unknown'
  const { state, code, records, published, token, takeovers, sequencer } = row
  const { disposed, created_at, announced_at, listed_at, settled_at, shown_at } = row
  const when = { created_at, announced_at, listed_at, settled_at, shown_at }
  return JSON.stringify({ state, code, records, published, token, takeovers, sequencer, disposed, ...when })
}

function checkQuarantine({ pipeline, shards, quarantine, known }: Found): string[] {
  const wrong: string[] = []
  for (const [shard, version] of known) {
    const there = quarantine.get(shard) ?? NONE
    const row = shards.get(shard)
    // All bad ones up to where it was read, and nothing else but what was too long.
    const end = row?.records ?? 0
    const bad = new Set([...version.bad].filter((at) => at < end))
    if (!same(there.difference(version.long), bad))
      wrong.push(`${pipeline}: ${version.uri} ${shard} has ${list(there)} in quarantine, not ${list(bad)}`)
    if (row && row.quarantined !== there.size)
      wrong.push(`${pipeline}: ${version.uri} says ${row.quarantined} in quarantine, and has ${there.size}`)
  }
  return wrong
}

/** What was taken away is where it is said to be, byte for byte; what could not be stored is where it was. */
async function checkPlaces(world: OracleWorld, found: Found): Promise<string[]> {
  const { pipeline, shards } = found
  const wrong: string[] = []
  if (world.after === 'keep') return wrong
  const there = new Set(world.current(pipeline).map(({ shard }) => shard))
  for (const version of world.latest(pipeline)) {
    const tell = (what: string): void => {
      wrong.push(`${pipeline}: ${version.uri} ${version.shard} ${what} (${stateOf(found, version.shard)})`)
    }
    const { shard, isBroken, bytes } = version
    const row = shards.get(shard)
    if (isBroken) {
      if (!there.has(shard)) tell('is cut off, and was taken away')
      continue
    }
    if (there.has(shard)) tell('is stored, and still in its place')
    if (row?.disposed !== (world.after === 'move' ? 'moved' : 'deleted')) tell('is not said to be away')
    const copied = world.after === 'move' ? world.copies(pipeline, version) : []
    if (world.after === 'move' && !copied.some((key) => row?.disposed_to?.endsWith(`/${key}`)))
      tell(`was moved to ${row?.disposed_to}, where it is not`)
    if (world.after === 'delete') {
      const kept = await Array.fromAsync(world.kept.read({ pipeline, shard }, 0)).catch(() => [])
      if (!Buffer.concat(kept).equals(bytes)) tell('was deleted, and its copy is not what it was')
    }
  }
  return wrong
}

async function checkBooks(world: OracleWorld, { pipeline, seen, kept, shards }: Found): Promise<string[]> {
  const wrong: string[] = []
  const status = await pipelineStatus(world.tables, pipeline)
  const { listing, objects } = status
  const there = world.current(pipeline).length
  if (!listing || listing.total !== there)
    wrong.push(`${pipeline}: ${listing?.total} listed, and ${there} are there`)
  if (!isBalanced(status))
    wrong.push(`${pipeline}: ${listing?.shown} were shown, and ${listing?.total} counted`)
  if (objects.onTheirWay !== 0) wrong.push(`${pipeline}: ${objects.onTheirWay} are on their way at the end`)
  const inIndex = [...kept.values()].reduce((sum, { size }) => sum + size, 0)
  if (status.records !== inIndex)
    wrong.push(`${pipeline}: ${status.records} records are said to be there, and ${inIndex} are`)
  const row = (await world.tables.pipeline(pipeline))!
  const pruned = row.pruned + row.pruned_older + row.pruned_replaced
  if (objects.total !== shards.size + pruned)
    wrong.push(`${pipeline}: ${objects.total} counted of ${shards.size} and ${pruned} that were pruned`)
  for (const shard of shards.values()) {
    const { id, uri, state, bad_in } = shard
    const isThere = world.hasVersion(pipeline, shard)
    if (state === 'gone' && isThere && !world.wasMissing.has(uri))
      wrong.push(`${pipeline}: ${uri} ${id} is gone, and is there`)
    if (state === 'bad' && !isThere && (bad_in ?? 0) < row.listed_generation!)
      wrong.push(`${pipeline}: ${uri} ${id} is not there any more, and bad`)
  }
  for (const { id, uri, state, published } of shards.values()) {
    const found = seen.get(id)?.size ?? 0
    if (state === 'stored' && published !== found)
      wrong.push(`${pipeline}: ${uri} says ${published} published, and ${found} are found`)
  }
  return wrong
}

/** What somebody understands ends as acknowledged, everything else as a dead letter. */
function checkQueue(world: OracleWorld, pipeline: PipelineName): string[] {
  return world.sim.sqs.queue(queueOf(pipeline)).messages.flatMap(({ id, body, outcome }) => {
    const isUnderstood = !body.startsWith(JUNK)
    if (outcome === (isUnderstood ? 'acknowledged' : 'dead-lettered')) return []
    return [`${pipeline}: ${id} ended as ${outcome}: ${body.slice(0, 200)}`]
  })
}
