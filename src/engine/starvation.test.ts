/** What cannot run now must not keep out what can. On a clock that is moved by hand: what starves, starves for ever. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { FakeClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { createEngine, type Engine, type EngineOptions } from './engine.ts'
import type { AnyJobKind, JobKind } from './job-kind.ts'
import { defineJob } from './kinds.ts'
import { LANE_BYTES_MAX } from './window.ts'

const Item = z.object({ name: z.string() })
type Item = z.infer<typeof Item>

/** As many turns as it takes for everything that needs no time to happen. */
async function settle(clock: FakeClock): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await clock.advance(0)
}

async function withEngine(
  jobs: readonly AnyJobKind[],
  fn: (engine: Engine, clock: FakeClock) => Promise<void>,
  options: Partial<EngineOptions> = {},
): Promise<void> {
  const clock = new FakeClock()
  const engine = await createEngine({ ledger: 'sqlite::memory:', jobs, clock, random: () => 0.5, ...options })
  try {
    await engine.start()
    await fn(engine, clock)
  } finally {
    const stopping = engine.stop()
    for (let i = 0; engine.state !== 'stopped' && i < 200; i++) await clock.advance(100)
    await stopping
  }
}

/** Kinds whose jobs end at once until `block` is called, and from then on only with the engine. */
function blockable(names: readonly string[], more: Partial<AnyJobKind> = {}) {
  let blocked = false
  const kinds = names.map((kind) =>
    defineJob({
      kind,
      payload: Item,
      ...(more as object),
      run: ({ signal }) =>
        new Promise<undefined>((resolve) => {
          if (!blocked) return resolve(undefined)
          signal.addEventListener('abort', () => resolve(undefined))
        }),
    }),
  )
  const block = (): void => {
    blocked = true
  }
  return { kinds, block }
}

function counter(kind: string, lane?: 'bulk') {
  const counted = { n: 0 }
  const job = defineJob({ kind, payload: Item, lane, run: () => void counted.n++ })
  return { job, counted }
}

const add = (engine: Engine, kind: JobKind<Item>, n: number) =>
  engine.enqueueMany(
    kind,
    Array.from({ length: n }, (_, i) => ({ name: `${i}` })),
  )

const claimed = async (engine: Engine): Promise<number> =>
  (await engine.ledger.tallies()).reduce((sum, { stage, n }) => sum + (stage === 'claimed' ? n : 0), 0)

describe('what cannot run now', () => {
  for (const n of [4, 40]) {
    test(`of ${n} kinds that run one job at a time and turned slow keeps out no others, and goes back`, async () => {
      const names = Array.from({ length: n }, (_, i) => `test.slow${i}`)
      const { kinds, block } = blockable(names, { concurrency: 1 })
      const { job: other, counted } = counter('test.other')
      await withEngine(
        [...kinds, other],
        async (engine, clock) => {
          for (const kind of kinds) await add(engine, kind, 20)
          await settle(clock)
          block()
          for (const kind of kinds) await add(engine, kind, 40)
          await settle(clock)
          assert.equal(engine.window.running.interactive, n)
          await add(engine, other, 358)
          await settle(clock)
          assert.equal(counted.n, 358)
          await clock.advance(1_000)
          await settle(clock)
          const held = await claimed(engine)
          assert.ok(held <= 2 * n, `${held} jobs are held here that another process could run`)
        },
        { workers: n + 8 },
      )
    })
  }

  test('of many kinds leaves room for others in a window that has little', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `test.slow${i}`)
    const { kinds, block } = blockable(names, { concurrency: 1 })
    const { job: other, counted } = counter('test.other')
    await withEngine(
      [...kinds, other],
      async (engine, clock) => {
        block()
        for (const kind of kinds) await add(engine, kind, 40)
        await settle(clock)
        assert.equal(engine.window.running.interactive, 12)
        await add(engine, other, 358)
        // Few at a time, and each group may linger.
        for (let i = 0; i < 100; i++) await clock.advance(5)
        assert.equal(counted.n, 358)
      },
      { window: 20 },
    )
  })

  test('of a kind whose budget has closed keeps out no others, even before it is given back', async () => {
    let throttled = false
    const budgeted = defineJob({
      kind: 'test.budgeted',
      payload: Item,
      budget: 'mail',
      run: async ({ limits }) => {
        await limits.budget('mail', { rate: 1_000 }).call(0, async () => {
          if (throttled) throw new TidemarkError('slow', { kind: 'throttled', retryAfterMs: 60_000 })
        })
      },
    })
    const { job: other, counted } = counter('test.other')
    await withEngine(
      [budgeted, other],
      async (engine, clock) => {
        await add(engine, budgeted, 100)
        await settle(clock)
        throttled = true
        await add(engine, budgeted, 1_000)
        await add(engine, other, 358)
        await settle(clock)
        assert.equal(counted.n, 358)
      },
      { budgets: { mail: { rate: 1_000 } } },
    )
  })

  test('because its lane was quick and turned slow leaves the other lane its room, and goes back', async () => {
    const { kinds, block } = blockable(['test.bulk'], { lane: 'bulk' })
    const { job: other, counted } = counter('test.other')
    await withEngine([...kinds, other], async (engine, clock) => {
      engine.window.pace({ perSecond: 100_000, commitMs: 100 })
      block()
      await add(engine, kinds[0]!, 5_000)
      await settle(clock)
      assert.ok(engine.window.waiting.bulk > 1_000, `${engine.window.waiting.bulk} wait`)
      engine.window.pace({ perSecond: 0, commitMs: 100 })
      await add(engine, other, 358)
      await settle(clock)
      assert.equal(counted.n, 358)
      for (let i = 0; i < 20; i++) await clock.advance(1_000)
      await settle(clock)
      assert.ok((await claimed(engine)) <= 100, `${await claimed(engine)} are still held here`)
    })
  })
})

