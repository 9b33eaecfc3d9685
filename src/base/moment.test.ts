import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockTime, distance, isoTime, moment } from './moment.ts'

const noon = new Date(2026, 5, 1, 12, 0, 0).getTime()

test('a moment of the same day needs no date', () => {
  assert.equal(clockTime(noon + 65_000, noon), '12:01:05')
})

test('a moment of another day has its date', () => {
  assert.equal(clockTime(noon - 86_400_000, noon), '2026-05-31 12:00:00')
})

test('a moment says how far away it is, in both directions', () => {
  assert.equal(moment(noon + 180_000, noon), '12:03:00 (in 3 min)')
  assert.equal(moment(noon - 5_000, noon), '11:59:55 (5 s ago)')
  assert.equal(distance(noon + 400, noon), 'now')
})

test('a number that is no time is shown as it is', () => {
  assert.equal(clockTime(9e15, noon), '9000000000000000')
  assert.equal(isoTime(9e15), '9000000000000000')
  assert.equal(isoTime(null), null)
})
