/** The contract of streams: segments that lie end to end, settle in any order, and marks that move in order. */
import assert from 'node:assert/strict'
import { UsageError } from '../base/errors.ts'
import type { ClaimedJob, MarkMove, NewJob, SegmentCount } from './contract.ts'
import { type Desk, type DeskTest, plain } from './desk.suite.ts'
import type { Home } from './home.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })

type Laid = { streamId: number; segments: number[]; jobs: ClaimedJob[] }

/** Segments of length 10 from 0 on, each sealed with one item and one claimed job. */
async function lay(desk: Desk, n: number): Promise<Laid> {
  const streamId = await desk.stream()
  const segments: number[] = []
  for (let at = 0; at < n; at++) segments.push(await desk.segment(streamId, at * 10, at * 10 + 10))
  await desk.write({
    counts: segments.map((segment) => ({ segment, listed: 1, seal: true })),
    jobs: segments.map((segment) => job({ streamId, segment })),
  })
  const claimed = await desk.claim()
  const jobs = segments.map((segment) => claimed.find((one) => one.segmentId === segment)!)
  return { streamId, segments, jobs }
}

async function store(
  desk: Desk,
  claimed: ClaimedJob,
  counts: Omit<SegmentCount, 'segment'> = { stored: 1 },
): Promise<MarkMove[]> {
  const work = { counts: [{ segment: claimed.segmentId!, ...counts }] }
  const { marks } = await desk.cycle({ settle: [{ job: claimed, event: 'succeed', work }] })
  return marks.map((one) => ({ ...one }))
}

