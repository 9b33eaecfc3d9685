/** What is written about shards, each inside a transaction of the ledger. */
import { TidemarkError } from '../../../base/errors.ts'
import { forgetBadItem } from '../../../ledger/bad-items.ts'
import type { Tx, Value } from '../../../ledger/contract.ts'
import type { ReadShape } from '../contract.ts'
import { itemOf, OBJECT_KIND, streamOf } from '../pipeline.ts'
import { type Found, isLater, isNewer, type Placement, placementOf, REPLACED } from '../plan.ts'
import { type ShardState, statesBefore } from '../shard-states.ts'
import { forUpdate, oneOf, SHARD_COLUMNS, type ShardRow, sameAs } from './rows.ts'

export type Placed = { id: string; state: ShardState; act: Placement['act'] }

export type Placing = {
  pipeline: string
  overwrites: 'replace' | 'append'
  nowMs: number
  /** Left out where a message told of them. What a listing shows was there at some time after it was asked for. */
  listing?: { generation: number; askedAtMs: number } | undefined
  /** Those of which the index has records, and how many. */
  inIndex: ReadonlyMap<string, number>
}

const ROWS_MAX = 200

/** Each is one shard afterwards, whoever tells of it, and however often. Answers in the order in which they were given. */
export async function placeShards(tx: Tx, placing: Placing, found: readonly Found[]): Promise<Placed[]> {
  const { pipeline, inIndex, overwrites } = placing
  const uris = [...new Set(found.map(({ uri }) => uri))]
  const known = await shardsOfUris(tx, { pipeline, uris, isLocked: true })
  const byUri = Map.groupBy(known, ({ uri }) => uri)
  const planned = found.map((one) => {
    const all = byUri.get(one.uri) ?? []
    const same = all.find(({ id }) => id === one.id)
    const others = all.filter(({ id }) => id !== one.id)
    const isInIndex = inIndex.has(one.id)
    return { one, same, placement: placementOf(one, { same, others, isInIndex }, overwrites) }
  })
  const isKnown = ({ placement }: Planned): boolean =>
    placement.act === 'insert' && placement.code === 'known'
  // In one order, as they are locked: another process may be told of the same objects by another message.
  const inOrder = planned.toSorted((a, b) => (a.one.id < b.one.id ? -1 : 1))
  const inserted = await insertShards(
    tx,
    placing,
    inOrder.filter((one) => !isKnown(one)),
  )
  for (const id of await insertKnown(tx, placing, inOrder.filter(isKnown))) inserted.add(id)
  for (const { one, same, placement } of planned) {
    if (placement.act !== 'reopen') continue
    if (same?.state === 'bad' || same?.state === 'gone') await retryShard(tx, placing, one)
    else await reopenShard(tx, placing, one)
  }
  await noteAgain(
    tx,
    placing,
    planned.filter(({ placement }) => placement.act === 'known'),
  )
  // Of these another process was told at the same time, and its rows are committed by now.
  const met = planned.filter(({ one, placement }) => placement.act === 'insert' && !inserted.has(one.id))
  const placedAnew = met.length === 0 ? [] : await placeMet(tx, placing, met)
  const anew = new Map(placedAnew.map((placed) => [placed.id, placed]))
  return planned.map(
    ({ one, same, placement }) =>
      anew.get(one.id) ?? {
        id: one.id,
        act: placement.act,
        state:
          placement.act === 'insert' ? placement.state : placement.act === 'reopen' ? 'open' : same!.state,
      },
  )
}

/** What was told of them counts as well: without its sequencer, the newest of an object could be taken for an older one. */
async function placeMet(tx: Tx, placing: Placing, met: readonly Planned[]): Promise<Placed[]> {
  const found = met.map(({ one }) => one)
  const uris = [...new Set(found.map(({ uri }) => uri))]
  const there = await shardsOfUris(tx, { pipeline: placing.pipeline, uris, isLocked: true }, 'id')
  const ids = new Set(there.map(({ id }) => id))
  const away = found.find(({ id }) => !ids.has(id))
  // It was there, and was pruned in between.
  if (away) throw lostShard(away)
  return placeShards(tx, placing, found)
}

