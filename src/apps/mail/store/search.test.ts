import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { UsageError } from '../../../base/errors.ts'
import { parseQuery } from '../query/parse.ts'
import type { Query, TextField } from '../query/query.ts'
import type { SearchOptions, SearchPage } from './contract.ts'
import { FIELDS, generatedQuery, LABEL_IDS, WORDS } from './generated-query.suite.ts'
import { makeShards, type TestMessage, type TestShards } from './search.suite.ts'
import { countShards, facetShards, searchShards } from './search.ts'

const NOW = Date.UTC(2026, 0, 1)
const LABELS = new Map([
  ['work', 'Label_1'],
  ['my trips/2020', 'Label_2'],
])
const PAGES_MAX = 1_000

function found(shards: TestShards, text: string, options: SearchOptions = {}): string[] {
  const page = searchShards(shards.reader, parseQuery(text, { now: NOW }), {
    labels: LABELS,
    limit: 100,
    ...options,
  })
  assert.deepEqual(page.unsearched, [])
  return page.hits.map(({ message }) => message.id)
}

function allPages(shards: TestShards, query: Query, options: SearchOptions): SearchPage[] {
  const pages: SearchPage[] = []
  let cursor: string | undefined
  for (let n = 0; n < PAGES_MAX; n++) {
    const page = searchShards(shards.reader, query, cursor === undefined ? options : { ...options, cursor })
    pages.push(page)
    if (page.next === null) return pages
    cursor = page.next
  }
  throw new assert.AssertionError({ message: 'the pages never end' })
}

const idsOf = (pages: readonly SearchPage[]): string[] =>
  pages.flatMap(({ hits }) => hits.map(({ message }) => message.id))

/** One message in each of twelve years, and more in some. */
const MESSAGES: TestMessage[] = [
  ...Array.from(
    { length: 12 },
    (_, year): TestMessage => ({
      id: `year${year}`,
      at: Date.UTC(2008 + year, 5, 1),
      subject: 'annual letter',
      from: 'board@example.org',
      body: `the letter of the year number${year}`,
    }),
  ),
  {
    id: 'm1',
    at: Date.UTC(2020, 0, 1),
    threadId: 't1',
    messageId: '<one@example.com>',
    bytes: 5_000,
    subject: 'Budget for spring',
    from: 'Amy Smith amy@example.com',
    to: 'bob@example.com',
    body: 'the cost plan is attached',
    files: ['Cost Plan.PDF'],
    labels: ['INBOX', 'UNREAD', 'Label_1'],
  },
  {
    id: 'm2',
    at: Date.UTC(2020, 1, 1),
    threadId: 't1',
    cc: 'carol@example.com',
    bytes: 50_000,
    subject: 'Re: Budget for spring',
    from: 'bob@example.com',
    to: 'amy@example.com',
    body: 'plan the cost again, please',
    labels: ['SENT', 'Label_2'],
  },
  {
    id: 'm3',
    at: Date.UTC(2020, 2, 1),
    subject: 'Grüße',
    from: 'Jürgen Müller jm@example.de',
    bcc: 'amy@example.com',
    body: 'Viele Grüße aus Zürich. 東京都は大きい。 Ελληνικός ЙОД',
    labels: ['TRASH'],
  },
  { id: 'm4', at: Date.UTC(2020, 3, 1), body: 'imported from a file', source: 'import', labels: ['STARRED'] },
  { id: 'm5', at: Date.UTC(2020, 4, 1), body: 'gone from the cloud: budget', deletedMs: NOW, labels: [] },
]

test('what is counted for a year is what its dates find, also in the hours around New Year', () => {
  const hour = (year: number, hours: number): number => Date.UTC(year, 0, 1, hours)
  const times = [hour(1970, 0), hour(1970, 9), ...[2019, 2020, 2021].flatMap((y) => [hour(y, 7), hour(y, 8)])]
  const shards = makeShards(times.map((at, n): TestMessage => ({ id: `m${n}`, at, body: 'letter' })))
  try {
    const count = (text: string): number =>
      countShards(shards.reader, parseQuery(text, { now: NOW })).messages
    const { years } = facetShards(shards.reader, parseQuery('letter', { now: NOW }))
    assert.deepEqual(
      years.map(({ value, messages }) => [value, messages]),
      [
        ['2021', 1],
        ['2020', 2],
        ['2019', 2],
        ['2018', 1],
        ['1970', 1],
        ['1969', 1],
      ],
    )
    for (const { value, messages } of years) {
      const before = `before:${Number(value) + 1}/01/01`
      const query = Number(value) < 1970 ? before : `after:${value}/01/01 ${before}`
      assert.equal(count(`letter ${query}`), messages, value)
    }
  } finally {
    shards.remove()
  }
})

