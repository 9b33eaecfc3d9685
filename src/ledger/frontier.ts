/**
 * The ordered frontier: segments of a stream settle in any order, the stream's mark moves in order.
 *
 * Invariants:
 * - segments of a stream lie end to end: each new one starts where the last one ended, so no stretch
 *   is ever left out, and a split cuts one in two without a gap
 * - a segment settles when it is sealed, its jobs are settled, and listed = stored + gone + skipped + bad
 * - the mark is the end of the settled stretch that begins at the stream's origin; it is written in
 *   the transaction that settles the segment, and only ever grows
 */
import { TidemarkError, UsageError } from '../base/errors.ts'
import { type Changes, forUpdate, oneOf, type SegmentDelta, sendEach } from './changes.ts'
import type { NewSegment, SegmentCount, SegmentRow, SegmentSplit, StreamRow, Tx } from './contract.ts'
import { statementChunks } from './dependencies.ts'
import { checkIndexed, checkName, checkWhole, storableText } from './input-check.ts'
import { nextSegmentState, type SegmentEvent } from './states.ts'

export type FrontierContext = { tx: Tx; changes: Changes; now: number }

export async function findStream(tx: Tx, name: string): Promise<StreamRow | undefined> {
  checkStreamName(name)
  return tx.get<StreamRow>(`SELECT * FROM streams WHERE name = ?`, [name])
}

export async function openStream(
  tx: Tx,
  name: string,
  { origin, now }: { origin: number; now: number },
): Promise<StreamRow> {
  checkStreamName(name)
  checkWhole(`The origin of ${name}`, origin)
  await tx.run(
    `INSERT INTO streams(name, mark_at, tail_at, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`,
    [name, origin, origin, now],
  )
  return (await findStream(tx, name))!
}

function checkStreamName(name: string): void {
  if (name === '') throw new UsageError('A stream needs a name.')
  checkIndexed('The name of a stream', name)
}

/** Appends segments to their streams; returns the ids by ref. */
export async function addSegments(
  { tx, now }: FrontierContext,
  segments: readonly NewSegment[],
  refs: Map<string, number>,
): Promise<void> {
  const streams = new Map<number, Tail>()
  for (const segment of segments) {
    const { streamId } = segment
    const stream = streams.get(streamId) ?? (await lockTail(tx, streamId))
    streams.set(streamId, stream)
    checkNext(stream, segment)
    stream.tail_at = segment.to
  }
  const ids = await sendEach(tx, segments, (segment) => insertSegment(tx, segment, now))
  await sendEach(tx, [...streams], ([id, { tail_at }]) =>
    tx.run(`UPDATE streams SET tail_at = ? WHERE id = ?`, [tail_at, id]),
  )
  for (const [at, { ref }] of segments.entries()) if (ref !== undefined) refs.set(ref, ids[at]!)
}

/** Where the last segment of a stream ends. */
type Tail = { name: string; tail_at: number }

async function lockTail(tx: Tx, streamId: number): Promise<Tail> {
  const sql = `SELECT name, tail_at FROM streams WHERE id = ?${forUpdate(tx)}`
  const stream = await tx.get<Tail>(sql, [streamId])
  if (!stream) throw new UsageError(`There is no stream with the id ${streamId}.`, { code: 'stream-unknown' })
  return stream
}

function checkNext({ name, tail_at }: Tail, { from, to, mark }: NewSegment): void {
  if (from !== tail_at) {
    throw new UsageError(
      `A segment of ${name} must start at ${tail_at}, where the last one ends, not at ${from}.`,
      { code: 'segment-gap' },
    )
  }
  checkWhole(`The end of a segment of ${name}`, to)
  if (to <= from) throw new UsageError(`A segment of ${name} is empty: ${from} to ${to}.`)
  if (mark != null) checkName(`The mark of a segment of ${name}`, mark)
}