type Planned = { one: Found; same: ShardRow | undefined; placement: Placement }

/** They were pruned, and counted as such until now. Answers which were not there. */
async function insertKnown(tx: Tx, placing: Placing, planned: readonly Planned[]): Promise<string[]> {
  const inserted: string[] = []
  for (const one of planned) {
    if ((await insertShards(tx, placing, [one])).size === 0) continue
    inserted.push(one.one.id)
    await tx.run(
      `UPDATE ingest_pipelines SET pruned = CASE WHEN pruned > 0 THEN pruned - 1 ELSE 0 END,
         pruned_records = CASE WHEN pruned_records > ? THEN pruned_records - ? ELSE 0 END WHERE name = ?`,
      [placing.inIndex.get(one.one.id)!, placing.inIndex.get(one.one.id)!, placing.pipeline],
    )
  }
  return inserted
}

/** Answers which were not there. */
async function insertShards(
  tx: Tx,
  { pipeline, nowMs, listing, inIndex }: Placing,
  planned: readonly Planned[],
): Promise<Set<string>> {
  const rows = planned.flatMap(({ one, placement }) =>
    placement.act !== 'insert'
      ? []
      : [
          [
            ...[pipeline, one.id, one.uri, one.version, one.versionId, one.sequencer, placement.state],
            ...[
              placement.code,
              placement.reason,
              one.sizeBytes,
              one.data,
              placement.state === 'stored' ? 1 : 0,
            ],
            ...(listing === undefined ? [nowMs, null, null] : [null, listing.askedAtMs, listing.generation]),
            ...[nowMs, nowMs, placement.state === 'open' ? null : nowMs],
            ...Array<number>(2).fill(placement.code === 'known' ? inIndex.get(one.id)! : 0),
          ] satisfies Value[],
        ],
  )
  const inserted = new Set<string>()
  for (let from = 0; from < rows.length; from += ROWS_MAX) {
    const some = rows.slice(from, from + ROWS_MAX)
    const tuple = `(${some[0]!.map(() => '?').join(', ')})`
    const got = await tx.all<{ id: string }>(
      `INSERT INTO ingest_shards(pipeline, id, uri, version, version_id, sequencer, state, code, reason, size, data, eof,
         announced_at, listed_at, listing, created_at, updated_at, settled_at, records, published)
       VALUES ${some.map(() => tuple).join(', ')} ON CONFLICT (pipeline, id) DO NOTHING RETURNING id`,
      some.flat(),
    )
    for (const { id } of got) inserted.add(id)
  }
  return inserted
}

async function noteAgain(
  tx: Tx,
  { pipeline, nowMs, listing }: Placing,
  again: readonly Planned[],
): Promise<void> {
  for (const { one, same } of again) {
    const isAfter = isLater(one, same!)
    // A listing does not tell it, and without it nothing but the newest version can be read.
    const isNamed = one.versionId !== null && same!.version_id === null
    if (!isAfter && !isNamed) continue
    await tx.run(
      `UPDATE ingest_shards SET sequencer = ?, announced_at = ?, version_id = COALESCE(version_id, ?)
       WHERE pipeline = ? AND id = ?`,
      [
        ...(isAfter ? [one.sequencer, nowMs] : [same!.sequencer, same!.announced_at]),
        ...[one.versionId, pipeline, one.id],
      ],
    )
  }
  if (again.length === 0) return
  const set =
    listing === undefined ? 'announced_at = COALESCE(announced_at, ?)' : 'listed_at = ?, listing = ?'
  await tx.run(`UPDATE ingest_shards SET ${set} WHERE pipeline = ? AND ${oneOf(tx, 'id')}`, [
    ...(listing === undefined ? [nowMs] : [listing.askedAtMs, listing.generation]),
    pipeline,
    JSON.stringify(again.map(({ one }) => one.id)),
  ])
}

