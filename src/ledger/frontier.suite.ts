/** The contract of streams: segments that lie end to end, settle in any order, and marks that move in order. */
import assert from 'node:assert/strict'
import { UsageError } from '../base/errors.ts'
import type { ClaimedJob, MarkMove, NewJob, SegmentCount } from './contract.ts'
import type { Home } from './home.suite.ts'
import { type LedgerFixture, type LedgerTest, plain } from './ledger-fixture.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

type Laid = { streamId: number; segments: number[]; jobs: ClaimedJob[] }

/** Segments of length 10 from 0 on, each sealed with one item and one claimed job. */
async function lay(fixture: LedgerFixture, n: number): Promise<Laid> {
  const streamId = await fixture.stream()
  const segments: number[] = []
  for (let at = 0; at < n; at++) segments.push(await fixture.segment(streamId, at * 10, at * 10 + 10))
  await fixture.write({
    counts: segments.map((segment) => ({ segment, listed: 1, seal: true })),
    jobs: segments.map((segment) => job({ streamId, segment })),
  })
  const claimed = await fixture.claim()
  const jobs = segments.map((segment) => claimed.find((one) => one.segmentId === segment)!)
  return { streamId, segments, jobs }
}

async function store(
  fixture: LedgerFixture,
  claimed: ClaimedJob,
  counts: Omit<SegmentCount, 'segment'> = { stored: 1 },
): Promise<MarkMove[]> {
  const work = { counts: [{ segment: claimed.segmentId!, ...counts }] }
  const { marks } = await fixture.cycle({ settle: [{ job: claimed, event: 'succeed', work }] })
  return marks.map((one) => ({ ...one }))
}

export function frontierContract(test: LedgerTest, home: Home): void {
  test('a mark waits for the first unsettled segment although later ones have settled', async (fixture) => {
    const { streamId, jobs } = await lay(fixture, 4)
    assert.deepEqual(await store(fixture, jobs[2]!), [])
    assert.deepEqual(await store(fixture, jobs[1]!), [])
    assert.deepEqual(await fixture.mark(streamId), { mark: null, mark_at: 0 })
    assert.deepEqual(await store(fixture, jobs[0]!), [{ streamId, mark: '30', position: 30 }])
    assert.deepEqual(await store(fixture, jobs[3]!), [{ streamId, mark: '40', position: 40 }])
    assert.deepEqual(await fixture.mark(streamId), { mark: '40', mark_at: 40 })
  })

  test('segments that settle in one cycle move the mark once, to their end', async (fixture) => {
    const { streamId, jobs } = await lay(fixture, 3)
    const { marks } = await fixture.cycle({
      settle: jobs.map((one) => ({
        job: one,
        event: 'succeed',
        work: { counts: [{ segment: one.segmentId!, stored: 1 }] },
      })),
    })
    assert.deepEqual(
      marks.map((one) => ({ ...one })),
      [{ streamId, mark: '30', position: 30 }],
    )
  })

  test('the mark is what the last settled segment says it is', async (fixture) => {
    const streamId = await fixture.stream('drive', 100)
    const first = await fixture.segment(streamId, 100, 200, 'token-b')
    const second = await fixture.segment(streamId, 200, 300, 'token-c')
    await fixture.write({ counts: [{ segment: second, seal: true }] })
    assert.deepEqual(await fixture.mark(streamId), { mark: null, mark_at: 100 })
    await fixture.write({ counts: [{ segment: first, seal: true }] })
    assert.deepEqual(await fixture.mark(streamId), { mark: 'token-c', mark_at: 300 })
  })

  test('an empty segment settles when it is sealed', async (fixture) => {
    const streamId = await fixture.stream()
    const segments = [
      { streamId, from: 0, to: 3, ref: 'a' },
      { streamId, from: 3, to: 9, ref: 'b' },
    ]
    await fixture.write({
      segments,
      counts: [
        { segment: 'b', seal: true },
        { segment: 'a', seal: true },
      ],
    })
    assert.equal((await fixture.mark(streamId)).mark_at, 9)
  })

  test('a segment that leaves a gap, overlaps or is empty is refused, and nothing is written', async (fixture) => {
    const streamId = await fixture.stream('mail', 5)
    for (const [from, to] of [
      [6, 9],
      [4, 9],
      [0, 5],
    ] as const) {
      await assert.rejects(fixture.write({ segments: [{ streamId, from, to }] }), { code: 'segment-gap' })
    }
    await assert.rejects(fixture.write({ segments: [{ streamId, from: 5, to: 5 }] }), UsageError)
    await assert.rejects(
      fixture.write({
        segments: [
          { streamId, from: 5, to: 8 },
          { streamId, from: 9, to: 10 },
        ],
      }),
      { code: 'segment-gap' },
    )
    await assert.rejects(fixture.write({ segments: [{ streamId: 4_711, from: 0, to: 1 }] }), UsageError)
    assert.equal(await fixture.count('segments'), 0)
    await fixture.segment(streamId, 5, 8)
  })

  test('a stream is being listed as long as one of its segments is open', async (fixture) => {
    assert.equal(await fixture.ledger.isListing(), false)
    const segment = await fixture.segment(await fixture.stream(), 0, 10)
    assert.equal(await fixture.ledger.isListing(), true)
    await fixture.write({ counts: [{ segment, listed: 1, seal: true }] })
    assert.equal(await fixture.ledger.isListing(), false)
  })

  test('a stream is made once and keeps its origin', async (fixture) => {
    const made = await Promise.all([
      fixture.ledger.stream('x', 7),
      fixture.ledger.stream('x', 7),
      fixture.ledger.stream('x', 7),
    ])
    assert.equal(new Set(made.map((one) => one.id)).size, 1)
    assert.equal((await fixture.ledger.stream('x', 50)).tail_at, 7)
    await assert.rejects(fixture.ledger.stream(''), UsageError)
  })

  settling(test)
  splitting(test)
  if (home.shared) twoProcesses(test)
}

