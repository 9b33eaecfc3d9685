import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../../base/errors.ts'
import { ADDRESS, CUTOFF_MS, cleanUpBench, wantedRun } from './clean-up.suite.ts'
import { understoodQuery } from './selection.ts'

const NOW = Date.UTC(2026, 2, 31, 12)

test('NOT is:starred leaves starred mail in the inbox', async (t) => {
  const bench = await cleanUpBench(t, { old: 6, young: 0 })
  const [starred, ...others] = bench.oldIds
  bench.mailbox.modify(starred!, { add: ['STARRED'] })
  await bench.resync()
  const query = await understoodQuery(bench.tables, 'subject:number* AND NOT is:starred', {
    now: CUTOFF_MS,
    me: ADDRESS,
  })
  assert.equal(query, 'subject:number* AND NOT is:starred')
  const { id } = await bench.runs.start(wantedRun({ query }))
  const end = await bench.runs.wait(id)
  assert.deepEqual([end.end, end.run.done, end.run.query], ['done', 5, query])
  const inInbox = (one: string): boolean => bench.mailbox.get(one)!.labelIds.has('INBOX')
  assert.deepEqual([starred!, ...others].filter(inInbox), [starred])
})

test('a query is understood with its times, its own address and its labels', async (t) => {
  const { tables } = await cleanUpBench(t, { old: 1, young: 0 })
  const understood = (text: string): Promise<string> =>
    understoodQuery(tables, text, { now: NOW, me: ADDRESS })
  assert.equal(await understood(''), '')
  assert.equal(await understood('in:anywhere'), '')
  assert.equal(
    await understood('from:me older_than:1y -{is:important in:sent}'),
    `from:${ADDRESS} AND before:2025-03-31T12:00:00Z AND NOT (is:important OR in:sent)`,
  )
  assert.equal(await understood(await understood('a b OR -c')), 'a AND (b OR NOT c)')
  for (const text of ['-label:imporant', '{in:inbox label:nowhere}', 'a NOT in:snoozed']) {
    await assert.rejects(
      understood(text),
      (thrown) => thrown instanceof UsageError && thrown.code === 'bad-query',
    )
  }
  for (const text of ['a | b', 'a NOT', 'a -label:x|y', 'a AROUND b', 'a not b']) {
    await assert.rejects(understood(text), UsageError)
  }
})
