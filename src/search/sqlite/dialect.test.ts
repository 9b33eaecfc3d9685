import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { memoryHome, type Site } from '../../ledger/home.suite.ts'
import { IndexFixture, WordEmbedder } from '../index.suite.ts'

/** More than any list of words or of documents that counts as short. */
const DOCUMENTS = 2_100
const EVERY = { few: 420, some: 5, all: 1 }
const EVERY_NAMED = 7
const EVERY_RARE = 50

describe('a word that everything has', () => {
  let site: Site
  let index: IndexFixture
  const principal = (who: keyof typeof EVERY): string => `drive:${who}@example.com`
  const numbers = Array.from({ length: DOCUMENTS }, (_, n) => n)

  before(async () => {
    site = await memoryHome().fresh()
    index = new IndexFixture(site, new WordEmbedder())
    await index.search.prepare()
    await site.ledger.transaction(async (tx) => {
      for (const n of numbers) {
        const document = index.document({
          ref: `${n}`,
          title: n % EVERY_NAMED === 0 ? 'common name' : 'other name',
          text: n % EVERY_RARE === 0 ? 'so common words and rare' : 'so common words',
          to_: [],
        })
        await index.search.publish(tx, document)
        for (const who of Object.keys(EVERY) as (keyof typeof EVERY)[]) {
          if (n % EVERY[who] === 0) await index.search.grant(tx, document, principal(who), index.grant())
        }
      }
    })
  })
  after(async () => {
    await index.search.close()
    await site.leave()
  })

  for (const who of Object.keys(EVERY) as (keyof typeof EVERY)[]) {
    const seen = numbers.filter((n) => n % EVERY[who] === 0)

    test(`is found in what may be seen and nowhere else, by who sees ${who}`, async () => {
      const total = async (text: string): Promise<number> =>
        (await index.ask(text, { as: principal(who), copies: 'apart', limit: 1 })).total
      const rare = seen.filter((n) => n % EVERY_RARE === 0)
      assert.equal(await total('common'), seen.length)
      assert.equal(await total('"common words"'), seen.length)
      assert.equal(await total('comm*'), seen.length)
      assert.equal(await total('common rare'), rare.length)
      assert.equal(await total('common -rare'), seen.length - rare.length)
      assert.equal(await total('title:common'), seen.filter((n) => n % EVERY_NAMED === 0).length)
    })

    test(`puts documents first that have it in their name, for who sees ${who}`, async () => {
      const { hits } = await index.ask('common', { as: principal(who), copies: 'apart', limit: 200 })
      const isNamed = hits.map(({ ref }) => Number(ref) % EVERY_NAMED === 0)
      const named = Math.min(200, seen.filter((n) => n % EVERY_NAMED === 0).length)
      assert.deepEqual(isNamed, [
        ...Array.from({ length: named }, () => true),
        ...Array.from({ length: isNamed.length - named }, () => false),
      ])
    })
  }

  test('is seen by nobody who sees nothing', async () => {
    assert.equal((await index.ask('common', { as: 'drive:nobody@example.com' })).total, 0)
  })
})