/** What it had published is gone, or goes before it begins anew: see object.ts. */
async function reopenShard(tx: Tx, { pipeline, nowMs, listing }: Placing, one: Found): Promise<void> {
  await tx.run(
    `UPDATE ingest_shards SET state = 'open', token = NULL, records = 0, byte = NULL, line = NULL, shape = NULL, eof = 0,
       quarantined = 0, is_staged = 0, code = NULL, reason = NULL, settled_at = NULL, disposed = NULL,
       disposed_to = NULL, disposed_version = NULL,
       sequencer = COALESCE(?, sequencer), version_id = ?, data = COALESCE(?, data), listing = COALESCE(?, listing),
       created_at = ?, updated_at = ? WHERE pipeline = ? AND id = ? AND state = 'skipped'`,
    [one.sequencer, one.versionId, one.data, listing?.generation ?? null, nowMs, nowMs, pipeline, one.id],
  )
  await tx.run(`DELETE FROM ingest_quarantine WHERE pipeline = ? AND shard = ?`, [pipeline, one.id])
}

/** The same bytes as before: what was read of them counts, and it goes on from there. */
async function retryShard(tx: Tx, { pipeline, nowMs, listing }: Placing, one: Found): Promise<void> {
  await forgetBadItem(tx, {
    stream: streamOf(pipeline),
    kind: OBJECT_KIND,
    item: itemOf(one),
  })
  await tx.run(
    `UPDATE ingest_shards SET state = 'open', token = NULL, code = NULL, reason = NULL, settled_at = NULL,
       sequencer = COALESCE(?, sequencer), version_id = COALESCE(?, version_id), listing = COALESCE(?, listing),
       created_at = ?, updated_at = ?
     WHERE pipeline = ? AND id = ? AND state IN (${stateList(statesBefore('retry'))})`,
    [one.sequencer, one.versionId, listing?.generation ?? null, nowMs, nowMs, pipeline, one.id],
  )
}

/**
 * All versions of these objects; `isLocked`: in the order of their ids, as whoever ends one locks them. What is planned
 * then holds until it is committed.
 */
export function shardsOfUris<Columns extends keyof ShardRow = keyof ShardRow>(
  tx: Tx,
  { pipeline, uris, isLocked, isLive = false }: OfUris,
  columns: Columns | typeof SHARD_COLUMNS = SHARD_COLUMNS,
): Promise<Pick<ShardRow, Columns>[]> {
  // Where there is one writer, it needs no order, which would cost SQLite the index by address.
  const lock = isLocked && forUpdate(tx) ? `ORDER BY id ${forUpdate(tx)}` : ''
  return tx.all<Pick<ShardRow, Columns>>(
    `SELECT ${columns} FROM ingest_shards WHERE pipeline = ? AND ${oneOf(tx, 'uri')}
       ${isLive ? `AND state <> 'skipped'` : ''} ${lock}`,
    [pipeline, JSON.stringify(uris)],
  )
}

/** `isLive`: without those that are skipped. */
type OfUris = { pipeline: string; uris: readonly string[]; isLocked: boolean; isLive?: boolean }

// --- Whoever publishes ---------------------------------------------------------------------------------------------

/** Of a shard that another has taken, or that was settled meanwhile: nothing was written. */
export const SHARD_LOST = 'shard-lost'

const LOST_MS = 1_000

export function lostShard({ uri }: Pick<ShardRow, 'uri'>): TidemarkError {
  return new TidemarkError(`${uri} is published by another, or settled.`, {
    // Looked at again soon, which costs no try: nothing is wrong with the object.
    kind: 'throttled',
    code: SHARD_LOST,
    retryAfterMs: LOST_MS,
  })
}

/**
 * One compare-and-swap on token, position and time, which moves the time on: of two who try, one is told at once. Also on
 * whether it is hidden: another version may have ended, and hidden it, since it was looked at. A bad one goes on at its
 * position.
 */
