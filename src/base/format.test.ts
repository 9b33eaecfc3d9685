import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { formatBytes, formatCount, formatDuration, formatShare, parseDuration } from './format.ts'

describe('numbers for people', () => {
  const cases: [what: (n: number) => string, n: number, text: string][] = [
    [formatBytes, 0, '0 B'],
    [formatBytes, 999, '999 B'],
    [formatBytes, 1_000, '1 kB'],
    [formatBytes, 999_600, '1 MB'],
    [formatBytes, 340_000_000, '340 MB'],
    [formatBytes, 2_143_000_000, '2.1 GB'],
    [formatBytes, 9_960_000, '10 MB'],
    [formatBytes, -1_500, '-1.5 kB'],
    [formatBytes, Number.NaN, '? B'],
    [formatCount, 12, '12'],
    [formatCount, 1_234_567, '1,234,567'],
    [formatCount, 2.34, '2.3'],
    [formatCount, 1234.5, '1,235'],
    [formatCount, -1000, '-1,000'],
    [formatShare, 0, '0 %'],
    [formatShare, 0.0025, '0.25 %'],
    [formatShare, 0.012, '1.2 %'],
    [formatShare, 0.61, '61 %'],
    [formatShare, 0.00001, '< 0.01 %'],
    [formatDuration, 0, '0 ms'],
    [formatDuration, 250, '250 ms'],
    [formatDuration, 999.7, '1 s'],
    [formatDuration, 4_200, '4.2 s'],
    [formatDuration, 9_999, '10 s'],
    [formatDuration, 65_000, '1 min 5 s'],
    [formatDuration, 3_599_900, '1 h'],
    [formatDuration, 12_000_000, '3 h 20 min'],
    [formatDuration, 86_399_000, '1 d'],
    [formatDuration, 90 * 86_400_000, '90 d'],
    [formatDuration, Number.POSITIVE_INFINITY, '?'],
  ]
  for (const [format, n, text] of cases) {
    test(`${format.name}(${n}) is "${text}"`, () => {
      assert.equal(format(n), text)
    })
  }

  test('a duration never shows 60 of a unit and is off by at most half of what it shows', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), (ms) => {
        const text = formatDuration(ms)
        assert.doesNotMatch(text, /\b(?:60 s|60 min|24 h)\b/)
        const back = parseDuration(text.replaceAll(',', ''))
        assert.ok(back !== undefined, text)
        assert.ok(Math.abs(back - ms) <= Math.max(0.5, ms * 0.06), `${ms} as ${text}`)
      }),
    )
  })
})

describe('a duration is read', () => {
  const read: [text: string, ms: number | undefined][] = [
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['1h30m', 5_400_000],
    ['1 h 30 min', 5_400_000],
    ['1.5h', 5_400_000],
    ['90s', 90_000],
    ['250ms', 250],
    ['2w', 1_209_600_000],
    ['15', undefined],
    ['m', undefined],
    ['-5m', undefined],
    ['30m1h', undefined],
    ['5 parsecs', undefined],
    ['', undefined],
    ['99999999999999999d', undefined],
  ]
  for (const [text, ms] of read) {
    test(`"${text}" is ${ms === undefined ? 'refused' : `${ms} ms`}`, () => {
      assert.equal(parseDuration(text), ms)
    })
  }
})
