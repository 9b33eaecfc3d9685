import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { UsageError } from '../../../base/errors.ts'
import { assertLinear } from '../../../base/growth.suite.ts'
import { QUERY_CHARS_MAX, QUERY_DEPTH_MAX, QUERY_TERMS_MAX } from '../../../search/query/syntax.ts'
import { formatQuery } from './format.ts'
import { operators } from './operators.ts'
import { parseQuery } from './parse.ts'
import type { Query, TextField } from './query.ts'

const NOW = Date.UTC(2026, 2, 31, 12)
const DAY_MS = 86_400_000

const parse = (text: string): Query => parseQuery(text, { now: NOW })
const text = (word: string, more: Partial<Extract<Query, { is: 'text' }>> = {}): Query => ({
  is: 'text',
  field: null,
  words: [word],
  phrase: false,
  prefix: false,
  ...more,
})
const label = (name: string): Query => ({ is: 'label', name })
const not = (of: Query): Query => ({ is: 'not', of })

function refused(query: string): UsageError {
  try {
    parse(query)
  } catch (thrown) {
    assert.ok(thrown instanceof UsageError, String(thrown))
    assert.equal(thrown.code, 'bad-query')
    return thrown
  }
  throw new assert.AssertionError({ message: `was read: ${query}` })
}

describe('words', () => {
  const cases: [query: string, tree: Query][] = [
    ['', { is: 'all' }],
    ['  \n ', { is: 'all' }],
    ['budget', text('budget')],
    ['a b', { is: 'and', of: [text('a'), text('b')] }],
    ['a AND b', { is: 'and', of: [text('a'), text('b')] }],
    ['"cost  plan"', text('', { words: ['cost', 'plan'], phrase: true })],
    ['“cost plan”', text('', { words: ['cost', 'plan'], phrase: true })],
    ['"say \\"hi\\" \\\\ C:\\dir"', text('', { words: ['say', '"hi"', '\\', 'C:\\dir'], phrase: true })],
    ['bud*', text('bud', { prefix: true })],
    ['"cost pl"*', text('', { words: ['cost', 'pl'], phrase: true, prefix: true })],
    ['-budget', not(text('budget'))],
    ['--budget', not(not(text('budget')))],
    ['-"cost plan"', not(text('', { words: ['cost', 'plan'], phrase: true }))],
    ['or and', { is: 'and', of: [text('or'), text('and')] }],
    ['plan / draft & more', { is: 'and', of: [text('plan'), text('draft'), text('more')] }],
    ['plan – draft', { is: 'and', of: [text('plan'), text('draft')] }],
    ['"plan"', text('plan')],
    ['+plan', text('plan')],
    [
      '+"cost plan" +(a)',
      { is: 'and', of: [text('', { words: ['cost', 'plan'], phrase: true }), text('a')] },
    ],
    ['AT&T c++ not around', { is: 'and', of: ['AT&T', 'c++', 'not', 'around'].map((one) => text(one)) }],
    ['"NOT" "a | b"', { is: 'and', of: [text('NOT'), text('', { words: ['a', '|', 'b'], phrase: true })] }],
    ['Re: 10:30 C:\\dir', { is: 'and', of: [text('Re:'), text('10:30'), text('C:\\dir')] }],
    ['https://example.com/a?b=c', text('https://example.com/a?b=c')],
    ['amy@example.com', text('amy@example.com')],
    [':smile: c=1', { is: 'and', of: [text(':smile:'), text('c=1')] }],
    ['bread or "not"', { is: 'and', of: [text('bread'), text('or'), text('not')] }],
  ]
  for (const [query, tree] of cases) {
    test(`${JSON.stringify(query)} is read`, () => assert.deepEqual(parse(query), tree))
  }
})

