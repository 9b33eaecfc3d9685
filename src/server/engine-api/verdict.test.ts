import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PauseRow } from '../../ledger/control.ts'
import type { StreamStatus } from '../../ledger/queries.ts'
import { StreamRates } from './stream-rates.ts'
import { leftText, streamView } from './stream-view.ts'
import { overallVerdict, type VerdictInput } from './verdict.ts'

const row: StreamStatus = {
  id: 1,
  name: 'mail:ann@example.com',
  mark: null,
  mark_at: 0,
  tail_at: 100,
  cursor: null,
  paused: 0,
  moved_at: null,
  segments: 10,
  settled_segments: 4,
  open_segments: 0,
  unbalanced: 0,
  listed: 1_000,
  stored: 390,
  gone: 5,
  skipped: 3,
  bad: 2,
}

function view(
  change: Partial<StreamStatus> = {},
  more: { rate?: number; pauses?: PauseRow[]; failedJobs?: number; need?: string; whole?: number } = {},
) {
  return streamView({ row: { ...row, ...change }, pauses: [], rate: 10, failedJobs: 0, badItems: 0, ...more })
}

const pause = (
  scope: PauseRow['scope'],
  target: string,
  { reason, code = 'by-hand' }: { reason: string; code?: string },
): PauseRow => ({
  scope,
  target,
  code,
  reason,
  at: 0,
})

describe('a stream', () => {
  test('is done when what is on its way is, at its pace', () => {
    const { onTheirWay, etaMs, summary } = view()
    assert.deepEqual([onTheirWay, etaMs], [600, 60_000])
    assert.equal(summary, '4 of 10 slices settled, 600 items on their way, about 1 min left.')
  })

  test('whose segments are not all listed is taken to hold as much in the others', () => {
    assert.equal(view({ open_segments: 5 }).etaMs, (600 + 1_000) * 100)
    assert.equal(view({ open_segments: 10 }).etaMs, null)
  })

  test('of which its app knows the whole is as far as that, and promises no earlier end', () => {
    const known = view({ open_segments: 9 }, { whole: 4_000 })
    assert.deepEqual([known.whole, known.etaMs], [4_000, (600 + 3_000) * 100])
    assert.equal(view({ open_segments: 10 }, { whole: 4_000 }).etaMs, (600 + 3_000) * 100)
    assert.equal(view({}, { whole: 900 }).whole, 1_000, 'never less than is listed')
    assert.equal(view().whole, 1_000)
  })

  test('that stands still or is paused promises nothing', () => {
    assert.equal(view({}, { rate: 0 }).etaMs, null)
    const paused = view({}, { pauses: [pause('all', '', { reason: 'by hand.' })] })
    assert.deepEqual([paused.etaMs, paused.health, paused.summary], [null, 'paused', 'Paused: by hand.'])
  })

  test('says what is wrong with it', () => {
    assert.deepEqual(
      [view({ unbalanced: 1 }).health, view({}, { failedJobs: 2 }).health],
      ['trouble', 'trouble'],
    )
    assert.equal(view({}, { failedJobs: 2 }).summary, '2 jobs failed.')
    const need = '1 conflict to decide.'
    const waiting = view({ settled_segments: 10, stored: 990 }, { need })
    assert.deepEqual([waiting.health, waiting.summary], ['trouble', need])
    const signIn = view({}, { pauses: [pause('stream', row.name, { reason: 'x', code: 'sign-in' })] })
    assert.deepEqual([signIn.health, signIn.summary], ['trouble', 'ann@example.com must sign in again.'])
  })
})

