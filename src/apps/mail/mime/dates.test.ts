import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseDate } from './dates.ts'

const iso = (text: string): string | null => {
  const ms = parseDate(text)
  return ms === null ? null : new Date(ms).toISOString()
}

describe('dates', () => {
  const cases: readonly [text: string, instant: string | null][] = [
    ['Mon, 7 Nov 2022 10:00:00 +0100', '2022-11-07T09:00:00.000Z'],
    ['7 Nov 2022 10:00 -0330', '2022-11-07T13:30:00.000Z'],
    ['Mon, 07 Nov 2022 10:00:00 GMT (comment)', '2022-11-07T10:00:00.000Z'],
    ['Mon, 7 Nov 94 10:00:00 EST', '1994-11-07T15:00:00.000Z'],
    ['Mon, 7 Nov 05 10:00:00 PDT', '2005-11-07T17:00:00.000Z'],
    ['Mon, 7 Nov 105 10:00:00 UT', '2005-11-07T10:00:00.000Z'],
    ['Mon Nov  7 10:00:00 2022', '2022-11-07T10:00:00.000Z'],
    ['Mon Nov  7 10:00:00 CET 2022', '2022-11-07T09:00:00.000Z'],
    ['2022-11-07T10:00:00.250Z', '2022-11-07T10:00:00.250Z'],
    ['2022-11-07 10:00:00+02:00', '2022-11-07T08:00:00.000Z'],
    ['Mon, 7 Nov 2022 10:00:00', '2022-11-07T10:00:00.000Z'],
    ['7-Nov-2022 10:00:00 GMT+2', '2022-11-07T08:00:00.000Z'],
    ['Monday, November 7, 2022 1:05 PM', '2022-11-07T13:05:00.000Z'],
    ['Mon, 7 Nov 2022 12:05:00 AM', '2022-11-07T00:05:00.000Z'],
    ['Mon, 7 Nov 2022 10.00.00 Z', '2022-11-07T10:00:00.000Z'],
    ['7 Nov 2022', '2022-11-07T00:00:00.000Z'],
    ['Mon, 7 Nov 2022 10:00:00 A', '2022-11-07T10:00:00.000Z'],
    ['Mon, 31 Dec 2016 23:59:60 +0000', '2017-01-01T00:00:00.000Z'],
    ['Mon, 31 Feb 2022 10:00:00 +0000', null],
    ['Mon, 7 Nov 2022 99:00:00 +0000', null],
    ['yesterday', null],
    ['', null],
    ['Nov 2022', null],
    ['2022-13-07', null],
    [`${'('.repeat(100_000)}`, null],
  ]
  for (const [text, instant] of cases) test(text.slice(0, 60), () => assert.equal(iso(text), instant))
})
