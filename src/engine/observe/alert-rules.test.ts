import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  ALERT_THRESHOLDS,
  type AlertInputs,
  type AlertThresholds,
  CONDITIONS,
  evaluateAlerts,
} from './alert-rules.ts'

const NOW = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

function severityOf(inputs: Omit<AlertInputs, 'now'>, thresholds?: Partial<AlertThresholds>): string {
  const { alerts } = evaluateAlerts({ now: NOW, ...inputs }, thresholds)
  return alerts.map(({ severity }) => severity).join() || 'quiet'
}

const bad = (recentItems: number, recentBad: number, badLastHour = 0): Omit<AlertInputs, 'now'> => ({
  bad: [{ target: 'me', recentItems, recentBad, badLastHour }],
})

describe('bad items', () => {
  const cases: [what: string, inputs: Omit<AlertInputs, 'now'>, severity: string][] = [
    ['none are quiet', bad(10_000, 0), 'quiet'],
    ['0.19 % are quiet', bad(10_000, 19), 'quiet'],
    ['0.2 % warn', bad(10_000, 20), 'warning'],
    ['0.99 % warn', bad(10_000, 99), 'warning'],
    ['1 % are critical', bad(10_000, 100), 'critical'],
    ['a share of a tiny sample is quiet', bad(499, 400), 'quiet'],
    ['the same share of a large enough sample is critical', bad(500, 400), 'critical'],
    ['200 in an hour are quiet where the share is small', bad(10_000, 0, 200), 'quiet'],
    ['201 in an hour are critical, even of a tiny sample', bad(0, 0, 201), 'critical'],
  ]
  for (const [what, inputs, severity] of cases) test(what, () => assert.equal(severityOf(inputs), severity))

  test('raise one condition, not two', () => {
    assert.equal(severityOf(bad(10_000, 5_000, 5_000)), 'critical')
  })
})

const unbalanced = (segments: number, canceled = 0) => ({
  stream: 'me',
  segments,
  canceled: { segments: canceled, items: canceled * 14, jobs: canceled, firstJob: canceled > 0 ? 7 : null },
})

const silent = (quietMs: number, everyMs = 3 * MINUTE_MS) => ({
  stream: 'mail:me',
  name: 'me',
  what: 'heard' as const,
  everyMs,
  quietMs,
  heardAtMs: NOW - quietMs,
})

describe('other conditions', () => {
  const at = (ms: number): number => NOW - ms
  const cases: [what: string, inputs: Omit<AlertInputs, 'now'>, severity: string][] = [
    ['metadata at 49 % is quiet', { metadata: [{ target: 'a', used: 49, max: 100 }] }, 'quiet'],
    ['metadata at 50 % warns', { metadata: [{ target: 'a', used: 50, max: 100 }] }, 'warning'],
    ['metadata at 80 % is critical', { metadata: [{ target: 'a', used: 80, max: 100 }] }, 'critical'],
    ['metadata without a limit is quiet', { metadata: [{ target: 'a', used: 80, max: 0 }] }, 'quiet'],
    [
      'throttling for 10 min is quiet',
      { budgets: [{ name: 'gmail', throttledMs: 10 * MINUTE_MS }] },
      'quiet',
    ],
    [
      'throttling for longer warns',
      { budgets: [{ name: 'gmail', throttledMs: 10 * MINUTE_MS + 1 }] },
      'warning',
    ],
    [
      'a heartbeat of 10 min ago is quiet',
      { workers: [{ id: 1, name: 'a', host: 'h', heartbeatAt: at(10 * MINUTE_MS) }] },
      'quiet',
    ],
    [
      'an older heartbeat warns',
      { workers: [{ id: 1, name: 'a', host: 'h', heartbeatAt: at(10 * MINUTE_MS + 1) }] },
      'warning',
    ],
    [
      'a source that was silent for as long as is expected is quiet',
      { stale: [silent(30 * MINUTE_MS)] },
      'quiet',
    ],
    ['one that was silent for longer warns', { stale: [silent(30 * MINUTE_MS + 1)] }, 'warning'],
    ['one that is asked every hour has five hours', { stale: [silent(5 * HOUR_MS, HOUR_MS)] }, 'quiet'],
    ['and not more', { stale: [silent(5 * HOUR_MS + 1, HOUR_MS)] }, 'warning'],
    ['one that was silent for more than a day is critical', { stale: [silent(25 * HOUR_MS)] }, 'critical'],
    ['balanced segments are quiet', { unbalanced: [unbalanced(0)] }, 'quiet'],
    ['one that is not is critical', { unbalanced: [unbalanced(1)] }, 'critical'],
    ['one of which a job was canceled by hand warns', { unbalanced: [unbalanced(1, 1)] }, 'warning'],
    ['one of two of which a job was canceled is critical', { unbalanced: [unbalanced(2, 1)] }, 'critical'],
    [
      'an account that must be connected again is critical',
      { signIns: [{ stream: 'me', reason: 'revoked' }] },
      'critical',
    ],
    ['a ledger that is there is quiet', { ledger: { downSince: null, detail: '' } }, 'quiet'],
    [
      'a ledger that was away for a moment is quiet',
      { ledger: { downSince: at(MINUTE_MS - 1), detail: 'reset' } },
      'quiet',
    ],
    [
      'a ledger that stays away is critical',
      { ledger: { downSince: at(MINUTE_MS), detail: 'reset' } },
      'critical',
    ],
    ['a disk with room is quiet', { disks: [{ path: '/data', freeBytes: 1e9 }] }, 'quiet'],
    ['a disk with little room warns', { disks: [{ path: '/data', freeBytes: 9e8 }] }, 'warning'],
    ['a full disk is critical', { disks: [{ path: '/data', freeBytes: 0 }] }, 'critical'],
  ]
  for (const [what, inputs, severity] of cases) test(what, () => assert.equal(severityOf(inputs), severity))

  test('every threshold can be set', () => {
    assert.equal(severityOf(bad(100, 1), { badSampleMin: 100, badWarnShare: 0.02 }), 'quiet')
    assert.equal(
      severityOf(bad(100, 2), { badSampleMin: 100, badWarnShare: 0.02, badCriticalShare: 0.5 }),
      'warning',
    )
    assert.equal(severityOf(bad(0, 0, 6), { badPerHourCritical: 5 }), 'critical')
    assert.equal(severityOf({ budgets: [{ name: 'x', throttledMs: 2 }] }, { throttledMs: 1 }), 'warning')
  })
})

