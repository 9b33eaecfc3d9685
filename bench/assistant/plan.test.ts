import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { percentile } from './cases.ts'
import { aims } from './explanation.ts'
import { DATABASES, FULL, QUICK } from './session.ts'

describe("the numbers of the assistant's bench", () => {
  const row = (name: string, value: number, subject = 'tidemark') => ({
    case: name,
    subject,
    value,
    unit: 'ms',
  })

  test('times are compared with their aims, and what misses them is said', () => {
    const [label, draft] = aims([
      row('latency: sqlite, to label, p50', 499),
      row('latency: sqlite, to draft, p50', 1_001),
    ])
    assert.match(label!, /met/)
    assert.match(draft!, /missed/)
    assert.deepEqual(aims([]), [])
  })

  test('a backlog is compared with what the quota allows', () => {
    const rows = [row('backlog: postgres, units', 700), row('backlog: postgres, units', 1_000, 'limit quota')]
    assert.match(aims(rows)[0]!, /0\.70 × the quota's rate .*missed/)
    rows[0]!.value = 900
    assert.match(aims(rows)[0]!, /met/)
  })

  test('a percentile is one of the values', () => {
    const values = Array.from({ length: 20 }, (_, n) => 20 - n)
    assert.deepEqual([percentile(values, 50), percentile(values, 95), percentile([7], 95)], [10, 19, 7])
  })

  test('a quick run has fewer of everything that takes time', () => {
    for (const key of ['mails', 'users', 'mailsEach'] as const) assert.ok(QUICK[key] < FULL[key])
    for (const database of DATABASES) assert.ok(QUICK.backlog[database] < FULL.backlog[database])
  })
})
