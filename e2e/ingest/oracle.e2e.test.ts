/** Whatever queues, stores, commits and processes do, every record is found exactly once. At length: npm run oracle -- ingest */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemRandom } from '../../src/base/random.ts'
import { type HistoryOptions, runIngestHistory } from './history.ts'

async function prove(context: TestContext, seeds: readonly number[], options: HistoryOptions): Promise<void> {
  for (const seed of seeds) {
    const { failure, counts } = await runIngestHistory(seed, options)
    context.diagnostic(`seed ${seed}: ${JSON.stringify(counts)}`)
    assert.equal(failure, undefined)
  }
}

const someSeed = (): number => Math.floor(systemRandom() * 2 ** 31)

test('through faults at every commit, each record of each object is found once and nothing is acknowledged early', (context) =>
  prove(context, [101, someSeed()], { database: 'sqlite', acts: 30, kills: false }))

test('the same on PostgreSQL, with three processes', (context) =>
  prove(context, [200], { database: 'postgres', acts: 30, kills: false }))

test('the same with processes that are killed, and stopped for longer than their lease', (context) =>
  prove(context, [7], { database: 'sqlite', acts: 25, kills: true }))
