import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tomlLines } from './load.ts'

test('keys are found in tables, as dotted keys, quoted and in lists of tables', () => {
  const lines = tomlLines(
    [
      '# a comment = 1',
      'log.level = "info"',
      '[engine]',
      '  workers = 8',
      '"window" = 100',
      '',
      '[[bandwidth.timetable]]',
      'from = "08:00"',
      '[[bandwidth.timetable]]',
      'from = "18:00"',
    ].join('\n'),
  )
  assert.deepEqual(
    [
      'log.level',
      'engine',
      'engine.workers',
      'engine.window',
      'bandwidth.timetable',
      'bandwidth.timetable.from',
    ].map((key) => lines.get(key)),
    [2, 3, 4, 5, 7, 8],
  )
  assert.equal(lines.get('a comment'), undefined)
})
