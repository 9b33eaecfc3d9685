/** The contract of keys where their holder is not one plain job: split batches, other segments. */
import assert from 'node:assert/strict'
import type { ClaimedJob, NewJob, Work } from './contract.ts'
import type { Desk, DeskTest } from './desk.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })
const keyed = (more: Partial<NewJob> = {}): NewJob => job({ key: 'a', ...more })

export function keyContract(test: DeskTest): void {
  splits(test)
  replacedSplits(test)
  segments(test)
}

async function split(desk: Desk, batch: ClaimedJob): Promise<void> {
  const splitInto = { halves: [job({ items: 1 }), job({ items: 1 })], failures: 0 }
  assert.equal((await desk.settle(batch, 'skip', { splitInto })).status, 'held')
}

/** A batch with the key `a`, split in two; neither half has been claimed. */
async function splitBatch(desk: Desk): Promise<{ id: number; halves: number[] }> {
  const batch = await desk.claimed({ key: 'a', items: 2 })
  await split(desk, batch)
  const halves = await desk.ledger.jobs({ parentId: batch.id })
  return { id: batch.id, halves: halves.map((half) => half.id).sort((x, y) => x - y) }
}

function splits(test: DeskTest): void {
  test('the halves of a split keep its key until the last of them is settled', async (desk) => {
    const { id } = await splitBatch(desk)
    for (let left = 2; left > 0; left--) {
      assert.deepEqual(await desk.write({ jobs: [keyed()] }), [{ id, outcome: 'ignored' }])
      const [half] = await desk.claim({ n: 1 })
      assert.deepEqual(await desk.write({ jobs: [keyed()] }), [{ id, outcome: 'ignored' }])
      await desk.settle(half!, 'succeed')
    }
    assert.equal((await desk.write({ jobs: [keyed()] }))[0]!.outcome, 'added')
  })

  test('the halves of halves keep the key too, and other kinds and keys are free', async (desk) => {
    const { id } = await splitBatch(desk)
    const halves = await desk.claim()
    await split(desk, halves[0]!)
    await desk.settle(halves[1]!, 'succeed')
    const added = await desk.write({ jobs: [keyed(), keyed({ kind: 'other' }), job({ key: 'b' })] })
    assert.deepEqual(
      added.map((one) => one.outcome),
      ['ignored', 'added', 'added'],
    )
    assert.equal(added[0]!.id, id, 'the job that was split')
  })

  test('whoever waits for an ignored job waits for all halves of its split', async (desk) => {
    await splitBatch(desk)
    const [, dependent] = await desk.write({
      jobs: [keyed({ ref: 'it' }), job({ kind: 'last', after: ['it'] })],
    })
    for (const half of await desk.claim()) {
      assert.equal(await desk.stage(dependent!.id), 'deps')
      await desk.settle(half, 'succeed')
    }
    assert.equal(await desk.stage(dependent!.id), 'ready')
  })

  test('a key that only failed halves keep brings them back', async (desk) => {
    const { id, halves } = await splitBatch(desk)
    const [one, two] = await desk.claim()
    await desk.settle(one!, 'fail')
    assert.deepEqual(await desk.write({ jobs: [keyed()] }), [{ id, outcome: 'ignored' }])
    await desk.settle(two!, 'succeed')
    assert.deepEqual(await desk.write({ jobs: [keyed()] }), [{ id, outcome: 'revived' }])
    assert.deepEqual(await desk.stages(...halves), ['ready', 'done'])
  })
}

function replacedSplits(test: DeskTest): void {
  test('a replacement of a split batch ends its waiting halves, and starts after its running ones have stopped', async (desk) => {
    const { halves } = await splitBatch(desk)
    const [running] = await desk.claim({ n: 1 })
    const { work, toStop } = await desk.cycle({ work: [{ jobs: [keyed({ onKeyTaken: 'replace' })] }] })
    const written = work[0]!
    assert.ok(written.status === 'held')
    const [added] = written.jobs
    assert.equal(added!.outcome, 'replaced')
    assert.deepEqual(
      toStop.map((one) => one.id),
      [running!.id],
    )
    assert.deepEqual(await desk.stages(...halves, added!.id), ['claimed', 'canceled', 'deps'])
    const again = await desk.write({ jobs: [keyed(), keyed({ onKeyTaken: 'replace' })] })
    assert.deepEqual(
      again.map((one) => one.outcome),
      ['ignored', 'replaced'],
    )
    assert.equal(await desk.stage(again[1]!.id), 'deps', 'whoever has the key waits')
    assert.equal((await desk.settle(running!, 'succeed')).status, 'canceled')
    assert.equal(await desk.stage(again[1]!.id), 'ready')
  })

  test('those who waited for the halves wait for what replaced them, once', async (desk) => {
    const { id } = await splitBatch(desk)
    const dependent = await desk.add({ kind: 'last', after: [id] })
    const [replaced] = await desk.write({ jobs: [keyed({ onKeyTaken: 'replace' })] })
    assert.equal((await desk.row(dependent)).deps_left, 1)
    const [running] = await desk.claim()
    assert.equal(running!.id, replaced!.id)
    await desk.settle(running!, 'succeed')
    assert.equal(await desk.stage(dependent), 'ready')
  })

  test('a half cannot be tried again while another job has its key, nor a job while halves have it', async (desk) => {
    const { halves } = await splitBatch(desk)
    const [replaced] = await desk.write({ jobs: [keyed({ onKeyTaken: 'replace' })] })
    await assert.rejects(desk.ledger.redo(halves[0]!), /has taken its key/)
    await desk.ledger.cancel(replaced!.id)
    assert.equal(await desk.ledger.redo(halves[0]!), 1)
    assert.equal(await desk.ledger.redo(halves[1]!), 1, 'its sibling is no obstacle')
    await assert.rejects(desk.ledger.redo(replaced!.id), /has taken its key/)
  })
}

