import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { foldWord, indexedWords, wordsOf } from './words.ts'

test('the index takes apart at signs, in small letters and without accents', () => {
  assert.deepEqual(indexedWords('Jürgen.Müller+x@example.COM'), ['jurgen', 'muller', 'x', 'example', 'com'])
  assert.deepEqual(indexedWords('e\u0301te\u0301'), ['ete'])
  assert.deepEqual(indexedWords('東京都は大きい。'), ['東京都は大きい'])
  assert.deepEqual(indexedWords('🎉 & —'), [])
  assert.deepEqual(indexedWords(''), [])
  assert.deepEqual(indexedWords('Straße'), ['straße'])
})

test('texts that are shown are taken apart like the index does', () => {
  const scripts = [
    'aZ09',
    'äÖßçñØłŁőğİı',
    'éèêëÅůžřť',
    'ΑάΣσςΩώ',
    'АяЙйЁё',
    '東京都は한국어',
    'عربي',
    '😀&-_.@ \n',
    'e\u0301o\u0308',
  ]
  const letter = fc.constantFrom(...scripts.flatMap((script) => [...script]))
  fc.assert(
    fc.property(fc.array(letter, { maxLength: 30 }), (letters) => {
      const text = letters.join('')
      assert.deepEqual(
        [...wordsOf(text)].map(({ word }) => word),
        indexedWords(text),
        JSON.stringify(text),
      )
    }),
    { numRuns: 2_000 },
  )
})

test('places are those of the text', () => {
  const text = 'Grüße, 東京都! e\u0301te'
  for (const { word, start, end } of wordsOf(text)) assert.equal(foldWord(text.slice(start, end)), word)
  assert.deepEqual(
    [...wordsOf('ab cd', 1)],
    [
      { word: 'b', start: 1, end: 2 },
      { word: 'cd', start: 3, end: 5 },
    ],
  )
})