describe('every operator finds what it should', () => {
  let shards: TestShards
  before(() => {
    shards = makeShards(MESSAGES)
  })
  after(() => shards.remove())

  const all = [...MESSAGES].sort((a, b) => b.at - a.at).map(({ id }) => id)
  const years = all.filter((id) => id.startsWith('year'))
  const but = (...ids: string[]): string[] => all.filter((id) => !ids.includes(id))

  const cases: [query: string, ids: string[]][] = [
    ['', all],
    ['in:anywhere', all],
    ['budget', ['m5', 'm2', 'm1']],
    ['BUDGET', ['m5', 'm2', 'm1']],
    ['budget spring', ['m2', 'm1']],
    ['"cost plan"', ['m1']],
    ['"plan the cost"', ['m2']],
    ['bud*', ['m5', 'm2', 'm1']],
    ['"budget for spr"*', ['m2', 'm1']],
    ['number1*', ['year11', 'year10', 'year1']],
    ['budget -spring', ['m5']],
    ['-budget', but('m1', 'm2', 'm5')],
    ['-(cost plan)', but('m1', 'm2')],
    ['budget OR letter', ['m5', 'm2', 'm1', ...years]],
    ['{budget imported}', ['m5', 'm4', 'm2', 'm1']],
    ['{from:bob is:starred}', ['m4', 'm2']],
    ['{cost in:trash} {plan zurich}', ['m3', 'm2', 'm1']],
    ['from:amy', ['m1']],
    ['from:amy@example.com', ['m1']],
    ['from:(amy smith)', ['m1']],
    ['to:amy', ['m3', 'm2']],
    ['to:carol', ['m2']],
    ['cc:carol', ['m2']],
    ['bcc:amy', ['m3']],
    ['subject:budget', ['m2', 'm1']],
    ['subject:(budget -re)', ['m1']],
    ['body:budget', ['m5']],
    ['filename:pdf', ['m1']],
    ['filename:"cost plan"', ['m1']],
    ['has:attachment', ['m1']],
    ['-has:attachment budget', ['m5', 'm2']],
    ['label:work', ['m1']],
    ['label:WORK', ['m1']],
    ['label:my-trips-2020', ['m2']],
    ['label:"My Trips/2020"', ['m2']],
    ['label:Label_1', ['m1']],
    ['label:nothing', []],
    ['label:inbox', ['m1']],
    ['in:inbox', ['m1']],
    ['in:sent', ['m2']],
    ['in:trash', ['m3']],
    ['in:archive', but('m1', 'm2', 'm3')],
    ['is:unread', ['m1']],
    ['is:read', but('m1')],
    ['is:starred', ['m4']],
    ['is:deleted', ['m5']],
    ['deleted:no budget', ['m2', 'm1']],
    ['is:imported', ['m4']],
    ['larger:5000', ['m2']],
    ['larger:4999', ['m2', 'm1']],
    ['smaller:1001', but('m1', 'm2')],
    ['id:m3', ['m3']],
    ['{id:m3 id:m5 thread:t1}', ['m5', 'm3', 'm2', 'm1']],
    ['id:m3 budget', []],
    ['id:m1 budget', ['m1']],
    ['thread:t1', ['m2', 'm1']],
    ['thread:t1 -in:sent', ['m1']],
    ['rfc822msgid:one@example.com', ['m1']],
    ['rfc822msgid:<one@example.com>', ['m1']],
    ['after:2020/01/15', ['m5', 'm4', 'm3', 'm2']],
    ['before:2009/01/01', ['year0']],
    ['after:2020/01/15 before:2020/03/15 plan', ['m2']],
    [`after:${Date.UTC(2020, 1, 1) / 1_000} before:${Date.UTC(2020, 2, 1) / 1_000}`, ['m2']],
    ['older_than:17y', ['year0']],
    ['newer_than:6y', ['m5', 'm4', 'm3', 'm2', 'm1']],
    ['{before:2009/01/01 subject:budget}', ['m2', 'm1', 'year0']],
    ['-before:2020/03/15', ['m5', 'm4']],
    ['after:2030/01/01', []],
    ['muller', ['m3']],
    ['Müller', ['m3']],
    ['mu\u0308ller', ['m3']],
    ['ZURICH', ['m3']],
    ['grüße', ['m3']],
    ['東京都は大きい', ['m3']],
    ['東京*', ['m3']],
    ['東京', []],
    ['ελληνικοσ', []],
    ['ΕΛΛΗΝΙΚΌΣ', ['m3']],
    ['йод', ['m3']],
  ]
  for (const [query, ids] of cases) {
    test(`${query === '' ? 'nothing at all' : query}`, () => {
      assert.deepEqual(found(shards, query), ids)
      assert.equal(
        countShards(shards.reader, parseQuery(query, { now: NOW }), { labels: LABELS }).messages,
        ids.length,
      )
    })
  }

  test('messages that the cloud no longer has are left out on request', () => {
    assert.deepEqual(found(shards, 'budget', { deleted: false }), ['m2', 'm1'])
    assert.deepEqual(found(shards, 'is:deleted', { deleted: false }), [])
  })

  test('a count sums up the bytes', () => {
    const counted = countShards(shards.reader, parseQuery('thread:t1', { now: NOW }))
    assert.deepEqual(counted, { messages: 2, bytes: 55_000, unsearched: [] })
  })

  test('signs and pictures alone match nothing, and are never left out', () => {
    const sign: Extract<Query, { is: 'text' }> = {
      is: 'text',
      field: null,
      words: ['🎉'],
      phrase: false,
      prefix: false,
    }
    const budget: Query = { is: 'text', field: null, words: ['budget'], phrase: false, prefix: false }
    const ids = (query: Query): string[] => idsOf([searchShards(shards.reader, query, { limit: 100 })])
    assert.deepEqual(ids(sign), [])
    assert.deepEqual(ids({ is: 'and', of: [sign, budget] }), [])
    assert.deepEqual(ids({ ...sign, words: ['🎉', 'budget'] }), [])
    assert.deepEqual(ids({ ...sign, words: ['🎉', 'budget'], phrase: true }), ['m5', 'm2', 'm1'])
    assert.deepEqual(ids({ is: 'and', of: [{ is: 'not', of: sign }, budget] }), ['m5', 'm2', 'm1'])
    assert.deepEqual(ids({ is: 'or', of: [sign, budget] }), ['m5', 'm2', 'm1'])
    assert.deepEqual(ids({ is: 'not', of: { is: 'all' } }), [])
  })

  test('by rank, a match in the subject comes before one in the body', () => {
    assert.deepEqual(found(shards, 'budget', { order: 'rank' }).at(-1), 'm5')
    assert.deepEqual(found(shards, 'budget', { order: 'rank' }).sort(), ['m1', 'm2', 'm5'])
    assert.deepEqual(found(shards, 'budget in:inbox', { order: 'rank' }), ['m1'])
    assert.deepEqual(found(shards, 'is:read', { order: 'rank' }), found(shards, 'is:read'))
  })
})