export async function takeShard(
  tx: Tx,
  row: ShardRow,
  { token, isStaged, nowMs }: { token: string; isStaged: boolean; nowMs: number },
): Promise<void> {
  const changed = await tx.run(
    `UPDATE ingest_shards SET state = 'open', token = ?, attempts = attempts + 1,
       takeovers = takeovers + ${row.token === null ? 0 : 1}, is_staged = ?, updated_at = ?, code = NULL, reason = NULL,
       settled_at = NULL
     WHERE pipeline = ? AND id = ? AND state = ? AND ${sameAs(tx, 'token')} AND records = ? AND updated_at = ?
       AND is_staged = ? AND state IN (${stateList([...statesBefore('take'), ...statesBefore('retry')])})`,
    [
      ...[token, isStaged ? 1 : 0, Math.max(nowMs, row.updated_at + 1), row.pipeline, row.id],
      ...[row.state, row.token, row.records, row.updated_at, row.is_staged],
    ],
  )
  if (changed !== 1) throw lostShard(row)
}

function stateList(states: readonly ShardState[]): string {
  return [...new Set(states)].map((state) => `'${state}'`).join(', ')
}

/** Where a shard is, and what it has. */
export type Position = {
  records: number
  byte: number | null
  line: number | null
  published: number
  quarantined: number
}

export type Moving = {
  pipeline: string
  id: string
  uri: string
  token: string
  /** As whoever publishes believes it to be. */
  isStaged: number
  from: Position
  to: Position
  nowMs: number
}

/**
 * In the transaction that publishes what lies between the two positions. What it has is added to: a replay may have taken
 * records out of quarantine meanwhile.
 */
export async function moveShard(tx: Tx, moving: Moving, shape: ReadShape): Promise<void> {
  const { pipeline, id, token, isStaged, from, to, nowMs } = moving
  const changed = await tx.run(
    `UPDATE ingest_shards SET records = ?, byte = ?, line = ?, published = published + ?,
       quarantined = quarantined + ?, shape = ?, updated_at = ?
     WHERE pipeline = ? AND id = ? AND state IN (${stateList(statesBefore('publish'))}) AND token = ? AND records = ?
       AND is_staged = ?`,
    [
      ...[to.records, to.byte, to.line, to.published - from.published, to.quarantined - from.quarantined],
      ...[JSON.stringify(shape), nowMs],
      ...[pipeline, id, token, from.records, isStaged],
    ],
  )
  if (changed !== 1) throw lostShard(moving)
}

export type StoredAtOnce = { id: string; updatedAt: number; to: Position; shape: ReadShape }

type StoringAtOnce = {
  pipeline: string
  token: string
  nowMs: number
  uris: readonly string[]
  all: readonly StoredAtOnce[]
}

/**
 * Shards that nobody has taken, from their beginning to their end. Of each is checked what taking and publishing check,
 * and that it is the only version of its object: with one that is not, none is stored.
 */
export async function storeShards(tx: Tx, of: StoringAtOnce): Promise<void> {
  const { pipeline, uris, all } = of
  const versions = await shardsOfUris(tx, { pipeline, uris, isLocked: true, isLive: true })
  const rows = new Map(versions.map((row) => [row.id, row]))
  const lost = all.find(({ id, updatedAt }) => !isUntaken(rows.get(id), updatedAt))
  if (lost || versions.length !== all.length)
    throw lostShard({ uri: rows.get(lost?.id ?? '')?.uri ?? uris[0]! })
  // SQLite would look through all rows for each of those that are given together; one by one costs it 10 µs each.
  const parts = tx.dialect === 'sqlite' ? all.map((one) => [one]) : [all]
  let changed = 0
  for (const part of parts) changed += await storePart(tx, of, part)
  if (changed !== all.length) throw lostShard({ uri: uris[0]! })
}

function isUntaken(row: ShardRow | undefined, updatedAt: number): boolean {
  if (row?.updated_at !== updatedAt || !statesBefore('end').includes(row.state)) return false
  return row.token === null && row.records === 0 && row.published === 0
}

