/** Whatever user, Gmail, model and processes do, mail is sorted once and no draft is lost. At length: npm run oracle -- assistant */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type HistoryOptions, runAssistHistory } from './history.ts'

async function prove(context: TestContext, seeds: readonly number[], options: HistoryOptions): Promise<void> {
  for (const seed of seeds) {
    const { failure, counts } = await runAssistHistory(seed, options)
    context.diagnostic(`seed ${seed}: ${JSON.stringify(counts)}`)
    assert.equal(failure, undefined)
  }
}

test('through lost answers, missing pushes and ends of processes, each conversation is sorted once and has one draft at most', (context) =>
  prove(context, [11, 14], { database: 'sqlite', acts: 60, kills: false }))

test('the same on PostgreSQL', (context) =>
  prove(context, [17], { database: 'postgres', acts: 60, kills: false }))

test('the same with processes that are killed', (context) =>
  prove(context, [13], { database: 'sqlite', acts: 40, kills: true }))
