/** The contract of what pictures are drawn from: bounded answers, the same on every database. */
import assert from 'node:assert/strict'
import { type Desk, type DeskTest, plain } from './desk.suite.ts'
import type { FrontierCell } from './pictures.ts'

/** Segments of length 10 end to end from 0 on; the first `settled` of them settled, the next one begun. */
async function lay(desk: Desk, { n, settled }: { n: number; settled: number }): Promise<number> {
  const streamId = await desk.stream()
  const refs = Array.from({ length: n }, (_, at) => `s${at}`)
  await desk.write({
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

export function pictureContract(test: DeskTest): void {
  test('few segments have a cell each', async (desk) => {
    const streamId = await lay(desk, { n: 3, settled: 1 })
    const { segments, cells } = await desk.ledger.frontier(streamId, { cells: 400 })
    assert.equal(segments, 3)
    const none = { listed: 0, stored: 0, gone: 0, skipped: 0, bad: 0 }
    assert.deepEqual(plain(cells), [
      { from_at: 0, to_at: 10, segments: 1, settled: 1, begun: 1, ...none, listed: 3, stored: 2, gone: 1 },
      { from_at: 10, to_at: 20, segments: 1, settled: 0, begun: 1, ...none, listed: 5 },
      { from_at: 20, to_at: 30, segments: 1, settled: 0, begun: 0, ...none },
    ])
  })

  test('many segments share cells that lie end to end and leave nothing out', async (desk) => {
    const streamId = await lay(desk, { n: 1_003, settled: 500 })
    for (const wanted of [1, 7, 100, 1_003]) {
      const { segments, cells } = await desk.ledger.frontier(streamId, { cells: wanted })
      assert.equal(segments, 1_003)
      assert.equal(cells.length, wanted)
      assert.equal(cells[0]!.from_at, 0)
      assert.equal(cells.at(-1)!.to_at, 10_030)
      for (const [at, cell] of cells.entries()) {
        if (at > 0) assert.equal(cell.from_at, cells[at - 1]!.to_at)
        assert.ok(Math.abs(cell.segments - 1_003 / wanted) < 1, `${cell.segments} in a cell`)
      }
      assert.deepEqual([sum(cells, 'segments'), sum(cells, 'settled')], [1_003, 500])
      assert.deepEqual([sum(cells, 'listed'), sum(cells, 'stored')], [1_505, 1_000])
    }
  })

  test('a closer look has the segments that reach into it', async (desk) => {
    const streamId = await lay(desk, { n: 20, settled: 0 })
    const { segments, cells } = await desk.ledger.frontier(streamId, { cells: 10, from: 35, to: 61 })
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
    assert.deepEqual(await desk.ledger.frontier(streamId, { cells: 10, from: 500 }), {
      segments: 0,
      cells: [],
    })
    assert.deepEqual(await desk.ledger.frontier(4_711, { cells: 10 }), { segments: 0, cells: [] })
  })

  test('segments are listed by state, page by page', async (desk) => {
    const streamId = await lay(desk, { n: 5, settled: 2 })
    const froms = async (state: 'open' | 'sealed' | 'settled', fromAt = 0): Promise<number[]> =>
      (await desk.ledger.segments(streamId, { state, fromAt, limit: 2 })).map(({ from_at }) => from_at)
    assert.deepEqual(await froms('settled'), [0, 10])
    assert.deepEqual(await froms('open'), [20, 30])
    assert.deepEqual(await froms('open', 31), [40])
    assert.deepEqual(await froms('sealed'), [])
    assert.equal(await desk.ledger.isListing(), true)
  })

  test('failed jobs and bad items are counted by stream', async (desk) => {
    const streamId = await desk.stream()
    assert.deepEqual(await desk.ledger.failedCounts(), [])
    assert.deepEqual(await desk.ledger.badCounts(), [])
    await desk.add({ streamId })
    await desk.add({ streamId })
    await desk.add()
    const claimed = await desk.claim()
    const error = { kind: 'permanent' as const, message: 'no' }
    await desk.cycle({ settle: claimed.slice(1).map((job) => ({ job, event: 'fail', error })) })
    const failed = await desk.ledger.failedCounts()
    assert.equal(
      failed.reduce((total, { n }) => total + n, 0),
      2,
    )
    const bad = [{ item: 'a', reason: 'no', errorKind: 'permanent' as const, payload: '{}' }]
    await desk.cycle({ settle: [{ job: claimed[0]!, event: 'skip', bad }] })
    assert.deepEqual(await desk.ledger.badCounts(), [{ streamId: claimed[0]!.streamId, n: 1 }])
  })

  test('what processes hold is listed once they have said how far they are', async (desk) => {
    const streamId = await desk.stream('held')
    await desk.add({ streamId })
    await desk.add({ streamId })
    const [first] = await desk.claim()
    assert.deepEqual(await desk.ledger.heldJobs(), [])
    await desk.ledger.noteProgress(desk.owner, [{ ...first!, text: '{"done":1}' }])
    const held = await desk.ledger.heldJobs()
    assert.deepEqual(
      held.map(({ id, stream, progress }) => ({ id, stream, progress })),
      [{ id: first!.id, stream: 'held', progress: '{"done":1}' }],
    )
  })
}
