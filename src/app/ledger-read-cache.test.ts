import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../base/clock.ts'
import { taggedAnswer } from '../server/etag.ts'
import { LedgerReadCache } from './ledger-read-cache.ts'

/** A look that takes so long by the clock, and says which it was. */
function lookOf(clock: FakeClock, ms: number): { read: () => Promise<{ n: number }>; count: () => number } {
  let n = 0
  const read = async (): Promise<{ n: number }> => {
    n += 1
    const answer = { n }
    if (ms > 0) await clock.advance(ms)
    return answer
  }
  return { read, count: () => n }
}

describe('looks that many ask for', () => {
  test('those who ask at the same time share one look', async () => {
    const clock = new FakeClock()
    const cache = new LedgerReadCache()
    const { read, count } = lookOf(clock, 0)
    const answers = await Promise.all(Array.from({ length: 50 }, () => cache.read('a', clock, read)))
    assert.equal(count(), 1)
    assert.equal(new Set(answers).size, 1)
  })

  test('who asks later gets a new look, as long as looking is cheap', async () => {
    const clock = new FakeClock()
    const cache = new LedgerReadCache()
    const { read } = lookOf(clock, 0)
    assert.equal((await cache.read('a', clock, read)).n, 1)
    assert.equal((await cache.read('a', clock, read)).n, 2)
    assert.equal((await cache.read('b', clock, read)).n, 3, 'other questions have answers of their own')
  })

  test('looks that take long are taken seldom, and the last answer is given in between', async () => {
    const clock = new FakeClock()
    const cache = new LedgerReadCache()
    const { read, count } = lookOf(clock, 100)
    let asked = 0
    for (let atMs = 0; atMs < 60_000; atMs += 50) {
      await cache.read('a', clock, read)
      asked += 1
      await clock.advance(50)
    }
    assert.equal(asked, 1_200)
    // A twentieth of the time that passed, and what may be spent at once.
    assert.ok(count() >= 20 && count() <= 40, `${count()} looks of 100 ms in a minute`)
  })

  test('after a change everybody looks anew', async () => {
    const clock = new FakeClock()
    const cache = new LedgerReadCache()
    const { read, count } = lookOf(clock, 400)
    await cache.read('a', clock, read)
    await cache.read('a', clock, read)
    await cache.read('a', clock, read)
    assert.equal(count(), 2, 'the credit is used up')
    cache.forget()
    await cache.read('a', clock, read)
    assert.equal(count(), 3)
  })

  test('a look that failed is not kept', async () => {
    const clock = new FakeClock()
    const cache = new LedgerReadCache()
    const failing = async (): Promise<never> => {
      await clock.advance(5_000)
      throw new Error('away')
    }
    await assert.rejects(cache.read('a', clock, failing), /away/)
    assert.deepEqual(await cache.read('a', clock, async () => ({ n: 7 })), { n: 7 })
  })

  test('only so many answers are kept', async () => {
    const clock = new FakeClock()
    const cache = new LedgerReadCache()
    const slow = lookOf(clock, 1_000)
    const first = await cache.read('first', clock, slow.read)
    assert.equal(await cache.read('first', clock, slow.read), first)
    for (let n = 0; n < 100; n++) await cache.read(`other ${n}`, clock, async () => ({ n }))
    assert.notEqual(await cache.read('first', clock, slow.read), first)
  })
})

describe('an answer that many get', () => {
  test('is written down once, and its tag does not depend on when it was seen', () => {
    const value = { at: 1, items: ['x'] }
    const answer = taggedAnswer(value)
    assert.equal(taggedAnswer(value), answer)
    assert.equal(answer.text, '{"at":1,"items":["x"]}')
    assert.equal(taggedAnswer({ at: 2, items: ['x'] }).etag, answer.etag)
    assert.notEqual(taggedAnswer({ at: 1, items: ['y'] }).etag, answer.etag)
  })
})