const STORED_NUMBERS = ['updated_at', 'records', 'byte', 'line', 'published', 'quarantined']
const GIVEN = {
  sqlite: `(SELECT ${['id', 'shape', ...STORED_NUMBERS].map((name) => `? AS ${name}`).join(', ')}) AS v`,
  postgres: `jsonb_to_recordset(?::jsonb)
    AS v(id text, shape text, ${STORED_NUMBERS.map((name) => `${name} bigint`).join(', ')})`,
}

/**
 * They are locked, and so what they were found to be. PostgreSQL finds them by their addresses again: with any other
 * condition it may look through all of the pipeline, as long as it believes that it is small.
 */
function storePart(
  tx: Tx,
  { pipeline, token, nowMs, uris }: StoringAtOnce,
  part: readonly StoredAtOnce[],
): Promise<number> {
  const values = part.map(({ id, updatedAt, to, shape }) => {
    const { records, byte, line, published, quarantined } = to
    const shaped = JSON.stringify(shape)
    return { id, updated_at: updatedAt, records, byte, line, published, quarantined, shape: shaped }
  })
  const isSqlite = tx.dialect === 'sqlite'
  const [first] = values
  const given = isSqlite
    ? [first!.id, first!.shape, ...STORED_NUMBERS.map((name) => first![name as 'records'])]
    : [JSON.stringify(values)]
  return tx.run(
    `UPDATE ingest_shards AS s SET state = 'stored', token = ?, attempts = s.attempts + 1, records = v.records,
       byte = v.byte, line = v.line, shape = v.shape, published = v.published, quarantined = v.quarantined, eof = 1,
       is_staged = 0, code = NULL, reason = NULL, settled_at = ?,
       updated_at = CASE WHEN v.updated_at >= ? THEN v.updated_at + 1 ELSE ? END
     FROM ${GIVEN[tx.dialect]} WHERE s.pipeline = ? AND s.id = v.id ${isSqlite ? '' : `AND ${oneOf(tx, 's.uri')}`}`,
    [token, nowMs, nowMs, nowMs, ...given, pipeline, ...(isSqlite ? [] : [JSON.stringify(uris)])],
  )
}

export type Ending = { state: 'stored' } | { state: 'skipped' | 'bad'; code: string; reason: string }

/** Behind the last position. `records`: as it must be; checked like a move. */
export async function endShard(
  tx: Tx,
  of: { pipeline: string; id: string; uri: string; token: string | null; records: number; nowMs: number },
  ending: Ending,
): Promise<void> {
  const event = ending.state === 'stored' ? 'end' : ending.state === 'bad' ? 'fail' : 'skip'
  const isStored = ending.state === 'stored'
  // What a listing that has begun already does not show may have come behind it.
  const badIn = `, bad_in = (SELECT generation FROM ingest_pipelines WHERE name = ingest_shards.pipeline)`
  const changed = await tx.run(
    `UPDATE ingest_shards SET state = ?, code = ?, reason = ?, eof = ?, settled_at = ?, updated_at = ?
       ${isStored ? ', data = CASE WHEN quarantined = 0 THEN NULL ELSE data END' : ''}
       ${ending.state === 'bad' ? badIn : ''}
     WHERE pipeline = ? AND id = ? AND state IN (${stateList(statesBefore(event))}) AND ${sameAs(tx, 'token')}
       AND records = ?`,
    [
      ...[ending.state, isStored ? null : ending.code, isStored ? null : ending.reason, isStored ? 1 : 0],
      ...[of.nowMs, of.nowMs, of.pipeline, of.id, of.token, of.records],
    ],
  )
  if (changed !== 1) throw lostShard(of)
}

export function lockShard(
  tx: Tx,
  { pipeline, id }: Pick<ShardRow, 'pipeline' | 'id'>,
): Promise<ShardRow | undefined> {
  return tx.get<ShardRow>(
    `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND id = ? ${forUpdate(tx)}`,
    [pipeline, id],
  )
}

/**
 * The versions of one object that are not skipped, locked in the order of their ids: whoever ends one of them decides over
 * all. Of an object that is overwritten every minute there are thousands of others.
 */
