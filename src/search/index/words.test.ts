import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../base/random.ts'
import { wordPlaces, wordsOf } from './words.ts'

const SIGNS = [
  ...'abXZ01 \t\n.-_’–éßÆйς你カกﬁ',
  '\u0301',
  '\u{20000}',
  '\u{1f600}',
  '\ud800',
  '\udc00',
  '\ue000',
]

test('the words of a text are those that have a place in it', () => {
  const random = seededRandom(3)
  for (let round = 0; round < 500; round++) {
    const length = Math.floor(random() * 120)
    const text = Array.from({ length }, () => SIGNS[Math.floor(random() * SIGNS.length)]).join('')
    assert.deepEqual(
      wordsOf(text),
      Array.from(wordPlaces(text), ({ word }) => word),
      JSON.stringify(text),
    )
  }
})

test('a long run without blanks is read in time that grows with its length', () => {
  const work = (length: number): number => {
    const text = `${'a-'.repeat(length)}é`.repeat(3)
    const before = process.cpuUsage()
    wordsOf(text)
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  work(50_000)
  const [once, more] = [work(50_000), work(400_000)]
  assert.ok(more < 40 * Math.max(once, 1_000), `${once} µs, then ${more} µs for eight times as much`)
})
