import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sleep, systemClock } from '../../base/clock.ts'
import { ANN, BOB, startDriveWorld } from './drive-world.suite.ts'

test('a sync that is ended again and again goes on where it was: nothing is fetched twice but what was under way', async () => {
  const documents = 40
  const world = await startDriveWorld({
    drive: { documents, sharing: 'all', kinds: 'text' },
    settings: { workersMax: 2 },
    sim: { faults: { rules: [{ do: 'latency', latency: { kind: 'fixed', ms: 20 } }] } },
  })
  try {
    let before = 0
    let restarts = 0
    for (; restarts < 20; restarts++) {
      const running = world.sync()
      // Ended while it runs: the sync never hears of its end.
      running.catch(() => undefined)
      await sleep(systemClock, 300)
      const { indexed, skipped, onTheirWay, listed } = await world.status(ANN)
      assert.ok(indexed + skipped >= before, 'progress runs backwards')
      before = indexed + skipped
      if (listed === documents && onTheirWay === 0) break
      await world.stop()
      await world.open()
      await world.kinds.accounts.reload()
    }
    await world.sync()
    assert.ok(restarts > 0)
    for (const person of [ANN, BOB]) assert.deepEqual(await world.seen(person), world.truth(person))
    const { downloads, exports } = world.drive.counts.list()
    const fetched = [...Object.values(downloads), ...Object.values(exports)]
    const repeated = fetched.reduce((sum, n) => sum + n - 1, 0)
    assert.ok(repeated <= restarts * 2, `${repeated} documents were fetched again in ${restarts} restarts`)
  } finally {
    await world.close()
  }
})
