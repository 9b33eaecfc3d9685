import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { textWidth } from '../../cli/output/text-width.ts'
import { fittedLine } from './progress.ts'

describe('a line of progress', () => {
  const line = {
    text: 'whole',
    parts: ['61 %', 'ETA 3 min', 'complete up to 2025-11-12', 'ann@example.com', '1,000 listed'],
    json: {},
  }

  test('shows as many parts as fit, the first of them first', () => {
    assert.equal(fittedLine(line, 200), line.parts.join(', '))
    assert.equal(fittedLine(line, 42), '61 %, ETA 3 min, complete up to 2025-11-12')
    assert.equal(fittedLine(line, 41), '61 %, ETA 3 min')
    assert.equal(fittedLine(line, 3), '61…')
  })

  test('fits any width, whatever is in it', () => {
    const hostile = { text: '日本語のメール\u001b[2J '.repeat(20), json: {} }
    for (let width = 0; width < 120; width++) {
      for (const one of [line, hostile, { ...hostile, parts: [hostile.text, '日本', 'x'] }]) {
        const drawn = fittedLine(one, width)
        assert.ok(textWidth(drawn) <= width, `${textWidth(drawn)} columns in ${width}`)
        assert.ok(!drawn.includes('\u001b'))
      }
    }
  })
})
