import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AppPlace } from '../../app/runtime.ts'
import { sleep, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { createEngine } from '../../engine/engine.ts'
import { memoryHome } from '../../ledger/home.suite.ts'
import type { EmbedOptions } from '../../search/embed/embedder.ts'
import { ANN, IndexFixture, WordEmbedder } from '../../search/index.suite.ts'
import { embedKind } from './embed.ts'

type Answer = (texts: readonly string[], options: EmbedOptions) => Promise<void>

/** Embeds words, but for what `answer` has against it. */
class FaultyEmbedder extends WordEmbedder {
  answer: Answer = async () => undefined

  override async embed(texts: readonly string[], options?: EmbedOptions): Promise<Float32Array[]> {
    if (options) await this.answer(texts, options)
    return super.embed(texts)
  }
}

type World = {
  index: IndexFixture
  embedder: FaultyEmbedder /** Answers with the errors of the job, once it is done or was put off. */
  run(): Promise<string[]>
}

/** `chunks` by the name of their document; the last one is the newest, and is embedded first. */
async function withContents(chunks: Record<string, number>, fn: (world: World) => Promise<void>) {
  const home = memoryHome()
  const site = await home.fresh()
  const embedder = new FaultyEmbedder()
  const index = new IndexFixture(site, embedder)
  const { ledger, clock } = site
  try {
    await index.search.prepare()
    for (const [ref, count] of Object.entries(chunks)) {
      const text = Array.from({ length: count }, (_, n) => `${ref} ${n}`)
      const document = index.document({ ref, text, to_: [ANN] })
      const content = { ...document.content!, vectors: undefined }
      await ledger.transaction(async (tx) => {
        await index.search.publish(tx, { ...document, content: content as never })
        await index.search.grant(tx, document, ANN, index.grant())
      })
    }
    const search: Pick<AppPlace['search'], 'open'> = { open: async () => index.search }
    const kind = embedKind({ ledger, search: search as AppPlace['search'] })
    const engine = await createEngine({ ledger, clock, jobs: [kind] })
    await engine.start()
    const run = async (): Promise<string[]> => {
      const { id } = await engine.enqueue(kind, {})
      for (;;) {
        const { job, errors } = (await ledger.job(id))!
        if (job.state === 'done' || errors.length > 0) return errors.map(({ message }) => message)
        await sleep(systemClock, 5)
      }
    }
    try {
      await fn({ index, embedder, run })
    } finally {
      await engine.stop()
    }
  } finally {
    await index.search.close()
    await site.leave()
    await home.remove()
  }
}

describe('embedding goes on behind', () => {
  const has = (texts: readonly string[], word: string): boolean => texts.some((text) => text.includes(word))
  const hang = (index: IndexFixture, { signal }: EmbedOptions): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
      index.site.clock.rush(60_000)
    })

  test('a large content that the model refuses', async () => {
    await withContents({ old1: 1, old2: 1, big: 600 }, async ({ index, embedder, run }) => {
      embedder.answer = async (texts) => {
        if (has(texts, 'big')) throw new TidemarkError('refused', { kind: 'permanent' })
      }
      assert.deepEqual(await run(), [])
      assert.equal(await index.count('search_embedded'), 2)
    })
  })

  test('a content that is not done in time, which is tried again with the next run', async () => {
    await withContents({ old1: 1, old2: 1, slow: 2 }, async ({ index, embedder, run }) => {
      embedder.answer = async (texts, options) => {
        if (has(texts, 'slow')) await hang(index, options)
      }
      assert.deepEqual(await run(), [])
      assert.equal(await index.count('search_embedded'), 2)
      embedder.answer = async () => undefined
      assert.deepEqual(await run(), [])
      assert.equal(await index.count('search_embedded'), 3)
    })
  })

  test('a content of many texts, with the time that is allowed for each slice of them', async () => {
    await withContents({ old: 1, big: 600 }, async ({ index, embedder, run }) => {
      const sizes: number[] = []
      embedder.answer = async (texts) => {
        sizes.push(texts.length)
        index.site.clock.rush(20_000)
      }
      assert.deepEqual(await run(), [])
      assert.equal(await index.count('search_embedded'), 2)
      assert.ok(Math.max(...sizes) <= 64, String(sizes))
    })
  })

  test('but not behind a service that hangs or refuses the key; what came before is kept', async () => {
    const chunks = { a: 1, b: 1, c: 1, d: 1, e: 1, last: 1 }
    await withContents(chunks, async ({ index, embedder, run }) => {
      let calls = 0
      embedder.answer = async (texts, options) => {
        calls += 1
        if (!has(texts, 'last')) await hang(index, options)
      }
      assert.deepEqual(await run(), ['No vectors came within 60000 ms.'])
      assert.deepEqual([calls, await index.count('search_embedded')], [4, 1])
    })
    await withContents(chunks, async ({ index, embedder, run }) => {
      let calls = 0
      embedder.answer = async (texts) => {
        calls += 1
        if (!has(texts, 'last')) throw new TidemarkError('no such key', { kind: 'auth' })
      }
      assert.deepEqual(await run(), ['no such key'])
      assert.deepEqual([calls, await index.count('search_embedded')], [2, 1])
    })
  })
})
