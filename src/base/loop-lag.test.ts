import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { systemClock } from './clock.ts'
import { LoopLag } from './loop-lag.ts'

/** A loop whose turns take as long as they are told to; timers that are due fire between two of them. */
class Loop {
  nowMs = 0
  #timers: { atMs: number; fn: () => void }[] = []
  readonly lag = new LoopLag({
    monotonicMs: () => this.nowMs,
    timer: (ms, fn) => {
      const timer = { atMs: this.nowMs + ms, fn }
      this.#timers.push(timer)
      return () => {
        this.#timers = this.#timers.filter((other) => other !== timer)
      }
    },
  })

  get timers(): number {
    return this.#timers.length
  }

  turn(ms: number): void {
    this.nowMs += ms
    const due = this.#timers.filter(({ atMs }) => atMs <= this.nowMs)
    this.#timers = this.#timers.filter(({ atMs }) => atMs > this.nowMs)
    for (const { fn } of due) fn()
  }

  turns(n: number, ms: number): void {
    for (let i = 0; i < n; i++) this.turn(ms)
  }
}

/** Of a turn, up to 20 ms are not seen. */
const near = (found: number, expected: number): void =>
  assert.ok(Math.abs(found - expected) <= 40, `${found} ms, not ${expected}`)

describe('what a process itself has to do with the time of a call', () => {
  test('is nothing while its loop is idle', () => {
    const loop = new Loop()
    const watch = loop.lag.watch()
    loop.turns(200, 10)
    near(watch.endMs(), 0)
  })

  test('is all of it where a service answers at once and the loop is in long turns', () => {
    const loop = new Loop()
    const watch = loop.lag.watch()
    loop.turns(2, 800)
    near(watch.endMs(), 1_600)
  })

  test('is the turn at its beginning and the one at its end, however busy the loop was in between', () => {
    const loop = new Loop()
    const watch = loop.lag.watch()
    loop.turns(100, 100)
    near(watch.endMs(), 200)
  })

  test('is the turn in which it ends, where that is the only one', () => {
    const loop = new Loop()
    const early = loop.lag.watch()
    loop.turns(10, 10)
    const late = loop.lag.watch()
    loop.nowMs += 700
    near(early.endMs(), 700)
    near(late.endMs(), 700)
  })

  test('is no turn that was over before the answer came', () => {
    const loop = new Loop()
    const watch = loop.lag.watch()
    loop.turns(5, 10)
    loop.turn(900)
    loop.turns(50, 10)
    near(watch.endMs(), 0)
  })

  test('is looked at only while there are calls, and said once', () => {
    const loop = new Loop()
    const [one, two] = [loop.lag.watch(), loop.lag.watch()]
    one.endMs()
    assert.equal(loop.timers, 1)
    two.endMs()
    assert.equal(loop.timers, 0)
    loop.nowMs += 500
    assert.equal(two.endMs(), 0)
    const again = loop.lag.watch()
    loop.turn(600)
    near(again.endMs(), 600)
  })

  test('is seen of the real loop', async () => {
    const watch = systemClock.watchLoop()
    await new Promise((resolve) => setImmediate(resolve))
    const fromMs = systemClock.monotonicMs()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    const blockedMs = systemClock.monotonicMs() - fromMs
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(watch.endMs() >= blockedMs - 50)
  })
})
