import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Row } from '../bench.ts'
import { explain } from './explanation.ts'

function aimsOf(rows: readonly Row[]): string[] {
  const [aims = ''] = explain(rows).filter((part) => part.startsWith('### Against the aims'))
  return aims.split('\n').filter((line) => line.startsWith('- '))
}

function row(name: string, subject: string, value: number): Row {
  return { case: name, subject, value, unit: 'jobs/s' }
}

describe('the aims of the engine bench', () => {
  test('a drain is held against the best peer, and not against the bare database', () => {
    const name = 'postgres: drain, 10 workers'
    const rows = [row(name, 'pg-boss', 50), row(name, 'graphile-worker', 100), row(name, 'limit', 900)]
    assert.deepEqual(aimsOf([row(name, 'tidemark', 140), ...rows]), [
      `- ${name}: 1.40 × the best peer (at least 1.3 ×: met)`,
    ])
    assert.deepEqual(aimsOf([row(name, 'tidemark', 120), ...rows]), [
      `- ${name}: 1.20 × the best peer (at least 1.3 ×: **missed**)`,
    ])
  })

  test('each case that is compared with another one is named once, with what it is compared with', () => {
    const own = (name: string, value: number): Row => row(`postgres: ${name}`, 'tidemark', value)
    const lines = aimsOf([
      own('drain, 1 process', 100),
      own('drain, 2 processes', 170),
      own('drain, one INSERT each, none fails', 100),
      own('drain, one INSERT each, 1 in 1,000 fails', 70),
      own('one job after 50k, stored after', 1.5),
      own('one job after 50k, run after', 4),
      own('drain over 10k settled', 100),
      own('drain over 1M settled', 95),
    ])
    assert.deepEqual(
      lines.map((line) => /: ([\d.]+) .*: (met|\*\*missed\*\*)\)$/.exec(line)?.slice(1)),
      [
        ['1.70', 'met'],
        ['0.70', '**missed**'],
        ['1.50', 'met'],
        ['0.95', 'met'],
      ],
    )
  })

  test('a second process is held against one, beside what it adds to a bare loop on this machine', () => {
    const [one, two] = ['postgres: drain, 1 process', 'postgres: drain, 2 processes']
    const rows = [row(one, 'tidemark', 100), row(two, 'tidemark', 110)]
    assert.deepEqual(aimsOf([...rows, row(one, 'limit', 200), row(two, 'limit', 240)]), [
      `- ${two}: 1.10 × one process, the bare database 1.20 × (at least 1.6 ×: **missed**)`,
    ])
  })

  test('what was not measured is not judged', () => {
    assert.deepEqual(aimsOf([row('postgres: drain, 2 processes', 'tidemark', 170)]), [])
    assert.deepEqual(aimsOf([row('sqlite full: drain, 10 workers', 'tidemark', 1)]), [])
  })
})
