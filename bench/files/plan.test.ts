import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Row } from '../bench.ts'
import { aims } from './explanation.ts'
import { hashSpeeds } from './hash-speed.ts'
import { FULL } from './session.ts'
import { titleOf } from './transfer-case.ts'
import { fileCount, filesOf, foldersOf } from './tree.ts'

describe('the files of the bench', () => {
  test('there are as many as were asked for, each at a place and with a content of its own', () => {
    assert.deepEqual([fileCount(FULL.small), fileCount(FULL.many)], [10_000, 100_000])
    const tree = { tops: 2, subs: 3, files: 4, bytesMax: 64 }
    const files = [...filesOf(tree)]
    const folders = new Set(foldersOf(tree))
    assert.deepEqual([files.length, folders.size], [24, 8])
    assert.equal(new Set(files.map(({ path }) => path)).size, 24)
    assert.equal(new Set(files.map(({ content }) => content.toString())).size, 24)
    for (const { path } of files) assert.ok(folders.has(path.slice(0, path.lastIndexOf('/'))), path)
  })

  test('sizes are in the names of cases', () => {
    assert.equal(titleOf({ sizes: FULL }, 'small up'), '10,000 small files up')
    assert.equal(titleOf({ sizes: FULL }, 'huge down'), '5 files of 1,024 MiB down')
  })
})

describe('the numbers of the file bench', () => {
  const textOf = (rows: Row[]): string => aims(rows).join('\n')
  const row = (name: string, subject: string, value: number, unit: string): Row => ({
    case: name,
    subject,
    value,
    unit,
  })

  test('a pace is compared with its limit, a time the other way round, and what misses its aim is said', () => {
    const text = textOf([
      row('small up', 'limit', 1_000, 'files/s'),
      row('small up', 'tidemark', 850, 'files/s'),
      row('one change', 'limit', 10, 'ms'),
      row('one change', 'tidemark', 40, 'ms'),
    ])
    assert.match(text, /small up: 0\.85 × the plain protocol \(at least 0\.8 ×: met\)/)
    assert.match(text, /one change: 0\.25 × the plain protocol \(at least 0\.8 ×: \*\*missed\*\*\)/)
  })

  test('calls may reach their aim, times and sizes must stay below it', () => {
    const text = textOf([
      row('no-op sync of 100,000 files', 'tidemark', 3_000, 'ms'),
      row('no-op sync of 100,000 files, API calls', 'tidemark', 2, 'calls'),
      row('idle watch of 100,000 files, processor', 'tidemark', 0.5, '%'),
      row('idle watch of 100,000 files, resident over a bare process', 'tidemark', 101, 'MB'),
    ])
    const verdicts = [...text.matchAll(/: (met|\*\*missed\*\*)\)/g)].map(([, verdict]) => verdict)
    assert.deepEqual(verdicts, ['**missed**', 'met', 'met', '**missed**'])
  })

  test('all three hashes are timed', () => {
    const speeds = Object.values(hashSpeeds({ gigabytes: 0.002 }))
    assert.ok(speeds.length === 3 && speeds.every((speed) => speed > 0), String(speeds))
  })
})