describe('OR, ( ) and { }', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((word) => text(word)) as [Query, Query, Query, Query]
  const cases: [query: string, tree: Query][] = [
    ['a OR b OR c', { is: 'or', of: [a, b, c] }],
    ['a b OR c d', { is: 'and', of: [a, { is: 'or', of: [b, c] }, d] }],
    ['a AND b OR c', { is: 'and', of: [a, { is: 'or', of: [b, c] }] }],
    ['{a b}', { is: 'or', of: [a, b] }],
    ['{a OR b}', { is: 'or', of: [a, b] }],
    ['{a (b c)} d', { is: 'and', of: [{ is: 'or', of: [a, { is: 'and', of: [b, c] }] }, d] }],
    ['((a)) (b c)', { is: 'and', of: [a, b, c] }],
    ['-(a b)', not({ is: 'and', of: [a, b] })],
    ['-{a b}', not({ is: 'or', of: [a, b] })],
    ['(a)OR(b)', { is: 'or', of: [a, b] }],
    ['a NOT b', { is: 'and', of: [a, not(b)] }],
    ['a AND NOT b', { is: 'and', of: [a, not(b)] }],
    ['NOT a b', { is: 'and', of: [not(a), b] }],
    ['a OR NOT b', { is: 'or', of: [a, not(b)] }],
    ['{a NOT b}', { is: 'or', of: [a, not(b)] }],
    ['NOT (a b)', not({ is: 'and', of: [a, b] })],
    ['NOT(a OR b) c', { is: 'and', of: [not({ is: 'or', of: [a, b] }), c] }],
    ['NOT NOT a', not(not(a))],
    ['-NOT a', not(not(a))],
    ['NOT -a', not(not(a))],
    ['violin AND NOT is:starred', { is: 'and', of: [text('violin'), not(label('STARRED'))] }],
    ['NOT "a"', not(a)],
    ['a OR"b"', { is: 'or', of: [a, b] }],
  ]
  for (const [query, tree] of cases) {
    test(`${query} is read`, () => assert.deepEqual(parse(query), tree))
  }
})

describe('operators', () => {
  const field = (name: TextField, word: string): Query => text(word, { field: name })
  const archived = ['INBOX', 'SENT', 'DRAFT', 'TRASH', 'SPAM', 'CHAT'].map(label)
  const cases: [query: string, tree: Query][] = [
    ['from:amy', field('from', 'amy')],
    ['FROM:amy', field('from', 'amy')],
    ['to:amy', field('to', 'amy')],
    ['cc:amy', field('cc', 'amy')],
    ['bcc:amy', field('bcc', 'amy')],
    ['filename:report.pdf', field('filename', 'report.pdf')],
    ['body:budget', field('body', 'budget')],
    ['subject:"a b"', text('', { field: 'subject', words: ['a', 'b'], phrase: true })],
    ['subject:bud*', text('bud', { field: 'subject', prefix: true })],
    ['subject:(a b)', { is: 'and', of: [field('subject', 'a'), field('subject', 'b')] }],
    ['from:{a b}', { is: 'or', of: [field('from', 'a'), field('from', 'b')] }],
    ['from:(a OR b)', { is: 'or', of: [field('from', 'a'), field('from', 'b')] }],
    ['subject:(re: -a)', { is: 'and', of: [field('subject', 're:'), not(field('subject', 'a'))] }],
    ['-from:amy', not(field('from', 'amy'))],
    ['+from:amy', field('from', 'amy')],
    ['subject:(a NOT b)', { is: 'and', of: [field('subject', 'a'), not(field('subject', 'b'))] }],
    ['id:-1|2', { is: 'id', value: '-1|2' }],
    ['label:work', label('work')],
    ['label:"my work"', label('my work')],
    ['in:inbox', label('INBOX')],
    ['in:sent', label('SENT')],
    ['in:trash', label('TRASH')],
    ['in:spam', label('SPAM')],
    ['in:drafts', label('DRAFT')],
    ['in:anywhere', { is: 'all' }],
    ['in:archive', not({ is: 'or', of: archived })],
    ['in:projects', label('projects')],
    ['in:constructor', label('constructor')],
    ['is:unread', label('UNREAD')],
    ['is:read', not(label('UNREAD'))],
    ['is:starred', label('STARRED')],
    ['is:important', label('IMPORTANT')],
    ['is:deleted', { is: 'deleted' }],
    ['deleted:yes', { is: 'deleted' }],
    ['deleted:no', not({ is: 'deleted' })],
    ['is:imported', { is: 'imported' }],
    ['is:(unread starred)', { is: 'and', of: [label('UNREAD'), label('STARRED')] }],
    ['category:promotions', label('CATEGORY_PROMOTIONS')],
    ['has:attachment', { is: 'has-attachment' }],
    ['larger:10', { is: 'larger', bytes: 10 }],
    ['larger:10K', { is: 'larger', bytes: 10_240 }],
    ['size:1.5m', { is: 'larger', bytes: 1_572_864 }],
    ['smaller:2G', { is: 'smaller', bytes: 2 ** 31 }],
    ['rfc822msgid:<a@b>', { is: 'message-id', value: 'a@b' }],
    ['rfc822msgid:a@b', { is: 'message-id', value: 'a@b' }],
    ['id:18c2', { is: 'id', value: '18c2' }],
    ['thread:18c2', { is: 'thread', value: '18c2' }],
  ]
  for (const [query, tree] of cases) {
    test(`${query} is read`, () => assert.deepEqual(parse(query), tree))
  }

  test('me is the account’s own address where it is known', () => {
    const own = field('from', 'amy@example.com')
    assert.deepEqual(parseQuery('from:me', { now: NOW, me: 'amy@example.com' }), own)
    assert.deepEqual(parse('from:me'), field('from', 'me'))
    const inSubject = parseQuery('subject:me', { now: NOW, me: 'amy@example.com' })
    assert.deepEqual(inSubject, field('subject', 'me'))
  })
})