function segments(test: DeskTest): void {
  const listing = (streamId: number, segment: string): Partial<NewJob> => ({ streamId, segment, items: 2 })

  test('items whose key another segment’s job has are skipped in the segment that lists them again', async (desk) => {
    const streamId = await desk.stream()
    const list = (from: number) =>
      desk.write({
        segments: [{ streamId, from, to: from + 10, ref: 'it' }],
        counts: [{ segment: 'it', listed: 2, seal: true }],
        jobs: [keyed(listing(streamId, 'it'))],
      })
    await list(0)
    assert.equal((await list(10))[0]!.outcome, 'ignored')
    const [first, second] = await desk.ledger.segments(streamId)
    assert.deepEqual([second!.state, second!.skipped, first!.state], ['settled', 2, 'sealed'])
    assert.equal((await desk.mark(streamId)).mark_at, 0, 'the first segment still holds the mark back')
    const [running] = await desk.claim()
    await desk.settle(running!, 'fail')
    assert.equal((await list(20))[0]!.outcome, 'revived')
    assert.equal((await desk.ledger.segments(streamId))[2]!.skipped, 2)
    const [again] = await desk.claim()
    await desk.settle(again!, 'succeed', { work: { counts: [{ segment: first!.id, stored: 2 }] } })
    assert.equal((await desk.mark(streamId)).mark_at, 30)
    assert.deepEqual(await desk.ledger.unbalanced(), [])
  })

  test('an item listed twice in one segment is skipped once', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    await desk.write({
      counts: [{ segment, listed: 2, seal: true }],
      jobs: [keyed({ streamId, segment }), keyed({ streamId, segment })],
    })
    const [running] = await desk.claim()
    await desk.settle(running!, 'succeed', { work: { counts: [{ segment, stored: 1 }] } })
    const { state, stored, skipped } = await desk.segmentRow(segment)
    assert.deepEqual([state, stored, skipped], ['settled', 1, 1])
  })

  test('items whose key the halves of a split have are skipped where they are listed again', async (desk) => {
    await splitBatch(desk)
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    await desk.write({
      counts: [{ segment, listed: 2, seal: true }],
      jobs: [keyed({ streamId, segment, items: 2 })],
    })
    assert.equal((await desk.segmentRow(segment)).state, 'settled')
  })

  test('a segment does not wait for the items of a job that was replaced by one outside of it', async (desk) => {
    const streamId = await desk.stream()
    for (const [at, state] of (['pending', 'claimed'] as const).entries()) {
      const segment = await desk.segment(streamId, at * 10, at * 10 + 10)
      await desk.write({
        jobs: [job({ segment, streamId, key: state, items: 3 })],
        counts: [{ segment, listed: 3, seal: true }],
      })
      const claimed = state === 'claimed' ? await desk.claim() : []
      const [replacement] = await desk.write({ jobs: [job({ key: state, onKeyTaken: 'replace' })] })
      assert.equal(replacement!.outcome, 'replaced')
      for (const one of claimed) await desk.settle(one, 'stop')
      const row = await desk.segmentRow(segment)
      assert.deepEqual([row.state, row.skipped], ['settled', 3], state)
      assert.equal((await desk.mark(streamId)).mark_at, at * 10 + 10, state)
      for (const one of await desk.claim()) await desk.settle(one, 'succeed')
    }
  })

  test('nor for those of a job that was replaced in the transaction that listed them', async (desk) => {
    const streamId = await desk.stream()
    const list = (from: number, key: string): Work => ({
      segments: [{ streamId, from, to: from + 10, ref: 'it' }],
      counts: [{ segment: 'it', listed: 3, seal: true }],
      jobs: [job({ key, streamId, segment: 'it', items: 3 })],
    })
    const replacing = (key: string): NewJob => job({ key, onKeyTaken: 'replace' })
    await desk.cycle({ work: [list(0, 'a'), { jobs: [replacing('a')] }] })
    const { jobs, ...more } = list(10, 'b')
    await desk.write({ ...more, jobs: [...jobs!, replacing('b')] })
    // More than goes behind one savepoint lies between them.
    const between = Array.from({ length: 70 }, () => ({ jobs: [job({ kind: 'other', ref: 'x' })] }))
    await desk.cycle({ work: [list(20, 'c'), ...between, { jobs: [replacing('c')] }] })
    const segments = await desk.ledger.segments(streamId)
    assert.deepEqual(
      segments.map(({ state, skipped }) => [state, skipped]),
      Array(3).fill(['settled', 3]),
    )
    assert.equal((await desk.mark(streamId)).mark_at, 30)
  })

  test('what a replaced job has counted itself is not counted again, and it is not tried again beside its replacement', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    await desk.write({
      jobs: [job({ segment, streamId, key: 'a', items: 3 }), job({ segment, streamId, kind: 'other' })],
      counts: [{ segment, listed: 4, seal: true }],
    })
    const [first, other] = await desk.claim()
    await desk.settle(first!, 'continue', { work: { counts: [{ segment, stored: 3 }] } })
    await desk.write({ jobs: [job({ key: 'a', onKeyTaken: 'replace', kind: first!.kind })] })
    await desk.settle(first!, 'stop')
    const row = await desk.segmentRow(segment)
    assert.ok(row.stored + row.skipped <= row.listed)
    for (const one of await desk.claim()) await desk.settle(one, 'succeed')
    await assert.rejects(desk.ledger.redo(first!.id), /a newer job accounts for its items/)
    await desk.settle(other!, 'stop')
  })
}
