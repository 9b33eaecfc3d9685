/** The contract of the queries behind overviews: bounded answers, the same on every database. */
import assert from 'node:assert/strict'
import { type LedgerFixture, type LedgerTest, plain } from './ledger-fixture.suite.ts'
import type { FrontierCell } from './overview-queries.ts'

/** Segments of length 10 end to end from 0 on; the first `settled` of them settled, the next one begun. */
async function lay(fixture: LedgerFixture, { n, settled }: { n: number; settled: number }): Promise<number> {
  const streamId = await fixture.stream()
  const refs = Array.from({ length: n }, (_, at) => `s${at}`)
  await fixture.write({
    segments: refs.map((ref, at) => ({ streamId, from: at * 10, to: at * 10 + 10, ref })),
    counts: [
      ...refs.slice(0, settled).map((segment) => ({ segment, listed: 3, stored: 2, gone: 1, seal: true })),
      ...refs.slice(settled, settled + 1).map((segment) => ({ segment, listed: 5 })),
    ],
  })
  return streamId
}

function sum(cells: readonly FrontierCell[], name: keyof FrontierCell): number {
  return cells.reduce((total, cell) => total + cell[name], 0)
}

export function overviewContract(test: LedgerTest): void {
  test('few segments have a cell each', async (fixture) => {
    const streamId = await lay(fixture, { n: 3, settled: 1 })
    const { segments, cells } = await fixture.ledger.frontier(streamId, { cells: 400 })
    assert.equal(segments, 3)
    const none = { listed: 0, stored: 0, gone: 0, skipped: 0, bad: 0 }
    assert.deepEqual(plain(cells), [
      { from_at: 0, to_at: 10, segments: 1, settled: 1, begun: 1, ...none, listed: 3, stored: 2, gone: 1 },
      { from_at: 10, to_at: 20, segments: 1, settled: 0, begun: 1, ...none, listed: 5 },
      { from_at: 20, to_at: 30, segments: 1, settled: 0, begun: 0, ...none },
    ])
  })

  test('many segments share cells that lie end to end and leave nothing out', async (fixture) => {
    const streamId = await lay(fixture, { n: 1_003, settled: 500 })
    for (const wanted of [1, 7, 100, 1_003]) {
      const { segments, cells } = await fixture.ledger.frontier(streamId, { cells: wanted })
      assert.equal(segments, 1_003)
      assert.equal(cells.length, wanted)
      assert.equal(cells[0]!.from_at, 0)
      assert.equal(cells.at(-1)!.to_at, 10_030)
      for (const [at, cell] of cells.entries()) {
        if (at > 0) assert.equal(cell.from_at, cells[at - 1]!.to_at)
        // The last one has what is left.
        const isEven = Math.abs(cell.segments - 1_003 / wanted) < 1 || at === cells.length - 1
        assert.ok(isEven, `${cell.segments} in a cell`)
      }
      assert.deepEqual([sum(cells, 'segments'), sum(cells, 'settled')], [1_003, 500])
      assert.deepEqual([sum(cells, 'listed'), sum(cells, 'stored')], [1_505, 1_000])
    }
  })

  test('the axis is time: a day of polling beside five years is drawn as a day', async (fixture) => {
    const streamId = await fixture.stream()
    const [DAY, MONTH] = [86_400, 30 * 86_400]
    const start = 1_600_000_000
    // The first reaches back without an end, as that of a mailbox does.
    const months = Array.from({ length: 60 }, (_, at) => ({
      from: start + at * MONTH,
      to: start + (at + 1) * MONTH,
    }))
    months[0]!.from = 0
    const now = months.at(-1)!.to
    const polls = Array.from({ length: 480 }, (_, at) => ({ from: now + at * 180, to: now + (at + 1) * 180 }))
    const all = [...months, ...polls].map((segment, at) => ({ streamId, ...segment, ref: `s${at}` }))
    await fixture.write({
      segments: all,
      counts: all.map(({ ref }) => ({ segment: ref, listed: 1, stored: 1, seal: true })),
    })
    const { segments, cells } = await fixture.ledger.frontier(streamId, { cells: 400 })
    assert.equal(segments, 540)
    assert.ok(cells.length <= 62, `${cells.length} cells`)
    const polled = cells.filter(({ from_at }) => from_at >= now)
    assert.deepEqual([sum(polled, 'segments'), sum(polled, 'stored')], [480, 480])
    const shownS = cells.at(-1)!.to_at - start
    assert.ok(polled.reduce((all, { from_at, to_at }) => all + to_at - from_at, 0) / shownS < 0.001)
    assert.equal(cells.filter(({ from_at }) => from_at < now).length, 60, 'a cell for each month')
    // Looked at closely, the polls are told apart.
    const near = await fixture.ledger.frontier(streamId, { cells: 400, from: now, to: now + DAY })
    assert.deepEqual([near.segments, near.cells.length], [480, 400])
  })

  test('more segments than are read at once are counted once each', async (fixture) => {
    const streamId = await lay(fixture, { n: 20_007, settled: 3 })
    for (const wanted of [1, 3, 400]) {
      const { segments, cells } = await fixture.ledger.frontier(streamId, { cells: wanted })
      assert.deepEqual([segments, sum(cells, 'segments'), sum(cells, 'listed')], [20_007, 20_007, 14])
      assert.ok(cells.length <= wanted)
    }
  })

  test('a closer look has the segments that reach into it', async (fixture) => {
    const streamId = await lay(fixture, { n: 20, settled: 0 })
    const { segments, cells } = await fixture.ledger.frontier(streamId, { cells: 10, from: 35, to: 61 })
    assert.equal(segments, 4)
    assert.deepEqual(
      cells.map(({ from_at, to_at }) => [from_at, to_at]),
      [
        [30, 40],
        [40, 50],
        [50, 60],
        [60, 70],
      ],
    )
    assert.deepEqual(await fixture.ledger.frontier(streamId, { cells: 10, from: 500 }), {
      segments: 0,
      cells: [],
    })
    assert.deepEqual(await fixture.ledger.frontier(4_711, { cells: 10 }), { segments: 0, cells: [] })
  })

  test('segments are listed by state, page by page', async (fixture) => {
    const streamId = await lay(fixture, { n: 5, settled: 2 })
    const froms = async (state: 'open' | 'sealed' | 'settled', fromAt = 0): Promise<number[]> =>
      (await fixture.ledger.segments(streamId, { state, fromAt, limit: 2 })).map(({ from_at }) => from_at)
    assert.deepEqual(await froms('settled'), [0, 10])
    assert.deepEqual(await froms('open'), [20, 30])
    assert.deepEqual(await froms('open', 31), [40])
    assert.deepEqual(await froms('sealed'), [])
    assert.equal(await fixture.ledger.isListing(), true)
  })

  test('failed jobs and bad items are counted by stream', async (fixture) => {
    const streamId = await fixture.stream()
    assert.deepEqual(await fixture.ledger.failedCounts(), [])
    assert.deepEqual(await fixture.ledger.badCounts(), [])
    await fixture.add({ streamId })
    await fixture.add({ streamId })
    await fixture.add()
    const claimed = await fixture.claim()
    const error = { kind: 'permanent' as const, message: 'no' }
    await fixture.cycle({ settle: claimed.slice(1).map((job) => ({ job, event: 'fail', error })) })
    const failed = await fixture.ledger.failedCounts()
    assert.equal(
      failed.reduce((total, { n }) => total + n, 0),
      2,
    )
    const bad = [{ item: 'a', reason: 'no', errorKind: 'permanent' as const, payload: '{}' }]
    await fixture.cycle({ settle: [{ job: claimed[0]!, event: 'skip', bad }] })
    assert.deepEqual(await fixture.ledger.badCounts(), [{ streamId: claimed[0]!.streamId, n: 1 }])
  })

  test('what processes hold is listed once they have said how far they are', async (fixture) => {
    const streamId = await fixture.stream('held')
    await fixture.add({ streamId })
    await fixture.add({ streamId })
    const [first] = await fixture.claim()
    assert.deepEqual(await fixture.ledger.heldJobs(), [])
    await fixture.ledger.noteProgress(fixture.owner, [{ ...first!, text: '{"done":1}' }])
    const held = await fixture.ledger.heldJobs()
    assert.deepEqual(
      held.map(({ id, stream, progress }) => ({ id, stream, progress })),
      [{ id: first!.id, stream: 'held', progress: '{"done":1}' }],
    )
  })
}