describe('times', () => {
  const cases: [query: string, iso: string][] = [
    ['after:2024/01/15', '2024-01-15T08:00:00.000Z'],
    ['newer:2024-01-15', '2024-01-15T08:00:00.000Z'],
    ['before:2024/7/1', '2024-07-01T07:00:00.000Z'],
    ['older:2024/07/01', '2024-07-01T07:00:00.000Z'],
    // The days on which clocks there change.
    ['after:2024/03/10', '2024-03-10T08:00:00.000Z'],
    ['after:2024/03/11', '2024-03-11T07:00:00.000Z'],
    ['after:2024/11/03', '2024-11-03T07:00:00.000Z'],
    ['after:2024/11/04', '2024-11-04T08:00:00.000Z'],
    ['after:2024/02/29', '2024-02-29T08:00:00.000Z'],
    ['after:1262304000', '2010-01-01T00:00:00.000Z'],
    ['after:1262304000.25', '2010-01-01T00:00:00.250Z'],
    ['after:86400.0', '1970-01-02T00:00:00.000Z'],
    ['newer_than:1m', '2026-02-28T12:00:00.000Z'],
    ['older_than:2y', '2024-03-31T12:00:00.000Z'],
    ['older_than:13m', '2025-02-28T12:00:00.000Z'],
  ]
  for (const [query, iso] of cases) {
    test(`${query} is ${iso}`, () => {
      const tree = parse(query)
      assert.ok(tree.is === 'after' || tree.is === 'before')
      assert.equal(tree.is, /^(?:after|newer)/.test(query) ? 'after' : 'before')
      assert.equal(new Date(tree.atMs).toISOString(), iso)
    })
  }

  test('days are of 24 hours', () => {
    assert.deepEqual(parse('newer_than:3d'), { is: 'after', atMs: NOW - 3 * DAY_MS })
  })
})

