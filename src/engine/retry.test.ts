import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type ErrorKind, TidemarkError } from '../base/errors.ts'
import { BACKOFF_MAX_MS, backoffMs, type Decision, decide, type Failing } from './retry.ts'

const single: Failing = { failures: 0, attempts: 5, items: 1, splittable: true, hasStream: true }
const batch: Failing = { ...single, items: 300 }
const plain: Failing = { ...single, splittable: false, items: 0 }
const spent = { failures: 4 }
const error = (kind: ErrorKind, retryAfterMs?: number): TidemarkError =>
  new TidemarkError('x', { kind, retryAfterMs })
const half = (): number => 0.5

describe('retry', () => {
  // kind of error → what happens to [a batch, one item, a job without items] with budget, and without.
  const table: Record<ErrorKind, { fresh: Decision['act'][]; spent: Decision['act'][] }> = {
    transient: { fresh: ['retry', 'retry', 'retry'], spent: ['split', 'isolate', 'fail'] },
    bug: { fresh: ['retry', 'retry', 'retry'], spent: ['split', 'isolate', 'fail'] },
    throttled: { fresh: ['postpone', 'postpone', 'postpone'], spent: ['postpone', 'postpone', 'postpone'] },
    auth: { fresh: ['postpone', 'postpone', 'postpone'], spent: ['postpone', 'postpone', 'postpone'] },
    gone: { fresh: ['split', 'gone', 'gone'], spent: ['split', 'gone', 'gone'] },
    permanent: { fresh: ['split', 'isolate', 'fail'], spent: ['split', 'isolate', 'fail'] },
  }
  for (const [kind, expected] of Object.entries(table)) {
    test(`every cell of ${kind} × (batch, item, plain job) × budget`, () => {
      const acts = (more: object): string[] =>
        [batch, single, plain].map((job) => decide({ ...job, ...more }, error(kind as ErrorKind), half).act)
      assert.deepEqual(acts({}), expected.fresh)
      assert.deepEqual(acts(spent), expected.spent)
    })
  }

  test('retry-after is honoured, and is the least for a retry', () => {
    assert.deepEqual(decide(single, error('throttled', 7_000), half), {
      act: 'postpone',
      afterMs: 7_000,
      pauseStream: false,
    })
    assert.deepEqual(decide(single, error('transient', 60_000), half), { act: 'retry', afterMs: 60_000 })
  })

  test('an auth error without a stream to pause costs attempts, so that it ends', () => {
    assert.equal(decide({ ...plain, hasStream: false, ...spent }, error('auth'), half).act, 'fail')
  })

  test('halves of a batch with an unclassified fault get two tries, all others a full budget', () => {
    assert.deepEqual(decide({ ...batch, ...spent }, error('bug'), half), { act: 'split', failures: 3 })
    for (const kind of ['permanent', 'transient'] as const) {
      assert.deepEqual(decide({ ...batch, ...spent }, error(kind), half), { act: 'split', failures: 0 })
    }
  })

  test('full jitter: backoff lies between 0 and the exponential bound, which is capped', () => {
    fc.assert(
      fc.property(fc.nat(1_000), fc.double({ min: 0, max: 0.999999, noNaN: true }), (failures, chance) => {
        const ms = backoffMs(failures, () => chance)
        assert.ok(ms >= 0 && ms <= Math.min(BACKOFF_MAX_MS, 1_000 * 2 ** Math.min(failures, 20)))
      }),
    )
  })
})
