import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { UsageError } from '../base/errors.ts'
import { nextAfter, parseSpec } from './schedule-spec.ts'

const at = (iso: string): number => Date.parse(iso)
const next = (spec: string, after: string): string =>
  new Date(nextAfter(parseSpec(spec), at(after))).toISOString()

function runs(spec: string, from: string, until: string): string[] {
  const parsed = parseSpec(spec)
  const found: string[] = []
  for (let ms = nextAfter(parsed, at(from)); ms < at(until); ms = nextAfter(parsed, ms)) {
    found.push(new Date(ms).toISOString().slice(0, 16))
  }
  return found
}

describe('an interval', () => {
  test('is read in all its forms', () => {
    assert.deepEqual(parseSpec('every 15m'), { type: 'every', ms: 900_000 })
    assert.deepEqual(parseSpec('  every  24 h '), { type: 'every', ms: 86_400_000 })
    assert.deepEqual(parseSpec('Every 1h30m'), { type: 'every', ms: 5_400_000 })
  })

  test('comes one interval after the time asked for', () => {
    assert.equal(nextAfter(parseSpec('every 15m'), 1_000), 901_000)
  })

  test('keeps its rhythm however late it is asked', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 0, max: 2e12 }),
        fc.integer({ min: -1e6, max: 1e12 }),
        (seconds, anchorMs, lateMs) => {
          const spec = parseSpec(`every ${seconds}s`)
          const nextMs = nextAfter(spec, anchorMs + lateMs, anchorMs)
          assert.ok(nextMs > anchorMs + lateMs)
          assert.ok(nextMs <= anchorMs + lateMs + seconds * 1_000)
          assert.equal(Math.abs((nextMs - anchorMs) % (seconds * 1_000)), 0)
        },
      ),
    )
  })
})

describe('cron', () => {
  test('without a zone is UTC whatever zone the machine is in', () => {
    const zone = process.env.TZ
    try {
      process.env.TZ = 'America/New_York'
      assert.equal(next('cron 0 3 * * *', '2026-06-01T00:00:00Z'), '2026-06-01T03:00:00.000Z')
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
  })

  test('with a zone follows its summer time', () => {
    assert.equal(next('cron 0 3 * * * Europe/Berlin', '2026-01-10T00:00:00Z'), '2026-01-10T02:00:00.000Z')
    assert.equal(next('cron 0 3 * * * Europe/Berlin', '2026-07-10T00:00:00Z'), '2026-07-10T01:00:00.000Z')
  })

  test('takes names of days, steps, lists and nicknames', () => {
    assert.equal(next('cron 30 9 * * MON-FRI', '2026-11-13T10:00:00Z'), '2026-11-16T09:30:00.000Z')
    assert.equal(next('cron */20 8,9 1 JAN *', '2026-11-13T10:00:00Z'), '2027-01-01T08:00:00.000Z')
    assert.equal(next('cron @daily Europe/Berlin', '2026-01-10T10:00:00Z'), '2026-01-10T23:00:00.000Z')
  })

  test('is strictly after the time asked for', () => {
    assert.equal(next('cron 0 3 * * *', '2026-06-01T03:00:00Z'), '2026-06-02T03:00:00.000Z')
    assert.equal(next('cron 0 3 * * *', '2026-06-01T02:59:59.999Z'), '2026-06-01T03:00:00.000Z')
  })

  test('a run in the hour that is skipped in spring happens once, when that hour is over', () => {
    assert.deepEqual(runs('cron 30 2 * * * Europe/Berlin', '2026-03-28T00:00:00Z', '2026-03-31T00:00:00Z'), [
      '2026-03-28T01:30',
      '2026-03-29T01:00',
      '2026-03-30T00:30',
    ])
  })

  test('a run in the hour that is repeated in autumn happens once', () => {
    assert.deepEqual(runs('cron 30 2 * * * Europe/Berlin', '2026-10-24T00:00:00Z', '2026-10-27T00:00:00Z'), [
      '2026-10-24T00:30',
      '2026-10-25T00:30',
      '2026-10-26T01:30',
    ])
  })

  test('every half hour goes on through the repeated hour', () => {
    assert.deepEqual(
      runs('cron */30 * * * * Europe/Berlin', '2026-10-25T00:00:00Z', '2026-10-25T02:31:00Z'),
      ['2026-10-25T00:30', '2026-10-25T01:00', '2026-10-25T01:30', '2026-10-25T02:00', '2026-10-25T02:30'],
    )
  })

  test('once a day is once on every day of a year, in zones with and without summer time', () => {
    for (const zone of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC']) {
      const day = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' })
      const days = runs(`cron 15 2 * * * ${zone}`, '2026-01-01T12:00:00Z', '2027-01-01T12:00:00Z').map(
        (iso) => day.format(new Date(`${iso}Z`)),
      )
      assert.equal(days.length, 365, zone)
      assert.equal(new Set(days).size, 365, zone)
    }
  })
})

describe('what is no schedule is refused with what is wrong', () => {
  const refused: [text: string, says: RegExp][] = [
    ['', /not a schedule/],
    ['15m', /"15m" is not a schedule/],
    ['every', /not a length of time/],
    ['every 5 parsecs', /"5 parsecs" is not a length of time/],
    ['every 15', /not a length of time/],
    ['every 10ms', /from one second to 366 days/],
    ['every 400d', /from one second to 366 days/],
    ['cron', /five fields/],
    ['cron 0 3 * *', /five fields/],
    ['cron 0 3 * * * Europe/Berlin please', /five fields/],
    ['cron 61 * * * *', /minute: 61/],
    ['cron a b c d e', /illegal characters/],
    ['cron 0 0 30 2 *', /never comes/],
    ['cron 0 3 * * * Mars/Olympus', /no time zone called Mars\/Olympus/],
    ['cron @fortnightly', /no @fortnightly/],
  ]
  for (const [text, says] of refused) {
    test(`"${text}"`, () => {
      assert.throws(
        () => parseSpec(text),
        (thrown) => thrown instanceof UsageError && says.test(thrown.message),
      )
    })
  }
})
