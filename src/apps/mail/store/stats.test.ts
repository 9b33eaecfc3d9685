import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeShards, type TestShards } from './search.suite.ts'
import { statsOfShards } from './stats.ts'

describe('statistics', () => {
  let shards: TestShards
  before(() => {
    shards = makeShards([
      { id: 'a', at: Date.UTC(2019, 0, 1), from: 'Amy@Example.com', bytes: 10, labels: ['INBOX', 'SENT'] },
      {
        id: 'b',
        at: Date.UTC(2019, 11, 31, 23, 59),
        from: 'amy@example.com',
        bytes: 9_999,
        labels: ['INBOX'],
      },
      { id: 'c', at: Date.UTC(2020, 0, 1), from: 'bob@example.com', bytes: 10_000 },
      { id: 'd', at: Date.UTC(2020, 5, 1), bytes: 20_000_000, labels: ['SENT'] },
      {
        id: 'e',
        at: Date.UTC(1965, 5, 1),
        shard: 'earlier',
        from: 'amy@example.com',
        bytes: 1,
        labels: ['INBOX'],
      },
    ])
  })
  after(() => shards.remove())

  const row = (key: string, messages: number, bytes: number) => ({ key, messages, bytes })

  test('by year, newest first', () => {
    const { rows, unsearched } = statsOfShards(shards.reader, 'year')
    assert.deepEqual(
      rows.map((one) => ({ ...one })),
      [row('2020', 2, 20_010_000), row('2019', 2, 10_009), row('1965', 1, 1)],
    )
    assert.deepEqual(unsearched, [])
  })

  test('by sender, whatever the case of the address, most first', () => {
    assert.deepEqual(statsOfShards(shards.reader, 'sender').rows, [
      row('amy@example.com', 3, 10_010),
      row('', 1, 20_000_000),
      row('bob@example.com', 1, 10_000),
    ])
  })

  test('by label, with those that have none', () => {
    assert.deepEqual(statsOfShards(shards.reader, 'label').rows, [
      row('INBOX', 3, 10_010),
      row('SENT', 2, 20_000_010),
      row('', 1, 10_000),
    ])
  })

  test('by size, smallest first', () => {
    assert.deepEqual(statsOfShards(shards.reader, 'size').rows, [
      row('below 10 kB', 3, 10_010),
      row('10 kB to 100 kB', 1, 10_000),
      row('10 MB and more', 1, 20_000_000),
    ])
  })

  test('no more rows than asked for', () => {
    assert.deepEqual(statsOfShards(shards.reader, 'sender', 1).rows, [row('amy@example.com', 3, 10_010)])
  })

  test('a missing shard is named, and the others are counted', () => {
    const own = makeShards([
      { id: 'a', at: Date.UTC(2019, 0, 1) },
      { id: 'b', at: Date.UTC(2020, 0, 1) },
    ])
    try {
      rmSync(join(own.folder, '2019.db'))
      const { rows, unsearched } = statsOfShards(own.reader, 'year')
      assert.deepEqual(rows, [row('2020', 1, 1_000)])
      assert.deepEqual(
        unsearched.map(({ shard }) => shard),
        ['2019'],
      )
    } finally {
      own.remove()
    }
  })
})