export function lockVersions(
  tx: Tx,
  { pipeline, uri }: Pick<ShardRow, 'pipeline' | 'uri'>,
): Promise<ShardRow[]> {
  return tx.all<ShardRow>(
    `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND uri = ? AND state <> 'skipped'
     ORDER BY id ${forUpdate(tx)}`,
    [pipeline, uri],
  )
}

/** `current`: what the store had when it was asked, null where it did not say. */
export type Versions = { all: readonly ShardRow[]; current: string | null }

/** Locked, and as they were when the store was asked: what was told of since may be newer than its answer. */
export async function lockSameVersions(tx: Tx, row: ShardRow, looked: Versions): Promise<Versions> {
  const all = await lockVersions(tx, row)
  const told = (rows: readonly ShardRow[]): string =>
    JSON.stringify(rows.map(({ id, sequencer }) => [id, sequencer]))
  if (told(all) !== told(looked.all)) throw lostShard(row)
  return { all, current: looked.current }
}

/**
 * Which of the versions make way for this one, and whether one of them has made it superfluous. What the store has is the
 * newest, whatever was told of it: content that was there before is back with the sequencer of its first time, where
 * nobody announced it.
 */
export function replacedBy(
  id: string,
  { all, current }: Versions,
): { replaced: ShardRow[]; isReplaced: boolean } {
  const one = all.find((row) => row.id === id)
  if (!one) return { replaced: [], isReplaced: false }
  const isAfter = (a: ShardRow, b: ShardRow): boolean =>
    a.id === current || (b.id !== current && isNewer(a, b))
  const others = all.filter((other) => other !== one)
  return {
    replaced: others.filter((other) => isAfter(one, other)),
    isReplaced: others.some((other) => other.state === 'stored' && isAfter(other, one)),
  }
}

/** One that was bad is no item that waits for anybody: there is nothing left of it to try. */
export async function replaceShard(tx: Tx, shard: ShardRow, nowMs: number): Promise<void> {
  const { pipeline, id } = shard
  await forgetBadItem(tx, { stream: streamOf(pipeline), kind: OBJECT_KIND, item: itemOf(shard) })
  await tx.run(
    `UPDATE ingest_shards SET state = 'skipped', code = 'replaced', reason = ?, settled_at = ?, updated_at = ?
     WHERE pipeline = ? AND id = ? AND state IN (${stateList(statesBefore('replace'))})`,
    [REPLACED, nowMs, nowMs, pipeline, id],
  )
}

type Listing = { pipeline: string; generation: number }

/** Bad ones that a complete listing does not show, and that were bad before it began; by an index of what is not stored. */
export function unlisted(
  tx: Tx,
  { pipeline, generation }: Listing,
  { after, limit }: { after: string; limit: number },
): Promise<ShardRow[]> {
  return tx.all<ShardRow>(
    `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND state = 'bad' AND state <> 'stored' AND id > ?
       AND COALESCE(bad_in, 0) < ? AND COALESCE(listing, 0) < ? ORDER BY id LIMIT ?`,
    [pipeline, after, generation, generation, limit],
  )
}

/** Of these addresses, those that the listing shows as what nobody can look at: whatever else is there may be hidden by it. */
export async function listedUnseen(
  tx: Tx,
  { pipeline, generation }: Listing,
  uris: readonly string[],
): Promise<Set<string>> {
  const rows = await tx.all<{ uri: string }>(
    `SELECT uri FROM ingest_shards WHERE pipeline = ? AND listing = ? AND size IS NULL AND ${oneOf(tx, 'uri')}`,
    [pipeline, generation, JSON.stringify(uris)],
  )
  return new Set(rows.map(({ uri }) => uri))
}

/** These objects are there, and not among those that the listing counts: no version of them is gone. */
export async function noteShown(
  tx: Tx,
  { pipeline, generation }: Listing,
  uris: readonly string[],
): Promise<void> {
  await tx.run(
    `UPDATE ingest_shards SET bad_in = ? WHERE pipeline = ? AND state = 'bad' AND ${oneOf(tx, 'uri')}`,
    [generation, pipeline, JSON.stringify(uris)],
  )
}