describe('hostile words', () => {
  let shards: TestShards
  before(() => {
    shards = makeShards(MESSAGES)
  })
  after(() => shards.remove())

  const syntax = [
    '"',
    "'",
    '""',
    '"a',
    '*',
    'a*b',
    '^a',
    'NEAR(a b)',
    'a AND',
    'NOT',
    'OR',
    '{subject}:a',
    'subject:a',
  ]
  const more = [
    'a:b:c',
    '-',
    '--',
    ')',
    '((',
    '+a',
    'a"b',
    ';DROP TABLE words',
    '\u0000',
    'a\u0000b',
    '\ud800',
    '%',
    '?',
    '1',
  ]
  for (const word of [...syntax, ...more]) {
    test(`${JSON.stringify(word)} is no syntax error`, () => {
      for (const field of [null, 'subject', 'to'] as const) {
        for (const phrase of [true, false]) {
          for (const prefix of [true, false]) {
            const text: Query = { is: 'text', field, words: [word, 'budget'], phrase, prefix }
            for (const query of [text, { is: 'not', of: text }] as const) {
              assert.ok(Array.isArray(searchShards(shards.reader, query).hits))
              assert.ok(Array.isArray(searchShards(shards.reader, query, { order: 'rank' }).hits))
            }
          }
        }
      }
    })
  }

  test('text that is nested deeper than FTS5 can read is asked in parts', () => {
    const text = (word: string): Query => ({
      is: 'text',
      field: null,
      words: [word],
      phrase: false,
      prefix: false,
    })
    for (const depth of [5, 13, 30, 60]) {
      let either = text('budget')
      let without = text('nowhere')
      for (let level = 0; level < depth; level++) {
        either = { is: level % 2 ? 'and' : 'or', of: [text(level % 2 ? 'budget' : 'nowhere'), either] }
        without = { is: 'and', of: [text('budget'), { is: 'not', of: without }] }
      }
      assert.deepEqual(idsOf([searchShards(shards.reader, either)]), ['m5', 'm2', 'm1'])
      assert.deepEqual(idsOf([searchShards(shards.reader, without)]), depth % 2 ? ['m5', 'm2', 'm1'] : [])
    }
  })

  test('a made-up cursor is refused', () => {
    for (const cursor of ['', 'x', 'd_1', 'd_1_', "d_1_2020'; --", 'r_1_2_2020', 'd_9e9_2020']) {
      assert.throws(
        () => searchShards(shards.reader, { is: 'all' }, { cursor }),
        (thrown) => thrown instanceof UsageError && thrown.code === 'bad-cursor',
      )
    }
  })
})

