import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../base/random.ts'
import { agreement, codeBytes, joinBytes, signsOf, signTable } from './vectors.ts'

test('a code agrees with a query by what its numbers add up to under the signs, also where bits are left over', () => {
  const random = seededRandom(3)
  for (const dims of [384, 40, 1]) {
    const vectorOf = () => Float32Array.from({ length: dims }, () => random() - 0.5)
    const query = vectorOf()
    const vectors = Array.from({ length: 5 }, vectorOf)
    const row = joinBytes(vectors.map(signsOf))
    const table = signTable(query)
    // The table is in steps of its own: what it says of the query's own signs is the sum of all its numbers.
    const same = query.reduce((sum, value) => sum + Math.abs(value), 0)
    const unit = agreement(table, signsOf(query), 0) / same
    for (const [at, vector] of vectors.entries()) {
      const wanted = query.reduce((sum, value, i) => sum + (vector[i]! > 0 ? value : -value), 0)
      assert.ok(Math.abs(agreement(table, row, at * codeBytes(dims)) / unit - wanted) < 1e-3 * same)
    }
  }
})
