import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isQuietLabel, labelQuery, labelText } from './label-text.ts'

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
