import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { STRONG_LEAD, STRONG_MIN, strongSimilarity } from './fuse.ts'

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
