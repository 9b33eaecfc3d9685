import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Lane } from '../ledger/contract.ts'
import { laneCapacity, mayStart, otherLane, reservedWorkers } from './window.ts'

describe('lanes', () => {
  test('each lane has max(2, total/8) reserved workers', () => {
    assert.deepEqual([5, 8, 16, 24, 64].map(reservedWorkers), [2, 2, 2, 3, 8])
  })

  test('with too few workers to reserve twice over, at least one stays shared', () => {
    assert.deepEqual([1, 2, 3, 4].map(reservedWorkers), [0, 0, 1, 1])
  })

  test('a lane with work waiting keeps its reserved workers from the other', () => {
    const load = { running: { interactive: 0, bulk: 14 }, waiting: { interactive: 1, bulk: 100 } }
    assert.equal(mayStart('bulk', 16, load), false)
    assert.equal(mayStart('interactive', 16, load), true)
  })

  test('an idle lane lends its workers, all but one', () => {
    const load = { running: { interactive: 0, bulk: 14 }, waiting: { interactive: 0, bulk: 100 } }
    assert.equal(laneCapacity('bulk', 16, load), 15)
  })

  test('a single worker serves whichever lane has work', () => {
    for (const lane of ['interactive', 'bulk'] as const) {
      const waiting = { interactive: 0, bulk: 0, [lane]: 1 }
      assert.equal(mayStart(lane, 1, { running: { interactive: 0, bulk: 0 }, waiting }), true)
    }
  })

  test('neither lane can starve the other: whatever arrives and ends, both lanes with work get workers', () => {
    const step = fc.record({
      what: fc.constantFrom('arrive', 'start', 'end'),
      lane: fc.constantFrom<Lane>('interactive', 'bulk'),
    })
    fc.assert(
      fc.property(fc.integer({ min: 5, max: 40 }), fc.array(step, { maxLength: 300 }), (total, steps) => {
        const running = { interactive: 0, bulk: 0 }
        const waiting = { interactive: 0, bulk: 0 }
        for (const { what, lane } of steps) {
          if (what === 'arrive') waiting[lane] += 3
          else if (what === 'end') running[lane] = Math.max(0, running[lane] - 1)
          else {
            for (const next of ['interactive', 'bulk'] as const) {
              while (waiting[next] > 0 && mayStart(next, total, { running, waiting })) {
                running[next] += 1
                waiting[next] -= 1
              }
            }
            for (const next of ['interactive', 'bulk'] as const) {
              assert.ok(running.interactive + running.bulk <= total)
              // Waiting although a worker is free happens only to keep a worker for the other lane.
              const free = total - running.interactive - running.bulk
              if (waiting[next] > 0) assert.ok(free <= reservedWorkers(total))
              // One worker was never lent, so a lane with work always runs at least one job.
              if (waiting[next] > 0)
                assert.ok(running[next] >= 1, `${next} starves behind ${otherLane(next)}`)
            }
          }
        }
      }),
    )
  })
})
