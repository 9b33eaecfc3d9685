/**
 * What outcomes and enqueues bring: effects, segments, jobs, counts, cursors.
 *
 * Several are written together, each step for all of them: the effects of all, then the segments of all, and so on. So
 * statements can be shared, or sent without waiting for each answer, and on PostgreSQL a round trip is what costs.
 */
import { UsageError } from '../base/errors.ts'
import type { Changes } from './changes.ts'
import type { ClaimedJob, Driver, EnqueueResult, Locks, NewJob, Tx, Work } from './contract.ts'
import { enqueueJobs } from './enqueue.ts'
import { addSegments, countSegments, splitSegments } from './frontier.ts'
import { guarded } from './guard.ts'
import { checkName } from './input-check.ts'

export type WriteContext = {
  tx: Tx
  driver: Driver
  changes: Changes
  now: number
  locks?: Locks
  /** See EffectOptions. */
  looksAhead?: boolean
}

/** `job`: whose outcome it is. */
export type Brought = { work: Work; job: ClaimedJob | null }

/** Told the place of the one that is being written, or nothing while several are. */
export type OnTurn = (place: number | undefined) => void

/** Jobs of several that go into one statement. */
const TOGETHER_MAX = 10_000
const NO_KIND = ''
const EFFECTS = 'the effects of an outcome'

export async function writeWork(ctx: WriteContext, work: Work): Promise<EnqueueResult[]> {
  const [results] = await writeWorks(ctx, [{ work, job: null }], () => {})
  return results!
}

/** The results in the order of `list`. What it throws is the fault of the one whose turn it was. */
export async function writeWorks(
  ctx: WriteContext,
  list: readonly Brought[],
  onTurn: OnTurn,
): Promise<EnqueueResult[][]> {
  await runEffects(ctx, list, onTurn)
  const refs = list.map(() => new Map<string, number>())
  for (const [place, { work }] of list.entries()) {
    if (!work.segments && !work.splits) continue
    onTurn(place)
    if (work.segments) await addSegments(ctx, work.segments, refs[place]!)
    if (work.splits) await splitSegments(ctx, work.splits, refs[place]!)
  }
  const jobs = list.map((brought, place) => {
    onTurn(place)
    for (const { value } of brought.work.cursors ?? []) checkName('The cursor of a stream', value)
    return placedJobs(brought, refs[place]!)
  })
  const results = await enqueueTogether(ctx, jobs, onTurn)
  for (const [place, { work }] of list.entries()) {
    onTurn(place)
    if (work.counts) countSegments(ctx.changes, work.counts, refs[place]!)
  }
  await moveCursors(ctx, list, onTurn)
  return results
}

async function runEffects(
  { tx, driver, looksAhead = false }: WriteContext,
  list: readonly Brought[],
  onTurn: OnTurn,
): Promise<void> {
  const places: number[] = []
  const effects = list.flatMap(({ work, job }, place) => {
    const run = work.effects
    if (!run) return []
    places.push(place)
    return [
      {
        kind: job?.kind ?? NO_KIND,
        run: (within: Tx) => guarded({ driver, tx: within, what: EFFECTS }, run),
      },
    ]
  })
  if (effects.length === 0) return
  await driver.runEffects(tx, effects, {
    onTurn: (index) => onTurn(index === undefined ? undefined : places[index]),
    looksAhead,
  })
}

/** With the segments by their ids. */
function placedJobs({ work, job: parent }: Brought, refs: ReadonlyMap<string, number>): NewJob[] {
  const { jobs = [], followUp } = work
  const placed = (job: NewJob, ref: string | undefined): NewJob => ({
    ...job,
    ref,
    segment: resolveSegment(job, refs),
    parentId: job.parentId ?? parent?.id ?? null,
  })
  if (!followUp) return jobs.map((job) => placed(job, job.ref))
  const named = jobs.map((job, index) => placed(job, job.ref ?? `child ${index}`))
  const after = [...(followUp.after ?? []), ...named.map((job) => job.ref!)]
  return [...named, { ...placed(followUp, followUp.ref), after }]
}

function resolveSegment({ segment }: NewJob, refs: ReadonlyMap<string, number>): number | null {
  if (segment == null || typeof segment === 'number') return segment ?? null
  const id = refs.get(segment)
  if (id === undefined) throw new UsageError(`No segment called ${segment} is added by this work.`)
  return id
}

/** Jobs that name others are enqueued on their own: refs are private, and an order among them is their own, too. */
async function enqueueTogether(
  ctx: WriteContext,
  lists: readonly NewJob[][],
  onTurn: OnTurn,
): Promise<EnqueueResult[][]> {
  const results: EnqueueResult[][] = lists.map(() => [])
  let places: number[] = []
  let count = 0
  const enqueue = async (): Promise<void> => {
    onTurn(places.length === 1 ? places[0] : undefined)
    const added =
      count > 0
        ? await enqueueJobs(
            ctx,
            places.flatMap((place) => lists[place]!),
          )
        : []
    let at = 0
    for (const place of places) {
      results[place] = added.slice(at, at + lists[place]!.length)
      at += lists[place]!.length
    }
    places = []
    count = 0
  }
  for (const [place, jobs] of lists.entries()) {
    const isAlone = jobs.some((job) => job.ref !== undefined || job.after?.length)
    if (isAlone || count + jobs.length > TOGETHER_MAX) await enqueue()
    places.push(place)
    count += jobs.length
    if (isAlone) await enqueue()
  }
  await enqueue()
  return results
}

/** Sent one behind the other; waited for together. */
async function moveCursors({ tx }: WriteContext, list: readonly Brought[], onTurn: OnTurn): Promise<void> {
  const moves = list.flatMap(({ work }, place) =>
    (work.cursors ?? []).map(({ value, streamId }) => ({
      place,
      streamId,
      moved: tx.run(`UPDATE streams SET cursor = ? WHERE id = ?`, [value, streamId]),
    })),
  )
  await Promise.allSettled(moves.map(({ moved }) => moved))
  for (const { place, streamId, moved } of moves) {
    onTurn(place)
    if ((await moved) === 0)
      throw new UsageError(`There is no stream with the id ${streamId}.`, { code: 'stream-unknown' })
  }
}