describe('what cannot be read', () => {
  const cases: [query: string, at: number, what: RegExp][] = [
    ['form:amy', 1, /no operator form:; did you mean from:\?/],
    ['a sbuject:x', 3, /did you mean subject:\?/],
    ['foo:"bar"', 1, /no operator foo:/],
    ['from: amy', 1, /from: needs a value right behind the colon/],
    ['a OR', 3, /OR needs something after it/],
    ['OR a', 1, /OR needs something before it/],
    ['a OR OR b', 6, /OR needs something before it/],
    ['{a AND b}', 4, /in \{ \} any part is enough/],
    ['(a b', 1, /the \( is never closed by \)/],
    ['a {b (c}', 8, /this \} closes nothing/],
    ['a)', 2, /closes nothing/],
    ['a ()', 3, /nothing in these brackets/],
    ['x "a b', 3, /never closed/],
    ['""', 1, /nothing to search for/],
    ['subject:"', 9, /never closed/],
    ['subject:🎉', 9, /letters or digits are needed/],
    ['a 🎉', 3, /letters or digits are needed/],
    ['*', 1, /nothing to search for/],
    ['- &', 1, /- stands alone/],
    ['plan - draft', 6, /- stands alone; .* as in -draft/],
    ['a ! b', 3, /! stands alone/],
    ['a NOT', 3, /nothing to leave out/],
    ['(a NOT) b', 4, /nothing to leave out/],
    ['a -OR b', 4, /OR is an operator/],
    ['NOT AND a', 5, /AND is an operator/],
    ['subject:NOT a', 9, /NOT is an operator/],
    ['a & & b', 5, /& needs something before it/],
    ['{a & b}', 4, /in \{ \} any part is enough/],
    ['a | b', 3, /\| is not known here: write OR/],
    ['from:(a|b)', 8, /\| is not known here: write OR/],
    ['subject:a||b', 10, /\|\| is not known here: write OR/],
    ['a || b', 3, /\|\| is not known here: write OR/],
    ['a && b', 3, /&& is not known here: write AND/],
    ['a AROUND b', 3, /AROUND is not known here/],
    ['a AROUND(5) b', 3, /AROUND is not known here/],
    ['a AROUND 5 b', 3, /AROUND is not known here/],
    ['!is:starred', 1, /to leave something out, write a minus or NOT/],
    ['–is:starred', 1, /to leave something out, write a minus or NOT/],
    ['from:-amy', 6, /before its operator/],
    ['from:to:amy', 6, /to: has no place here/],
    ['subject:(a is:starred)', 12, /is: cannot stand within subject:/],
    ['form: amy', 1, /no operator form:; did you mean from:\?/],
    ['subject:(note:x)', 10, /no operator note:/],
    ['a,-is:starred', 4, /is: has no place here/],
    ['a [is:starred]', 4, /is: has no place here/],
    ['is：starred', 1, /is: has no place here/],
    ['is=starred', 1, /is: has no place here/],
    ['is :starred', 4, /a colon follows its operator/],
    ['a ＮＯＴ b', 3, /NOT is an operator/],
    ['a NEAR/5 b', 3, /NEAR is not known here/],
    ['a XOR b', 3, /XOR is not known here/],
    ['pl*n', 3, /a star is known at the end of a word only/],
    ['a and not is:starred', 7, /not is read as a word here; as an operator it is NOT/],
    ['a AND not b', 7, /as an operator it is NOT/],
    ['is:starred or -is:unread', 12, /as an operator it is OR/],
    ['a Or (b c)', 3, /as an operator it is OR/],
    ['has:fun', 5, /attachment/],
    ['is:great', 4, /unread, read, starred/],
    ['larger:big', 8, /number of bytes/],
    ['larger:99999999999999999G', 8, /number of bytes/],
    ['after:yesterday', 7, /YYYY\/MM\/DD/],
    ['after:2024', 7, /YYYY\/MM\/DD/],
    ['after:20240131', 7, /YYYY\/MM\/DD/],
    ['after:05/04/2024', 7, /YYYY\/MM\/DD/],
    ['after:2024/02/30', 7, /no such day/],
    ['after:1262304000000', 7, /looks like milliseconds/],
    ['newer_than:3h', 12, /d, m or y/],
    ['label:" "', 7, /name is missing/],
  ]
  for (const [query, at, what] of cases) {
    test(`${query} is refused at character ${at}`, () => {
      const { message } = refused(query)
      assert.match(message, what)
      const [first, shown, caret] = message.split('\n')
      assert.match(first!, new RegExp(`at character ${at}:`))
      assert.equal(shown, `  ${query}`)
      assert.equal(caret, `${' '.repeat(at + 1)}^`)
    })
  }

  test('small joints are words in a search, and are refused for a clean-up, which would take what they leave out', () => {
    const strictly = (query: string): Query => parseQuery(query, { now: NOW, smallJoints: 'refuse' })
    for (const query of ['a not b', 'a or b', 'a And b']) {
      assert.equal(parse(query).is, 'and')
      assert.throws(() => strictly(query), /is read as a word here/)
    }
    assert.deepEqual(strictly('a "or" b'), parse('a or b'))
  })

  test('an unknown operator comes with the list of those that there are', () => {
    const { hint } = refused('foo:bar')
    for (const name of operators.keys()) assert.ok(hint?.includes(`${name}:`), name)
  })

  test('of a long query the part around the mistake is shown, in one line', () => {
    const { message } = refused(`${'word '.repeat(40)}\n\u001b[31m foo:bar ${'more '.repeat(40)}`)
    const [, shown, caret, ...rest] = message.split('\n')
    assert.deepEqual(rest, [])
    assert.ok(shown!.length < 80)
    assert.equal(shown!.slice(caret!.length - 1).slice(0, 7), 'foo:bar')
    assert.ok(!shown!.includes('\u001b'))
  })

  test('more than the limits is refused', () => {
    assert.match(refused('a'.repeat(QUERY_CHARS_MAX + 1)).message, /2001 characters long/)
    assert.match(refused('a'.repeat(100_000)).message, /100000 characters long/)
    assert.match(refused('('.repeat(10_000)).message, /10000 characters long/)
    assert.match(refused('a OR '.repeat(10_000)).message, /50000 characters long/)
    assert.match(refused(`${'a OR '.repeat(QUERY_TERMS_MAX)}a`).message, /more than 100 words/)
    assert.match(refused(`${'NOT '.repeat(QUERY_DEPTH_MAX + 1)}a`).message, /more than 20 levels/)
    assert.match(refused(`${'+'.repeat(QUERY_DEPTH_MAX + 1)}a`).message, /more than 20 levels/)
    assert.match(refused('a '.repeat(QUERY_TERMS_MAX + 1)).message, /more than 100 words/)
    assert.match(refused(`"${'a '.repeat(QUERY_TERMS_MAX + 1)}"`).message, /more than 100 words/)
    assert.match(refused(`${'('.repeat(QUERY_DEPTH_MAX + 1)}a`).message, /more than 20 levels/)
    assert.match(refused(`${'-'.repeat(QUERY_DEPTH_MAX + 1)}a`).message, /more than 20 levels/)
    assert.match(refused(`${'-('.repeat(1_000)}`).message, /more than 20 levels/)
  })

  test('what just fits is read', () => {
    parse('a'.repeat(QUERY_CHARS_MAX))
    parse('a '.repeat(QUERY_TERMS_MAX))
    parse(`${'('.repeat(QUERY_DEPTH_MAX)}a${')'.repeat(QUERY_DEPTH_MAX)}`)
    parse(`${'-'.repeat(QUERY_DEPTH_MAX)}a`)
  })
})

