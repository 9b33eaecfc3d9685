import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  type DiffLine,
  differenceText,
  LINE_EDITS_MAX,
  LINE_STEPS_MAX,
  textDiff,
  WORD_STEPS_MAX,
} from './text-diff.ts'

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

  test('what it costs does not grow with the text, whatever the texts', () => {
    const texts = (lines: number, line: (side: string, at: number) => string): [string, string] => {
      const text = (side: string): string =>
        Array.from({ length: lines }, (_, at) => line(side, at)).join('\n')
      return [text('a'), text('b')]
    }
    // All words but a few differ; every other line differs; nothing but the same line, on one side more often.
    const words = (side: string, at: number): string => `same ${at} ${`${side},-`.repeat(30)}`
    const pairs = (side: string, at: number): string => (at % 2 === 0 ? `${side} ${at}` : 'the same')
    for (const line of [words, pairs]) {
      const [few, many] = [500, 8_000].map((lines) => textDiff(...texts(lines, line)).steps) as [
        number,
        number,
      ]
      // The last step may be as long as the text.
      assert.ok(many <= LINE_STEPS_MAX + WORD_STEPS_MAX + 8_000, `${many} steps`)
      assert.ok(many < 4 * few || many < WORD_STEPS_MAX, `${few} steps of few lines, ${many} of many`)
    }
    const { here, steps } = textDiff(`x\n${'y\n'.repeat(20_000)}z`, `z\n${'y\n'.repeat(19_800)}x`)
    assert.ok(
      steps <= LINE_STEPS_MAX + 20_000 && here.some(({ isDifferent }) => !isDifferent),
      `${steps} steps`,
    )
  })
})

describe('the difference in words', () => {
  const told = (
    [here, there]: [string, string],
    { here: isHereWhole = true, there: isThereWhole = true } = {},
  ): [string, string] => {
    const diff = textDiff(here, there)
    const left = { text: here, isWhole: isHereWhole, lines: diff.here }
    const right = { text: there, isWhole: isThereWhole, lines: diff.there }
    return [differenceText(left, right), differenceText(right, left)]
  }

  test('counts the lines that the other has not', () => {
    assert.deepEqual(told(['a\nb\nc', 'a\nc']), [
      '1 line that the other has not, or not like this.',
      'Nothing is here that the other has not.',
    ])
  })

  test('says it where only the line ends differ', () => {
    const only = 'Only the line ends differ.'
    assert.deepEqual(told(['a\r\nb', 'a\nb']), [only, only])
  })

  test('speaks of the beginning alone where more is there than is shown', () => {
    const [here, there] = told(['a\nb\nc', 'a\nb\nc'], { here: false, there: false })
    assert.equal(here, 'In the beginning that is shown, nothing is here that the other has not.')
    assert.equal(there, here)
  })

  test('does not count lines that may stand behind the cut of the other', () => {
    // One line more at the top pushes the last lines out of what is shown of it.
    const [here, there] = told(['a\nb\nc\nd\ne', 'new\na\nb\nc\nd'], { here: false, there: false })
    assert.equal(here, 'In the beginning that is shown, nothing is here that the other has not.')
    assert.equal(there, 'In the beginning that is shown, 1 line that the other has not, or not like this.')
    const [whole] = told(['a\nb\nc\nd\ne', 'a\nb\nc hal'], { there: false })
    assert.equal(whole, 'Whether the other has the last 3 lines is not seen here: it is not shown whole.')
  })

  test('counts every line of one that is cut where the other is whole, but half a line', () => {
    const [, cut] = told(['a\nb', 'a\nb\nc\nd\nhal'], { there: false })
    assert.equal(cut, 'In the beginning that is shown, 2 lines that the other has not, or not like this.')
  })
})
