/** Plans a run: its candidates into the journal, page by page; a plan that was interrupted goes on where it was. */
import { z } from 'zod'
import { type Outcome, type RunContext, request } from '../../../engine/index.ts'
import type { RunRow } from '../store/journal.ts'
import { addEntries, endPlanning, notePlanned } from '../store/journal-writes.ts'
import { addPassedOver, candidatePages, Place } from './candidates.ts'
import { messageStanding } from './examination.ts'
import type { CleanUpKinds, PlanPayload } from './kinds.ts'
import { selectionOf } from './selection.ts'

/**
 * A batch is one call. Gmail takes 1,000 ids, but proving that many takes a while, and before a deletion reading their
 * state takes 20 units each and so minutes; with 200 it is fresh when the call is made.
 */
const BATCH_MESSAGES = 200

const Progress = z.object({
  place: Place.nullable(),
  planned: z.number(),
  passedOver: z.record(
    z.string(),
    z.object({ messages: z.number(), bytes: z.number(), example: z.string().optional() }),
  ),
  unsearched: z.array(z.string()),
})
type Progress = z.output<typeof Progress>

export async function planRun(kinds: CleanUpKinds, job: RunContext<PlanPayload>): Promise<Outcome> {
  const journal = await kinds.journal()
  const run = await journal.run(job.payload.run)
  if (run?.state !== 'planning') return { skip: `the run is ${run?.state ?? 'unknown'}` }
  const state = Progress.nullable().parse(job.checkpoint) ?? {
    place: null,
    planned: 0,
    passedOver: {},
    unsearched: [],
  }
  await collect(kinds, job, run, state)
  return outcomeOf(kinds, run, state)
}

async function collect(
  kinds: CleanUpKinds,
  job: RunContext<PlanPayload>,
  run: RunRow,
  state: Progress,
): Promise<void> {
  const account = await kinds.accounts.get(run.account)
  const selection = await selectionOf(kinds, run)
  const standing = await messageStanding(kinds, account)
  const max = run.messagesMax ?? Number.POSITIVE_INFINITY
  if (state.planned >= max) return
  for await (const page of candidatePages(account.archive, selection, standing, state.place)) {
    job.signal.throwIfAborted()
    const before = state.planned
    const taken = page.candidates.slice(0, max - before)
    Object.assign(state, {
      place: page.next,
      planned: before + taken.length,
      passedOver: addPassedOver(state.passedOver, page.passedOver),
      unsearched: [...new Set([...state.unsearched, ...page.unsearched])],
    })
    const entries = taken.map((candidate, at) => ({ ...candidate, batch: batchOf(before + at) }))
    await job.commit({ effects: (tx) => addEntries(tx, run.id, entries), checkpoint: state })
    job.progress({ done: state.planned, unit: 'items' })
    // A place of null would begin again from the start.
    if (state.planned >= max || page.next === null) return
  }
}

function outcomeOf({ batch, clock }: CleanUpKinds, run: RunRow, state: Progress): Outcome {
  const batches = run.approved && state.planned > 0 ? batchOf(state.planned - 1) + 1 : 0
  return {
    effects: async (tx) => {
      await notePlanned(tx, run.id, state)
      await endPlanning(tx, run.id, clock.now())
    },
    // Should the run have been stopped meanwhile, they find it waiting and end.
    jobs: Array.from({ length: batches }, (_, number) =>
      request(batch, { run: run.id, batch: number, do: 'act' }),
    ),
    note: `${state.planned} messages`,
  }
}

function batchOf(index: number): number {
  return Math.floor(index / BATCH_MESSAGES)
}
