/** What the suites of the index share: a ledger with an index, documents by short names, and an embedder of words. */
import { after, describe, test } from 'node:test'
import { fileHome, type Home, memoryHome, postgresHome, type Site } from '../ledger/home.suite.ts'
import type { Chunk } from './chunk.ts'
import type { Grant, NewDocument, SearchAnswer, SearchRequest } from './contract.ts'
import type { Embedder } from './embed/embedder.ts'
import { contentKey } from './index/content-key.ts'
import { wordsOf } from './index/words.ts'
import { openSearch, type Search } from './search.ts'

export const ANN = 'drive:ann@example.com'
export const BOB = 'drive:bob@example.com'
export const DAY_MS = 86_400_000

export type DocumentSketch = Partial<Omit<NewDocument, 'content'>> & {
  ref: string
  text?: string | readonly string[]
  /** Who may see it; everybody as a reader. */
  to_: readonly string[]
}

/** Each word adds to a few of the numbers: texts with the same words are near. Synonyms are the same word to it. */
export class WordEmbedder implements Embedder {
  readonly model = 'words-64'
  readonly dims = 64
  readonly chance = 0.3
  readonly synonyms: Record<string, string>
  texts = 0

  constructor(synonyms: Record<string, string> = {}) {
    this.synonyms = synonyms
  }

  async embed(texts: readonly string[]): Promise<Float32Array[]> {
    this.texts += texts.length
    return texts.map((text) => this.vector(text))
  }

  vector(text: string): Float32Array {
    const sum = new Float32Array(this.dims)
    for (const word of wordsOf(text)) {
      let seed = 7
      for (const char of this.synonyms[word] ?? word) seed = (seed * 31 + char.codePointAt(0)!) % 1_000_003
      for (let i = 0; i < this.dims; i++) {
        seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
        sum[i]! += seed / 1_073_741_824 - 1
      }
    }
    const length = Math.hypot(...sum)
    return length === 0 ? sum : sum.map((value) => value / length)
  }

  async close(): Promise<void> {}
}

export class IndexFixture {
  readonly site: Site
  readonly search: Search
  readonly embedder: WordEmbedder
  #generation = 1

  constructor(site: Site, embedder: WordEmbedder) {
    this.site = site
    this.embedder = embedder
    this.search = openSearch({ ledger: site.ledger, embedder })
  }

  get now(): number {
    return this.site.clock.now()
  }

  async put(sketch: DocumentSketch): Promise<number> {
    await this.search.prepare()
    const document = this.document(sketch)
    return this.site.ledger.transaction(async (tx) => {
      const id = await this.search.publish(tx, document)
      for (const principal of sketch.to_) await this.search.grant(tx, document, principal, this.grant())
      return id
    })
  }

  grant(more: Partial<Grant> = {}): Grant {
    return { kind: 'reader', via: 'shared by hand', generation: this.#generation, expiresAtMs: null, ...more }
  }

  document({ text, to_, ...more }: DocumentSketch): NewDocument {
    const texts = text === undefined ? [] : typeof text === 'string' ? [text] : text
    const chunks: Chunk[] = texts.map((one, n) => ({
      n,
      text: one,
      headings: [],
      place: { kind: 'page', page: n + 1 },
    }))
    const title = more.title ?? more.ref
    return {
      source: 'drive',
      title,
      type: 'document',
      mimeType: 'text/plain',
      owner: '',
      people: [],
      folders: [],
      url: `https://example.com/${more.ref}`,
      createdAtMs: null,
      modifiedAtMs: this.now,
      sizeBytes: 1,
      version: '1',
      content:
        text === undefined
          ? undefined
          : {
              key: contentKey(`text:${texts.join('\n')}`, title),
              chunks,
              isTruncated: false,
              vectors: { model: this.embedder.model, of: texts.map((one) => this.embedder.vector(one)) },
            },
      ...more,
    }
  }

  ask(text: string, more: Partial<SearchRequest> & { as?: string } = {}): Promise<SearchAnswer> {
    const { as = ANN, ...request } = more
    return this.search.search({
      text,
      reader: { principals: [as] },
      limit: 50,
      mode: 'words',
      nowMs: this.now,
      signal: new AbortController().signal,
      ...request,
    })
  }

  /** The refs of what is found, in order. */
  async refs(text: string, more: Partial<SearchRequest> & { as?: string } = {}): Promise<string[]> {
    return (await this.ask(text, more)).hits.map(({ ref }) => ref)
  }

  async count(table: string): Promise<number> {
    const row = await this.site.ledger.driver.read((tx) =>
      tx.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`),
    )
    return row!.n
  }
}

export type WithIndex = (
  title: string,
  fn: (index: IndexFixture) => Promise<void>,
  embedder?: WordEmbedder,
) => void

/** Runs a suite on each database. */
export function onEachDatabase(name: string, suite: (withIndex: WithIndex, home: Home) => void): void {
  for (const home of [memoryHome(), fileHome(), postgresHome()]) {
    describe(`${name} on ${home.name}`, () => {
      after(() => home.remove())
      suite((title, fn, embedder = new WordEmbedder()) => {
        test(title, async () => {
          const site = await home.fresh()
          const index = new IndexFixture(site, embedder)
          try {
            await fn(index)
          } finally {
            await index.search.close()
            await site.leave()
          }
        })
      }, home)
    })
  }
}
