/**
 * Documents on their way into the index, by the jobs of the product: read and published first, embedded behind. Beside
 * it, on the same documents, the extractor and the embedder alone. They take turns, so that a busy machine is busy for
 * all of them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { type DocumentOffer, defineIndexing, type OfferedDocument } from '../../src/app/documents.ts'
import { embedKind } from '../../src/apps/search/embed.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { openEmbedder } from '../../src/search/embed/open.ts'
import { measureExtractRate } from '../../src/search/extract/extract-rate.ts'
import { TextExtractor } from '../../src/search/extract/extractor.ts'
import { openSearch } from '../../src/search/search.ts'
import { WantedDocuments } from '../../src/search/wanted.ts'
import { docx } from '../../src/sim/documents/docx.ts'
import { pdf } from '../../src/sim/documents/pdf.ts'
import { html, markdown } from '../../src/sim/documents/plain.ts'
import { readEvaluation } from './evaluation.ts'

export type IndexOrder = { do: 'index'; url: string; documents: number; rounds: number }
export type Indexed = {
  read: Rates
  embedded: Rates
}
/** By time, and by the time of all processors: of the product, and of what it depends on alone. */
export type Rates = { own: number; limit: number; ownByProcessor: number; limitByProcessor: number }

type Paper = { id: string; name: string; mimeType: string; title: string; bytes: Uint8Array }

const UNIT = 'bench'
const TEXTS_OF_PAPER = 4

export async function indexAll({ url, documents, rounds }: IndexOrder): Promise<Indexed> {
  const ledger = await openLedger(url)
  const embedder = openEmbedder({ kind: 'builtin', threads: 1 }, { fetch, clock: systemClock })!
  const search = openSearch({ ledger, embedder })
  const extractor = new TextExtractor({ clock: systemClock })
  const handle = { open: async () => search, extractor: async () => extractor }
  const wanted = await WantedDocuments.open(ledger)
  const papers = papersOf(documents * rounds)
  const indexing = defineIndexing({ offer: offerOf(papers), wanted, search: handle })
  const embedding = embedKind({ ledger, search: handle })
  const engine = await createEngine({ ledger, jobs: [indexing.kind, embedding] })
  const read = new Sums()
  const embedded = new Sums()
  try {
    await engine.start()
    await search.prepare()
    // What is started with the first document is started before the time begins.
    await embedder.embed(['one'], { purpose: 'document', signal: new AbortController().signal })
    for (let round = 0; round < rounds; round++) {
      const some = papers.slice(round * documents, (round + 1) * documents)
      // It reads the first once more, to warm up.
      await read.limit.add(documents + 1, () =>
        measureExtractRate({ extractor, documents: some, atATime: extractorThreads(), clock: systemClock }),
      )
      const ids = some.map(({ id }) => id)
      await ledger.transaction((tx) => indexing.want(tx, UNIT, ids))
      await read.own.add(documents, async () => {
        await engine.enqueue(indexing.kind, { unit: UNIT })
        await engine.drained()
      })
      const contents = await search.withoutVectors(embedder.model, documents)
      const texts = contents.flatMap((content) => content.texts)
      if (contents.length < documents) throw new Error(`${contents.length} of ${documents} were read`)
      const signal = new AbortController().signal
      await embedded.limit.add(texts.length, () => embedder.embed(texts, { purpose: 'document', signal }))
      await embedded.own.add(texts.length, async () => {
        await engine.enqueue(embedding, {})
        await engine.drained()
      })
      if ((await search.withoutVectors(embedder.model, 1)).length > 0) throw new Error('not all is embedded')
    }
    return { read: read.rates(), embedded: embedded.rates() }
  } finally {
    await engine.stop()
    await extractor.close()
    await search.close()
    await embedder.close()
    await ledger.close()
  }
}

function extractorThreads(): number {
  return 2
}

/** What was done over all rounds, and what it took. */
class Work {
  #done = 0
  #seconds = 0
  #processorSeconds = 0

  async add(count: number, work: () => Promise<unknown>): Promise<void> {
    const [fromMs, fromS] = [systemClock.monotonicMs(), processorSeconds()]
    await work()
    this.#seconds += (systemClock.monotonicMs() - fromMs) / 1000
    this.#processorSeconds += processorSeconds() - fromS
    this.#done += count
  }

  get rate(): number {
    return this.#done / this.#seconds
  }

  get rateByProcessor(): number {
    return this.#done / this.#processorSeconds
  }
}

class Sums {
  readonly own = new Work()
  readonly limit = new Work()

  rates(): Rates {
    return {
      own: this.own.rate,
      limit: this.limit.rate,
      ownByProcessor: this.own.rateByProcessor,
      limitByProcessor: this.limit.rateByProcessor,
    }
  }
}

/** Of the kernel's accounts. */
const TICKS_PER_SECOND = 100

/** Of this process and of those it has started, which is the model's. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  let ticks = 0
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(fields[1]) === process.pid) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // It ended meanwhile.
    }
  }
  return (user + system) / 1e6 + ticks / TICKS_PER_SECOND
}

/** Texts of the evaluation set, four to a document, as Markdown, HTML, Word and PDF by turns; no two alike. */
function papersOf(count: number): Paper[] {
  const { documents } = readEvaluation()
  return Array.from({ length: count }, (_, number) => {
    const parts = Array.from({ length: TEXTS_OF_PAPER }, (_, at) => {
      const { title, text } = documents[(number * TEXTS_OF_PAPER + at) % documents.length]!
      return { title, text: `${text} Paper ${number}, part ${at}.` }
    })
    const blocks = parts.flatMap(({ title, text }) => [{ heading: title, level: 1 }, { paragraph: text }])
    const title = `Paper ${number}`
    const about = { id: String(number).padStart(6, '0'), title }
    switch (number % 4) {
      case 0:
        return { ...about, name: `${title}.md`, mimeType: 'text/markdown', bytes: markdown({ blocks }) }
      case 1:
        return { ...about, name: `${title}.html`, mimeType: 'text/html', bytes: html({ title, blocks }) }
      case 2:
        return { ...about, name: `${title}.docx`, mimeType: DOCX, bytes: docx({ title, blocks }) }
      default: {
        const pages = parts.map((part) => `${part.title}\n${part.text}`.replaceAll(/[^\x20-\x7e\n]/g, ''))
        return { ...about, name: `${title}.pdf`, mimeType: 'application/pdf', bytes: pdf({ title, pages }) }
      }
    }
  })
}

const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'

function offerOf(papers: readonly Paper[]): DocumentOffer {
  const byId = new Map(papers.map((paper) => [paper.id, paper]))
  return {
    source: 'bench',
    owner: async () => ({ principal: 'bench:reader' }),
    stamp: async () => '1',
    all: async () => ({ ids: [], next: null }),
    has: async (_unit, ids) => new Set(ids),
    read: async (_unit, id) => {
      const paper = byId.get(id)
      return paper && [offered(paper)]
    },
  }
}

function offered({ id, name, mimeType, title, bytes }: Paper): OfferedDocument {
  return {
    title,
    type: 'document',
    mimeType,
    owner: 'ann@example.com',
    people: [],
    folders: ['Papers'],
    url: '',
    createdAtMs: null,
    modifiedAtMs: null,
    sizeBytes: bytes.length,
    version: '1',
    body: { hash: `bench:${id}`, bytes: async () => bytes, name, mimeType },
  }
}
