import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { runOrder } from './child.ts'
import { percentile } from './measure.ts'
import { processorUs } from './processor.ts'
import type { Target } from './subject.ts'

describe('a measurement', () => {
  test('runs in processes of its own, one leaving the jobs that the next drains', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-measure-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const target: Target = { kind: 'sqlite', file: join(folder, 'jobs.db'), synchronous: 'FULL' }
    const order = { subject: 'limit', target, concurrency: 10 }
    const filled = await runOrder({ ...order, task: { do: 'enqueue in batches', count: 2500 } })
    const drained = await runOrder({ ...order, task: { do: 'drain', count: 2500 } })
    for (const answer of [filled, drained]) {
      assert.ok('values' in answer, JSON.stringify(answer))
      assert.ok((answer.values[0] ?? 0) > 0)
    }
  })

  test('what a subject cannot do comes back as an error and ends nothing else', async () => {
    const target: Target = { kind: 'sqlite', file: ':memory:', synchronous: 'FULL' }
    const answer = await runOrder({
      subject: 'limit',
      target,
      concurrency: 1,
      task: { do: 'block', count: 1 },
    })
    assert.deepEqual(answer, { error: 'this subject cannot block' })
  })

  test('processor time is that of this process, where there is no server, and grows with its work', () => {
    const target: Target = { kind: 'sqlite', file: ':memory:', synchronous: 'FULL' }
    const before = processorUs(target)
    for (let n = 0; n < 1e6; n++) JSON.parse('{}')
    const after = processorUs(target)
    assert.equal(before === undefined, after === undefined)
    if (before && after) assert.ok(after.client > before.client && after.server === 0)
  })

  test('percentiles are values that were measured', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index)
    assert.equal(percentile(values, 0.5), 51)
    assert.equal(percentile(values, 0.99), 100)
    assert.throws(() => percentile([], 0.5))
  })
})