function settling(test: LedgerTest): void {
  test('a segment settles only when it is sealed, its jobs are settled and its counts agree', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    const state = async (): Promise<string> => (await fixture.segmentRow(segment)).state
    await fixture.write({
      counts: [{ segment, listed: 4 }],
      jobs: [job({ streamId, segment }), job({ streamId, segment })],
    })
    const [one, two] = await fixture.claim()
    await fixture.settle(one!, 'succeed', { work: { counts: [{ segment, stored: 1, gone: 1 }] } })
    await fixture.write({ counts: [{ segment, seal: true }] })
    assert.equal(await state(), 'sealed', 'a job is open')
    await fixture.settle(two!, 'succeed', { work: { counts: [{ segment, stored: 1 }] } })
    assert.equal(await state(), 'sealed', 'one item is unaccounted for')
    assert.equal((await fixture.mark(streamId)).mark_at, 0)
    await fixture.write({ counts: [{ segment, skipped: 1 }] })
    assert.equal(await state(), 'settled')
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
  })

  test('a finished segment whose counts disagree is reported and shown, not settled', async (fixture) => {
    const reported: number[] = []
    fixture.ledger.onUnbalanced((segment) => reported.push(segment.id))
    const { segments, jobs, streamId } = await lay(fixture, 1)
    await store(fixture, jobs[0]!, {})
    assert.deepEqual(reported, segments)
    const [status] = await fixture.ledger.streams()
    assert.deepEqual(
      [status!.unbalanced, status!.segments, status!.settled_segments, status!.listed, status!.stored],
      [1, 1, 0, 1, 0],
    )
    const canceled = { segments: 0, items: 0, jobs: 0, firstJob: null }
    assert.deepEqual(plain(await fixture.ledger.unbalanced()), [{ stream: 'mail', segments: 1, canceled }])
    await fixture.write({ counts: [{ segment: segments[0]!, gone: 1 }] })
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
    assert.equal((await fixture.ledger.streams())[0]!.unbalanced, 0)
    assert.deepEqual(await fixture.ledger.unbalanced(), [])
  })

  test('items that are missing because their job was canceled are told from miscounted ones', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    const [first, second] = await fixture.write({
      jobs: [1, 2].map((items) => job({ streamId, segment, items })),
    })
    await fixture.write({ counts: [{ segment, listed: 4, seal: true }] })
    for (const { id } of [first!, second!]) await fixture.ledger.cancel(id)
    const none = { segments: 0, items: 0, jobs: 0, firstJob: null }
    const found = async () => plain((await fixture.ledger.unbalanced())[0]!)
    assert.deepEqual(await found(), { stream: 'mail', segments: 1, canceled: none }, 'one is missing besides')
    await fixture.write({ counts: [{ segment, stored: 1 }] })
    const canceled = { segments: 1, items: 3, jobs: 2, firstJob: first!.id }
    assert.deepEqual(await found(), { stream: 'mail', segments: 1, canceled })
    await fixture.ledger.redo(first!.id)
    assert.deepEqual(await fixture.ledger.unbalanced(), [], 'it is under way again')
  })

  test('an outcome that accounts for more items than were listed is refused alone', async (fixture) => {
    const { jobs, segments } = await lay(fixture, 3)
    const { settled, marks } = await fixture.cycle({
      settle: jobs.map((one, n) => ({
        job: one,
        event: 'succeed',
        work: { counts: [{ segment: one.segmentId!, stored: n === 1 ? 2 : 1 }] },
      })),
    })
    assert.deepEqual(
      settled.map((one) => one.status),
      ['held', 'error', 'held'],
    )
    assert.deepEqual(
      marks.map((one) => one.position),
      [10],
    )
    assert.deepEqual(await Promise.all(segments.map(async (id) => (await fixture.segmentRow(id)).state)), [
      'settled',
      'sealed',
      'settled',
    ])
    assert.equal(await fixture.stage(jobs[1]!.id), 'claimed')
  })

  test('a segment cannot be sealed with more accounted for than listed', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({ counts: [{ segment, stored: 3 }] })
    await assert.rejects(fixture.write({ counts: [{ segment, listed: 2, seal: true }] }), {
      code: 'segment-overcount',
    })
    await fixture.write({ counts: [{ segment, listed: 3, seal: true }] })
    assert.equal((await fixture.segmentRow(segment)).state, 'settled')
  })

  test('counts never go below zero', async (fixture) => {
    const segment = await fixture.segment(await fixture.stream(), 0, 10)
    await assert.rejects(fixture.write({ counts: [{ segment, stored: -1 }] }))
    assert.equal((await fixture.segmentRow(segment)).stored, 0)
  })

  test('nothing more is listed in a sealed segment, and nothing at all changes a settled one', async (fixture) => {
    const { segments, jobs, streamId } = await lay(fixture, 1)
    const segment = segments[0]!
    await assert.rejects(fixture.write({ counts: [{ segment, listed: 1 }] }), { code: 'segment-refused' })
    await store(fixture, jobs[0]!)
    const before = await fixture.segmentRow(segment)
    fixture.clock.pass(1_000)
    for (const count of [{ listed: 1 }, { stored: 1 }, { gone: 1 }, { skipped: 1 }, { seal: true }]) {
      await assert.rejects(fixture.write({ counts: [{ segment, ...count }] }), { code: 'segment-refused' })
    }
    await assert.rejects(fixture.write({ jobs: [job({ streamId, segment })] }), { code: 'segment-refused' })
    await fixture.write({ counts: [{ segment }] })
    assert.deepEqual(await fixture.segmentRow(segment), before)
    assert.equal(await fixture.count('jobs'), 1)
  })

  test('a failed job holds its segment back; canceling it lets the segment go', async (fixture) => {
    const { streamId, jobs, segments } = await lay(fixture, 2)
    await store(fixture, jobs[1]!)
    await fixture.settle(jobs[0]!, 'fail', { work: { counts: [{ segment: segments[0]!, skipped: 1 }] } })
    assert.equal((await fixture.mark(streamId)).mark_at, 0)
    await fixture.ledger.cancel(jobs[0]!.id)
    assert.equal((await fixture.mark(streamId)).mark_at, 20)
  })

  test('a job of a settled segment cannot be tried again; one of an unsettled segment holds it back again', async (fixture) => {
    const { jobs, segments, streamId } = await lay(fixture, 2)
    for (const one of jobs) await fixture.settle(one, 'stop')
    await fixture.write({ counts: [{ segment: segments[0]!, skipped: 1 }] })
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
    await assert.rejects(fixture.ledger.redo(jobs[0]!.id), UsageError)
    assert.equal(await fixture.stage(jobs[0]!.id), 'canceled')
    await fixture.ledger.redo(jobs[1]!.id)
    await fixture.write({ counts: [{ segment: segments[1]!, skipped: 1 }] })
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
    await store(fixture, (await fixture.claim())[0]!, {})
    assert.equal((await fixture.mark(streamId)).mark_at, 20)
  })

  test('reclaimed jobs hold their segment back, stopped ones do not', async (fixture) => {
    const { jobs, segments } = await lay(fixture, 2)
    await fixture.ledger.cancel(jobs[0]!.id)
    await fixture.ledger.reclaim(() => true)
    assert.deepEqual(
      (await Promise.all(segments.map((id) => fixture.segmentRow(id)))).map((one) => one.open_jobs),
      [0, 1],
    )
  })

  test('a batch split in two keeps its segment open until both halves are settled', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({
      counts: [{ segment, listed: 2, seal: true }],
      jobs: [job({ streamId, segment, items: 2 })],
    })
    const [batch] = await fixture.claim()
    await fixture.settle(batch!, 'skip', {
      splitInto: { halves: [job({ streamId, segment }), job({ streamId, segment })], failures: 0 },
    })
    assert.equal((await fixture.segmentRow(segment)).open_jobs, 2)
    const [one, two] = await fixture.claim()
    await store(fixture, one!)
    assert.equal((await fixture.mark(streamId)).mark_at, 0)
    const item = { item: 'x', reason: 'malformed', errorKind: 'permanent' as const, payload: '{}' }
    await fixture.settle(two!, 'skip', { bad: [item] })
    assert.equal((await fixture.mark(streamId)).mark_at, 10)
    const { listed, stored, bad } = await fixture.segmentRow(segment)
    assert.deepEqual([listed, stored, bad], [2, 1, 1])
  })
}

