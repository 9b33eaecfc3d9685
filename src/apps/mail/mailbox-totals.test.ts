import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mailChoices } from './account.ts'
import { leftOutOf, totalsText, wholeOf } from './mailbox-totals.ts'

const TOTALS = { messages: 3_000, spam: 46, trash: 4, atMs: 1 }
const text = (choices: object, sinceMs: number | null = null, kept = 0): string =>
  totalsText(TOTALS, { ...leftOutOf(TOTALS, mailChoices.parse(choices), sinceMs), kept }, String)

describe('the totals of a mailbox', () => {
  test('name what is left out by choice, and nothing that is not', () => {
    assert.equal(text({ trash: false }), '3000 in all; left out by choice: 46 in spam, 4 in the trash')
    assert.equal(
      text({}),
      '3000 in all; left out by choice: 46 in spam',
      'the trash is wanted unless one says so',
    )
    assert.equal(text({ spam: true, trash: true }), '3000 in all')
    const labels = '3000 in all; left out by choice: what the chosen labels or start leave out'
    assert.equal(text({ spam: true, trash: true, skipLabels: ['Lists'] }), labels)
    assert.equal(text({ spam: true, trash: true }, 5), labels)
  })

  test('name what is stored although Gmail has it no more', () => {
    const leftOut = '3000 in all; left out by choice: 46 in spam; stored here and not there any more: 60'
    assert.equal(text({}, null, 60), leftOut)
    assert.equal(text({ spam: true }, null, 1), '3000 in all; stored here and not there any more: 1')
  })

  test('say how many there will be before all are listed, never fewer than are, and not where labels choose', () => {
    const gmail = TOTALS
    const leftOut = leftOutOf(TOTALS, mailChoices.parse({}), null)
    assert.equal(wholeOf({ gmail, leftOut, listed: 100 }), 2_954)
    assert.equal(wholeOf({ gmail, leftOut, listed: 2_960 }), 2_960)
    const byLabel = leftOutOf(TOTALS, mailChoices.parse({ onlyLabels: ['Work'] }), null)
    assert.equal(wholeOf({ gmail, leftOut: byLabel, listed: 100 }), null)
    assert.equal(wholeOf({ gmail: null, leftOut: null, listed: 100 }), null)
  })
})
