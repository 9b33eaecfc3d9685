import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PARTIAL_COVERAGE, rank, STRONG_LEAD, STRONG_MIN, strongSimilarity, total } from './fuse.ts'

const vector = (...numbers: number[]): Float32Array => Float32Array.from(numbers)

describe('how near an answer by meaning must be', () => {
  test('is more for a query that is near to everything', () => {
    const background = [vector(1, 0), vector(0.8, 0.6), vector(0.6, 0.8)]
    const usual = strongSimilarity(vector(0, 1), { chance: 0.5, background })
    const vague = strongSimilarity(vector(0.8, 0.6), { chance: 0.5, background })
    assert.ok(Math.abs(usual - (STRONG_LEAD + (0 + 0.6 + 0.8) / 6)) < 1e-6)
    assert.ok(vague > usual + 0.2)
  })

  test('counts the nearest three of the background, whatever else is in it', () => {
    const near = [vector(1, 0), vector(1, 0), vector(1, 0)]
    const more = [...near, vector(-1, 0), vector(0, 1), vector(0, -1)]
    const query = vector(1, 0)
    assert.equal(
      strongSimilarity(query, { chance: 0.5, background: more }),
      strongSimilarity(query, { chance: 0.5, background: near }),
    )
  })

  test('is a share of the way from chance to the same where a model brings no background', () => {
    assert.equal(strongSimilarity(vector(1, 0), { chance: 0.5 }), 0.5 + STRONG_MIN / 2)
  })
})

describe('what has some of the words', () => {
  const how = { bestWords: 4, chance: 0.5, nowMs: 0 }
  const withWords = (coverage: number) =>
    rank({ words: { score: 4, coverage }, similarity: null, atMs: null }, how).words

  test('counts for nothing by them where it has just enough to be shown, and for all of them where it has all', () => {
    assert.equal(withWords(PARTIAL_COVERAGE), 0)
    assert.equal(withWords(1), 1)
    assert.ok(withWords(0.6) < withWords(0.8))
  })

  test('does not stand before what is clearly nearer by meaning, if it has little more than half of them', () => {
    const partly = rank({ words: { score: 4, coverage: 0.58 }, similarity: 0.6, atMs: null }, how)
    const near = rank({ words: null, similarity: 0.7, atMs: null }, how)
    assert.ok(total(partly) < total(near))
  })
})
