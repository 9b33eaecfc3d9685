/** The contract of keys where their holder is not one plain job: split batches, other segments. */
import assert from 'node:assert/strict'
import type { ClaimedJob, NewJob, Work } from './contract.ts'
import type { LedgerFixture, LedgerTest } from './ledger-fixture.suite.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', ...more })
const keyed = (more: Partial<NewJob> = {}): NewJob => job({ key: 'a', ...more })

export function keyContract(test: LedgerTest): void {
  splits(test)
  replacedSplits(test)
  segments(test)
}

async function split(fixture: LedgerFixture, batch: ClaimedJob): Promise<void> {
  const splitInto = { halves: [job({ items: 1 }), job({ items: 1 })], failures: 0 }
  assert.equal((await fixture.settle(batch, 'skip', { splitInto })).status, 'held')
}

/** A batch with the key `a`, split in two; neither half has been claimed. */
async function splitBatch(fixture: LedgerFixture): Promise<{ id: number; halves: number[] }> {
  const batch = await fixture.claimed({ key: 'a', items: 2 })
  await split(fixture, batch)
  const halves = await fixture.ledger.jobs({ parentId: batch.id })
  return { id: batch.id, halves: halves.map((half) => half.id).sort((x, y) => x - y) }
}

function splits(test: LedgerTest): void {
  test('the halves of a split keep its key until the last of them is settled', async (fixture) => {
    const { id } = await splitBatch(fixture)
    for (let left = 2; left > 0; left--) {
      assert.deepEqual(await fixture.write({ jobs: [keyed()] }), [{ id, outcome: 'ignored' }])
      const [half] = await fixture.claim({ n: 1 })
      assert.deepEqual(await fixture.write({ jobs: [keyed()] }), [{ id, outcome: 'ignored' }])
      await fixture.settle(half!, 'succeed')
    }
    assert.equal((await fixture.write({ jobs: [keyed()] }))[0]!.outcome, 'added')
  })

  test('the halves of halves keep the key too, and other kinds and keys are free', async (fixture) => {
    const { id } = await splitBatch(fixture)
    const halves = await fixture.claim()
    await split(fixture, halves[0]!)
    await fixture.settle(halves[1]!, 'succeed')
    const added = await fixture.write({ jobs: [keyed(), keyed({ kind: 'other' }), job({ key: 'b' })] })
    assert.deepEqual(
      added.map((one) => one.outcome),
      ['ignored', 'added', 'added'],
    )
    assert.equal(added[0]!.id, id, 'the job that was split')
  })

  test('whoever waits for an ignored job waits for all halves of its split', async (fixture) => {
    await splitBatch(fixture)
    const [, dependent] = await fixture.write({
      jobs: [keyed({ ref: 'it' }), job({ kind: 'last', after: ['it'] })],
    })
    for (const half of await fixture.claim()) {
      assert.equal(await fixture.stage(dependent!.id), 'deps')
      await fixture.settle(half, 'succeed')
    }
    assert.equal(await fixture.stage(dependent!.id), 'ready')
  })

  test('a key that only failed halves keep brings them back', async (fixture) => {
    const { id, halves } = await splitBatch(fixture)
    const [one, two] = await fixture.claim()
    await fixture.settle(one!, 'fail')
    assert.deepEqual(await fixture.write({ jobs: [keyed()] }), [{ id, outcome: 'ignored' }])
    await fixture.settle(two!, 'succeed')
    assert.deepEqual(await fixture.write({ jobs: [keyed()] }), [{ id, outcome: 'revived' }])
    assert.deepEqual(await fixture.stages(...halves), ['ready', 'done'])
  })
}

