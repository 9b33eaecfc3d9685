import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../base/errors.ts'
import { pricesOf } from './prices.ts'

test('a message costs 20 units, or 5 in older projects', () => {
  assert.equal(pricesOf('current')['messages.get'], 20)
  assert.equal(pricesOf('older')['messages.get'], 5)
})

test('a price can be overridden without touching the others', () => {
  const prices = pricesOf('older', { 'messages.get': 7 })
  assert.equal(prices['messages.get'], 7)
  assert.deepEqual({ ...prices, 'messages.get': 5 }, pricesOf('older'))
})

test('a price that nobody knows or that is no number is refused', () => {
  assert.throws(() => pricesOf('current', { 'messages.got': 7 }), UsageError)
  assert.throws(() => pricesOf('current', { constructor: 7 }), UsageError)
  for (const units of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => pricesOf('current', { 'messages.get': units }), UsageError)
  }
})
