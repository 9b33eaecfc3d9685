import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { withSection } from './results.ts'

describe('the results file', () => {
  test('a bench that is saved for the first time is added at the end', () => {
    const document = withSection('# Results\n', 'engine', 'first')
    assert.equal(document, '# Results\n\n<!-- engine -->\nfirst\n<!-- /engine -->\n')
  })

  test('a bench that is saved again replaces its own section and no other', () => {
    const both = withSection(withSection('# Results\n', 'engine', 'first'), 'search', 'other')
    const again = withSection(both, 'engine', 'second')
    assert.equal(again, both.replace('first', 'second'))
    assert.equal(withSection(again, 'search', 'other'), again)
  })
})
