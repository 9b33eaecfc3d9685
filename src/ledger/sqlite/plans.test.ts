/** SQLite takes a partial index only where a query says its condition as it does: a matter of words, so it is tested. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Tx, Value } from '../contract.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger } from '../open.ts'
import { countFailed, listHeldJobs, readFrontier } from '../overview-queries.ts'
import { countUnbalanced, listJobs, listSegments } from '../queries.ts'

/** How SQLite goes about each query that `ask` makes. */
async function plansOf(ledger: Ledger, ask: (tx: Tx) => Promise<unknown>): Promise<string> {
  return ledger.driver.read(async (tx) => {
    const plans: string[] = []
    const note = async (sql: string, params: readonly Value[] = []): Promise<void> => {
      const rows = await tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)
      plans.push(...rows.map(({ detail }) => detail))
    }
    await ask({
      dialect: tx.dialect,
      isRemote: tx.isRemote,
      all: async (sql, params) => {
        await note(sql, params)
        return tx.all(sql, params)
      },
      get: async (sql, params) => {
        await note(sql, params)
        return tx.get(sql, params)
      },
      run: () => assert.fail('a look changes nothing'),
    })
    assert.ok(plans.length > 0, 'nothing was asked')
    return plans.join('\n')
  })
}

const QUERIES: { name: string; ask: (tx: Tx) => Promise<unknown>; index: RegExp }[] = [
  {
    name: 'jobs that failed, however many others there are',
    ask: (tx) => listJobs(tx, { state: 'failed' }),
    index: /jobs_troubled \(state=\?\)/,
  },
  {
    name: 'the next canceled jobs of a kind',
    ask: (tx) => listJobs(tx, { state: 'canceled', kind: 'job', before: 100, from: 1 }),
    index: /jobs_troubled \(state=\? AND id>\? AND id<\?\)/,
  },
  { name: 'how many failed', ask: (tx) => countFailed(tx), index: /jobs_troubled \(state=\?\)/ },
  { name: 'the children of a job', ask: (tx) => listJobs(tx, { parentId: 1 }), index: /jobs_parent/ },
  { name: 'what is held by workers', ask: (tx) => listHeldJobs(tx), index: /jobs_owned/ },
  {
    name: 'segments from a place on',
    ask: (tx) => listSegments(tx, 1, { fromAt: 5 }),
    index: /segments_order \(stream_id=\? AND from_at>\?\)/,
  },
  {
    name: 'segments that are open',
    ask: (tx) => listSegments(tx, 1, { state: 'open' }),
    index: /segments_unsettled \(stream_id=\? AND from_at>\?\)/,
  },
  { name: 'unbalanced segments', ask: (tx) => countUnbalanced(tx), index: /segments_unsettled/ },
]

describe('on SQLite', () => {
  for (const { name, ask, index } of QUERIES) {
    test(`an index leads to ${name}`, async () => {
      const ledger = await openLedger('sqlite::memory:')
      const plan = await plansOf(ledger, ask)
      assert.match(plan, index)
      assert.doesNotMatch(plan, /SCAN (?:jobs|j|segments)$/m)
      await ledger.close()
    })
  }

  test('a picture of few large cells is read along the order of segments, without sorting them', async () => {
    const ledger = await openLedger('sqlite::memory:')
    const { id: streamId } = await ledger.stream('mail')
    const segments = Array.from({ length: 200 }, (_, at) => ({ streamId, from: at, to: at + 1 }))
    await ledger.write({ segments })
    const asked: string[] = []
    const plan = await plansOf(ledger, async (tx) => {
      const driver = {
        read: <T>(look: (tx: Tx) => Promise<T>): Promise<T> => {
          asked.push('read')
          return look(tx)
        },
      }
      const { cells } = await readFrontier(driver, streamId, { cells: 3 })
      assert.deepEqual(
        cells.map((cell) => cell.segments),
        [67, 67, 66],
      )
    })
    assert.match(plan, /segments_order \(stream_id=\? AND from_at>\? AND from_at<\?\)/)
    // A stretch is bounded, and is only grouped by cell.
    assert.doesNotMatch(plan, /TEMP B-TREE FOR ORDER BY/)
    await ledger.close()
  })
})
