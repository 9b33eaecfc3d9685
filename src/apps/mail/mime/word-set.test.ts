import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../base/random.ts'
import { addWords, WordSet } from './word-set.ts'

/** As slow as it is plain. */
const wordsIn = (text: string): Set<string> => new Set(text.match(/[\p{L}\p{N}]+/gu) ?? [])

const SIGNS = [
  ...'abcXYZ019 \n.,-_\u00e9\u00df\u0439\u4f60\u0e01',
  '\u{20000}',
  '\u{1f600}',
  '\ud800',
  '\udc00',
  '\u0301',
]

test('counts and compares words as sets of strings do', () => {
  const random = seededRandom(7)
  for (let round = 0; round < 300; round++) {
    const text = (length: number): string =>
      Array.from({ length }, () => SIGNS[Math.floor(random() * SIGNS.length)]).join('')
    const [one, other] = [text(random() * 400), text(random() * 8_000)]
    const [inOne, inOther] = [new WordSet(), new WordSet()]
    assert.equal(addWords(one, inOne), wordsIn(one).size)
    addWords(other, inOther)
    assert.equal(inOther.size, wordsIn(other).size)
    const shared = wordsIn(one).intersection(wordsIn(other)).size
    assert.equal(inOne.sharedWith(inOther), shared)
    assert.equal(inOther.sharedWith(inOne), shared)
    assert.equal(addWords(one, inOther), wordsIn(one).size - shared)
    assert.equal(addWords(one, inOther), 0)
  }
})

test('holds as many words as come', () => {
  const known = new WordSet()
  const many = Array.from({ length: 50_000 }, (_, n) => `w${n}`).join(' ')
  assert.equal(addWords(many, known), 50_000)
  assert.equal(addWords(many, known), 0)
})
