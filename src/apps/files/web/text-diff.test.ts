import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type DiffLine, LINE_EDITS_MAX, textDiff } from './text-diff.ts'

/** `[changed]` in lines that differ. */
const shown = (lines: readonly DiffLine[]): string[] =>
  lines.map(({ parts }) => parts.map(({ text, isDifferent }) => (isDifferent ? `[${text}]` : text)).join(''))
const plain = (lines: readonly DiffLine[]): string =>
  lines.map(({ parts }) => parts.map(({ text }) => text).join('')).join('\n')

describe('where two texts differ', () => {
  test('lines that only one has are marked whole, and the others not at all', () => {
    const { here, there } = textDiff('a\nb\nc', 'a\nc\nd')
    assert.deepEqual(shown(here), ['a', '[b]', 'c'])
    assert.deepEqual(shown(there), ['a', 'c', '[d]'])
  })

  test('of a line that was changed only the words are marked', () => {
    const { here, there } = textDiff('Rent: 900 a month\nDue on the 1st', 'Rent: 950 a month\nDue on the 1st')
    assert.deepEqual(shown(here), ['Rent: [900] a month', 'Due on the 1st'])
    assert.deepEqual(shown(there), ['Rent: [950] a month', 'Due on the 1st'])
  })

  test('line ends of Windows are no difference, and lines without anything in common are marked whole', () => {
    assert.ok(textDiff('a\r\nb', 'a\nb').here.every(({ isDifferent }) => !isDifferent))
    assert.deepEqual(shown(textDiff('completely other', 'nothing the same').here), ['[completely other]'])
  })

  test('whatever the texts, both are shown as they are, and what is unmarked is the same on both sides', () => {
    const text = fc
      .array(fc.constantFrom('a', 'b', 'c c', 'd e f', ''), { maxLength: 30 })
      .map((lines) => lines.join('\n'))
    fc.assert(
      fc.property(text, text, (here, there) => {
        const diff = textDiff(here, there)
        assert.equal(plain(diff.here), here)
        assert.equal(plain(diff.there), there)
        const same = (lines: readonly DiffLine[]): string[] =>
          lines.filter(({ isDifferent }) => !isDifferent).map(({ parts }) => parts[0]!.text)
        assert.deepEqual(same(diff.here), same(diff.there))
      }),
    )
  })

  test('texts that have nothing in common are told apart without looking for ever', () => {
    const many = (of: string): string =>
      Array.from({ length: 20 * LINE_EDITS_MAX }, (_, at) => `${of}${at}`).join('\n')
    const { here, there } = textDiff(`same\n${many('x')}\nend`, `same\n${many('y')}\nend`)
    assert.deepEqual(
      [here[0]!.isDifferent, here.at(-1)!.isDifferent, there[5]!.isDifferent],
      [false, false, true],
    )
  })
})