describe('a verdict', () => {
  test('covers exactly what was measured', () => {
    assert.deepEqual([...evaluateAlerts({ now: NOW }).covers], [])
    assert.deepEqual([...evaluateAlerts({ now: NOW, bad: [], disks: [] }).covers], ['bad-items', 'disk-full'])
    const all: AlertInputs = {
      now: NOW,
      bad: [],
      metadata: [],
      budgets: [],
      workers: [],
      stale: [],
      unbalanced: [],
      signIns: [],
      ledger: { downSince: null, detail: '' },
      disks: [],
    }
    assert.deepEqual([...evaluateAlerts(all).covers].sort(), [...CONDITIONS].sort())
  })

  test('names one alert per target', () => {
    const { alerts } = evaluateAlerts({
      now: NOW,
      signIns: [
        { stream: 'a', reason: '' },
        { stream: 'b', reason: '' },
      ],
    })
    assert.deepEqual(
      alerts.map(({ condition, target }) => `${condition} ${target}`),
      ['sign-in a', 'sign-in b'],
    )
  })

  test('says what happened, to what, and what to do', () => {
    const { alerts } = evaluateAlerts({
      now: NOW,
      bad: [{ target: 'me@example.com', recentItems: 10_000, recentBad: 130, badLastHour: 130 }],
      budgets: [{ name: 'gmail', throttledMs: 15 * MINUTE_MS }],
      workers: [{ id: 4, name: 'tidemark', host: 'box/boot/ns', heartbeatAt: NOW - 3_600_000 }],
    })
    assert.deepEqual(
      alerts.map(({ text }) => text),
      [
        '1.3 % of the last 10,000 items of me@example.com are bad (130). Look at their reasons, mend the cause, then retry them; everything else goes on.',
        'gmail has been throttling us for 15 min. Work goes on as fast as it lets us; if nothing else uses that quota, ask for a higher one.',
        'The engine tidemark on box has been silent for 1 h. If it should be running, start it again; its jobs are not lost.',
      ],
    )
  })

  test('says of a silent source how often it is asked, when it last answered, and what is in the way', () => {
    const text = (part: object): string =>
      evaluateAlerts({ now: NOW, stale: [{ ...silent(2 * HOUR_MS), ...part }] }).alerts[0]!.text
    assert.equal(
      text({ why: 'Gmail cannot be reached.' }),
      'Nothing was heard of me for 2 h. It is asked every 3 min, and last answered 2 h ago. What is in the way: Gmail cannot be reached. Check the connection and the account; nothing is lost meanwhile.',
    )
    assert.match(text({ heardAtMs: null }), /and has never answered/)
    assert.match(
      text({ what: 'moved' }),
      /^Nothing of me has moved for 2 h, although there is work that could run/,
    )
  })

  test('gets worse, never better, with more bad items', () => {
    const rank = { quiet: 0, warning: 1, critical: 2 } as Record<string, number>
    const count = fc.nat({ max: 10_000 })
    fc.assert(
      fc.property(count, count, count, count, (items, a, b, hour) => {
        const [less, more] = [Math.min(a, b), Math.max(a, b)]
        assert.ok(rank[severityOf(bad(items, less, hour))]! <= rank[severityOf(bad(items, more, hour))]!)
        assert.ok(rank[severityOf(bad(items, less, less))]! <= rank[severityOf(bad(items, less, more))]!)
      }),
    )
  })
})

test("the defaults are the design's", () => {
  const { badWarnShare, badCriticalShare, badPerHourCritical, metadataWarnShare, metadataCriticalShare } =
    ALERT_THRESHOLDS
  assert.deepEqual(
    [badWarnShare, badCriticalShare, badPerHourCritical, metadataWarnShare, metadataCriticalShare],
    [0.002, 0.01, 200, 0.5, 0.8],
  )
})