export function frontierContract(test: DeskTest, home: Home): void {
  test('a mark waits for the first unsettled segment although later ones have settled', async (desk) => {
    const { streamId, jobs } = await lay(desk, 4)
    assert.deepEqual(await store(desk, jobs[2]!), [])
    assert.deepEqual(await store(desk, jobs[1]!), [])
    assert.deepEqual(await desk.mark(streamId), { mark: null, mark_at: 0 })
    assert.deepEqual(await store(desk, jobs[0]!), [{ streamId, mark: '30', position: 30 }])
    assert.deepEqual(await store(desk, jobs[3]!), [{ streamId, mark: '40', position: 40 }])
    assert.deepEqual(await desk.mark(streamId), { mark: '40', mark_at: 40 })
  })

  test('segments that settle in one cycle move the mark once, to their end', async (desk) => {
    const { streamId, jobs } = await lay(desk, 3)
    const { marks } = await desk.cycle({
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

  test('the mark is what the last settled segment says it is', async (desk) => {
    const streamId = await desk.stream('drive', 100)
    const first = await desk.segment(streamId, 100, 200, 'token-b')
    const second = await desk.segment(streamId, 200, 300, 'token-c')
    await desk.write({ counts: [{ segment: second, seal: true }] })
    assert.deepEqual(await desk.mark(streamId), { mark: null, mark_at: 100 })
    await desk.write({ counts: [{ segment: first, seal: true }] })
    assert.deepEqual(await desk.mark(streamId), { mark: 'token-c', mark_at: 300 })
  })

  test('an empty segment settles when it is sealed', async (desk) => {
    const streamId = await desk.stream()
    const segments = [
      { streamId, from: 0, to: 3, ref: 'a' },
      { streamId, from: 3, to: 9, ref: 'b' },
    ]
    await desk.write({
      segments,
      counts: [
        { segment: 'b', seal: true },
        { segment: 'a', seal: true },
      ],
    })
    assert.equal((await desk.mark(streamId)).mark_at, 9)
  })

  test('a segment that leaves a gap, overlaps or is empty is refused, and nothing is written', async (desk) => {
    const streamId = await desk.stream('mail', 5)
    for (const [from, to] of [
      [6, 9],
      [4, 9],
      [0, 5],
    ] as const) {
      await assert.rejects(desk.write({ segments: [{ streamId, from, to }] }), { code: 'segment-gap' })
    }
    await assert.rejects(desk.write({ segments: [{ streamId, from: 5, to: 5 }] }), UsageError)
    await assert.rejects(
      desk.write({
        segments: [
          { streamId, from: 5, to: 8 },
          { streamId, from: 9, to: 10 },
        ],
      }),
      { code: 'segment-gap' },
    )
    await assert.rejects(desk.write({ segments: [{ streamId: 4_711, from: 0, to: 1 }] }), UsageError)
    assert.equal(await desk.count('segments'), 0)
    await desk.segment(streamId, 5, 8)
  })

  test('a stream is being listed as long as one of its segments is open', async (desk) => {
    assert.equal(await desk.ledger.isListing(), false)
    const segment = await desk.segment(await desk.stream(), 0, 10)
    assert.equal(await desk.ledger.isListing(), true)
    await desk.write({ counts: [{ segment, listed: 1, seal: true }] })
    assert.equal(await desk.ledger.isListing(), false)
  })

  test('a stream is made once and keeps its origin', async (desk) => {
    const made = await Promise.all([
      desk.ledger.stream('x', 7),
      desk.ledger.stream('x', 7),
      desk.ledger.stream('x', 7),
    ])
    assert.equal(new Set(made.map((one) => one.id)).size, 1)
    assert.equal((await desk.ledger.stream('x', 50)).tail_at, 7)
    await assert.rejects(desk.ledger.stream(''), UsageError)
  })

  settling(test)
  splitting(test)
  if (home.shared) twoProcesses(test)
}

function settling(test: DeskTest): void {
  test('a segment settles only when it is sealed, its jobs are settled and its counts agree', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    const state = async (): Promise<string> => (await desk.segmentRow(segment)).state
    await desk.write({
      counts: [{ segment, listed: 4 }],
      jobs: [job({ streamId, segment }), job({ streamId, segment })],
    })
    const [one, two] = await desk.claim()
    await desk.settle(one!, 'succeed', { work: { counts: [{ segment, stored: 1, gone: 1 }] } })
    await desk.write({ counts: [{ segment, seal: true }] })
    assert.equal(await state(), 'sealed', 'a job is open')
    await desk.settle(two!, 'succeed', { work: { counts: [{ segment, stored: 1 }] } })
    assert.equal(await state(), 'sealed', 'one item is unaccounted for')
    assert.equal((await desk.mark(streamId)).mark_at, 0)
    await desk.write({ counts: [{ segment, skipped: 1 }] })
    assert.equal(await state(), 'settled')
    assert.equal((await desk.mark(streamId)).mark_at, 10)
  })

  test('a finished segment whose counts disagree is reported and shown, not settled', async (desk) => {
    const reported: number[] = []
    desk.ledger.onUnbalanced((segment) => reported.push(segment.id))
    const { segments, jobs, streamId } = await lay(desk, 1)
    await store(desk, jobs[0]!, {})
    assert.deepEqual(reported, segments)
    const [status] = await desk.ledger.streams()
    assert.deepEqual(
      [status!.unbalanced, status!.segments, status!.settled_segments, status!.listed, status!.stored],
      [1, 1, 0, 1, 0],
    )
    const canceled = { segments: 0, items: 0, jobs: 0, firstJob: null }
    assert.deepEqual(plain(await desk.ledger.unbalanced()), [{ stream: 'mail', segments: 1, canceled }])
    await desk.write({ counts: [{ segment: segments[0]!, gone: 1 }] })
    assert.equal((await desk.mark(streamId)).mark_at, 10)
    assert.equal((await desk.ledger.streams())[0]!.unbalanced, 0)
    assert.deepEqual(await desk.ledger.unbalanced(), [])
  })

  test('items that are missing because their job was canceled are told from miscounted ones', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    const [first, second] = await desk.write({
      jobs: [1, 2].map((items) => job({ streamId, segment, items })),
    })
    await desk.write({ counts: [{ segment, listed: 4, seal: true }] })
    for (const { id } of [first!, second!]) await desk.ledger.cancel(id)
    const none = { segments: 0, items: 0, jobs: 0, firstJob: null }
    const found = async () => plain((await desk.ledger.unbalanced())[0]!)
    assert.deepEqual(await found(), { stream: 'mail', segments: 1, canceled: none }, 'one is missing besides')
    await desk.write({ counts: [{ segment, stored: 1 }] })
    const canceled = { segments: 1, items: 3, jobs: 2, firstJob: first!.id }
    assert.deepEqual(await found(), { stream: 'mail', segments: 1, canceled })
    await desk.ledger.redo(first!.id)
    assert.deepEqual(await desk.ledger.unbalanced(), [], 'it is under way again')
  })

  test('an outcome that accounts for more items than were listed is refused alone', async (desk) => {
    const { jobs, segments } = await lay(desk, 3)
    const { settled, marks } = await desk.cycle({
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
    assert.deepEqual(await Promise.all(segments.map(async (id) => (await desk.segmentRow(id)).state)), [
      'settled',
      'sealed',
      'settled',
    ])
    assert.equal(await desk.stage(jobs[1]!.id), 'claimed')
  })

  test('a segment cannot be sealed with more accounted for than listed', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    await desk.write({ counts: [{ segment, stored: 3 }] })
    await assert.rejects(desk.write({ counts: [{ segment, listed: 2, seal: true }] }), {
      code: 'segment-overcount',
    })
    await desk.write({ counts: [{ segment, listed: 3, seal: true }] })
    assert.equal((await desk.segmentRow(segment)).state, 'settled')
  })

  test('counts never go below zero', async (desk) => {
    const segment = await desk.segment(await desk.stream(), 0, 10)
    await assert.rejects(desk.write({ counts: [{ segment, stored: -1 }] }))
    assert.equal((await desk.segmentRow(segment)).stored, 0)
  })

  test('nothing more is listed in a sealed segment, and nothing at all changes a settled one', async (desk) => {
    const { segments, jobs, streamId } = await lay(desk, 1)
    const segment = segments[0]!
    await assert.rejects(desk.write({ counts: [{ segment, listed: 1 }] }), { code: 'segment-refused' })
    await store(desk, jobs[0]!)
    const before = await desk.segmentRow(segment)
    desk.clock.pass(1_000)
    for (const count of [{ listed: 1 }, { stored: 1 }, { gone: 1 }, { skipped: 1 }, { seal: true }]) {
      await assert.rejects(desk.write({ counts: [{ segment, ...count }] }), { code: 'segment-refused' })
    }
    await assert.rejects(desk.write({ jobs: [job({ streamId, segment })] }), { code: 'segment-refused' })
    await desk.write({ counts: [{ segment }] })
    assert.deepEqual(await desk.segmentRow(segment), before)
    assert.equal(await desk.count('jobs'), 1)
  })

  test('a failed job holds its segment back; canceling it lets the segment go', async (desk) => {
    const { streamId, jobs, segments } = await lay(desk, 2)
    await store(desk, jobs[1]!)
    await desk.settle(jobs[0]!, 'fail', { work: { counts: [{ segment: segments[0]!, skipped: 1 }] } })
    assert.equal((await desk.mark(streamId)).mark_at, 0)
    await desk.ledger.cancel(jobs[0]!.id)
    assert.equal((await desk.mark(streamId)).mark_at, 20)
  })

  test('a job of a settled segment cannot be tried again; one of an unsettled segment holds it back again', async (desk) => {
    const { jobs, segments, streamId } = await lay(desk, 2)
    for (const one of jobs) await desk.settle(one, 'stop')
    await desk.write({ counts: [{ segment: segments[0]!, skipped: 1 }] })
    assert.equal((await desk.mark(streamId)).mark_at, 10)
    await assert.rejects(desk.ledger.redo(jobs[0]!.id), UsageError)
    assert.equal(await desk.stage(jobs[0]!.id), 'canceled')
    await desk.ledger.redo(jobs[1]!.id)
    await desk.write({ counts: [{ segment: segments[1]!, skipped: 1 }] })
    assert.equal((await desk.mark(streamId)).mark_at, 10)
    await store(desk, (await desk.claim())[0]!, {})
    assert.equal((await desk.mark(streamId)).mark_at, 20)
  })

  test('reclaimed jobs hold their segment back, stopped ones do not', async (desk) => {
    const { jobs, segments } = await lay(desk, 2)
    await desk.ledger.cancel(jobs[0]!.id)
    await desk.ledger.reclaim(() => true)
    assert.deepEqual(
      (await Promise.all(segments.map((id) => desk.segmentRow(id)))).map((one) => one.open_jobs),
      [0, 1],
    )
  })

  test('a batch split in two keeps its segment open until both halves are settled', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    await desk.write({
      counts: [{ segment, listed: 2, seal: true }],
      jobs: [job({ streamId, segment, items: 2 })],
    })
    const [batch] = await desk.claim()
    await desk.settle(batch!, 'skip', {
      splitInto: { halves: [job({ streamId, segment }), job({ streamId, segment })], failures: 0 },
    })
    assert.equal((await desk.segmentRow(segment)).open_jobs, 2)
    const [one, two] = await desk.claim()
    await store(desk, one!)
    assert.equal((await desk.mark(streamId)).mark_at, 0)
    const item = { item: 'x', reason: 'malformed', errorKind: 'permanent' as const, payload: '{}' }
    await desk.settle(two!, 'skip', { bad: [item] })
    assert.equal((await desk.mark(streamId)).mark_at, 10)
    const { listed, stored, bad } = await desk.segmentRow(segment)
    assert.deepEqual([listed, stored, bad], [2, 1, 1])
  })
}

function splitting(test: DeskTest): void {
  test('a segment is split without a gap: its rest is a segment of its own, with the mark of the whole', async (desk) => {
    const streamId = await desk.stream()
    const whole = await desk.segment(streamId, 0, 100, 'end')
    const lister = await desk.claimed({ streamId, segment: whole, kind: 'list' })
    await desk.settle(lister, 'succeed', {
      work: {
        splits: [{ segmentId: whole, at: 40, ref: 'rest', mark: 'middle' }],
        counts: [{ segment: whole, listed: 1, stored: 1, seal: true }],
        jobs: [job({ streamId, segment: 'rest', kind: 'list' })],
      },
    })
    assert.deepEqual(await desk.mark(streamId), { mark: 'middle', mark_at: 40 })
    const rows = await desk.ledger.segments(streamId)
    assert.deepEqual(
      rows.map((one) => [one.from_at, one.to_at, one.state, one.open_jobs, one.mark]),
      [
        [0, 40, 'settled', 0, 'middle'],
        [40, 100, 'open', 1, 'end'],
      ],
    )
    await desk.settle((await desk.claim())[0]!, 'succeed', {
      work: { counts: [{ segment: rows[1]!.id, seal: true }] },
    })
    assert.deepEqual(await desk.mark(streamId), { mark: 'end', mark_at: 100 })
    await desk.segment(streamId, 100, 110)
  })

  test('the rest of a split may settle first; the mark still waits', async (desk) => {
    const streamId = await desk.stream()
    const whole = await desk.segment(streamId, 0, 100)
    await desk.write({
      splits: [{ segmentId: whole, at: 50, ref: 'rest' }],
      counts: [{ segment: 'rest', seal: true }],
    })
    assert.equal((await desk.mark(streamId)).mark_at, 0)
    await desk.write({ counts: [{ segment: whole, seal: true }] })
    assert.deepEqual(await desk.mark(streamId), { mark: '100', mark_at: 100 })
  })

  test('a segment is split only inside, and only while it is open', async (desk) => {
    const streamId = await desk.stream('mail', 10)
    const whole = await desk.segment(streamId, 10, 20)
    for (const at of [9, 10, 20, 21])
      await assert.rejects(desk.write({ splits: [{ segmentId: whole, at }] }), UsageError)
    await assert.rejects(desk.write({ splits: [{ segmentId: 4_711, at: 5 }] }), UsageError)
    await desk.write({ counts: [{ segment: whole, listed: 1, seal: true }] })
    await assert.rejects(desk.write({ splits: [{ segmentId: whole, at: 15 }] }), { code: 'segment-refused' })
    assert.equal(await desk.count('segments'), 1)
  })
}

function twoProcesses(test: DeskTest): void {
  test('two processes that settle neighbouring segments at the same time leave the mark at their end', async (desk) => {
    const other = await desk.neighbour()
    for (let round = 0; round < 10; round++) {
      const streamId = await desk.stream(`stream ${round}`)
      const segments = [await desk.segment(streamId, 0, 10), await desk.segment(streamId, 10, 20)]
      await Promise.all([
        desk.ledger.write({ counts: [{ segment: segments[0]!, seal: true }] }),
        other.write({ counts: [{ segment: segments[1]!, seal: true }] }),
      ])
      assert.equal((await desk.mark(streamId)).mark_at, 20)
    }
  })

  test('two processes that append to one stream at the same time: one succeeds, the other is told of the gap', async (desk) => {
    const other = await desk.neighbour()
    const streamId = await desk.stream()
    const results = await Promise.allSettled(
      [desk.ledger, other].map((ledger) => ledger.write({ segments: [{ streamId, from: 0, to: 10 }] })),
    )
    assert.deepEqual(results.map((one) => one.status).sort(), ['fulfilled', 'rejected'])
    assert.equal(await desk.count('segments'), 1)
  })
}
