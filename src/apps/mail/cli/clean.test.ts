import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../../base/errors.ts'
import { confirmationText, cutoffOf } from '../clean-up/cutoff.ts'
import { type CleanOptions, checkCleanOptions } from './clean.ts'
import { parseRun } from './clean-report.ts'

const NOW_MS = Date.UTC(2024, 1, 29, 12)
const day = (text: string): string => new Date(cutoffOf(text, NOW_MS)).toISOString().slice(0, 10)

test('ages are days, weeks, and months and years of the calendar', () => {
  assert.equal(day('1d'), '2024-02-28')
  assert.equal(day('2w'), '2024-02-15')
  assert.equal(day('18mo'), '2022-08-29')
  assert.equal(day('1y'), '2023-02-28')
  assert.equal(day('4y'), '2020-02-29')
  assert.equal(day(' 2 Y '), '2022-02-28')
})

test('what is no age is refused, and 6m is told apart from 6mo', () => {
  for (const text of ['', '2', 'y', '-1y', '1.5y', '2y3mo', 'tomorrow', '99999y']) {
    assert.throws(() => cutoffOf(text, NOW_MS), UsageError)
  }
  assert.throws(() => cutoffOf('6m', NOW_MS), { hint: 'Months are written mo: 6mo.' })
})

const options = (change: Partial<CleanOptions>): CleanOptions => ({
  action: 'unlabel',
  olderThan: '2y',
  ...change,
})

test('a clean-up needs an age', () => {
  assert.throws(() => checkCleanOptions({ action: 'unlabel' }, true), /How old/)
  checkCleanOptions(options({}), false)
})

test('deleting needs --permanently, and a person or --yes', () => {
  const needed = { code: 'confirmation-needed' }
  assert.throws(() => checkCleanOptions(options({ action: 'delete' }), true), needed)
  assert.throws(() => checkCleanOptions(options({ action: 'delete', yes: true }), true), needed)
  assert.throws(() => checkCleanOptions(options({ action: 'delete', permanently: true }), false), needed)
  checkCleanOptions(options({ action: 'delete', permanently: true }), true)
  checkCleanOptions(options({ action: 'delete', permanently: true, yes: true }), false)
  checkCleanOptions(options({ action: 'delete', dryRun: true }), false)
})

test('flags that mean nothing together are refused', () => {
  const wrong: Partial<CleanOptions>[] = [
    { quick: true },
    { action: 'trash', label: 'x' },
    { action: 'trash', permanently: true },
    { resume: '3', olderThan: '2y' },
    { resume: true, abandon: '3', olderThan: undefined },
    { abandon: '3', query: 'x' },
  ]
  for (const change of wrong) assert.throws(() => checkCleanOptions(options(change), true), UsageError)
  checkCleanOptions({ action: 'unlabel', resume: '3', yes: true }, false)
})

test('the number of a run is read as it is printed', () => {
  assert.deepEqual([parseRun('3'), parseRun('#12')], [3, 12])
  for (const text of ['', '0', '-1', 'x', '1.5']) assert.throws(() => parseRun(text), UsageError)
})

test('what is to be typed names the number', () => {
  assert.equal(confirmationText(1), 'delete 1 message')
  assert.equal(confirmationText(1234), 'delete 1234 messages')
})
