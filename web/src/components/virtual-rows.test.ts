import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { rowWindow } from './virtual-rows.ts'

test('what is in sight is drawn, and the space of the rest is kept', () => {
  const sizes = fc.record({
    rows: fc.integer({ min: 0, max: 200_000 }),
    scrollPx: fc.integer({ min: 0, max: 10_000_000 }),
    heightPx: fc.integer({ min: 40, max: 2_000 }),
  })
  fc.assert(
    fc.property(sizes, ({ rows, scrollPx, heightPx }) => {
      const seen = rowWindow({ rows, rowPx: 40, scrollPx, heightPx })
      assert.ok(seen.from >= 0 && seen.to <= rows && seen.from <= seen.to)
      assert.equal(seen.beforePx + (seen.to - seen.from) * 40 + seen.afterPx, rows * 40)
      assert.ok(seen.to - seen.from <= Math.ceil(heightPx / 40) + 16)
      const top = Math.min(scrollPx, Math.max(0, rows * 40 - heightPx))
      assert.ok(seen.beforePx <= top)
      assert.ok(seen.to * 40 >= Math.min(rows * 40, top + heightPx))
    }),
  )
})

test('a list that is higher than browsers can scroll ends where they do', () => {
  const seen = rowWindow({ rows: 1_000_000, rowPx: 40, scrollPx: 0, heightPx: 400 })
  assert.ok(seen.afterPx < 15_000_000)
})
