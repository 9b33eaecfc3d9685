import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ClaimedJob } from '../ledger/contract.ts'
import { Window } from './window.ts'

let nextId = 1
function job(overrides: Partial<ClaimedJob> = {}): ClaimedJob {
  return {
    id: nextId++,
    kind: 'test.job',
    key: null,
    streamId: 0,
    segmentId: null,
    parentId: null,
    lane: 'interactive',
    priority: 0,
    payload: '{}',
    bytes: 2,
    size: null,
    items: 1,
    attempt: 1,
    failures: 0,
    checkpoint: null,
    badId: null,
    createdAt: 0,
    ...overrides,
  }
}
const jobs = (n: number, overrides: Partial<ClaimedJob> = {}): ClaimedJob[] =>
  Array.from({ length: n }, () => job(overrides))
const open = (): boolean => true

function takeAll(window: Window, isOpen: (job: ClaimedJob) => boolean = open): ClaimedJob[] {
  const taken: ClaimedJob[] = []
  for (let next = window.next(isOpen); next; next = window.next(isOpen)) taken.push(next)
  return taken
}

describe('window', () => {
  test('memory is bounded: room never lets it hold more than its maximum', () => {
    const window = new Window({ workers: 16, max: 10_000 })
    window.pace({ perSecond: 1_000_000, commitMs: 5 })
    for (let round = 0; round < 20; round++) {
      const room = window.room(open).jobs
      window.add(jobs(room.interactive))
      window.add(jobs(room.bulk, { lane: 'bulk' }))
      for (const taken of takeAll(window)) window.finished(taken)
      assert.ok(window.size <= 10_000, `${window.size} jobs`)
    }
  })

  test('it is refilled below half of its target, up to 80 % of it', () => {
    const window = new Window({ workers: 4, max: 1_000 })
    window.pace({ perSecond: 100_000, commitMs: 5 })
    assert.equal(window.target, 1_000)
    assert.deepEqual(window.room(open).jobs, { interactive: 400, bulk: 400 })
    window.add(jobs(251))
    assert.equal(window.room(open).jobs.interactive, 0)
    window.remove((waiting) => waiting.id === nextId - 1)
    assert.equal(window.room(open).jobs.interactive, 150)
  })

  test('a slow process claims only a little ahead, so that others find work', () => {
    const window = new Window({ workers: 16 })
    window.pace({ perSecond: 3, commitMs: 5 })
    assert.equal(window.target, 64)
  })

  test('large payloads shorten the window', () => {
    const window = new Window({ workers: 16 })
    window.pace({ perSecond: 100_000, commitMs: 5 })
    window.add(jobs(2, { bytes: 17 * 1024 * 1024 }))
    assert.deepEqual(window.room(open).jobs, { interactive: 0, bulk: 2_000 })
  })

  test("one stream's thousands do not delay another's ten", () => {
    const window = new Window({ workers: 8 })
    window.add(jobs(1_000, { streamId: 1 }))
    window.add(jobs(10, { streamId: 2 }))
    const order: number[] = []
    for (let i = 0; i < 40; i++) {
      const next = window.next(open)!
      order.push(next.streamId)
      window.finished(next)
    }
    assert.equal(order.filter((id) => id === 2).length, 10)
  })

  test('a stream gets no more than its share of workers while another one waits, and all of them when alone', () => {
    const window = new Window({ workers: 9 })
    window.add(jobs(50, { streamId: 1 }))
    assert.equal(takeAll(window).length, 8)
    const shared = new Window({ workers: 9 })
    shared.add(jobs(50, { streamId: 1 }))
    shared.add(jobs(50, { streamId: 2 }))
    const taken = takeAll(shared)
    assert.deepEqual(
      [1, 2].map((id) => taken.filter((t) => t.streamId === id).length),
      [4, 4],
    )
  })

  test('within a stream the highest priority comes first, then the oldest, over all kinds', () => {
    const window = new Window({ workers: 16 })
    const low = job({ kind: 'a.low' })
    const high = job({ kind: 'b.high', priority: 5 })
    const lower = job({ kind: 'b.high', priority: 1 })
    const old = job({ kind: 'a.low', priority: 1, id: 0 })
    window.add([low, high, lower, old])
    assert.deepEqual(
      takeAll(window).map((t) => t.id),
      [high.id, old.id, lower.id, low.id],
    )
  })

  test('jobs of a closed kind wait without holding up others of their stream', () => {
    const window = new Window({ workers: 16 })
    window.add([...jobs(5, { kind: 'a.closed', priority: 9 }), ...jobs(3, { kind: 'b.open' })])
    const taken = takeAll(window, (waiting) => waiting.kind === 'b.open')
    assert.equal(taken.length, 3)
    assert.equal(window.waiting.interactive, 5)
    assert.equal(takeAll(window).length, 5)
  })

  test('what is removed leaves no trace in the turns of the streams', () => {
    const window = new Window({ workers: 16 })
    window.add([...jobs(3, { streamId: 1 }), ...jobs(3, { streamId: 2 })])
    assert.equal(window.remove((waiting) => waiting.streamId === 1).length, 3)
    assert.deepEqual(
      takeAll(window).map((t) => t.streamId),
      [2, 2, 2],
    )
    assert.equal(window.next(open), undefined)
  })
})
