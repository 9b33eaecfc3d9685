import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  applySuggestion,
  isQuietLabel,
  isUnfinished,
  labelQuery,
  labelText,
  lastWordAt,
  operatorText,
} from './words.ts'

describe('the text of a query', () => {
  test('ends with a word that may hold quoted spaces', () => {
    assert.equal(lastWordAt(''), 0)
    assert.equal(lastWordAt('from:ann repo'), 9)
    assert.equal(lastWordAt('from:ann '), 9)
    assert.equal(lastWordAt('from:"ann b'), 0)
    assert.equal(lastWordAt('{a} (sub'), 5)
  })

  test('takes a suggestion for its last word', () => {
    assert.equal(applySuggestion('report fr', 'from:'), 'report from:')
    assert.equal(applySuggestion('report from:an', 'from:ann@example.com'), 'report from:ann@example.com ')
  })

  test('takes a suggestion that is the whole query', () => {
    assert.equal(applySuggestion('report fr', 'report from:'), 'report from:')
    assert.equal(applySuggestion('an', 'from:ann@example.com'), 'from:ann@example.com ')
  })

  test('is unfinished while its last operator has no value', () => {
    for (const query of ['from:', 'report -from:', '(subject:"', 'is:unread label:('])
      assert.ok(isUnfinished(query))
    for (const query of ['', 'from:ann', 'from: ', 'at 10:', 'report']) assert.ok(!isUnfinished(query))
  })

  test('quotes what would fall apart', () => {
    assert.equal(operatorText('label', 'Work'), 'label:Work')
    assert.equal(operatorText('label', 'Two words'), 'label:"Two words"')
    assert.equal(operatorText('label', 'a"b) OR (x'), 'label:"a b) OR (x"')
  })
})

test('labels of Gmail read as words, those of people as they wrote them', () => {
  assert.equal(labelText('INBOX'), 'Inbox')
  assert.equal(labelText('CATEGORY_PERSONAL'), 'Primary')
  assert.equal(labelText('CATEGORY_PROMOTIONS'), 'Promotions')
  assert.equal(labelText('Work/Reports'), 'Work/Reports')
})

test('a label leads to all mail that has it', () => {
  assert.equal(labelQuery('CATEGORY_PERSONAL'), 'category:primary')
  assert.equal(labelQuery('Two words'), 'label:"Two words"')
  assert.equal(labelQuery('INBOX'), 'label:INBOX')
})

test('labels that most mail has are not shown in lists', () => {
  assert.ok(isQuietLabel('INBOX') && isQuietLabel('Inbox'))
  assert.ok(!isQuietLabel('SPAM'))
})