// Trees as the parser makes them.

function record<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>
}

const word = fc
  .stringMatching(/^[a-zäß東0-9][a-z0-9.@_+:/-]{0,8}$/u)
  .filter((one) => !/^[a-z][a-z0-9_-]+:/.test(one) && /[\p{L}\p{N}]/u.test(one))
const phraseWord = fc.stringMatching(/^[a-zé"\\(){}*:-]{0,5}[a-z]$/u)
const textQuery: fc.Arbitrary<Query> = record({
  is: fc.constant('text' as const),
  field: fc.constantFrom<TextField | null>(null, 'subject', 'from', 'to', 'cc', 'bcc', 'filename', 'body'),
  prefix: fc.boolean(),
  phrase: fc.constant(false),
  words: word.map((one) => [one]),
})
const phraseQuery: fc.Arbitrary<Query> = record({
  is: fc.constant('text' as const),
  field: fc.constantFrom<TextField | null>(null, 'subject'),
  prefix: fc.boolean(),
  phrase: fc.constant(true),
  words: fc.array(phraseWord, { minLength: 2, maxLength: 4 }),
})
/** What can only be said in quotes. */
const quotedQuery: fc.Arbitrary<Query> = record({
  is: fc.constant('text' as const),
  field: fc.constantFrom<TextField | null>(null, 'subject', 'from'),
  prefix: fc.boolean(),
  phrase: fc.constant(false),
  words: fc
    .oneof(
      fc.constantFrom('OR', 'AND', 'NOT', 'not', 'or', 'AROUND', 'AROUND5', 'me', 'a|b', 'a&&b', '-a', '+a'),
      fc.constantFrom('!a', '–a', 'is:starred', 'Re:', 'note:', 'note:x', 'a*', 'http://x', '😀a', 'a"b'),
      phraseWord,
    )
    .map((one) => [one]),
})
const name = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 10 })
  .filter((one) => one.trim() === one && one !== '')
const value = name.filter((one) => !(one.startsWith('<') && one.endsWith('>')))
const leaf: fc.Arbitrary<Query> = fc.oneof(
  textQuery,
  phraseQuery,
  quotedQuery,
  fc.constantFrom<Query>({ is: 'all' }, { is: 'has-attachment' }, { is: 'deleted' }, { is: 'imported' }),
  name.map(label),
  fc.constantFrom('INBOX', 'STARRED', 'UNREAD', 'CATEGORY_SOCIAL', 'inbox').map(label),
  record({ is: fc.constantFrom('id' as const, 'message-id' as const, 'thread' as const), value }),
  record({
    is: fc.constantFrom('before' as const, 'after' as const),
    atMs: fc.oneof(
      fc.integer({ min: -(10 ** 15), max: 10 ** 15 }),
      fc.integer({ min: 0, max: 500_000 }).map((hours) => hours * 3_600_000),
    ),
  }),
  record({
    is: fc.constantFrom('larger' as const, 'smaller' as const),
    bytes: fc.oneof(
      fc.integer({ min: 0, max: 10 ** 15 }),
      fc.nat(999).map((mega) => mega * 2 ** 20),
    ),
  }),
)
const { tree } = fc.letrec<{ tree: Query }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    tie('tree').map(not),
    fc
      .tuple(
        fc.constantFrom('and' as const, 'or' as const),
        fc.array(tie('tree'), { minLength: 2, maxLength: 4 }),
      )
      .filter(([is, of]) => of.every((part) => part.is !== is))
      .map(([is, of]): Query => ({ is, of })),
  ),
}))

