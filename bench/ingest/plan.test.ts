import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { aims } from './explanation.ts'
import { FULL, QUICK } from './session.ts'

describe('the numbers of the ingest bench', () => {
  const row = (name: string, value: number, subject = 'tidemark') => ({
    case: name,
    subject,
    value,
    unit: 'records/s',
  })

  test('speed is compared with the append alone, and what misses its aim is said', () => {
    const rows = [row('speed: sqlite', 800), row('speed: sqlite', 1_000, 'limit append')]
    assert.match(aims(rows)[0]!, /0\.80 × the append alone .*met/)
    rows[0]!.value = 600
    assert.match(aims(rows)[0]!, /missed/)
    assert.deepEqual(aims([]), [])
  })

  test('memory and lookups are compared from the smallest to the largest', () => {
    const rows = [
      ...[row('memory: an object of 50 MB', 200), row('memory: an object of 500 MB', 400)],
      ...[row('shards: sqlite, 1,000, lookup', 1), row('shards: sqlite, 10,000, lookup', 1.5)],
    ]
    const [memory, lookup] = aims(rows)
    assert.match(memory!, /2\.00 × .*missed/)
    assert.match(lookup!, /1\.50 × .*met/)
  })

  test('a quick run has fewer of everything', () => {
    for (const key of ['objects', 'records', 'tiny'] as const) assert.ok(QUICK[key] < FULL[key])
    assert.ok(QUICK.hugeBytes.at(-1)! < FULL.hugeBytes[0]!)
    assert.ok(QUICK.shards.length < FULL.shards.length)
  })
})
