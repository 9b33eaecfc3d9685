import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { postgresHome } from '../../ledger/home.suite.ts'
import { withinTime } from './time-limit.ts'

const MS_MAX = 30_000

test('statements of one search share its time: each is given what is left, and none is begun without', async () => {
  const home = postgresHome()
  const site = await home.fresh()
  try {
    const { driver } = site.ledger
    const clock = new FakeClock()
    const limit = { msMax: MS_MAX, clock }
    const told: unknown[] = []
    const passing = driver.snapshot((tx) =>
      withinTime(tx, limit, async (timed) => {
        for (const ms of [0, 10, 9_990, 19_000, 1_000]) {
          await clock.advance(ms)
          const row = await timed.get<{ ms: number }>(
            `SELECT extract(epoch FROM current_setting('statement_timeout')::interval)::float8 * 1000 AS ms`,
          )
          told.push(row!.ms)
        }
      }),
    )
    await assert.rejects(passing, { code: 'search-took-too-long' })
    // What is a hundredth of the time or less is not worth telling the server.
    assert.deepEqual(told, [MS_MAX, MS_MAX, 20_000, 1_000])
    const sleeping = driver.snapshot((tx) =>
      withinTime(tx, limit, async (timed) => {
        await timed.get(`SELECT 1 AS one`)
        await clock.advance(MS_MAX - 20)
        await timed.get(`SELECT pg_sleep(20)::text AS slept`)
      }),
    )
    await assert.rejects(sleeping, { code: 'search-took-too-long' })
    const after = await driver.snapshot((tx) =>
      withinTime(tx, limit, (timed) => timed.get(`SELECT 1 AS one`)),
    )
    assert.deepEqual(after, { one: 1 })
  } finally {
    await site.leave()
    await home.remove()
  }
})
