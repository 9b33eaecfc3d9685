import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseQuery } from '../../src/apps/mail/query/parse.ts'
import type { QuotaUsage } from '../../src/sim/quota.ts'
import { searchRows, slowest } from './archive-case.ts'
import { aims } from './explanation.ts'
import { ADDRESS } from './gmail.ts'
import { chosenCases } from './index.ts'
import { QUERIES } from './queries.ts'
import { quotaRows, spanOf } from './quota-case.ts'
import { FULL } from './session.ts'
import { SPEED, SUBJECTS } from './speed-case.ts'
import { apiCalls } from './unchanged-case.ts'

describe('the plan of the mail bench', () => {
  test('everything is run unless something is named', () => {
    const all = chosenCases({ quick: false, only: [] })
    assert.deepEqual([all.worlds.length, all.speed.length], [3, SUBJECTS.length])
    assert.ok(all.memory && all.search && all.unchanged)
    const eaten = chosenCases({ quick: true, only: ['half eaten'] })
    assert.equal(eaten.worlds.length, 1)
    assert.ok(eaten.speed.length === 0 && !eaten.memory && !eaten.search && !eaten.unchanged)
    assert.deepEqual(chosenCases({ quick: true, only: ['limit'] }).speed, ['limit download', 'limit insert'])
    assert.deepEqual(chosenCases({ quick: true, only: ['unbounded'] }).speed, [...SUBJECTS])
  })

  test('mailboxes have more messages than a quota lets through in the time', () => {
    const minutes = (FULL.quotaWarmUpMs + FULL.quotaMs) / 60_000
    for (const { unitsPerMinute, messages } of FULL.quotaWorlds) {
      assert.ok(messages > ((unitsPerMinute / 20) * (minutes + 1)) / 0.9, `${messages}`)
    }
  })

  test('there are 40 queries or more, each of them once, and all can be read', () => {
    assert.ok(QUERIES.length >= 40)
    assert.equal(new Set(QUERIES.map(({ text }) => text)).size, QUERIES.length)
    for (const { text } of QUERIES) parseQuery(text, { now: 1_800_000_000_000, me: ADDRESS })
  })
})

describe('the numbers of the mail bench', () => {
  const usage = (unitsUsed: number, calls: number, callsRefused: number): QuotaUsage => ({
    unitsUsed,
    calls,
    callsRefused,
    unitsRefused: callsRefused * 20,
    unitsOther: 0,
    methods: {},
  })
  const look = (atMs: number, quota: QuotaUsage) => ({
    atMs,
    counters: { requests: {}, parts: {}, quota: { [ADDRESS]: quota } },
  })

  test('the use of a quota is measured between two looks, against what the other client leaves', () => {
    const world = { name: 'w', unitsPerMinute: 6_000, messages: 1, otherShare: 0.5 }
    const [first, second, third] = [
      look(0, usage(1_000, 50, 0)),
      look(60_000, usage(6_700, 335, 0)),
      look(120_000, usage(9_580, 479, 3)),
    ]
    const rows = quotaRows(world, [spanOf(first, second), spanOf(second, third)])
    assert.deepEqual(
      rows.map(({ value }) => value),
      [95, 96, 0.69],
    )
  })

  test('tokens and questions to the simulator are no calls of the API', () => {
    const requests = { 'history.list': { 200: 1, 503: 1 }, 'oauth.token': { 200: 4 }, control: { 200: 9 } }
    assert.equal(apiCalls({ requests }), 2)
  })

  test('searches are summed up over all queries, and the slowest are named', () => {
    const searched = [
      { text: 'quick', kind: 'k', hits: 3, ms: [1, 1, 1, 1] },
      { text: 'slow', kind: 'k', hits: 20, ms: [9, 90, 9, 9] },
    ]
    assert.deepEqual(
      searchRows(1_000, searched).map(({ value }) => value),
      [9, 90, 90],
    )
    assert.match(slowest(searched), /^slowest queries by their median: `slow` 9.00 ms \(20 hits/)
  })

  test('speed is compared with the slower limit, and what misses its aim is said', () => {
    const row = (subject: string, value: number) => ({ case: SPEED, subject, value, unit: 'messages/s' })
    const rows = [row('limit download', 4_000), row('limit insert', 2_000), row('tidemark', 1_500)]
    assert.match(aims(rows)[0]!, /0\.38 × limit download, 0\.75 × limit insert.*is the insert.*met/)
    rows[2]!.value = 1_300
    assert.match(aims(rows)[0]!, /missed/)
    assert.deepEqual(aims([]), [])
  })
})
