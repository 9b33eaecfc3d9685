import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { UsageError } from '../../base/errors.ts'
import { Timetable, type TimetableEntry } from './timetable.ts'

const utc = () => 0
/** 2026-03-02 was a Monday. */
const at = (day: number, hour: number, minute = 0) => Date.UTC(2026, 2, 1 + day, hour, minute)
const office: TimetableEntry = { from: '08:00', to: '18:00', rates: { download: 100 } }

function downloadAt(entries: TimetableEntry[], nowMs: number, offset = utc): number | null | undefined {
  return new Timetable(entries, { download: 999 }, offset).ratesAt(nowMs).download
}

describe('timetable', () => {
  test('an entry holds from its first minute up to its last', () => {
    assert.equal(downloadAt([office], at(1, 7, 59)), 999)
    assert.equal(downloadAt([office], at(1, 8)), 100)
    assert.equal(downloadAt([office], at(1, 17, 59)), 100)
    assert.equal(downloadAt([office], at(1, 18)), 999)
  })

  test('an entry across midnight belongs to the day on which it begins', () => {
    const night: TimetableEntry = { from: '22:00', to: '06:00', days: ['fri'], rates: { download: 5 } }
    assert.equal(downloadAt([night], at(5, 21, 59)), 999)
    assert.equal(downloadAt([night], at(5, 22)), 5)
    assert.equal(downloadAt([night], at(6, 5, 59)), 5)
    assert.equal(downloadAt([night], at(6, 6)), 999)
    assert.equal(downloadAt([night], at(5, 5)), 999)
    assert.equal(downloadAt([night], at(6, 23)), 999)
  })

  test('the first entry that holds decides', () => {
    const lunch: TimetableEntry = { from: '12:00', to: '13:00', rates: { download: 500 } }
    assert.equal(downloadAt([lunch, office], at(1, 12, 30)), 500)
    assert.equal(downloadAt([office, lunch], at(1, 12, 30)), 100)
  })

  test('the same time of day from and to is the whole day; 24:00 is its end', () => {
    assert.equal(downloadAt([{ from: '00:00', to: '00:00', rates: { download: 1 } }], at(1, 13)), 1)
    const late: TimetableEntry = { from: '20:00', to: '24:00', days: ['mon'], rates: { download: 2 } }
    assert.equal(downloadAt([late], at(1, 23, 59)), 2)
    assert.equal(downloadAt([late], at(2, 0)), 999)
  })

  test('times are local', () => {
    assert.equal(
      downloadAt([office], at(1, 7), () => 60),
      100,
    )
    assert.equal(
      downloadAt([office], at(1, 9), () => -120),
      999,
    )
  })

  test('between two looks the rates do not change, also when local time jumps', () => {
    const jumpMs = at(29, 1)
    const offset = (nowMs: number): number => (nowMs < jumpMs ? 60 : 120)
    const minute = fc.integer({ min: 0, max: 24 * 60 - 1 })
    const time = minute.map(
      (m) => `${String(Math.floor(m / 60)).padStart(2, '0')}:${String(m % 60).padStart(2, '0')}`,
    )
    const entries = fc.array(fc.tuple(time, time), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(entries, fc.integer({ min: 0, max: 48 * 60 }), (pairs, startMinute) => {
        const rows = pairs.map(([from, to], i) => ({ from, to, rates: { download: i } }))
        const timetable = new Timetable(rows, {}, offset)
        const startMs = at(28, 0) + startMinute * 60_000
        const nextMs = timetable.nextLookMs(startMs)
        assert.ok(nextMs > startMs && nextMs <= startMs + 3_600_000)
        const rates = timetable.ratesAt(startMs)
        for (let nowMs = startMs; nowMs < nextMs; nowMs += 60_000) {
          assert.deepEqual(timetable.ratesAt(nowMs), rates)
        }
      }),
    )
  })

  test('a wrong time, day or rate is named in the error', () => {
    const wrong = (entry: TimetableEntry, message: RegExp): void => {
      assert.throws(
        () => new Timetable([entry], {}, utc),
        (e) => e instanceof UsageError && message.test(e.message),
      )
    }
    wrong({ from: '25:00', to: '18:00', rates: {} }, /"25:00"/)
    wrong({ from: '08:00', to: '18', rates: {} }, /"18"/)
    wrong({ from: '08:00', to: '18:00', days: ['monday' as 'mon'], rates: {} }, /"monday"/)
    wrong({ from: '08:00', to: '18:00', rates: { upload: -1 } }, /upload rate/)
  })
})