function splitting(test: LedgerTest): void {
  test('a segment is split without a gap: its rest is a segment of its own, with the mark of the whole', async (fixture) => {
    const streamId = await fixture.stream()
    const whole = await fixture.segment(streamId, 0, 100, 'end')
    const lister = await fixture.claimed({ streamId, segment: whole, kind: 'list' })
    await fixture.settle(lister, 'succeed', {
      work: {
        splits: [{ segmentId: whole, at: 40, ref: 'rest', mark: 'middle' }],
        counts: [{ segment: whole, listed: 1, stored: 1, seal: true }],
        jobs: [job({ streamId, segment: 'rest', kind: 'list' })],
      },
    })
    assert.deepEqual(await fixture.mark(streamId), { mark: 'middle', mark_at: 40 })
    const rows = await fixture.ledger.segments(streamId)
    assert.deepEqual(
      rows.map((one) => [one.from_at, one.to_at, one.state, one.open_jobs, one.mark]),
      [
        [0, 40, 'settled', 0, 'middle'],
        [40, 100, 'open', 1, 'end'],
      ],
    )
    await fixture.settle((await fixture.claim())[0]!, 'succeed', {
      work: { counts: [{ segment: rows[1]!.id, seal: true }] },
    })
    assert.deepEqual(await fixture.mark(streamId), { mark: 'end', mark_at: 100 })
    await fixture.segment(streamId, 100, 110)
  })

  test('the rest of a split may settle first; the mark still waits', async (fixture) => {
    const streamId = await fixture.stream()
    const whole = await fixture.segment(streamId, 0, 100)
    await fixture.write({
      splits: [{ segmentId: whole, at: 50, ref: 'rest' }],
      counts: [{ segment: 'rest', seal: true }],
    })
    assert.equal((await fixture.mark(streamId)).mark_at, 0)
    await fixture.write({ counts: [{ segment: whole, seal: true }] })
    assert.deepEqual(await fixture.mark(streamId), { mark: '100', mark_at: 100 })
  })

  test('a segment is split only inside, and only while it is open', async (fixture) => {
    const streamId = await fixture.stream('mail', 10)
    const whole = await fixture.segment(streamId, 10, 20)
    for (const at of [9, 10, 20, 21])
      await assert.rejects(fixture.write({ splits: [{ segmentId: whole, at }] }), UsageError)
    await assert.rejects(fixture.write({ splits: [{ segmentId: 4_711, at: 5 }] }), UsageError)
    await fixture.write({ counts: [{ segment: whole, listed: 1, seal: true }] })
    await assert.rejects(fixture.write({ splits: [{ segmentId: whole, at: 15 }] }), {
      code: 'segment-refused',
    })
    assert.equal(await fixture.count('segments'), 1)
  })
}

function twoProcesses(test: LedgerTest): void {
  test('two processes that settle neighbouring segments at the same time leave the mark at their end', async (fixture) => {
    const other = await fixture.neighbour()
    for (let round = 0; round < 10; round++) {
      const streamId = await fixture.stream(`stream ${round}`)
      const segments = [await fixture.segment(streamId, 0, 10), await fixture.segment(streamId, 10, 20)]
      await Promise.all([
        fixture.ledger.write({ counts: [{ segment: segments[0]!, seal: true }] }),
        other.write({ counts: [{ segment: segments[1]!, seal: true }] }),
      ])
      assert.equal((await fixture.mark(streamId)).mark_at, 20)
    }
  })

  test('two processes that append to one stream at the same time: one succeeds, the other is told of the gap', async (fixture) => {
    const other = await fixture.neighbour()
    const streamId = await fixture.stream()
    const results = await Promise.allSettled(
      [fixture.ledger, other].map((ledger) => ledger.write({ segments: [{ streamId, from: 0, to: 10 }] })),
    )
    assert.deepEqual(results.map((one) => one.status).sort(), ['fulfilled', 'rejected'])
    assert.equal(await fixture.count('segments'), 1)
  })
}
