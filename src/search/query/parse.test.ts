import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { UsageError } from '../../base/errors.ts'
import { formatSearch } from './format.ts'
import { parseSearch } from './parse.ts'
import { planOf } from './plan.ts'
import type { Query } from './query.ts'

const NOW = Date.UTC(2026, 2, 31)

function parse(text: string): Query {
  return parseSearch(text, { now: NOW, me: ['ann@example.com'] })
}

function refused(text: string): UsageError {
  let error: UsageError | undefined
  assert.throws(
    () => parse(text),
    (thrown: UsageError) => {
      error = thrown
      return thrown.code === 'bad-query'
    },
  )
  return error!
}

describe('a search is read', () => {
  const understood: [text: string, again: string][] = [
    ['Budget plan', 'Budget plan'],
    ['"cost plan" -draft', '"cost plan" -draft'],
    ['a b OR c', 'a (b OR c)'],
    ['{a b} c', '(a OR b) c'],
    ['type:doc', 'type:document'],
    ['source:Drive TYPE:pdf', 'source:drive type:pdf'],
    ['owner:me', 'owner:"ann@example.com"'],
    ['title:(a OR b)', 'title:a OR title:b'],
    ['in:"Legal team"', 'in:"Legal team"'],
    ['before:2026/03/01', 'before:2026/03/01'],
    ['newer_than:1m', 'after:2026/02/28'],
    ['foo-bar ann@example.com', 'foo-bar ann@example.com'],
    ['pla*', 'pla*'],
    ['NOT (a b)', '-(a b)'],
    ['', ''],
  ]
  for (const [text, again] of understood) {
    test(`${JSON.stringify(text)} as ${JSON.stringify(again)}`, () => {
      assert.equal(formatSearch(parse(text)), again)
      assert.deepEqual(parse(again), parse(text))
    })
  }

  test('what was understood reads back as the same, whatever was typed', () => {
    const piece = fc.constantFrom(
      'a',
      'Ünit',
      '"b c"',
      '-d',
      'OR',
      'type:pdf',
      'in:x',
      '(',
      ')',
      'to:me',
      'e*',
      '-"f g"*',
      'x.y',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        let query: Query
        try {
          query = parse(pieces.join(' '))
        } catch {
          return
        }
        assert.deepEqual(parse(formatSearch(query)), query)
      }),
    )
  })
})

describe('a search that cannot be read is refused', () => {
  test('with the place, and the operator that was meant', () => {
    const error = refused('budget tpye:pdf')
    assert.match(error.message, /no operator tpye:; did you mean type:\?\n {2}budget tpye:pdf\n {9}\^/)
    assert.match(refused('type:novel').message, /type: this can be document, sheet/)
    assert.match(refused('budget (a').message, /never closed/)
    assert.match(refused('is:unread').message, /no operator is:/)
    assert.match(refused('before:yesterday').message, /YYYY\/MM\/DD/)
  })
})

describe('by meaning', () => {
  test('bare words may be anything near them; what is quoted, named or left out still holds', () => {
    const plan = planOf(parse('cheap car "red paint" type:pdf -blue in:garage (x OR title:y)'))
    assert.equal(plan.meaning, 'cheap car red paint x')
    assert.equal(formatSearch(plan.near), '"red paint" type:pdf -blue in:garage')
    assert.deepEqual(planOf(parse('type:pdf -x')).meaning, '')
  })
})
