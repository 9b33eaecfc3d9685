import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import { EventStream } from '../engine/observe/events.ts'
import { forwardEngineEvents } from './engine-events.ts'
import { createEventHub, eventIdOf, type LiveEvent } from './event-hub.ts'
import { startSnapshotLoop } from './snapshot-loop.ts'

function collect(hub: ReturnType<typeof createEventHub>): { events: LiveEvent[]; stop: () => void } {
  const events: LiveEvent[] = []
  return { events, stop: hub.subscribe((event) => events.push(event)) }
}

describe('the hub', () => {
  test('gives what came after an id, and nothing for an id of another start', () => {
    const hub = createEventHub({ clock: new FakeClock() })
    for (const n of [1, 2, 3]) hub.emit('mark', n)
    const missed = hub.since(eventIdOf(hub, 1))
    assert.deepEqual(
      missed?.map(({ data }) => data),
      [2, 3],
    )
    assert.deepEqual(hub.since(eventIdOf(hub, 3)), [])
    const other = createEventHub({ clock: new FakeClock() })
    for (const id of [null, '', 'x', eventIdOf(other, 1), eventIdOf(hub, 4), `${hub.epoch}-1-1`, '-1']) {
      assert.equal(hub.since(id), null, String(id))
    }
  })

  test('says so when what is asked for is no longer there', () => {
    const hub = createEventHub({ clock: new FakeClock(), keep: 10 })
    for (let n = 1; n <= 100; n++) hub.emit('mark', n)
    assert.equal(hub.since(eventIdOf(hub, 10)), null)
    assert.deepEqual(
      hub.since(eventIdOf(hub, 95))?.map(({ data }) => data),
      [96, 97, 98, 99, 100],
    )
  })

  test('keeps of a state only the last', () => {
    const hub = createEventHub({ clock: new FakeClock(), keep: 10 })
    hub.emit('mark', 'a')
    for (let n = 0; n < 1_000; n++) hub.emit('snapshot', n)
    hub.emit('snapshot-mail', 'm')
    assert.deepEqual(
      hub.since(eventIdOf(hub, 0))?.map(({ data }) => data),
      ['a', 999, 'm'],
    )
  })
})

describe('the snapshot loop', () => {
  test('looks only while somebody listens, and emits only what changed', async () => {
    const clock = new FakeClock()
    const hub = createEventHub({ clock })
    const state = { at: 0, value: 1 }
    let looks = 0
    const read = async () => {
      looks += 1
      return { ...state, at: clock.now() }
    }
    const loop = startSnapshotLoop({ hub, clock, sources: [{ type: 'snapshot', read }] })
    await clock.advance(60_000)
    assert.equal(looks, 0)
    const { events, stop } = collect(hub)
    await clock.advance(5_000)
    assert.ok(looks >= 4 && looks <= 6, `${looks} looks`)
    assert.equal(events.length, 1)
    state.value = 2
    await clock.advance(1_000)
    assert.equal(events.length, 2)
    stop()
    const before = looks
    await clock.advance(60_000)
    assert.ok(looks <= before + 1)
    assert.equal(clock.pendingTimers, 0)
    await loop.close()
  })

  test('gives whoever comes later a snapshot of their own', async () => {
    const clock = new FakeClock()
    const hub = createEventHub({ clock })
    const loop = startSnapshotLoop({
      hub,
      clock,
      sources: [{ type: 'snapshot', read: async () => ({ a: 1 }) }],
    })
    collect(hub)
    await clock.advance(3_000)
    const late = [collect(hub), collect(hub), collect(hub)]
    await clock.advance(3_000)
    for (const { events } of late) assert.equal(events.length, 1)
    await loop.close()
  })

  test('is not put to sleep by who leaves before the look that they came for', async () => {
    const clock = new FakeClock()
    const hub = createEventHub({ clock })
    const slow = { ms: 0 }
    const read = async () => {
      if (slow.ms > 0) await new Promise<void>((resolve) => void clock.timer(slow.ms, resolve))
      return { a: 1 }
    }
    const loop = startSnapshotLoop({ hub, clock, sources: [{ type: 'snapshot', read }] })
    collect(hub).stop()
    await clock.advance(1_000)
    const second = collect(hub)
    await clock.advance(1_000)
    assert.equal(second.events.length, 1)
    slow.ms = 500
    await clock.advance(600)
    collect(hub).stop()
    second.stop()
    await clock.advance(5_000)
    const third = collect(hub)
    await clock.advance(1_000)
    assert.equal(third.events.length, 1)
    await loop.close()
  })

  test('goes on after looks that failed, of which it tells once, and rests after one that was slow', async () => {
    const clock = new FakeClock()
    const hub = createEventHub({ clock })
    const errors: unknown[] = []
    let looks = 0
    const read = async () => {
      looks += 1
      if (looks <= 3) throw new Error('away')
      await new Promise<void>((resolve) => void clock.timer(2_000, resolve))
      return looks
    }
    const onError = (thrown: unknown) => errors.push(thrown)
    const loop = startSnapshotLoop({ hub, clock, sources: [{ type: 'snapshot', read }], onError })
    const { events } = collect(hub)
    await clock.advance(43_100)
    assert.equal(errors.length, 1)
    assert.ok(events.length >= 3 && events.length <= 4, `${events.length} events`)
    const closed = loop.close()
    await clock.advance(2_000)
    await closed
  })
})

describe("the engine's events", () => {
  test('are passed on, but only so many a second', async () => {
    const clock = new FakeClock()
    const hub = createEventHub({ clock })
    const stream = new EventStream(clock)
    const stop = forwardEngineEvents({ events: stream, hub, clock })
    const { events } = collect(hub)
    for (let id = 0; id < 5_000; id++) {
      const job = { id, kind: 'mail.fetch', stream: 's', attempt: 1 }
      stream.emit({ type: 'job', what: 'done', ...job })
      stream.emit({ type: 'job', what: 'failed', ...job })
    }
    stream.emit({ type: 'mark', stream: 's', mark: '2026', position: 3 })
    stream.emit({ type: 'engine', what: 'started', owner: 1 })
    assert.equal(events.length, 21)
    assert.deepEqual(events[20]?.data, { stream: 's', mark: '2026', position: 3, at: clock.now() })
    await clock.advance(1_000)
    assert.deepEqual(events[21], { id: 22, type: 'skipped', data: { job: 4_980 } })
    stream.emit({
      type: 'pause',
      what: 'paused',
      scope: 'all',
      target: '',
      code: 'by-hand',
      reason: 'by hand',
    })
    assert.equal(events[22]?.type, 'pause')
    stop()
    stream.emit({ type: 'pause', what: 'resumed', scope: 'all', target: '', code: 'by-hand', reason: '' })
    assert.equal(events.length, 23)
    assert.equal(clock.pendingTimers, 0)
  })
})