function replacedSplits(test: LedgerTest): void {
  test('a replacement of a split batch ends its waiting halves, and starts after its running ones have stopped', async (fixture) => {
    const { halves } = await splitBatch(fixture)
    const [running] = await fixture.claim({ n: 1 })
    const { work, toStop } = await fixture.cycle({ work: [{ jobs: [keyed({ onKeyTaken: 'replace' })] }] })
    const written = work[0]!
    assert.ok(written.status === 'held')
    const [added] = written.jobs
    assert.equal(added!.outcome, 'replaced')
    assert.deepEqual(
      toStop.map((one) => one.id),
      [running!.id],
    )
    assert.deepEqual(await fixture.stages(...halves, added!.id), ['claimed', 'canceled', 'deps'])
    const again = await fixture.write({ jobs: [keyed(), keyed({ onKeyTaken: 'replace' })] })
    assert.deepEqual(
      again.map((one) => one.outcome),
      ['ignored', 'replaced'],
    )
    assert.equal(await fixture.stage(again[1]!.id), 'deps', 'whoever has the key waits')
    assert.equal((await fixture.settle(running!, 'succeed')).status, 'canceled')
    assert.equal(await fixture.stage(again[1]!.id), 'ready')
  })

  test('those who waited for the halves wait for what replaced them, once', async (fixture) => {
    const { id } = await splitBatch(fixture)
    const dependent = await fixture.add({ kind: 'last', after: [id] })
    const [replaced] = await fixture.write({ jobs: [keyed({ onKeyTaken: 'replace' })] })
    assert.equal((await fixture.row(dependent)).deps_left, 1)
    const [running] = await fixture.claim()
    assert.equal(running!.id, replaced!.id)
    await fixture.settle(running!, 'succeed')
    assert.equal(await fixture.stage(dependent), 'ready')
  })

  test('a half cannot be tried again while another job has its key, nor a job while halves have it', async (fixture) => {
    const { halves } = await splitBatch(fixture)
    const [replaced] = await fixture.write({ jobs: [keyed({ onKeyTaken: 'replace' })] })
    await assert.rejects(fixture.ledger.redo(halves[0]!), /has taken its key/)
    await fixture.ledger.cancel(replaced!.id)
    assert.equal(await fixture.ledger.redo(halves[0]!), 1)
    assert.equal(await fixture.ledger.redo(halves[1]!), 1, 'its sibling is no obstacle')
    await assert.rejects(fixture.ledger.redo(replaced!.id), /has taken its key/)
  })
}