describe('excerpts', () => {
  const long = `${'before '.repeat(60)}Ein Grüner Müller-Thurgau ${'after '.repeat(60)}`
  let shards: TestShards
  before(() => {
    shards = makeShards([
      { id: 'long', at: 0, body: long },
      { id: 'short', at: 1, body: 'the plan\n\n  and the  PLAN again' },
      { id: 'subject', at: 2, subject: 'only here', body: 'something else' },
      { id: 'emoji', at: 3, body: `${'😀'.repeat(300)} needle ${'😀'.repeat(300)}` },
    ])
  })
  after(() => shards.remove())

  const excerpt = (query: string): string => {
    const [hit] = searchShards(shards.reader, parseQuery(query, { now: NOW })).hits
    return hit!.excerpt.map(({ text, match }) => (match ? `[${text}]` : text)).join('')
  }

  test('surround the first match, and mark every match', () => {
    assert.match(excerpt('muller'), /^…before before .*Ein Grüner \[Müller\]-Thurgau after .* after…$/)
    assert.match(excerpt('"gruner muller thurgau"'), /Ein \[Grüner Müller-Thurgau\] after/)
    assert.match(excerpt('thur*'), /-\[Thurgau\] after/)
    assert.equal(excerpt('plan -nothing'), 'the [plan] and the [PLAN] again')
    assert.equal(excerpt('pla* again'), 'the [plan] and the [PLAN] [again]')
  })

  test('are the beginning where the match is elsewhere or nothing was asked for', () => {
    assert.equal(excerpt('subject:only'), 'something else')
    assert.equal(excerpt('only'), 'something else')
    assert.equal(excerpt('id:short'), 'the plan and the PLAN again')
  })

  test('never cut a character in two', () => {
    const text = excerpt('needle')
    assert.ok(text.includes('[needle]'))
    assert.equal(text, text.toWellFormed())
  })
})