describe('the verdict', () => {
  const jobs = { ready: 0, deps: 0, time: 0, claimed: 0, done: 5, failed: 0, canceled: 0, skipped: 0 }
  const settled = view({ settled_segments: 10, stored: 990 })
  const input: VerdictInput = {
    ...{
      streams: [settled],
      jobs,
      badItems: 0,
      live: 'idle',
      alerts: [],
      pauses: [],
      workersAlive: 1,
      needs: [],
    },
  }
  const text = (change: Partial<VerdictInput>): string => {
    const verdict = overallVerdict({ ...input, ...change })
    return `${verdict.state}: ${verdict.text}`
  }
  const alert = { condition: 'x', target: 'y', since: 0, last: 0, count: 1 }

  test('does not call settled what waits for somebody in an app', () => {
    const need = (name: string) => ({ stream: `files:${name}`, text: '1 conflict to decide.' })
    assert.equal(text({ needs: [need('docs')] }), 'attention: docs: 1 conflict to decide.')
    assert.equal(
      text({ needs: ['a', 'b', 'c'].map(need) }),
      'attention: a: 1 conflict to decide. And 2 more.',
    )
  })

  test('is calm when all is settled', () => {
    assert.equal(text({}), 'settled: All is settled.')
    assert.equal(text({ badItems: 1 }), 'settled: All is settled, but for 1 bad item.')
    assert.equal(
      text({ alerts: [{ ...alert, severity: 'warning', text: 'Hm.' }] }),
      'settled: All is settled.',
    )
  })

  test('says what is under way, and for how long', () => {
    assert.equal(text({ streams: [view()] }), 'working: Working on ann@example.com: about 1 min left.')
    const slow = view({ name: 'mail:ben@example.com' }, { rate: 0 })
    assert.equal(
      text({ streams: [view(), slow] }),
      'working: Working on ann@example.com and ben@example.com: 1,200 items on their way.',
    )
    assert.equal(
      text({ jobs: { ...jobs, claimed: 1 }, live: 'checking 1 mailbox' }),
      'working: Working: checking 1 mailbox.',
    )
  })

  test('puts first what needs somebody', () => {
    const signIn = [pause('stream', 'mail:ann@example.com', { reason: 'x', code: 'sign-in' })]
    const critical = [{ ...alert, severity: 'critical' as const, text: 'The disk is full.' }]
    const failed = { ...jobs, failed: 1 }
    const all = { jobs: failed, alerts: critical, streams: [view()] }
    assert.equal(text({ ...all, pauses: signIn }), 'attention: ann@example.com must sign in again.')
    assert.equal(
      text({ ...all, pauses: [pause('all', '', { reason: 'lunch' })] }),
      'attention: Everything is paused: lunch.',
    )
    assert.equal(text(all), 'attention: The disk is full.')
    assert.equal(text({ jobs: failed }), 'attention: 1 job failed.')
    assert.equal(
      text({ workersAlive: 0, jobs: { ...jobs, ready: 1 } }),
      'attention: No engine is running, and 1 job waits.',
    )
  })
})

describe('the pace of a stream', () => {
  test('is measured between looks once they are some seconds apart, over the last minute', () => {
    const rates = new StreamRates()
    assert.equal(rates.measure(1, { atMs: 0, items: 0 }), undefined)
    assert.equal(rates.measure(1, { atMs: 2_000, items: 500 }), undefined)
    assert.equal(rates.measure(1, { atMs: 4_000, items: 800 }), 200)
    for (let s = 5; s <= 100; s++) rates.measure(1, { atMs: s * 1_000, items: 800 })
    assert.equal(rates.measure(1, { atMs: 101_000, items: 800 }), 0)
    assert.equal(rates.measure(2, { atMs: 101_000, items: 800 }), undefined)
  })

  test('is that since the work began, however long it was waited for', () => {
    const rates = new StreamRates()
    for (let s = 0; s <= 50; s++) rates.measure(1, { atMs: s * 1_000, items: 0 })
    assert.equal(rates.measure(1, { atMs: 51_000, items: 100 }), undefined)
    assert.equal(rates.measure(1, { atMs: 54_000, items: 400 }), 100)
  })

  test('begins anew after a long silence, and when counts fell', () => {
    const rates = new StreamRates()
    rates.measure(1, { atMs: 0, items: 0 })
    assert.equal(rates.measure(1, { atMs: 300_000, items: 500 }), undefined)
    assert.equal(rates.measure(1, { atMs: 310_000, items: 10 }), undefined)
    assert.equal(rates.measure(1, { atMs: 320_000, items: 20 }), 1)
  })
})

test('what is left is told no more exactly than it is known', () => {
  assert.equal(leftText(1), 'about 5 s left')
  assert.equal(leftText(125_000), 'about 2 min left')
  assert.equal(leftText(3_600_000 * 3.02), 'about 3 h left')
})
