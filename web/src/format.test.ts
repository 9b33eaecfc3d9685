import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createFormat, formatPlural } from './format.ts'

const english = createFormat({ locale: 'en-GB', timeZone: 'UTC' })
const german = createFormat({ locale: 'de-DE', timeZone: 'Europe/Berlin' })
const AT = Date.UTC(2026, 10, 16, 1, 25, 9)

describe('numbers', () => {
  test('are grouped as the language does, with fractions only below ten', () => {
    assert.equal(english.formatCount(1_234_567), '1,234,567')
    assert.equal(german.formatCount(1_234_567), '1.234.567')
    assert.equal(english.formatCount(4.83), '4.8')
    assert.equal(english.formatCount(48.3), '48')
    assert.equal(english.formatCount(Number.NaN), '–')
  })

  test('a share reads neither as all before the end nor as none after the beginning', () => {
    const shares = [0, 0.000_01, 0.0025, 0.05, 0.614, 0.9973, 0.999_999, 1].map(english.formatShare)
    assert.deepEqual(shares, ['0%', '< 0.01%', '0.25%', '5%', '61%', '99.73%', '99.99%', '100%'])
  })

  test('a rate below one a second is told by the minute', () => {
    const rates = [0, 0.001, 0.2, 1, 4.83, 1200].map(english.formatRate)
    assert.deepEqual(rates, ['0/s', '< 1/min', '12/min', '1/s', '4.8/s', '1,200/s'])
  })

  test('bytes are in the unit that keeps them short', () => {
    const sizes = [0, 999, 1_000, 999_600, 2_140_000, 87_500_000_000].map(english.formatBytes)
    assert.deepEqual(sizes, ['0 B', '999 B', '1 kB', '1 MB', '2.1 MB', '88 GB'])
    assert.equal(german.formatBytes(2_140_000), '2,1 MB')
  })

  test('one is not many', () => {
    assert.equal(formatPlural(1, 'slice'), '1 slice')
    assert.equal(formatPlural(2, 'slice'), '2 slices')
    assert.equal(formatPlural(0, 'entry', 'entries'), '0 entries')
  })
})

describe('durations', () => {
  test('have at most two units, and none of them is full', () => {
    const told = [250, 4_230, 65_000, 3_599_600, 12_000_000, 90_000_000, 1_036_800_000].map(
      english.formatDuration,
    )
    assert.deepEqual(told, ['250ms', '4.2s', '1m 5s', '1h', '3h 20m', '1d 1h', '12d'])
    assert.equal(english.formatDuration(Number.POSITIVE_INFINITY), '–')
  })

  test('ages are told from coarse to fine', () => {
    const told = [0, -5_000, -300_000, -7_200_000, 7_200_000, -86_400_000].map((ms) =>
      english.formatAgo(AT + ms, AT),
    )
    assert.deepEqual(told, [
      'now',
      '5 seconds ago',
      '5 minutes ago',
      '2 hours ago',
      'in 2 hours',
      'yesterday',
    ])
  })
})

describe('times', () => {
  test('are in the language and zone of the reader', () => {
    assert.equal(english.formatTime(AT), '16 Nov 2026, 01:25')
    assert.equal(german.formatTime(AT), '16.11.2026, 02:25')
    assert.equal(english.formatClock(AT), '01:25:09')
    assert.equal(english.formatTime(Number.NaN), '–')
    assert.equal(english.formatTime(1e20), '–')
  })

  test('a mark that is a time is shown as one, anything else as the stream writes it', () => {
    assert.equal(english.formatMark('2019-03-31T10:30:00Z'), '31 Mar 2019, 10:30')
    assert.equal(english.formatMark('wed'), 'wed')
    assert.equal(english.formatMark('2019-99-99T00:00'), '2019-99-99T00:00')
    assert.equal(english.formatMark(null), '–')
  })

  test('the end of a whole day in UTC is that day everywhere', () => {
    const honolulu = createFormat({ locale: 'en-GB', timeZone: 'Pacific/Honolulu' })
    assert.equal(honolulu.formatMark('2019-03-31T00:00:00Z'), '31 Mar 2019')
    assert.equal(honolulu.formatPosition('mail:ann', Date.UTC(2019, 2, 31) / 1000), '31 Mar 2019')
  })

  test('a position is a date on the axis of mail, and a number elsewhere', () => {
    assert.equal(english.formatPosition('mail:ann', 0), 'the oldest')
    assert.equal(english.formatPosition('inbox', 1200), '1,200')
  })
})
