import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { BadWindow, SecondsRing } from './stat-windows.ts'

describe('rates', () => {
  test('are over the last full second, minute and five minutes', () => {
    const ring = new SecondsRing(0)
    for (let second = 0; second < 600; second++) ring.add(second < 570 ? 10 : 40, second * 1_000)
    const rates = ring.rates(600_000)
    assert.deepEqual(rates, { perSecond1s: 40, perSecond1m: 25, perSecond5m: 13 })
  })

  test('do not count the second that is not over', () => {
    const ring = new SecondsRing(0)
    ring.add(10, 500)
    ring.add(99, 1_100)
    assert.equal(ring.rates(1_900).perSecond1s, 10)
    assert.equal(ring.rates(2_000).perSecond1s, 99)
  })

  test('of a young process are over the time it has lived', () => {
    const ring = new SecondsRing(5_000_000)
    assert.deepEqual(ring.rates(5_000_500), { perSecond1s: 0, perSecond1m: 0, perSecond5m: 0 })
    for (let second = 0; second < 4; second++) ring.add(8, 5_000_000 + second * 1_000)
    assert.deepEqual(ring.rates(5_004_000), { perSecond1s: 8, perSecond1m: 8, perSecond5m: 8 })
  })

  test('fall to nothing in a silence', () => {
    const ring = new SecondsRing(0)
    ring.add(100, 0)
    assert.equal(ring.rates(61_000).perSecond1m, 0)
    assert.ok(ring.rates(61_000).perSecond5m > 0)
    assert.equal(ring.rates(400_000).perSecond5m, 0)
  })

  test('agree with counting by hand', () => {
    const steps = fc.array(fc.tuple(fc.nat({ max: 50 }), fc.nat({ max: 60_000 })), { maxLength: 100 })
    fc.assert(
      fc.property(steps, (list) => {
        const ring = new SecondsRing(0)
        const added: [second: number, n: number][] = []
        let nowMs = 0
        for (const [n, ms] of list) {
          nowMs += ms
          ring.add(n, nowMs)
          added.push([Math.floor(nowMs / 1_000), n])
        }
        const now = Math.floor(nowMs / 1_000)
        const by = (window: number): number => {
          const full = Math.min(window, now)
          const sum = added
            .filter(([second]) => second < now && second >= now - full)
            .reduce((s, [, n]) => s + n, 0)
          return full === 0 ? 0 : sum / full
        }
        assert.deepEqual(ring.rates(nowMs), { perSecond1s: by(1), perSecond1m: by(60), perSecond5m: by(300) })
      }),
    )
  })
})

describe('the share of bad items', () => {
  test('is over about the last 10,000 items', () => {
    const window = new BadWindow()
    for (let i = 0; i < 5_000; i++) {
      window.isolated(1)
      window.processed(1)
    }
    assert.equal(window.share().share, 1)
    for (let i = 0; i < 5_000; i++) window.processed(1)
    assert.equal(window.share().share, 0.5)
    for (let i = 0; i < 15_000; i++) window.processed(1)
    assert.equal(window.share().share, 0)
    assert.equal(window.share().bad, 0)
  })

  test('of nothing is none', () => {
    assert.deepEqual(new BadWindow().share(), { items: 0, bad: 0, share: 0 })
  })

  test('is over at least the last 10,000 and at most a bucket and a batch more, whatever the batches', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 3_000 }), { maxLength: 300 }),
        fc.nat({ max: 40 }),
        (batches, everyBad) => {
          const window = new BadWindow()
          let total = 0
          const largest = Math.max(0, ...batches)
          for (const [i, batch] of batches.entries()) {
            if (everyBad > 0 && i % everyBad === 0) window.isolated(Math.min(1, batch))
            window.processed(batch)
            total += batch
          }
          const { items, bad, share } = window.share()
          assert.ok(items >= Math.min(total, 10_000), `${items} of ${total}`)
          assert.ok(items <= Math.max(10_000 + 100 + 2 * largest, 0))
          assert.ok(bad >= 0 && share >= 0 && share <= 1)
        },
      ),
    )
  })
})
