import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { z } from 'zod'
import { freshDatabase } from '../../scripts/test-database.ts'
import { FakeClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { ReusedDatabase } from '../ledger/home.suite.ts'
import { openLedger } from '../ledger/open.ts'
import { FaultyProxy } from '../ledger/postgres/faulty-proxy.suite.ts'
import { engineContract } from './engine.suite.ts'
import { createEngine, type Engine, type EngineOptions, STOP_MS_MAX } from './engine.ts'
import { inputContract } from './input.suite.ts'
import type { AnyJobKind } from './job-kind.ts'
import { defineJob } from './kinds.ts'
import { troubleContract } from './trouble.suite.ts'

async function openMemory() {
  const ledger = await openLedger('sqlite::memory:')
  return { ledger, close: () => ledger.close() }
}

const reused = new ReusedDatabase()
after(() => reused.remove())

async function openPostgres() {
  const ledger = await openLedger(await reused.empty())
  return { ledger, close: () => ledger.close() }
}

describe('stop', () => {
  test('ends although PostgreSQL does not answer any more, and those who wait are told', async () => {
    const database = await freshDatabase()
    const proxy = await FaultyProxy.before(database.url)
    const clock = new FakeClock()
    const noop = defineJob({ kind: 'test.noop', payload: z.object({}), run: () => {} })
    const engine = await createEngine({ ledger: proxy.urlOf(database.url), clock, jobs: [noop] })
    await engine.start()
    proxy.freeze()
    const enqueued = engine.enqueue(noop, {}).then(
      () => 'enqueued',
      () => 'told',
    )
    const stopped = engine.stop()
    await clock.advance(STOP_MS_MAX)
    await stopped
    assert.equal(engine.state, 'stopped')
    assert.equal(await enqueued, 'told')
    await proxy.stop()
    await database.drop()
  })
})

engineContract('SQLite in memory', openMemory)
troubleContract('SQLite in memory', openMemory)
inputContract('SQLite in memory', openMemory)

engineContract('a SQLite file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-engine-'))
  const ledger = await openLedger(`sqlite:${join(folder, 'ledger.db')}`)
  return {
    ledger,
    close: async () => {
      await ledger.close()
      rmSync(folder, { recursive: true })
    },
  }
})

engineContract('PostgreSQL', openPostgres)
troubleContract('PostgreSQL', openPostgres)
inputContract('PostgreSQL', openPostgres)

const Item = z.object({ name: z.string() })

async function withFakeTime(
  jobs: readonly AnyJobKind[],
  fn: (engine: Engine, clock: FakeClock) => Promise<void>,
  options: Partial<EngineOptions> = {},
): Promise<void> {
  const clock = new FakeClock()
  const engine = await createEngine({ ledger: 'sqlite::memory:', jobs, clock, random: () => 0.5, ...options })
  await engine.start()
  try {
    await fn(engine, clock)
  } finally {
    const stopping = engine.stop()
    // Handlers that ignore their signal are waited for; time must pass for that to end.
    for (let i = 0; engine.state !== 'stopped' && i < 200; i++) await clock.advance(100)
    await stopping
  }
}

/** Lets everything that needs no time happen. */
async function settle(clock: FakeClock): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await clock.advance(0)
}