function segments(test: LedgerTest): void {
  const listing = (streamId: number, segment: string): Partial<NewJob> => ({ streamId, segment, items: 2 })

  test('items whose key another segment’s job has are skipped in the segment that lists them again', async (fixture) => {
    const streamId = await fixture.stream()
    const list = (from: number) =>
      fixture.write({
        segments: [{ streamId, from, to: from + 10, ref: 'it' }],
        counts: [{ segment: 'it', listed: 2, seal: true }],
        jobs: [keyed(listing(streamId, 'it'))],
      })
    await list(0)
    assert.equal((await list(10))[0]!.outcome, 'ignored')
    const [first, second] = await fixture.ledger.segments(streamId)
    assert.deepEqual([second!.state, second!.skipped, first!.state], ['settled', 2, 'sealed'])
    assert.equal((await fixture.mark(streamId)).mark_at, 0, 'the first segment still holds the mark back')
    const [running] = await fixture.claim()
    await fixture.settle(running!, 'fail')
    assert.equal((await list(20))[0]!.outcome, 'revived')
    assert.equal((await fixture.ledger.segments(streamId))[2]!.skipped, 2)
    const [again] = await fixture.claim()
    await fixture.settle(again!, 'succeed', { work: { counts: [{ segment: first!.id, stored: 2 }] } })
    assert.equal((await fixture.mark(streamId)).mark_at, 30)
    assert.deepEqual(await fixture.ledger.unbalanced(), [])
  })

  test('an item listed twice in one segment is skipped once', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({
      counts: [{ segment, listed: 2, seal: true }],
      jobs: [keyed({ streamId, segment }), keyed({ streamId, segment })],
    })
    const [running] = await fixture.claim()
    await fixture.settle(running!, 'succeed', { work: { counts: [{ segment, stored: 1 }] } })
    const { state, stored, skipped } = await fixture.segmentRow(segment)
    assert.deepEqual([state, stored, skipped], ['settled', 1, 1])
  })

  test('items whose key the halves of a split have are skipped where they are listed again', async (fixture) => {
    await splitBatch(fixture)
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({
      counts: [{ segment, listed: 2, seal: true }],
      jobs: [keyed({ streamId, segment, items: 2 })],
    })
    assert.equal((await fixture.segmentRow(segment)).state, 'settled')
  })

  test('a segment does not wait for the items of a job that was replaced by one outside of it', async (fixture) => {
    const streamId = await fixture.stream()
    for (const [at, state] of (['pending', 'claimed'] as const).entries()) {
      const segment = await fixture.segment(streamId, at * 10, at * 10 + 10)
      await fixture.write({
        jobs: [job({ segment, streamId, key: state, items: 3 })],
        counts: [{ segment, listed: 3, seal: true }],
      })
      const claimed = state === 'claimed' ? await fixture.claim() : []
      const [replacement] = await fixture.write({ jobs: [job({ key: state, onKeyTaken: 'replace' })] })
      assert.equal(replacement!.outcome, 'replaced')
      for (const one of claimed) await fixture.settle(one, 'stop')
      const row = await fixture.segmentRow(segment)
      assert.deepEqual([row.state, row.skipped], ['settled', 3], state)
      assert.equal((await fixture.mark(streamId)).mark_at, at * 10 + 10, state)
      for (const one of await fixture.claim()) await fixture.settle(one, 'succeed')
    }
  })

  test('nor for those of a job that was replaced in the transaction that listed them', async (fixture) => {
    const streamId = await fixture.stream()
    const list = (from: number, key: string): Work => ({
      segments: [{ streamId, from, to: from + 10, ref: 'it' }],
      counts: [{ segment: 'it', listed: 3, seal: true }],
      jobs: [job({ key, streamId, segment: 'it', items: 3 })],
    })
    const replacing = (key: string): NewJob => job({ key, onKeyTaken: 'replace' })
    await fixture.cycle({ work: [list(0, 'a'), { jobs: [replacing('a')] }] })
    const { jobs, ...more } = list(10, 'b')
    await fixture.write({ ...more, jobs: [...jobs!, replacing('b')] })
    // More than goes behind one savepoint lies between them.
    const between = Array.from({ length: 70 }, () => ({ jobs: [job({ kind: 'other', ref: 'x' })] }))
    await fixture.cycle({ work: [list(20, 'c'), ...between, { jobs: [replacing('c')] }] })
    const segments = await fixture.ledger.segments(streamId)
    assert.deepEqual(
      segments.map(({ state, skipped }) => [state, skipped]),
      Array(3).fill(['settled', 3]),
    )
    assert.equal((await fixture.mark(streamId)).mark_at, 30)
  })

  test('what a replaced job has counted itself is not counted again, and it is not tried again beside its replacement', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({
      jobs: [job({ segment, streamId, key: 'a', items: 3 }), job({ segment, streamId, kind: 'other' })],
      counts: [{ segment, listed: 4, seal: true }],
    })
    const [first, other] = await fixture.claim()
    await fixture.settle(first!, 'continue', { work: { counts: [{ segment, stored: 3 }] } })
    await fixture.write({ jobs: [job({ key: 'a', onKeyTaken: 'replace', kind: first!.kind })] })
    await fixture.settle(first!, 'stop')
    const row = await fixture.segmentRow(segment)
    assert.ok(row.stored + row.skipped <= row.listed)
    for (const one of await fixture.claim()) await fixture.settle(one, 'succeed')
    await assert.rejects(fixture.ledger.redo(first!.id), /a newer job accounts for its items/)
    await fixture.settle(other!, 'stop')
  })
}
