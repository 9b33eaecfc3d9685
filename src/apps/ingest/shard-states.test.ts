import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  isSettled,
  nextState,
  SHARD_EVENTS,
  SHARD_STATES,
  type ShardEvent,
  type ShardState,
  statesBefore,
} from './shard-states.ts'

/** '-' where the event has no place. */
const TABLE: Record<ShardState, Record<ShardEvent, ShardState | '-'>> = {
  open: {
    take: 'open',
    publish: 'open',
    end: 'stored',
    skip: 'skipped',
    fail: 'bad',
    retry: '-',
    replace: 'skipped',
    reopen: '-',
    vanish: '-',
  },
  stored: {
    take: '-',
    publish: '-',
    end: '-',
    skip: '-',
    fail: '-',
    retry: '-',
    replace: 'skipped',
    reopen: '-',
    vanish: '-',
  },
  skipped: {
    take: '-',
    publish: '-',
    end: '-',
    skip: '-',
    fail: '-',
    retry: '-',
    replace: '-',
    reopen: 'open',
    vanish: '-',
  },
  bad: {
    take: '-',
    publish: '-',
    end: '-',
    skip: '-',
    fail: '-',
    retry: 'open',
    replace: 'skipped',
    reopen: '-',
    vanish: 'gone',
  },
  gone: {
    take: '-',
    publish: '-',
    end: '-',
    skip: '-',
    fail: '-',
    retry: 'open',
    replace: 'skipped',
    reopen: '-',
    vanish: '-',
  },
}

describe('a shard', () => {
  for (const state of SHARD_STATES) {
    for (const event of SHARD_EVENTS) {
      const next = TABLE[state][event]
      test(`that is ${state}: ${event} ${next === '-' ? 'has no place' : `makes it ${next}`}`, () => {
        assert.equal(nextState(state, event) ?? '-', next)
      })
    }
  }

  test('publishes nothing more once it is settled', () => {
    assert.deepEqual(statesBefore('publish'), ['open'])
    assert.deepEqual(SHARD_STATES.filter(isSettled), ['stored', 'skipped', 'bad', 'gone'])
  })
})
