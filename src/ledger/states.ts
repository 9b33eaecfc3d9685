/**
 * The state machines of jobs and segments: every state × every event, as data. The ledger asks here
 * before it writes; docs/states.md draws the same tables; states.test.ts checks every cell.
 *
 * A *pending* job is ready unless `wait` says for what it waits: `deps` or `time`. Readiness is stored,
 * so that a claim never looks at a job it cannot take.
 */
export const JOB_STATES = ['pending', 'claimed', 'done', 'failed', 'canceled', 'skipped'] as const
export type JobState = (typeof JOB_STATES)[number]

/** Where a job is counted: its state, with pending told apart by what it waits for. */
export const STAGES = ['ready', 'deps', 'time', 'claimed', 'done', 'failed', 'canceled', 'skipped'] as const
export type Stage = (typeof STAGES)[number]

/** What a worker reports at the end of (or during) its lease. */
export type Settling = 'succeed' | 'skip' | 'retry' | 'postpone' | 'fail' | 'stop' | 'continue'

export const JOB_EVENTS = [
  'unblock', // its last dependency settled
  'fall-due', // its start time came
  'claim', // a worker takes it
  'continue', // its handler commits part of its work and goes on
  'succeed', // its handler returned an outcome
  'skip', // nothing (more) to do: gone, isolated as bad, or split into other jobs
  'retry', // it failed and has budget left
  'postpone', // interrupted or throttled: costs no attempt
  'fail', // it failed for good
  'cancel', // someone asked to stop it
  'stop', // its handler has stopped after a cancel
  'reclaim', // its owner is gone
  'fail-dep', // a dependency failed, and the kind says: fail
  'cancel-dep', // a dependency failed, and the kind says: cancel
  'redo', // someone asked to try again
] as const
export type JobEvent = (typeof JOB_EVENTS)[number]

/** `refused`: the event means nothing in this state, the write must change no row. */
export type Cell<State> = State | 'refused'

/** Settled jobs need nothing more. A failed job may still be retried, so it is not settled. */
export const SETTLED: ReadonlySet<JobState> = new Set(['done', 'canceled', 'skipped'])

const refuseAll = Object.fromEntries(JOB_EVENTS.map((event) => [event, 'refused'])) as Record<
  JobEvent,
  'refused'
>

export const JOB_TRANSITIONS: Record<JobState, Record<JobEvent, Cell<JobState>>> = {
  pending: {
    ...refuseAll,
    unblock: 'pending',
    'fall-due': 'pending',
    claim: 'claimed',
    cancel: 'canceled',
    'fail-dep': 'failed',
    'cancel-dep': 'canceled',
  },
  claimed: {
    ...refuseAll,
    continue: 'claimed',
    succeed: 'done',
    skip: 'skipped',
    retry: 'pending',
    postpone: 'pending',
    fail: 'failed',
    cancel: 'claimed', // the request is noted; it ends with `stop`
    stop: 'canceled',
    reclaim: 'pending',
  },
  done: { ...refuseAll },
  failed: { ...refuseAll, cancel: 'canceled', redo: 'pending' },
  canceled: { ...refuseAll, redo: 'pending' },
  skipped: { ...refuseAll },
}

export const SEGMENT_STATES = ['open', 'sealed', 'settled'] as const
export type SegmentState = (typeof SEGMENT_STATES)[number]

export const SEGMENT_EVENTS = [
  'list', // items were found
  'count', // items were stored, gone, skipped or isolated as bad
  'add-job', // work for it was enqueued
  'split', // its rest becomes a segment of its own
  'seal', // everything that belongs to it is listed
  'settle', // its last job settled and the counts agree
  'mend', // an item isolated as bad was stored after all
] as const
export type SegmentEvent = (typeof SEGMENT_EVENTS)[number]

export const SEGMENT_TRANSITIONS: Record<SegmentState, Record<SegmentEvent, Cell<SegmentState>>> = {
  open: {
    list: 'open',
    count: 'open',
    'add-job': 'open',
    split: 'open',
    seal: 'sealed',
    settle: 'refused',
    mend: 'open',
  },
  sealed: {
    list: 'refused',
    count: 'sealed',
    'add-job': 'sealed', // the halves of a split batch
    split: 'refused',
    seal: 'refused',
    settle: 'settled',
    mend: 'sealed',
  },
  settled: {
    list: 'refused',
    count: 'refused',
    'add-job': 'refused',
    split: 'refused',
    seal: 'refused',
    settle: 'refused',
    mend: 'settled',
  },
}

export const nextJobState = (state: JobState, event: JobEvent): Cell<JobState> =>
  JOB_TRANSITIONS[state][event]

export const nextSegmentState = (state: SegmentState, event: SegmentEvent): Cell<SegmentState> =>
  SEGMENT_TRANSITIONS[state][event]

export function stageOf(state: JobState, wait: 'deps' | 'time' | null): Stage {
  return state === 'pending' ? (wait ?? 'ready') : state
}
