import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../../base/errors.ts'
import { confirmationText, cutoffOf } from '../clean-up/cutoff.ts'
import { type ArchiveOptions, checkArchiveOptions, parseRun } from './clean-up-input.ts'

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

const options = (change: Partial<ArchiveOptions>): ArchiveOptions => ({
  action: 'unlabel',
  olderThan: '2y',
  ...change,
})

test('an archive run needs an age', () => {
  assert.throws(() => checkArchiveOptions({ action: 'unlabel' }, true), /How old/)
  checkArchiveOptions(options({}), false)
})

test('deleting needs --permanently, and a person or --yes', () => {
  const needed = { code: 'confirmation-needed' }
  assert.throws(() => checkArchiveOptions(options({ action: 'delete' }), true), needed)
  assert.throws(() => checkArchiveOptions(options({ action: 'delete', yes: true }), true), needed)
  assert.throws(() => checkArchiveOptions(options({ action: 'delete', permanently: true }), false), needed)
  checkArchiveOptions(options({ action: 'delete', permanently: true }), true)
  checkArchiveOptions(options({ action: 'delete', permanently: true, yes: true }), false)
  checkArchiveOptions(options({ action: 'delete', dryRun: true }), false)
})

test('flags that mean nothing together are refused', () => {
  const wrong: Partial<ArchiveOptions>[] = [
    { quick: true },
    { action: 'trash', label: 'x' },
    { action: 'trash', permanently: true },
    { resume: '3', olderThan: '2y' },
    { resume: true, abandon: '3', olderThan: undefined },
    { abandon: '3', query: 'x' },
  ]
  for (const change of wrong) assert.throws(() => checkArchiveOptions(options(change), true), UsageError)
  checkArchiveOptions({ action: 'unlabel', resume: '3', yes: true }, false)
})

test('the number of a run is read as it is printed', () => {
  assert.deepEqual([parseRun('3'), parseRun('#12')], [3, 12])
  for (const text of ['', '0', '-1', 'x', '1.5']) assert.throws(() => parseRun(text), UsageError)
})

test('what is to be typed names the number', () => {
  assert.equal(confirmationText(1), 'delete 1 message')
  assert.equal(confirmationText(1234), 'delete 1234 messages')
})