const depthOf = (query: Query): number =>
  query.is === 'and' || query.is === 'or'
    ? 1 + Math.max(...query.of.map(depthOf))
    : query.is === 'not'
      ? 1 + depthOf(query.of)
      : 0

describe('a query as it was understood', () => {
  const cases: [query: string, understood: string][] = [
    ['violin AND NOT is:starred', 'violin AND NOT is:starred'],
    ['violin -is:starred', 'violin AND NOT is:starred'],
    ['violin not starred', 'violin AND "not" AND starred'],
    ['a b OR c', 'a AND (b OR c)'],
    ['{a (b c)}', 'a OR (b AND c)'],
    ['-{a b}', 'NOT (a OR b)'],
    ['in:archive', 'NOT (in:inbox OR in:sent OR in:drafts OR in:trash OR in:spam OR in:chats)'],
    ['is:read category:social', 'NOT is:unread AND category:social'],
    ['subject:(cost plan*)', 'subject:cost AND subject:plan*'],
    ['label:"my work" larger:10M', 'label:"my work" AND larger:10M'],
    ['after:2024/01/15 older_than:1y', 'after:2024/01/15 AND before:2025-03-31T12:00:00Z'],
    ['after:1262304000.25', 'after:2010-01-01T00:00:00.250Z'],
    ['from:"me"', 'from:"me"'],
    ['', 'in:anywhere'],
  ]
  for (const [query, understood] of cases) {
    test(`${query || 'nothing'} is ${understood}`, () => {
      assert.equal(formatQuery(parse(query)), understood)
      assert.deepEqual(parse(understood), parse(query))
    })
  }
})

describe('any query', () => {
  test('reads back from its text as the same tree', () => {
    fc.assert(
      fc.property(tree, (query) => {
        const written = formatQuery(query)
        fc.pre(written.length <= QUERY_CHARS_MAX)
        assert.deepEqual(parseQuery(written, { now: NOW, me: 'amy@example.com' }), query, written)
      }),
      { numRuns: 1_000 },
    )
  })

  const piece = fc.oneof(
    fc.constantFrom(
      '(',
      ')',
      '{',
      '}',
      '"',
      '“',
      '-',
      '*',
      ' ',
      ' OR ',
      ' AND ',
      ' NOT ',
      ' AROUND ',
      ' & ',
      '|',
      '!',
      '+',
      '–',
      ':',
      '\\',
      '\u0000',
      '🎉',
      '\ud800',
    ),
    fc.constantFrom(...[...operators.keys()].map((one) => `${one}:`)),
    fc.constantFrom('2024/01/01', '10M', 'inbox', 'unread', '3d', 'attachment', '<a@b>', 'http://x', 'amy'),
    fc.string({ unit: 'binary', maxLength: 5 }),
  )
  test('is read or refused with its place, whatever it is, and what was read reads back', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        let query: Query
        try {
          query = parse(pieces.join(''))
        } catch (thrown) {
          assert.ok(thrown instanceof UsageError, String(thrown))
          assert.equal(thrown.code, 'bad-query')
          return
        }
        const written = formatQuery(query)
        // Every joint is written out: that may take more levels than what was read.
        if (written.length <= QUERY_CHARS_MAX && depthOf(query) <= QUERY_DEPTH_MAX)
          assert.deepEqual(parse(written), query, written)
      }),
      { numRuns: 3_000 },
    )
  })

  test('takes time in proportion to its length', () => {
    const hostile = ['-', '(', '"', '<', 'a:', '\\', '*', '{-', 'from:(', '"\\', ' ', '😀', '-"', 'a-', '&']
    for (const part of hostile) {
      const make = (chars: number): string => part.repeat(Math.floor(chars / part.length))
      const work = (query: string): void => {
        try {
          parse(query)
        } catch (thrown) {
          assert.ok(thrown instanceof UsageError, String(thrown))
        }
      }
      assertLinear({ sizeMax: QUERY_CHARS_MAX, make, work })
    }
  })
})