/** It is in its bucket no more, and so no item that waits for anybody. Its code and its reason stay. Answers whether it was. */
export async function tellGone(
  tx: Tx,
  shard: ShardRow,
  { generation, nowMs }: { generation: number; nowMs: number },
): Promise<boolean> {
  const { pipeline, id } = shard
  const changed = await tx.run(
    `UPDATE ingest_shards SET state = 'gone', updated_at = ? WHERE pipeline = ? AND id = ? AND updated_at = ?
       AND state IN (${stateList(statesBefore('vanish'))}) AND COALESCE(bad_in, 0) < ? AND COALESCE(listing, 0) < ?`,
    [Math.max(nowMs, shard.updated_at + 1), pipeline, id, shard.updated_at, generation, generation],
  )
  if (changed !== 1) return false
  await forgetBadItem(tx, { stream: streamOf(pipeline), kind: OBJECT_KIND, item: itemOf(shard) })
  return true
}

/** Its records are hidden until its end from now on. */
export async function stageShard(tx: Tx, { pipeline, id }: Pick<ShardRow, 'pipeline' | 'id'>): Promise<void> {
  await tx.run(`UPDATE ingest_shards SET is_staged = 1 WHERE pipeline = ? AND id = ?`, [pipeline, id])
}

/**
 * In the transaction in which the job of a shard ends. Whoever opens it while that job is there gets no other by its key:
 * either this sees it open, or he finds the key free. Without a lock: he has the shard's, and waits for the job's.
 */
export async function refuseOpen(
  tx: Tx,
  { pipeline, id, uri }: Pick<ShardRow, 'pipeline' | 'id' | 'uri'>,
): Promise<void> {
  const open = await tx.get(
    `SELECT 1 AS n FROM ingest_shards WHERE pipeline = ? AND id = ? AND state = 'open'`,
    [pipeline, id],
  )
  if (open) throw lostShard({ uri })
}

/** In the transaction in which there turns out to be nothing to dispose of, for the same reason: it may be stored anew. */
export async function refuseUndisposed(
  tx: Tx,
  { pipeline, id, uri }: Pick<ShardRow, 'pipeline' | 'id' | 'uri'>,
): Promise<void> {
  const undone = await tx.get(
    `SELECT 1 AS n FROM ingest_shards WHERE pipeline = ? AND id = ? AND state = 'stored' AND disposed IS NULL`,
    [pipeline, id],
  )
  if (undone) throw lostShard({ uri })
}

/** In the transaction in which a sweep ends, for the same reason. */
export async function refuseReplaced(tx: Tx, pipeline: string): Promise<void> {
  const left = await tx.get(
    `SELECT 1 AS n FROM ingest_shards WHERE pipeline = ? AND state = 'skipped' AND published > 0 LIMIT 1`,
    [pipeline],
  )
  if (!left) return
  throw new TidemarkError('Another object was replaced meanwhile.', {
    // Goes on at once, which costs no try.
    kind: 'throttled',
    code: 'replaced-meanwhile',
    retryAfterMs: 0,
  })
}

/** So many records of it have left the index. */
export async function noteRemoved(
  tx: Tx,
  { pipeline, id }: Pick<ShardRow, 'pipeline' | 'id'>,
  count: number | 'all',
): Promise<void> {
  const left = count === 'all' ? '0' : `CASE WHEN published > ${count} THEN published - ${count} ELSE 0 END`
  await tx.run(`UPDATE ingest_shards SET published = ${left} WHERE pipeline = ? AND id = ?`, [pipeline, id])
}

/** Nothing more is done with these; `done` is what tagged ones were called before. */
export const DISPOSED: ReadonlySet<string> = new Set(['done', 'tagged', 'moved', 'deleted'])

/** Of these, and on the way to them: those that are in their store no more, or will not be. */
export const TAKEN_AWAY: ReadonlySet<string> = new Set(['moving', 'moved', 'deleting', 'deleted'])

