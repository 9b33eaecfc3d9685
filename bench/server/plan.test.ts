import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openLedger } from '../../src/ledger/open.ts'
import { percentile } from '../session.ts'
import type { ClientReport } from './clients.ts'
import { pathsOfPage } from './clients.ts'
import { aims } from './index.ts'
import { fillLargeLedger, LARGE_STREAM } from './large-ledger.ts'
import { loadRows, loadWorlds } from './load-case.ts'
import { FULL, QUICK } from './session.ts'

describe('the large ledger of the server bench', () => {
  test('has as much as was asked for, and its books agree', async () => {
    const ledger = await openLedger('sqlite::memory:')
    await fillLargeLedger(ledger, { segments: 500, jobs: 5_000 })
    assert.deepEqual(await ledger.tallies(), await ledger.countedTallies())
    const jobs = (await ledger.tallies()).reduce((sum, { n }) => sum + n, 0)
    const stream = (await ledger.streams()).find(({ name }) => name === LARGE_STREAM)!
    assert.deepEqual([jobs, stream.segments, stream.settled_segments], [5_000, 500, 350])
    assert.equal(stream.unbalanced, 0)
    const wrong = await ledger.driver.read((tx) =>
      tx.all(`SELECT g.id FROM segments g WHERE g.open_jobs <>
        (SELECT count(*) FROM jobs j WHERE j.segment_id = g.id AND j.state = 'pending')`),
    )
    assert.deepEqual(wrong, [])
    await ledger.close()
  })
})

describe('the numbers of the server bench', () => {
  const report = (reads: number[]): ClientReport => ({
    reads: { overview: reads },
    pageRequests: 2,
    events: 3,
    bytes: 0,
    errors: [],
  })

  test('what a sync keeps is the mean with clients against the mean without', () => {
    const rows = loadRows(
      'load: x',
      [100, 200].map((perS) => ({ perS, cpu: 50 })),
      [90, 195].map((perS) => ({ perS, cpu: 60, report: report([1, 2, 3]) })),
    )
    const value = (what: string): number | undefined =>
      rows.find((row) => row.case === `load: x, ${what}`)?.value
    assert.equal(value('share kept'), 0.95)
    assert.deepEqual([value('reads'), value('read p50'), value('errors')], [6, 2, 0])
    assert.deepEqual(
      aims(rows)
        .join('\n')
        .match(/met|missed/g),
      ['met', 'met'],
    )
    assert.ok(Number.isNaN(percentile([], 0.5)))
  })

  test('a mailbox lasts longer than the phases under its quota', () => {
    for (const sizes of [FULL, QUICK]) {
      const [quota] = loadWorlds({ sizes })
      const seconds = (sizes.phasePairs * 2 * (quota!.phaseMs + 2 * quota!.settleMs)) / 1_000
      assert.ok(quota!.messages > (15_000 / 60 / 20) * seconds, `${quota!.messages} in ${seconds} s`)
    }
  })

  test('every kind of page asks for something when something changed', () => {
    for (let n = 0; n < 5; n++) assert.ok(pathsOfPage(n, 'ann@example.com').live.length > 0)
  })
})