describe('engine and time', () => {
  test('a job without progress for its stall time is stopped and tried again; one that reports goes on', async () => {
    const stopped: string[] = []
    let tries = 0
    const job = defineJob({
      kind: 'test.silent',
      payload: Item,
      stallMs: 60_000,
      run: ({ signal, payload, progress, clock }) =>
        new Promise((resolve, reject) => {
          if (payload.name === 'silent') tries += 1
          if (payload.name === 'silent' && tries > 1) return resolve(undefined)
          signal.addEventListener('abort', () => {
            stopped.push(payload.name)
            reject(signal.reason)
          })
          if (payload.name !== 'chatty') return
          let said = 0
          const say = (): void => {
            progress({ done: ++said })
            if (said === 20) resolve(undefined)
            else clock.timer(10_000, say)
          }
          say()
        }),
    })
    await withFakeTime([job], async (engine, clock) => {
      const [silent, chatty] = await engine.enqueueMany(job, [{ name: 'silent' }, { name: 'chatty' }])
      await settle(clock)
      for (let i = 0; i < 300; i++) await clock.advance(1_000)
      await settle(clock)
      assert.deepEqual(stopped, ['silent'])
      const first = await engine.ledger.job(silent!.id)
      assert.deepEqual([first!.job.state, first!.job.failures], ['done', 1])
      assert.match(first!.errors[0]!.message, /no progress for 60 s/)
      const second = await engine.ledger.job(chatty!.id)
      assert.deepEqual([second!.job.state, second!.job.failures], ['done', 0])
      assert.ok(JSON.parse(second!.job.progress!).done >= 18, 'progress is kept in the ledger')
    })
  })

  test('a stalled handler that ignores its signal is given up, and what it returns later is not written', async () => {
    let finish = (): void => {}
    let tries = 0
    const job = defineJob({
      kind: 'test.deaf',
      payload: Item,
      stallMs: 10_000,
      run: () => {
        tries += 1
        if (tries > 1) return { note: 'second' }
        return new Promise((resolve) => {
          finish = () => resolve({ note: 'first' })
        })
      },
    })
    await withFakeTime([job], async (engine, clock) => {
      const { id } = await engine.enqueue(job, { name: 'x' })
      for (let i = 0; i < 120; i++) await clock.advance(1_000)
      await settle(clock)
      finish()
      await settle(clock)
      const detail = await engine.ledger.job(id)
      assert.deepEqual([detail!.job.state, detail!.job.note, tries], ['done', 'second', 2])
      assert.equal(engine.window.size, 0)
    })
  })

  test('a schedule fires at its times', async () => {
    const ran: number[] = []
    const job = defineJob({
      kind: 'test.often',
      payload: Item,
      run: ({ clock }) => {
        ran.push(clock.now())
      },
    })
    await withFakeTime([job], async (engine, clock) => {
      const start = clock.now()
      await engine.housekeeping.schedule('often', 'every 5m', job, { name: 'x' })
      for (let i = 0; i < 11; i++) await clock.advance(60_000)
      await settle(clock)
      assert.deepEqual(
        ran.map((at) => Math.round((at - start) / 300_000)),
        [1, 2],
      )
    })
  })

  test('settled jobs are pruned on a schedule, failed and pending ones stay', async () => {
    const job = defineJob({
      kind: 'test.maybe',
      payload: Item,
      attempts: 1,
      run: ({ payload }) => {
        if (payload.name === 'fails') throw new TidemarkError('no', { kind: 'permanent' })
      },
    })
    await withFakeTime(
      [job],
      async (engine, clock) => {
        await engine.enqueueMany(job, [{ name: 'works' }, { name: 'fails' }])
        await engine.enqueue(job, { name: 'later' }, { runAt: clock.now() + 365 * 86_400_000 })
        await settle(clock)
        for (let minute = 0; minute < 6; minute++) await clock.advance(60_000)
        await settle(clock)
        const left = await engine.ledger.jobs({ kind: 'test.maybe' })
        assert.deepEqual(
          left.map((row) => row.state),
          ['pending', 'failed'],
        )
      },
      { housekeeping: { settledKeptMs: 60_000, pruneEvery: 'every 5m' } },
    )
  })

  test('Retry-After pauses all kinds that share the budget, and no others', async () => {
    const ran: string[] = []
    let throttle = true
    const calls = (kind: string, budget?: string): AnyJobKind =>
      defineJob({
        kind,
        payload: Item,
        budget,
        run: async ({ limits, payload, signal }) => {
          if (!budget) return void ran.push(payload.name)
          await limits.budget('mail', { rate: 1_000 }).call(
            1,
            async () => {
              if (throttle) {
                throttle = false
                throw new TidemarkError('slow down', { kind: 'throttled', retryAfterMs: 30_000 })
              }
              ran.push(payload.name)
            },
            { signal },
          )
        },
      })
    const [fetch, list, other] = [calls('mail.fetch', 'mail'), calls('mail.list', 'mail'), calls('disk.scan')]
    await withFakeTime(
      [fetch, list, other],
      async (engine, clock) => {
        await engine.enqueue(fetch, { name: 'throttled' })
        for (let i = 0; i < 20; i++) await clock.advance(50)
        await engine.enqueue(fetch, { name: 'fetch' })
        await engine.enqueue(list, { name: 'list' })
        await engine.enqueue(other, { name: 'other' })
        for (let i = 0; i < 20; i++) await clock.advance(1_000)
        assert.deepEqual(ran, ['other'], 'what shares the budget waits')
        for (let i = 0; i < 60; i++) await clock.advance(1_000)
        assert.deepEqual([...ran].sort(), ['fetch', 'list', 'other', 'throttled'])
        assert.equal(
          (await engine.ledger.jobs({ kind: 'mail.fetch' })).every((row) => row.failures === 0),
          true,
        )
      },
      { budgets: { mail: { rate: 1_000 } } },
    )
  })
})

describe('engine and lanes', () => {
  test('an interactive job starts at once although bulk jobs hold every other worker', async () => {
    const held: (() => void)[] = []
    const bulk = defineJob({
      kind: 'test.bulk',
      payload: Item,
      lane: 'bulk',
      run: ({ signal }) =>
        new Promise((resolve) => {
          held.push(() => resolve(undefined))
          signal.addEventListener('abort', () => resolve(undefined))
        }),
    })
    let quick = 0
    const interactive = defineJob({
      kind: 'test.quick',
      payload: Item,
      run: () => {
        quick += 1
      },
    })
    const engine = await createEngine({ ledger: 'sqlite::memory:', jobs: [bulk, interactive], workers: 16 })
    await engine.enqueueMany(
      bulk,
      Array.from({ length: 100 }, (_, i) => ({ name: `${i}` })),
    )
    await engine.start()
    while (held.length < 15) await new Promise((resolve) => setImmediate(resolve))
    await engine.enqueue(interactive, { name: 'now' })
    while (quick < 1) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(engine.window.running.bulk, 15, 'idle workers were lent, all but one')
    await engine.stop()
  })

  test('jobs of 10 MB and more go to the bulk lane unless their kind says otherwise', async () => {
    const sized = defineJob({
      kind: 'test.sized',
      payload: Item,
      size: (p) => (p.name === 'big' ? 10_485_760 : 10),
      run: () => {},
    })
    const engine = await createEngine({ ledger: 'sqlite::memory:', jobs: [sized] })
    await engine.enqueueMany(sized, [{ name: 'big' }, { name: 'small' }])
    const lanes = (await engine.ledger.jobs()).map((row) => row.lane)
    assert.deepEqual(lanes, ['interactive', 'bulk'])
    await engine.stop()
  })
})
