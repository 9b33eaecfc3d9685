import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { seededRandom } from '../../base/random.ts'
import { MemoryBudgetStore } from '../../ledger/memory-budgets.ts'
import { Bandwidth, type BandwidthSpec, type Direction, PIECE_BYTES_MAX, throttledBody } from './bandwidth.ts'
import { pass } from './sharing.suite.ts'

const KB = 1_000

function open(
  spec: BandwidthSpec,
  clock = new FakeClock(),
  store = new MemoryBudgetStore(),
  member = 'm',
): Bandwidth {
  const options = {
    name: 'line',
    spec,
    member,
    store,
    clock,
    random: seededRandom(3),
    offsetMinutes: () => 60,
  }
  return new Bandwidth(options)
}

/** Moves bytes as fast as it may until the bandwidth is closed. */
function transfer(bandwidth: Bandwidth, direction: Direction, pieceBytes = 10 * KB): { bytes: number } {
  const moved = { bytes: 0 }
  const run = async (): Promise<void> => {
    for (;;) {
      await bandwidth.take(direction, pieceBytes)
      moved.bytes += pieceBytes
    }
  }
  run().catch(() => {
    // Closed at the end of the test.
  })
  return moved
}

function within(actual: number, expected: number, share: number): void {
  assert.ok(Math.abs(actual - expected) <= expected * share, `${actual} instead of about ${expected}`)
}

describe('bandwidth', () => {
  test('each direction has its own rate', async () => {
    const clock = new FakeClock()
    const line = open({ upload: 100 * KB, download: 500 * KB }, clock)
    const [up, down] = [transfer(line, 'upload'), transfer(line, 'download')]
    await pass(clock, 10_000)
    within(up.bytes, 1_000 * KB, 0.04)
    within(down.bytes, 5_000 * KB, 0.04)
    assert.equal(line.snapshot().download.movedBytes, down.bytes)
    await line.close()
  })

  test('a transfer needs its direction and the combined rate', async () => {
    const clock = new FakeClock()
    const line = open({ download: 900 * KB, combined: 300 * KB }, clock)
    const [up, down] = [transfer(line, 'upload'), transfer(line, 'download')]
    await pass(clock, 10_000)
    within(up.bytes + down.bytes, 3_000 * KB, 0.04)
    within(up.bytes, down.bytes, 0.1)
    await line.close()
  })

  test('processes on one ledger share it', async () => {
    const clock = new FakeClock()
    const store = new MemoryBudgetStore()
    const lines = ['a', 'b'].map((member) => open({ download: 200 * KB }, clock, store, member))
    const moved = lines.map((line) => transfer(line, 'download'))
    await pass(clock, 10_000)
    within(moved[0]!.bytes + moved[1]!.bytes, 2_000 * KB, 0.04)
    within(moved[0]!.bytes, moved[1]!.bytes, 0.2)
    await Promise.all(lines.map((line) => line.close()))
  })

  test('what is not limited passes at once', async () => {
    const line = open({ upload: 1 })
    await line.take('download', 1e12)
    await line.close()
  })

  test('the timetable takes effect while transfers wait, by local time', async () => {
    // 06:59:50 UTC is 07:59:50 here.
    const clock = new FakeClock(Date.UTC(2026, 2, 2, 6, 59, 50))
    const line = open(
      { download: 1_000 * KB, timetable: [{ from: '08:00', to: '18:00', rates: { download: 50 * KB } }] },
      clock,
    )
    const down = transfer(line, 'download')
    await pass(clock, 10_000)
    within(down.bytes, 10_000 * KB, 0.05)
    const before = down.bytes
    await pass(clock, 10_000)
    within(down.bytes - before, 500 * KB, 0.15)
    await line.close()
  })

  test('a rate of zero stops transfers until the timetable allows them again', async () => {
    const clock = new FakeClock(Date.UTC(2026, 2, 2, 16, 50))
    const line = open({ timetable: [{ from: '08:00', to: '18:00', rates: { upload: 0 } }] }, clock)
    let moved = false
    const taken = line.take('upload', 5 * KB).then(() => {
      moved = true
    })
    await pass(clock, 9 * 60_000 + 59_000)
    assert.equal(moved, false)
    await pass(clock, 1_100)
    await taken
    await line.close()
  })

  test('a new spec takes effect while transfers wait', async () => {
    const clock = new FakeClock()
    const line = open({ download: 10 * KB }, clock)
    const down = transfer(line, 'download')
    await pass(clock, 2_000)
    line.setSpec({ download: 1_000 * KB })
    const before = down.bytes
    await pass(clock, 5_000)
    within(down.bytes - before, 5_000 * KB, 0.05)
    await line.close()
  })

  test('a transfer that is aborted while it waits for the combined rate gives its direction back', async () => {
    const clock = new FakeClock()
    const line = open({ download: 100 * KB, combined: 10 * KB }, clock)
    const abort = new AbortController()
    const given = line.take('download', 20 * KB, abort.signal)
    await pass(clock, 500)
    abort.abort(new Error('stopped'))
    await assert.rejects(given, /stopped/)
    const startMs = clock.now()
    const next = line.take('download', 2 * KB).then(() => clock.now() - startMs)
    await pass(clock, 1_000)
    assert.ok((await next) < 300)
    await line.close()
  })

  test('a throttled body brings the same bytes, in pieces, at the rate', async () => {
    const clock = new FakeClock()
    const line = open({ download: 100 * KB }, clock)
    const source = new Uint8Array(300 * KB).map((_, i) => i % 251)
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield source.subarray(0, 10)
      yield source.subarray(10, 200 * KB)
      yield source.subarray(200 * KB)
    }
    for (const body of [chunks(), ReadableStream.from<Uint8Array>(chunks())]) {
      const startMs = clock.now()
      const pieces: Uint8Array[] = []
      const reading = (async () => {
        for await (const piece of throttledBody(body, { bandwidth: line, direction: 'download' }))
          pieces.push(piece)
        return clock.now() - startMs
      })()
      await pass(clock, 4_000)
      const tookMs = await reading
      assert.ok(tookMs > 2_700 && tookMs < 3_300, `${tookMs}`)
      assert.ok(pieces.every((piece) => piece.byteLength <= PIECE_BYTES_MAX))
      assert.deepEqual(Buffer.concat(pieces), Buffer.from(source))
    }
    await line.close()
  })
})
