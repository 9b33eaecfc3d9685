/**
 * The states of a shard, and what moves it from one to another. Pure; every cell is tested.
 *
 *              take · publish
 *                 ┌───┐
 *   announce ──▶ open ──end──▶ stored ──replace──▶ skipped
 *                 │ ▲             ▲                   │
 *                 │ ├─── retry ─ bad ◀─fail           │
 *                 │ └─── retry ─ gone ◀─vanish─ bad   │
 *                 └──skip──▶ skipped ──reopen──▶ open ┘
 *
 * - open: its records are on their way. Whoever has its token publishes.
 * - stored: read to the end; all its records are in the index, or in quarantine.
 * - skipped: nothing of it is wanted: older than what is there, or replaced by something newer.
 * - bad: it could not be read, or not to its end. What was read before stays.
 * - gone: it was bad, and is in its bucket no more. What was known of it stays.
 */

export const SHARD_STATES = ['open', 'stored', 'skipped', 'bad', 'gone'] as const
export type ShardState = (typeof SHARD_STATES)[number]

export const SHARD_EVENTS = [
  'take',
  'publish',
  'end',
  'skip',
  'fail',
  'retry',
  'replace',
  'reopen',
  'vanish',
] as const
/**
 * - take: a job makes it its own, by a new token. publish: a batch and the position behind it.
 * - end: the last batch. skip, fail: it ends without that.
 * - retry: somebody asks for a bad one again, or it is put there anew; it goes on at its position.
 * - replace: a newer version of the same object is stored.
 * - reopen: what was replaced is announced anew, as the newest. It is read from its beginning.
 * - vanish: a complete listing, begun after it was bad, does not show it.
 */
export type ShardEvent = (typeof SHARD_EVENTS)[number]

const TRANSITIONS: Readonly<Record<ShardState, Partial<Record<ShardEvent, ShardState>>>> = {
  open: {
    take: 'open',
    publish: 'open',
    end: 'stored',
    skip: 'skipped',
    fail: 'bad',
    replace: 'skipped',
  },
  stored: { replace: 'skipped' },
  skipped: { reopen: 'open' },
  bad: { retry: 'open', replace: 'skipped', vanish: 'gone' },
  gone: { retry: 'open', replace: 'skipped' },
}

/** Undefined where the event has no place in that state. */
export function nextState(state: ShardState, event: ShardEvent): ShardState | undefined {
  return TRANSITIONS[state][event]
}

/** From which states an event leads on: for the condition of the statement that makes the transition. */
export function statesBefore(event: ShardEvent): ShardState[] {
  return SHARD_STATES.filter((state) => nextState(state, event) !== undefined)
}

/** It needs nothing more: a message about it can be acknowledged. */
export function isSettled(state: ShardState): boolean {
  return state !== 'open'
}

/** Why a shard is skipped. */
export type SkipCode = 'older' | 'replaced' | 'before-start'