export async function splitSegments(
  { tx, now }: FrontierContext,
  splits: readonly SegmentSplit[],
  refs: Map<string, number>,
): Promise<void> {
  for (const split of splits) {
    const whole = await lockSegment(tx, split.segmentId)
    assertMove(whole, 'split')
    checkWhole(`The place at which segment #${whole.id} is split`, split.at)
    if (split.mark != null) checkName(`The mark of segment #${whole.id}`, split.mark)
    if (split.at <= whole.from_at || split.at >= whole.to_at) {
      throw new UsageError(
        `Segment #${whole.id} covers ${whole.from_at} to ${whole.to_at}; it cannot be split at ${split.at}.`,
      )
    }
    await tx.run(`UPDATE segments SET to_at = ?, mark = ? WHERE id = ?`, [
      split.at,
      split.mark ?? null,
      whole.id,
    ])
    const rest = {
      streamId: whole.stream_id,
      from: split.at,
      to: whole.to_at,
      mark: whole.mark,
      label: whole.label,
    }
    const id = await insertSegment(tx, rest, now)
    if (split.ref !== undefined) refs.set(split.ref, id)
  }
}

async function insertSegment(tx: Tx, segment: NewSegment, now: number): Promise<number> {
  const row = await tx.get<{ id: number }>(
    `INSERT INTO segments(stream_id, from_at, to_at, mark, label, created_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
    [
      segment.streamId,
      segment.from,
      segment.to,
      segment.mark ?? null,
      segment.label == null ? null : storableText(segment.label),
      now,
    ],
  )
  return row!.id
}

export function countSegments(
  changes: Changes,
  counts: readonly SegmentCount[],
  refs: ReadonlyMap<string, number>,
): void {
  for (const count of counts) {
    const id = typeof count.segment === 'number' ? count.segment : refs.get(count.segment)
    if (id === undefined) throw new UsageError(`No segment called ${count.segment} is added by this work.`)
    for (const name of ['listed', 'stored', 'gone', 'skipped'] as const)
      if (count[name] !== undefined) checkWhole(`${name} of segment ${count.segment}`, count[name])
    const delta = changes.segment(id)
    delta.listed += count.listed ?? 0
    delta.stored += count.stored ?? 0
    delta.gone += count.gone ?? 0
    delta.skipped += count.skipped ?? 0
    if (count.seal) delta.seal = true
  }
}

/** Writes the deltas of all touched segments, settles those that are complete, and moves the marks. */
export async function applySegments(ctx: FrontierContext): Promise<void> {
  const { tx, changes } = ctx
  const streams = new Set<number>()
  const deltas = [...changes.segments].sort((a, b) => a[0] - b[0])
  const rows = await lockSegments(
    tx,
    deltas.map(([id]) => id),
  )
  const changed: SegmentRow[] = []
  for (const [at, [, delta]] of deltas.entries()) {
    const before = rows[at]!
    skipLeft(before, delta)
    for (const event of deltaEvents(delta)) assertMove(before, event)
    if (before.state === 'settled') continue // what came and went within this transaction
    const after = withDelta(before, delta)
    const due = after.state === 'sealed' && after.open_jobs === 0
    const balanced = after.listed === after.stored + after.gone + after.skipped + after.bad
    if (due && balanced) {
      after.state = 'settled'
      streams.add(after.stream_id)
    } else if (due) changes.unbalanced.push(after)
    changed.push(after)
  }
  await sendEach(tx, changed, (after) => writeSegment(ctx, after))
  changes.segments.clear()
  for (const streamId of [...streams].sort((a, b) => a - b)) await moveMark(ctx, streamId)
}

function writeSegment({ tx, now }: FrontierContext, after: SegmentRow): Promise<number> {
  return tx.run(
    `UPDATE segments SET state = ?, open_jobs = ?, listed = ?, stored = ?, gone = ?, skipped = ?, bad = ?, settled_at = ?
     WHERE id = ?`,
    [
      ...[after.state, after.open_jobs, after.listed, after.stored, after.gone, after.skipped, after.bad],
      after.state === 'settled' ? now : null,
      after.id,
    ],
  )
}

/** As far as they were listed, and the job that had them has not counted them itself. Only here all of it is known. */
function skipLeft(before: SegmentRow, delta: SegmentDelta): void {
  const open = (of: Omit<SegmentDelta, 'jobs' | 'left' | 'seal'>): number =>
    of.listed - of.stored - of.gone - of.skipped - of.bad
  delta.skipped += Math.max(0, Math.min(delta.left, open(before) + open(delta)))
  delta.left = 0
}

function deltaEvents(delta: SegmentDelta): SegmentEvent[] {
  const events: SegmentEvent[] = []
  if (delta.listed !== 0) events.push('list')
  if (delta.jobs > 0) events.push('add-job')
  if (delta.stored || delta.gone || delta.skipped || delta.bad || delta.jobs < 0) events.push('count')
  if (delta.seal) events.push('seal')
  return events
}

function withDelta(before: SegmentRow, delta: SegmentDelta): SegmentRow {
  const after = {
    ...before,
    state: delta.seal ? ('sealed' as const) : before.state,
    open_jobs: before.open_jobs + delta.jobs,
    listed: before.listed + delta.listed,
    stored: before.stored + delta.stored,
    gone: before.gone + delta.gone,
    skipped: before.skipped + delta.skipped,
    bad: before.bad + delta.bad,
  }
  const accounted = after.stored + after.gone + after.skipped + after.bad
  if (after.open_jobs < 0 || Math.min(after.listed, after.stored, after.gone, after.skipped, after.bad) < 0) {
    throw new TidemarkError(`Segment #${before.id} would count below zero.`, { kind: 'bug' })
  }
  if (after.state === 'sealed' && accounted > after.listed) {
    throw new TidemarkError(
      `Segment #${before.id} would account for ${accounted} items, but only ${after.listed} were listed.`,
      {
        kind: 'bug',
        code: 'segment-overcount',
      },
    )
  }
  return after
}

