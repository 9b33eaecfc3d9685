import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { mapRecord, TEXT_CHARS_MAX, valueAt } from './mapping.ts'
import { proposeMapping } from './proposal.ts'
import { parseTime } from './record-time.ts'

describe('a mapped record', () => {
  test('has its fields by paths through objects and lists, and what does not fit in rescue', () => {
    const value = {
      message: 'hello\nworld',
      detail: { items: [{ name: 'a' }, { name: 'b' }], 'x.y': 5 },
      time: '2026-01-02T03:04:05+01:00',
      id: 7,
      tags: ['p', 'q', 'p'],
      level: { deep: true },
      when: 'yesterday',
    }
    const mapping = {
      text: ['message', 'detail.items.name'],
      time: 'time',
      id: 'id',
      facets: ['tags', 'level'],
    }
    assert.deepEqual(mapRecord(value, mapping), {
      title: 'hello',
      text: 'hello\nworld\na, b',
      atMs: Date.UTC(2026, 0, 2, 2, 4, 5),
      id: '7',
      facets: [
        { name: 'tags', value: 'p' },
        { name: 'tags', value: 'q' },
      ],
      rescue: { level: { deep: true } },
    })
    const { atMs, rescue } = mapRecord(value, { text: [], time: 'when', facets: [] })
    assert.deepEqual([atMs, rescue], [null, { when: 'yesterday' }])
    assert.equal(valueAt(value, 'detail.items.1.name'), 'b')
  })

  test('has the likeliest of its fields as its title where nobody has said what its text is', () => {
    const nothing = { text: [], facets: [] }
    const value = { time: '2026-11-01', message: 'the tide came in\nand went' }
    assert.equal(mapRecord(value, nothing).title, 'the tide came in')
    assert.match(mapRecord(value, nothing).text, /^time: 2026-11-01\nmessage: /)
    assert.equal(mapRecord({ time: '2026-11-01', message: 4 }, nothing).title, 'time: 2026-11-01')
  })

  test('is never empty where nobody has said what its text is', () => {
    const none = { text: [], facets: [] }
    assert.equal(mapRecord({ m: 'high water', n: 3, gone: null }, none).text, 'm: high water\nn: 3')
    assert.equal(mapRecord({ line: 'high water' }, none).text, 'high water')
  })

  test('is bounded and fit for a database, whatever the record is', () => {
    const mapping = { title: 'a', text: ['a', 'b'], time: 'a', id: 'b', facets: ['a', 'b', '__proto__'] }
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), fc.anything()), (value) => {
        const mapped = mapRecord(
          JSON.parse(JSON.stringify(value) ?? '{}', (_key, one) => one),
          mapping,
        )
        assert.ok(!/\0/.test(mapped.text + mapped.title) && mapped.text.isWellFormed())
      }),
    )
    const long = mapRecord({ a: '😀'.repeat(TEXT_CHARS_MAX), b: 'x'.repeat(1_000) }, mapping)
    assert.ok(long.text.length <= TEXT_CHARS_MAX + 1 && long.text.isWellFormed())
    assert.equal(long.id, null, 'an id is never cut')
  })
})

test('times are read as ISO, as numbers of any unit, and as logs write them', () => {
  const at = Date.UTC(2000, 9, 10, 20, 55, 36)
  for (const text of [
    '2000-10-10T20:55:36Z',
    '2000-10-10 13:55:36-07:00',
    '10/Oct/2000:13:55:36 -0700',
    'Tue, 10 Oct 2000 20:55:36 GMT',
    'Tue Oct 10 20:55:36 2000',
    '2000/10/10 20:55:36',
    '971211336',
    971211336,
    971211336000,
    971211336000000,
    '971211336000000000',
  ]) {
    assert.equal(parseTime(text), at, String(text))
  }
  for (const text of ['', 'now', '2000-13-01', '2000-02-30', 5, Number.NaN, null, '12:30'])
    assert.equal(parseTime(text), undefined)
})

describe('a proposal', () => {
  const records = Array.from({ length: 20 }, (_, at) => ({
    eventID: `e-${at}`,
    eventTime: new Date(1_700_000_000_000 + at).toISOString(),
    level: at % 3 === 0 ? 'error' : 'info',
    message: `the request number ${at} was answered in time`,
    size: at < 10 ? at * 17 : `${at} kB`,
  }))

  test('finds text, time, id and facets, and the same ones each time', () => {
    const { mapping } = proposeMapping(records)
    assert.deepEqual(mapping, { text: ['message'], facets: ['level'], time: 'eventTime', id: 'eventID' })
    assert.deepEqual(proposeMapping(records), proposeMapping(structuredClone(records)))
  })

  test('tells all types of a field that changes on the way', () => {
    const size = proposeMapping(records).schema.find(({ path }) => path === 'size')
    assert.deepEqual([size?.types, size?.share], [['number', 'text'], 1])
  })

  test('of nothing maps nothing', () => {
    assert.deepEqual(proposeMapping([]), { mapping: { text: [], facets: [] }, schema: [], records: 0 })
  })
})
