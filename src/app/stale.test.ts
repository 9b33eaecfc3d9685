import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { FakeClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { createEngine } from '../engine/engine.ts'
import { defineJob, request } from '../engine/index.ts'
import { evaluateAlerts } from '../engine/observe/alert-rules.ts'
import { openLedger } from '../ledger/open.ts'
import { GAP_MS, LOOK_MS, StaleWatch } from './stale.ts'

const MINUTE_MS = 60_000
const POLL_MS = 3 * MINUTE_MS
const STREAM = 'post:ann'

/** An app that asks for the post of Ann every three minutes; `world.heardAtMs` is when it was last answered. */
async function watched(t: { after: (fn: () => Promise<void>) => void }) {
  const clock = new FakeClock(Date.UTC(2026, 0, 1))
  const ledger = await openLedger(':memory:', { clock })
  const job = defineJob({
    kind: 'post.read',
    payload: z.object({}),
    budget: (stream) => `units of ${stream}`,
    run: async () => ({}),
  })
  const engine = await createEngine({ ledger, clock, jobs: [job] })
  t.after(async () => {
    await engine.stop()
    await ledger.close()
  })
  const stream = await engine.streams.open(STREAM)
  const world: { heardAtMs: number | null | undefined } = { heardAtMs: clock.now() }
  const sources = {
    list: async () => [{ name: 'ann', stream: STREAM }],
    begin: async () => {},
    pollMs: () => POLL_MS,
    heardAtMs: async () => world.heardAtMs,
    kinds: new Set(['post.read']),
  }
  const watch = new StaleWatch({
    ledger,
    clock,
    apps: new Map([['post', { sources }]]),
    engine: () => engine,
  })
  /** Half a minute at a time, as housekeeping looks. Returns the conditions that hold at the end. */
  const pass = async (minutes: number, each?: () => void): Promise<string[]> => {
    for (let half = 0; half < 2 * minutes; half++) {
      await clock.advance(MINUTE_MS / 2)
      each?.()
      await watch.look()
    }
    const stale = await watch.look()
    return evaluateAlerts({ now: clock.now(), ...(stale && { stale }) }).alerts.map(({ text }) => text)
  }
  /** The service of that stream answers that nobody may ask for so long. */
  const throttle = async (ofStream: string, retryAfterMs: number): Promise<void> => {
    const budget = engine.limits.budget(`units of ${ofStream}`, { rate: 10 })
    const throttled = new TidemarkError('slow down', { kind: 'throttled', retryAfterMs })
    await assert.rejects(budget.call(1, () => Promise.reject(throttled)))
  }
  return { clock, ledger, engine, job, stream, world, watch, pass, throttle, sources }
}

describe('a source that is followed', () => {
  test('and whose service is heard never alarms', async (t) => {
    const { pass, watch, world, clock } = await watched(t)
    watch.begin()
    const alarms = await pass(300, () => {
      world.heardAtMs = clock.now()
    })
    assert.deepEqual(alarms, [])
  })

  test('and whose service is silent for longer than its schedule lets expect alarms, until it is heard', async (t) => {
    const { pass, watch, world, clock } = await watched(t)
    watch.begin()
    assert.deepEqual(await pass(29), [])
    assert.match((await pass(5)).join(), /^Nothing was heard of ann for 3\d min/)
    world.heardAtMs = clock.now()
    assert.deepEqual(await pass(3), [])
  })

  test('has its full time after the machine slept, and is not called silent for the night', async (t) => {
    const { pass, watch, clock } = await watched(t)
    watch.begin()
    await pass(10)
    await clock.advance(9 * 60 * MINUTE_MS)
    assert.deepEqual(await pass(29), [])
    assert.equal((await pass(6)).length, 1)
    assert.ok(GAP_MS > 2 * LOOK_MS, 'a slow look is no sleep')
  })

  test('does not alarm while it is paused, and has its full time afterwards', async (t) => {
    const { pass, watch, engine } = await watched(t)
    watch.begin()
    await engine.pause('stream', STREAM)
    assert.deepEqual(await pass(120), [])
    await engine.resume('stream', STREAM)
    assert.deepEqual(await pass(29), [])
    assert.equal((await pass(6)).length, 1)
  })

  test('does not alarm while its service throttles it, and has its full time afterwards', async (t) => {
    const { pass, watch, throttle } = await watched(t)
    watch.begin()
    await pass(20)
    await throttle(STREAM, 55 * MINUTE_MS)
    assert.deepEqual(await pass(54), [])
    assert.deepEqual(await pass(29), [])
    assert.equal((await pass(6)).length, 1)
  })

  test('alarms all the same while another account is throttled', async (t) => {
    const { pass, watch, throttle, engine, stream, job, world, clock } = await watched(t)
    watch.begin()
    await throttle('post:ben', 55 * MINUTE_MS)
    await engine.write({
      segments: [{ streamId: stream.id, from: 0, to: 9, ref: 's' }],
      counts: [{ segment: 's', listed: 1, seal: true }],
      jobs: [request(job, {}, { stream: STREAM, segment: 's' })],
    })
    const alarms = await pass(36, () => {
      world.heardAtMs = clock.now()
    })
    assert.match(alarms.join(), /^Nothing of ann has moved/)
  })

  test('alarms although it is heard, where work that could run does not move', async (t) => {
    const { pass, watch, world, clock, engine, stream, job } = await watched(t)
    watch.begin()
    const hear = (): void => {
      world.heardAtMs = clock.now()
    }
    // Nobody runs it: the engine is not started.
    await engine.write({
      segments: [{ streamId: stream.id, from: 0, to: 9, ref: 's' }],
      counts: [{ segment: 's', listed: 1, seal: true }],
      jobs: [request(job, {}, { stream: STREAM, segment: 's' })],
    })
    assert.deepEqual(await pass(29, hear), [])
    assert.match((await pass(6, hear)).join(), /^Nothing of ann has moved for 3\d min/)
  })

  test('does not alarm for work that waits for its hour', async (t) => {
    const { pass, watch, world, clock, engine, stream, job } = await watched(t)
    watch.begin()
    await engine.write({
      segments: [{ streamId: stream.id, from: 0, to: 9, ref: 's' }],
      counts: [{ segment: 's', listed: 1, seal: true }],
      jobs: [request(job, {}, { stream: STREAM, segment: 's', runAt: clock.now() + 10 * 60 * MINUTE_MS })],
    })
    const alarms = await pass(90, () => {
      world.heardAtMs = clock.now()
    })
    assert.deepEqual(alarms, [])
  })
})

test('who brings a source up to date once watches none', async (t) => {
  const { pass, watch } = await watched(t)
  assert.deepEqual(await pass(600), [])
  assert.equal(await watch.look(), undefined)
})

test('an app that cannot be asked is told to the log, and keeps no other alert from being raised', async (t) => {
  const { watch, engine, sources, clock, pass } = await watched(t)
  const notes: string[] = []
  engine.events.on((event) => {
    if (event.type === 'note') notes.push(event.text)
  })
  watch.begin()
  sources.list = () => Promise.reject(new Error('no such table'))
  await clock.advance(LOOK_MS)
  assert.equal(await watch.look(), undefined)
  assert.match(notes.join(), /cannot be told just now: no such table/)
  sources.list = async () => [{ name: 'ann', stream: STREAM }]
  assert.equal((await pass(40)).length, 1)
})

test('the alarm is on the page and goes out once, and ends when the service is heard', async (t) => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1))
  const ledger = await openLedger(':memory:', { clock })
  const world = { heardAtMs: clock.now() }
  const sources = {
    list: async () => [{ name: 'ann', stream: STREAM }],
    begin: async () => {},
    pollMs: () => POLL_MS,
    heardAtMs: async () => world.heardAtMs,
  }
  const watch = new StaleWatch({
    ledger,
    clock,
    apps: new Map([['post', { sources }]]),
    engine: () => undefined,
  })
  watch.begin()
  const sent: string[] = []
  const sink = { name: 'a test', send: async ({ target }: { target: string }) => void sent.push(target) }
  const engine = await createEngine({
    ledger,
    clock,
    jobs: [],
    housekeeping: {
      stale: () => watch.look(),
      sinks: [sink],
      thresholds: { staleMs: 6 * MINUTE_MS, staleRounds: 1 },
    },
  })
  t.after(async () => {
    await engine.stop()
    await ledger.close()
  })
  await engine.streams.open(STREAM)
  await engine.start()
  const pass = async (minutes: number): Promise<string[]> => {
    for (let second = 0; second < minutes * 60; second++) await clock.advance(1_000)
    return (await ledger.alerts())
      .filter(({ condition }) => condition === 'stale')
      .map(({ target }) => target)
  }
  assert.deepEqual(await pass(5), [])
  assert.deepEqual(await pass(5), [STREAM])
  await pass(5)
  assert.deepEqual(sent, [STREAM])
  world.heardAtMs = clock.now()
  assert.deepEqual(await pass(3), [])
})