describe('over many shards', () => {
  /** Two parts of a year, months beside years, and the same second in several of them. */
  const SHARDS = ['2018', '2019', '2019-2', '2019-m03', '2020', '2020-q1', '2021', 'earlier']
  const messages = Array.from({ length: 400 }, (_, index): TestMessage => {
    const shard = SHARDS[index % SHARDS.length]!
    const year = shard === 'earlier' ? 1960 : Number(shard.slice(0, 4))
    const month = shard.endsWith('m03') ? 2 : index % 3
    return {
      id: `m${index}`,
      shard,
      at: Date.UTC(year, month, 1 + (index % 5), 0, 0, index % 2),
      body: index % 3 === 0 ? 'three common' : 'common',
      labels: index % 7 === 0 ? ['INBOX'] : [],
    }
  })
  let shards: TestShards
  before(() => {
    shards = makeShards(messages)
  })
  after(() => shards.remove())

  const at = new Map(messages.map(({ id, at }) => [id, at]))

  test('pages are complete, in order and without duplicates, whatever their size', () => {
    const queries = [
      '',
      'common',
      'three',
      'in:inbox',
      'three in:inbox',
      '-three',
      '{three in:inbox}',
      'after:2019/02/01',
    ]
    fc.assert(
      fc.property(fc.constantFrom(...queries), fc.integer({ min: 1, max: 60 }), (text, limit) => {
        const query = parseQuery(text, { now: NOW })
        const pages = allPages(shards, query, { limit })
        const ids = idsOf(pages)
        assert.equal(ids.length, countShards(shards.reader, query).messages)
        assert.equal(new Set(ids).size, ids.length)
        for (let n = 1; n < ids.length; n++) assert.ok(at.get(ids[n - 1]!)! >= at.get(ids[n]!)!)
        for (const { hits } of pages.slice(0, -1)) assert.equal(hits.length, limit)
      }),
      { numRuns: 40 },
    )
  })

  test('pages by rank are complete and without duplicates', () => {
    const query = parseQuery('three', { now: NOW })
    for (const limit of [1, 7, 50]) {
      const ids = idsOf(allPages(shards, query, { limit, order: 'rank' }))
      assert.equal(ids.length, countShards(shards.reader, query).messages)
      assert.equal(new Set(ids).size, ids.length)
    }
  })

  test('mail that arrives between two pages repeats and hides nothing', () => {
    const own = makeShards(messages)
    try {
      const query = parseQuery('common', { now: NOW })
      const first = searchShards(own.reader, query, { limit: 50 })
      const last = first.hits.at(-1)!.message
      own.add([
        { id: 'newer', at: Date.UTC(2022, 0, 1), body: 'common' },
        { id: 'same second', shard: '2021', at: last.internalMs, body: 'common' },
        { id: 'late', at: Date.UTC(2018, 5, 5), body: 'common' },
      ])
      const rest = idsOf(allPages(own, query, { limit: 50, cursor: first.next! }))
      const ids = [...idsOf([first]), ...rest]
      assert.equal(new Set(ids).size, ids.length)
      for (const { id } of messages) assert.ok(ids.includes(id), id)
      assert.ok(rest.includes('late'))
      assert.ok(!rest.includes('newer'))
    } finally {
      own.remove()
    }
  })

  test('a shard that is missing, empty or damaged is named, and the rest is answered', () => {
    const own = makeShards(messages)
    try {
      rmSync(join(own.folder, '2019.db'))
      writeFileSync(join(own.folder, '2018.db'), '')
      writeFileSync(join(own.folder, '2020.db'), 'no database at all'.repeat(1_000))
      for (const file of ['2019', '2018', '2020']) {
        for (const end of ['-wal', '-shm']) rmSync(join(own.folder, `${file}.db${end}`), { force: true })
      }
      const query = parseQuery('common', { now: NOW })
      const readable = messages.filter(({ shard }) => !['2018', '2019', '2020'].includes(shard!))
      const pages = allPages(own, query, { limit: 33 })
      assert.deepEqual(new Set(idsOf(pages)), new Set(readable.map(({ id }) => id)))
      for (const answer of [
        searchShards(own.reader, query, { limit: 1_000 }),
        searchShards(own.reader, query, { limit: 1_000, order: 'rank' }),
        countShards(own.reader, query),
      ]) {
        const names = answer.unsearched.map(({ shard }) => shard).sort()
        assert.deepEqual(names, ['2018', '2019', '2020'])
        const missing = answer.unsearched.find(({ shard }) => shard === '2019')
        assert.match(missing!.reason, /2019\.db is missing/)
      }
      assert.equal(countShards(own.reader, query).messages, readable.length)
    } finally {
      own.remove()
    }
  })

  test('a search that is limited in time does not touch the other shards', () => {
    const own = makeShards(messages)
    try {
      rmSync(join(own.folder, '2018.db'))
      const page = searchShards(
        own.reader,
        parseQuery(`after:${Date.UTC(2021, 0) / 1_000} common`, { now: NOW }),
        {
          limit: 1_000,
        },
      )
      assert.deepEqual(page.unsearched, [])
      assert.equal(page.hits.length, messages.filter(({ shard }) => shard === '2021').length)
    } finally {
      own.remove()
    }
  })
})