/** `how`: one of these, `moving` or `deleting`, or why the object was left where it is. `to`: where its bytes are. `shownAtMs`: see ShardRow. */
export type Disposed = { how: string; to?: string; version?: string; shownAtMs?: number }

/** Where its bytes are is never forgotten, whatever comes after. */
export async function noteDisposed(
  tx: Tx,
  { pipeline, id }: Pick<ShardRow, 'pipeline' | 'id'>,
  { how, to, version, shownAtMs }: Disposed,
): Promise<void> {
  await tx.run(
    `UPDATE ingest_shards SET disposed = ?, disposed_to = COALESCE(?, disposed_to),
       disposed_version = COALESCE(?, disposed_version), shown_at = COALESCE(?, shown_at)
     WHERE pipeline = ? AND id = ?`,
    [how, to ?? null, version ?? null, shownAtMs ?? null, pipeline, id],
  )
}

/**
 * What nobody needs any more, settled long ago, and not in the last listing, of whose books it would be missing:
 *
 * - skipped ones without records.
 * - stored ones with records, which are known by these from now on. Not where versions replace each other: the records
 *   alone do not tell of which object they are, and the next version could not take their place.
 *
 * Nor do those go that tell where the bytes of an object are that was moved or deleted. The pipeline counts them on.
 */
export async function pruneShards(
  tx: Tx,
  { pipeline, overwrites, beforeMs, limit }: Pruning,
): Promise<number> {
  const skipped = await prunable(tx, `s.state = 'skipped' AND s.published = 0`, { pipeline, beforeMs, limit })
  const left = limit - skipped.length
  const isWhole = `s.state = 'stored' AND s.eof = 1 AND s.published > 0 AND s.quarantined = 0`
  const stored =
    overwrites === 'append' && left > 0
      ? await prunable(tx, isWhole, { pipeline, beforeMs, limit: left })
      : []
  const rows = [...skipped, ...stored]
  if (rows.length === 0) return 0
  const ids = JSON.stringify(rows.map(({ id }) => id))
  for (const [table, column] of [
    ['ingest_quarantine', 'shard'],
    ['ingest_shards', 'id'],
  ] as const) {
    await tx.run(`DELETE FROM ${table} WHERE pipeline = ? AND ${oneOf(tx, column)}`, [pipeline, ids])
  }
  const older = skipped.filter(({ code }) => code === 'older').length
  const records = stored.reduce((all, { published }) => all + published, 0)
  await tx.run(
    `UPDATE ingest_pipelines SET pruned = pruned + ?, pruned_records = pruned_records + ?,
       pruned_older = pruned_older + ?, pruned_replaced = pruned_replaced + ? WHERE name = ?`,
    [stored.length, records, older, skipped.length - older, pipeline],
  )
  return rows.length
}

type Pruning = { pipeline: string; overwrites: 'replace' | 'append'; beforeMs: number; limit: number }
type Prunable = Pick<ShardRow, 'id' | 'code' | 'published'>

/**
 * Locked: one that is announced again at the same time is either kept, or found to be gone. What others have locked is
 * left for the next time: these are found in an order in which nobody else locks them.
 */
function prunable(
  tx: Tx,
  condition: string,
  { pipeline, beforeMs, limit }: Omit<Pruning, 'overwrites'>,
): Promise<Prunable[]> {
  return tx.all<Prunable>(
    `SELECT s.id, s.code, s.published FROM ingest_shards s WHERE s.pipeline = ? AND ${condition} AND s.settled_at < ?
       AND s.disposed_to IS NULL
       AND (s.listing IS NULL OR s.listing < COALESCE(
         (SELECT p.listed_generation FROM ingest_pipelines p WHERE p.name = s.pipeline), s.listing + 1))
     ORDER BY s.settled_at LIMIT ? ${tx.dialect === 'postgres' ? 'FOR UPDATE OF s SKIP LOCKED' : ''}`,
    [pipeline, beforeMs, limit],
  )
}
