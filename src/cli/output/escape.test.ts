import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { escapeControl, escapeLines, safeJson } from './escape.ts'

describe('text from outside', () => {
  test('cannot send commands to the terminal', () => {
    assert.equal(escapeControl('\u001b[2Jgone\u0007'), '\\u001b[2Jgone\\u0007')
    assert.equal(escapeControl('\u009b31mred'), '\\u009b31mred')
    assert.equal(escapeControl('a\rb\nc\td'), 'a\\rb\\nc\\td')
  })

  test('cannot turn the direction of writing', () => {
    assert.equal(escapeControl('invoice\u202efdp.exe'), 'invoice\\u202efdp.exe')
  })

  test('keeps letters and pictures of all scripts', () => {
    const text = 'Größe 漢字 שלום 👩‍👩‍👧 é'
    assert.equal(escapeControl(text), text)
  })

  test('keeps its lines where lines are meant', () => {
    assert.equal(escapeLines('a\n\u001bb'), 'a\n\\u001bb')
  })

  test('never leaves a control character, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        assert.doesNotMatch(escapeControl(text), /\p{Cc}|\p{Surrogate}/u)
        assert.doesNotMatch(safeJson(text), /\p{Cc}/u)
      }),
    )
  })
})

test('JSON stays the same JSON', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(safeJson(value)), JSON.parse(JSON.stringify(value)))
      assert.deepEqual(JSON.parse(safeJson(value, 2)), JSON.parse(JSON.stringify(value)))
    }),
  )
  assert.equal(safeJson('\u009b\u202e'), '"\\u009b\\u202e"')
})