describe('any query', () => {
  const pick = (index: number, step: number): string => WORDS[Math.floor(index / step) % WORDS.length]!
  const messages = Array.from(
    { length: 120 },
    (_, n): TestMessage => ({
      id: `m${n}`,
      at: Date.UTC(2015 + (n % 6), n % 12, 1 + (n % 28), 0, 0, n),
      bytes: (n * 37) % 1_000,
      subject: `${pick(n, 1)} ${pick(n, 5)}`,
      from: pick(n, 2),
      to: pick(n, 3),
      cc: n % 4 ? '' : pick(n, 7),
      bcc: n % 9 ? '' : pick(n, 11),
      files: n % 5 ? [] : [pick(n, 13)],
      body: `${pick(n, 4)} ${pick(n, 6)} ${pick(n, 10)}`,
      labels: LABEL_IDS.filter((_, k) => (n >> k) & 1),
      ...(n % 8 === 0 ? { deletedMs: 1 } : {}),
      ...(n % 10 === 0 ? { source: 'import' as const } : {}),
    }),
  )
  let shards: TestShards
  before(() => {
    shards = makeShards(messages)
  })
  after(() => shards.remove())

  const fieldsOf = (message: TestMessage, field: TextField | null): string[] => {
    const { subject = '', from = '', to = '', cc = '', bcc = '', files = [], body = '' } = message
    const texts = {
      subject: [subject],
      from: [from],
      to: [to, cc, bcc],
      cc: [cc],
      bcc: [bcc],
      filename: files,
      body: [body],
    }
    return field === null ? FIELDS.flatMap((name) => texts[name]) : [...texts[field]]
  }
  const holds = (query: Query, message: TestMessage): boolean => {
    switch (query.is) {
      case 'all':
        return true
      case 'and':
        return query.of.every((part) => holds(part, message))
      case 'or':
        return query.of.some((part) => holds(part, message))
      case 'not':
        return !holds(query.of, message)
      case 'text': {
        const last = (text: string): string => (query.prefix ? ` ${text}` : ` ${text} `)
        const texts = fieldsOf(message, query.field).map((text) => ` ${text} `)
        const groups = query.phrase ? [query.words.join(' ')] : query.words
        return groups.every((group) => texts.some((text) => text.includes(last(group))))
      }
      case 'label':
        return message.labels!.includes(query.name)
      case 'id':
        return message.id === query.value
      case 'thread':
        return message.id === query.value
      case 'message-id':
        return `${message.id}@example.com` === query.value
      case 'before':
        return message.at < query.atMs
      case 'after':
        return message.at >= query.atMs
      case 'larger':
        return message.bytes! > query.bytes
      case 'smaller':
        return message.bytes! < query.bytes
      case 'has-attachment':
        return message.files!.length > 0
      case 'deleted':
        return message.deletedMs !== undefined
      case 'imported':
        return message.source === 'import'
    }
  }

  const wantedBy = (query: Query, withDeleted: boolean): string[] =>
    messages
      .filter((message) => holds(query, message) && (withDeleted || message.deletedMs === undefined))
      .sort((a, b) => b.at - a.at)
      .map(({ id }) => id)

  test('finds exactly what a plain look at every message finds, in every order and page by page', () => {
    fc.assert(
      fc.property(generatedQuery, fc.boolean(), (query, withDeleted) => {
        const options: SearchOptions = { ...(withDeleted ? {} : { deleted: false }), limit: 50 }
        const wanted = wantedBy(query, withDeleted)
        assert.deepEqual(idsOf(allPages(shards, query, options)), wanted)
        assert.equal(countShards(shards.reader, query, options).messages, wanted.length)
        const ranked = idsOf(allPages(shards, query, { ...options, order: 'rank' }))
        assert.deepEqual(ranked.sort(), [...wanted].sort())
      }),
      { numRuns: 250 },
    )
  })

  test('by rank, a text that is asked for again within an OR is found', () => {
    for (const query of [
      'apple (apple OR (before:2015/06/01 apple))',
      'apple {apple (in:inbox apple)}',
      'apple {(larger:5 berry) (in:inbox cherry) (-apple has:attachment)}',
      'apple -(larger:5 {berry (in:inbox date)})',
    ]) {
      const parsed = parseQuery(query, { now: NOW })
      for (const limit of [3, 1_000]) {
        const ids = idsOf(allPages(shards, parsed, { limit, order: 'rank' }))
        assert.deepEqual(ids.sort(), wantedBy(parsed, true).sort(), query)
      }
    }
  })
})