test('payloads in the window stay within their bound and one job, however quick the jobs before them were', async () => {
  let most = 0
  const seen: { engine: Engine | undefined } = { engine: undefined }
  const job = defineJob({
    kind: 'test.large',
    payload: Item,
    lane: 'bulk',
    run: () => {
      most = Math.max(most, seen.engine!.window.bytes)
    },
  })
  await withEngine([job], async (engine, clock) => {
    seen.engine = engine
    engine.window.pace({ perSecond: 100_000, commitMs: 100 })
    const bytes = 1024 * 1024
    const payload = { name: 'x'.repeat(bytes) }
    await engine.ledger.pause('all')
    await engine.controls.load()
    await engine.enqueueMany(job, Array(60).fill(payload))
    await engine.ledger.resume('all')
    await engine.controls.load()
    engine.wake()
    await settle(clock)
    assert.equal(await engine.ledger.tallies().then((all) => all.find((t) => t.stage === 'done')?.n), 60)
    assert.ok(most <= 2 * LANE_BYTES_MAX + bytes + 100, `${most} bytes`)
    assert.ok(most >= 4 * bytes, `${most} bytes`)
  })
})

/** Jobs in the bulk lane that end when told to. */
function held(kind = 'test.held') {
  const ends: (() => void)[] = []
  const job = defineJob({
    kind,
    payload: Item,
    lane: 'bulk',
    run: ({ signal }) =>
      new Promise<undefined>((resolve) => {
        ends.push(() => resolve(undefined))
        signal.addEventListener('abort', () => resolve(undefined))
      }),
  })
  return { job, ends }
}

const MIB = 1024 * 1024

test('as many large jobs run as there is room for, and one beside them, and the end of one lets in the next, without a look by the clock', async () => {
  const { job, ends } = held()
  await withEngine([job], async (engine, clock) => {
    const bytes = 3 * MIB
    await engine.enqueueMany(job, Array(12).fill({ name: 'x'.repeat(bytes) }))
    await settle(clock)
    for (let ended = 0; ended < 12; ended++) {
      assert.equal(ends.length, Math.min(12, 6 + ended))
      assert.ok(engine.window.bytes <= 2 * (LANE_BYTES_MAX + bytes + 100), `${engine.window.bytes} bytes`)
      ends[ended]!()
      await settle(clock)
    }
  })
})

test('large jobs that find no room beside others keep out neither other kinds nor other streams of theirs', async () => {
  const { job, ends } = held()
  const { job: other, counted } = counter('test.other', 'bulk')
  await withEngine([job, other], async (engine, clock) => {
    await engine.enqueueMany(job, Array(3).fill({ name: 'x'.repeat(LANE_BYTES_MAX) }), { stream: 'large' })
    await settle(clock)
    assert.equal(ends.length, 1)
    await add(engine, other, 358)
    await engine.enqueueMany(job, [{ name: 'a' }, { name: 'b' }], { stream: 'small' })
    // Within a second what cannot run has been given back.
    await clock.advance(1_000)
    await settle(clock)
    assert.equal(counted.n, 358)
    assert.equal(ends.length, 3)
    assert.ok((await claimed(engine)) <= 3)
  })
})

test('small jobs run beside a large one of their own kind and stream', async () => {
  const { job, ends } = held()
  await withEngine([job], async (engine, clock) => {
    await engine.enqueueMany(job, [{ name: 'x'.repeat(9 * MIB) }])
    await settle(clock)
    assert.equal(ends.length, 1)
    await engine.enqueueMany(job, Array(3).fill({ name: 'small' }))
    await clock.advance(10_000)
    await settle(clock)
    assert.equal(ends.length, 4)
  })
})

test('a job larger than the room runs, although smaller large ones never cease', async () => {
  const { job: huge, ends: hugeEnds } = held('test.huge')
  const { job, ends } = held()
  await withEngine([huge, job], async (engine, clock) => {
    const add = () => engine.enqueueMany(job, Array(4).fill({ name: 'x'.repeat(MIB / 8) }))
    await add()
    await settle(clock)
    await engine.enqueueMany(huge, [{ name: 'x'.repeat(LANE_BYTES_MAX) }])
    for (let turn = 0; turn < 5; turn++) {
      await add()
      await clock.advance(2_000)
      await settle(clock)
      for (const end of ends.splice(0, 4)) end()
      await settle(clock)
      assert.ok(engine.window.running.bulk >= 4)
    }
    assert.equal(hugeEnds.length, 1)
  })
})
