import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { seriesSchema } from '../app/schemas.ts'
import { type Clock, FakeClock, systemClock } from '../base/clock.ts'
import { createEngine, type Engine } from '../engine/index.ts'
import { openLedger } from '../ledger/open.ts'
import { createSeries, MINUTE_POINTS, SECOND_POINTS, type Series, type SeriesPoint } from './series.ts'
import { touch } from './server.suite.ts'

type World = { engine: Engine; series: Series & { close(): Promise<void> } }

async function withSeries(clock: Clock, run: (world: World) => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-series-'))
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  const budgets = { api: { rate: 100, rateMax: 1_000 } }
  const engine = await createEngine({ ledger, jobs: [touch], budgets })
  await engine.start()
  const series = createSeries({ engine, ledger, clock })
  try {
    await run({ engine, series })
  } finally {
    await series.close()
    await engine.stop()
    await ledger.close()
    rmSync(home, { recursive: true, force: true })
  }
}

const all = (series: Series, stepS: 1 | 60): readonly SeriesPoint[] => series.points({ sinceS: 0, stepS })

/** Reads go to a thread: turns until there are so many points, or time has to move on. */
async function advanceTo(clock: FakeClock, series: Series, n: number): Promise<void> {
  while (all(series, 1).length < n) {
    if (clock.pendingTimers > 0) await clock.advance(1_000)
    else await new Promise((resolve) => setImmediate(resolve))
  }
}

test('every item that settles is in the rate, once', async () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1))
  await withSeries(clock, async ({ engine, series }) => {
    await advanceTo(clock, series, 1)
    await engine.enqueueMany(
      touch,
      Array.from({ length: 500 }, (_, n) => ({ n })),
    )
    await engine.drained()
    await advanceTo(clock, series, 5)
    const settled = all(series, 1).reduce((sum, { rate }) => sum + rate, 0)
    assert.equal(Math.round(settled), 500)
    seriesSchema.parse({ stepS: 1, points: all(series, 1) })
    assert.deepEqual(
      all(series, 1).filter(({ at }) => at < clock.now() / 1_000 - 60),
      [],
    )
  })
})

test('what a budget allows and uses is told, and nothing is used once it is quiet', async () => {
  await withSeries(systemClock, async ({ engine, series }) => {
    const budget = engine.limits.budget('api', { rate: 100, rateMax: 1_000 })
    const used = (): number[] => all(series, 1).map(({ budgets }) => budgets.api?.used ?? 0)
    while (Math.max(0, ...used()) <= 20) await budget.call(5, async () => {})
    const last = all(series, 1).at(-1)?.budgets.api
    assert.ok(last && last.allowed >= 50 && last.workers >= 1 && last.throttled === 0, JSON.stringify(last))
    while (used().at(-1) !== 0) await new Promise((resolve) => setTimeout(resolve, 50))
  })
})

test('the last ten minutes are kept by the second, the last day by the minute', async () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1))
  await withSeries(clock, async ({ series }) => {
    await advanceTo(clock, series, SECOND_POINTS)
    for (let n = 0; n < 70; n++) {
      while (clock.pendingTimers === 0) await new Promise((resolve) => setImmediate(resolve))
      await clock.advance(1_000)
    }
    const seconds = all(series, 1)
    assert.equal(seconds.length, SECOND_POINTS)
    assert.equal(seconds.at(-1)!.at - seconds[0]!.at, SECOND_POINTS - 1)
    const minutes = all(series, 60)
    assert.ok(minutes.length >= 11 && minutes.length <= MINUTE_POINTS, `${minutes.length}`)
    assert.ok(minutes.every(({ at }) => at % 60 === 0))
    const since = seconds.at(-10)!.at
    assert.equal(series.points({ sinceS: since, stepS: 1 }).length, 10)
  })
})
