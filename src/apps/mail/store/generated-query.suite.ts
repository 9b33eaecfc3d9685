/** Any query over a few words, fields and labels, for tests that compare search with a plain look at every message. */
import fc from 'fast-check'
import type { Query } from '../query/query.ts'

export const WORDS = ['apple', 'berry', 'cherry', 'date']
export const LABEL_IDS = ['INBOX', 'SENT', 'Label_1']
export const FIELDS = ['subject', 'from', 'to', 'cc', 'bcc', 'filename', 'body'] as const

const text = fc
  .tuple(
    fc.constantFrom(null, ...FIELDS),
    fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 2 }),
    fc.constantFrom('words', 'phrase', 'prefix'),
  )
  .map(([field, words, kind]): Query => {
    if (kind === 'prefix')
      return { is: 'text', field, words: [words[0]!.slice(0, 3)], phrase: false, prefix: true }
    return { is: 'text', field, words, phrase: kind === 'phrase', prefix: false }
  })
const moment = fc.integer({ min: Date.UTC(2015, 0), max: Date.UTC(2021, 0) })
const leaf: fc.Arbitrary<Query> = fc.oneof(
  { arbitrary: text, weight: 4 },
  fc.constantFrom<Query>({ is: 'all' }, { is: 'has-attachment' }, { is: 'deleted' }, { is: 'imported' }),
  fc.constantFrom(...LABEL_IDS, 'SPAM').map((name): Query => ({ is: 'label', name })),
  fc.constantFrom('m1', 'm40', 'none').map((value): Query => ({ is: 'id', value })),
  fc.constantFrom('m2', 'm41').map((value): Query => ({ is: 'thread', value })),
  fc.constantFrom('m3@example.com').map((value): Query => ({ is: 'message-id', value })),
  moment.map((atMs): Query => ({ is: 'before', atMs })),
  moment.map((atMs): Query => ({ is: 'after', atMs })),
  fc.nat(1_000).map((bytes): Query => ({ is: 'larger', bytes })),
  fc.nat(1_000).map((bytes): Query => ({ is: 'smaller', bytes })),
)
const { tree } = fc.letrec<{ tree: Query }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    tie('tree').map((of): Query => ({ is: 'not', of })),
    fc
      .tuple(fc.constantFrom('and' as const, 'or' as const), fc.array(tie('tree'), { maxLength: 4 }))
      .map(([is, of]): Query => ({ is, of })),
  ),
}))

/** Text that must be there, beside an OR in which text is mixed with the rest: where SQLite has most to choose from. */
const mixed = fc
  .tuple(text, fc.array(fc.tuple(leaf, text), { minLength: 1, maxLength: 3 }), text)
  .map(([first, pairs, last]): Query => {
    const either: Query = { is: 'or', of: [last, ...pairs.map((of): Query => ({ is: 'and', of }))] }
    return { is: 'and', of: [first, either] }
  })

export const generatedQuery: fc.Arbitrary<Query> = fc.oneof(
  tree,
  mixed,
  fc.tuple(text, tree).map(([first, rest]): Query => ({ is: 'and', of: [first, rest] })),
)
