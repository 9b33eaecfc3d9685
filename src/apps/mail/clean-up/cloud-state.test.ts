import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TidemarkError } from '../../../base/errors.ts'
import { callSplitting } from './cloud-state.ts'

const permanent = (): TidemarkError => new TidemarkError('Invalid id', { kind: 'permanent' })

test('of a call that a few ids spoil, exactly these fail and every other id is called once', async () => {
  const ids = fc.uniqueArray(fc.integer({ min: 0, max: 999 }).map(String), { minLength: 1, maxLength: 200 })
  await fc.assert(
    fc.asyncProperty(ids, fc.uniqueArray(fc.nat(199), { maxLength: 5 }), async (all, places) => {
      const poison = new Set(places.flatMap((at) => all[at] ?? []))
      const worked: string[] = []
      const called = await callSplitting(all, async (some) => {
        if (some.some((id) => poison.has(id))) throw permanent()
        worked.push(...some)
      })
      assert.deepEqual([...called.done].sort(), all.filter((id) => !poison.has(id)).sort())
      assert.deepEqual(called.failed.map(({ id }) => id).sort(), [...poison].sort())
      assert.deepEqual([...worked].sort(), [...called.done].sort())
    }),
    { numRuns: 50 },
  )
})

test('an error that may pass is thrown at once, without halving', async () => {
  let calls = 0
  const transient = new TidemarkError('a reset', { kind: 'transient' })
  await assert.rejects(
    callSplitting(['a', 'b', 'c'], async () => {
      calls += 1
      throw transient
    }),
    transient,
  )
  assert.equal(calls, 1)
})

test('where every id is refused, the search for a culprit ends', async () => {
  const ids = Array.from({ length: 1_000 }, (_, n) => `${n}`)
  let calls = 0
  await assert.rejects(
    callSplitting(ids, async () => {
      calls += 1
      throw permanent()
    }),
    /Invalid id/,
  )
  assert.ok(calls <= 250)
})

test('nothing is called for no ids', async () => {
  const called = await callSplitting([], () => Promise.reject(new Error('called')))
  assert.deepEqual(called, { done: [], failed: [] })
})
