import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { memoryHome } from '../ledger/home.suite.ts'
import { ANN, IndexFixture, WordEmbedder } from './index.suite.ts'

const DOCUMENTS = 30
const CYCLES = 5

describe('the space of what is gone', () => {
  const home = memoryHome()
  after(() => home.remove())

  test('is used again: swapping and deleting all documents does not make the database grow', async () => {
    const site = await home.fresh()
    const index = new IndexFixture(site, new WordEmbedder())
    const pages: number[] = []
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      for (const round of ['first', 'second']) {
        for (let i = 0; i < DOCUMENTS; i++) {
          const text = Array.from({ length: 120 }, (_, k) => `w${(k * 7 + i * 13 + cycle * 31) % 900}`).join(
            ' ',
          )
          await index.put({ ref: `d${i}`, text: [text, `${round} ${cycle} ${i}`], to_: [ANN] })
        }
      }
      await site.ledger.transaction(async (tx) => {
        for (let i = 0; i < DOCUMENTS; i++) await index.search.remove(tx, { source: 'drive', ref: `d${i}` })
      })
      const row = await site.ledger.driver.read((tx) => tx.get<{ page_count: number }>('PRAGMA page_count'))
      pages.push(row!.page_count)
    }
    assert.ok(pages.at(-1)! <= pages[1]! * 1.1, pages.join(' '))
    await site.leave()
  })
})