/**
 * The lock comes first, in a statement of its own: a process that waited for it then sees what the
 * other one settled. (Looking first would let two processes each miss the other's segment.)
 */
async function moveMark({ tx, changes, now }: FrontierContext, streamId: number): Promise<void> {
  const stream = await tx.get<{ mark_at: number; tail_at: number }>(
    `SELECT mark_at, tail_at FROM streams WHERE id = ?${forUpdate(tx)}`,
    [streamId],
  )
  const first = await tx.get<{ from_at: number }>(
    `SELECT from_at FROM segments WHERE stream_id = ? AND state <> 'settled' ORDER BY from_at LIMIT 1`,
    [streamId],
  )
  const position = first ? first.from_at : stream!.tail_at
  if (position <= stream!.mark_at) return
  const last = await tx.get<{ mark: string | null; to_at: number }>(
    `SELECT mark, to_at FROM segments WHERE stream_id = ? AND from_at < ? ORDER BY from_at DESC LIMIT 1`,
    [streamId, position],
  )
  const mark = last!.mark ?? String(position)
  await tx.run(`UPDATE streams SET mark = ?, mark_at = ?, moved_at = ? WHERE id = ? AND mark_at < ?`, [
    mark,
    position,
    now,
    streamId,
    position,
  ])
  changes.marks.push({ streamId, mark, position })
}

async function lockSegment(tx: Tx, id: number): Promise<SegmentRow> {
  const [row] = await lockSegments(tx, [id])
  return row!
}

/** In the order of `ids`, which is ascending: two processes never lock the same rows crosswise. */
async function lockSegments(tx: Tx, ids: readonly number[]): Promise<SegmentRow[]> {
  const found = new Map<number, SegmentRow>()
  for (const part of statementChunks(tx, ids)) {
    const among = oneOf(tx, part)
    const rows = await tx.all<SegmentRow>(
      `SELECT * FROM segments WHERE id ${among.sql} ORDER BY id${forUpdate(tx)}`,
      among.params,
    )
    for (const row of rows) found.set(row.id, row)
  }
  return ids.map((id) => {
    const row = found.get(id)
    if (!row) throw new UsageError(`There is no segment #${id}.`, { code: 'segment-unknown' })
    return row
  })
}

function assertMove(segment: SegmentRow, event: SegmentEvent): void {
  if (nextSegmentState(segment.state, event) !== 'refused') return
  throw new TidemarkError(
    `Segment #${segment.id} is ${segment.state}: it cannot ${event.replace('-', ' ')}.`,
    {
      kind: 'bug',
      code: 'segment-refused',
    },
  )
}
