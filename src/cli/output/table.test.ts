import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { alignedTable, type Column, plainTable } from './table.ts'
import { textWidth, truncate } from './text-width.ts'

type Job = { id: number; kind: string; note?: string }

const columns: Column<Job>[] = [
  { title: 'id', value: ({ id }) => id, align: 'right' },
  { title: 'kind', value: ({ kind }) => kind },
  { title: 'note', value: ({ note }) => note },
]

describe('on a terminal', () => {
  test('columns are aligned, numbers to the right', () => {
    const rows = [
      { id: 7, kind: 'fetch', note: 'x' },
      { id: 1234, kind: 'store' },
    ]
    assert.deepEqual(alignedTable({ columns, rows, width: 80 }), [
      '  ID  KIND   NOTE',
      '   7  fetch  x',
      '1234  store',
    ])
  })

  test('characters of double width keep the columns straight', () => {
    const rows = [
      { id: 1, kind: '漢字', note: 'x' },
      { id: 2, kind: 'abcd', note: 'y' },
    ]
    assert.deepEqual(alignedTable({ columns, rows, width: 80 }), [
      'ID  KIND  NOTE',
      ' 1  漢字  x',
      ' 2  abcd  y',
    ])
  })

  test('the widest column is cut until the line fits', () => {
    const rows = [{ id: 1, kind: 'fetch', note: 'a very long note that does not fit' }]
    assert.deepEqual(alignedTable({ columns, rows, width: 26 })[1], ' 1  fetch  a very long no…')
  })

  test('control characters in the data are shown, not obeyed', () => {
    const rows = [{ id: 1, kind: '\u001b]0;title\u0007', note: 'a\nb' }]
    assert.equal(alignedTable({ columns, rows, width: 80 })[1], ' 1  \\u001b]0;title\\u0007  a\\nb')
  })

  test('no line is wider than the terminal, as long as the columns can be cut', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 60 })
    const row = fc.record({ id: fc.nat({ max: 99_999 }), kind: text, note: text })
    fc.assert(
      fc.property(fc.array(row, { maxLength: 5 }), fc.integer({ min: 40, max: 120 }), (rows, width) => {
        for (const line of alignedTable({ columns, rows, width })) assert.ok(textWidth(line) <= width)
      }),
    )
  })
})

test('elsewhere, lines are whole and separated by tabs', () => {
  const rows = [{ id: 1, kind: 'fetch', note: `${'long '.repeat(50)}\t` }]
  assert.deepEqual(plainTable({ columns, rows }), ['ID\tKIND\tNOTE', `1\tfetch\t${'long '.repeat(50)}\\t`])
})

describe('the width of a text', () => {
  test('counts what is seen', () => {
    const widths: [string, number][] = [
      ['', 0],
      ['abc', 3],
      ['é', 1],
      ['e\u0301', 1],
      ['漢', 2],
      ['👩‍👩‍👧', 2],
      ['❤️', 2],
      ['\u200b', 0],
    ]
    for (const [text, width] of widths) assert.equal(textWidth(text), width, JSON.stringify(text))
  })

  test('is respected when text is cut, never through the middle of a character', () => {
    assert.equal(truncate('漢字漢字', 5), '漢字…')
    assert.equal(truncate('漢字漢字', 4), '漢…')
    assert.equal(truncate('abc', 3), 'abc')
    assert.equal(truncate('abcd', 0), '')
  })
})
