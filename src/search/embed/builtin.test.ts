import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FakeClock, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { cutIntoPieces, openBuiltin, readBackground } from './builtin.ts'
import { BUILTIN_MODEL } from './builtin-model.ts'

const signal = new AbortController().signal
const document = { purpose: 'document', signal } as const
const query = { purpose: 'query', signal } as const

function cosine(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, at) => sum + value * b[at]!, 0)
}

describe('the embedded model', () => {
  const embedder = openBuiltin({ threads: 1 }, { clock: systemClock })
  after(() => embedder.close())

  test('finds what means the same in other words', async () => {
    const texts = [
      'The landlord keeps the deposit until the flat has been handed over.',
      'Bake the bread for forty minutes in a hot oven.',
      'The pump lost pressure because a seal was worn.',
    ]
    const vectors = await embedder.embed(texts, document)
    const [asked] = await embedder.embed(['when do I get my rent security back'], query)
    const similarities = vectors.map((vector) => cosine(vector, asked!))
    assert.equal(similarities.indexOf(Math.max(...similarities)), 0)
  })

  test('gives vectors of length 1, in the order of the texts, whatever they are embedded with', async () => {
    const texts = [
      'a long sentence about a boat on a lake in the evening sun '.repeat(20),
      'x',
      '',
      '🜁 \u0000 ñ',
    ]
    const together = await embedder.embed(texts, document)
    for (const [at, text] of texts.entries()) {
      const [alone] = await embedder.embed([text], document)
      assert.equal(alone!.length, embedder.dims)
      assert.ok(Math.abs(cosine(alone!, alone!) - 1) < 1e-5)
      assert.deepEqual(alone, together[at])
    }
  })

  test('has a background of texts that it embeds as they are kept', async () => {
    const kept = readBackground()
    const some = [0, Math.floor(kept.length / 2), kept.length - 1]
    const vectors = await embedder.embed(
      some.map((at) => kept[at]!.text),
      document,
    )
    assert.equal(embedder.background!.length, kept.length)
    for (const [n, at] of some.entries()) {
      assert.ok(cosine(vectors[n]!, embedder.background![at]!) > 0.999, kept[at]!.text)
    }
  })

  test('cuts off what is longer than the model reads', async () => {
    const long = 'word '.repeat(BUILTIN_MODEL.tokensMax)
    const [cut, longer] = await embedder.embed(
      [long, `${long}entirely different`.padEnd(1e6, ' z')],
      document,
    )
    assert.ok(cosine(cut!, longer!) > 0.999)
  })

  test('gives up as soon as the signal aborts, and goes on with others', async () => {
    const controller = new AbortController()
    const reason = new Error('no longer wanted')
    const given = embedder.embed(Array(20).fill('a text that nobody waits for '.repeat(12)), {
      purpose: 'document',
      signal: controller.signal,
    })
    controller.abort(reason)
    await assert.rejects(given, reason)
    assert.equal((await embedder.embed(['next'], query)).length, 1)
  })

  test('answers a query before the documents that were asked first', async () => {
    const order: string[] = []
    // More than are given to the model at once.
    const texts = Array(60).fill('a document that takes its time '.repeat(12))
    await Promise.all([
      embedder.embed(texts, document).then(() => order.push('documents')),
      embedder.embed(['a question'], query).then(() => order.push('query')),
    ])
    assert.deepEqual(order, ['query', 'documents'])
  })

  test('of no texts gives no vectors', async () => {
    assert.deepEqual(await embedder.embed([], document), [])
  })
})

describe('the process of the model', () => {
  test('ends after a quiet time, and starts again when it is asked', async () => {
    const clock = new FakeClock()
    const embedder = openBuiltin({ threads: 1 }, { clock })
    const [first] = await embedder.embed(['the same text'], document)
    assert.equal(clock.pendingTimers, 1)
    await clock.advance(10 * 60_000)
    assert.equal(clock.pendingTimers, 0)
    const [second] = await embedder.embed(['the same text'], document)
    assert.deepEqual(first, second)
    await embedder.close()
    assert.equal(clock.pendingTimers, 0)
  })

  test('is not started for nothing, and refuses after its end', async () => {
    const embedder = openBuiltin({ threads: 1, folder: '/nowhere' }, { clock: systemClock })
    await embedder.close()
    await assert.rejects(embedder.embed(['text'], document), { kind: 'transient', code: 'embedding-process' })
  })
})

describe('weights that are not those that were chosen', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-model-'))
  after(() => rmSync(folder, { recursive: true }))

  test('are refused, and what to do is said', async () => {
    const installed = dirname(fileURLToPath(import.meta.resolve('embedding-model')))
    cpSync(join(installed, BUILTIN_MODEL.folder), folder, { recursive: true })
    truncateSync(join(folder, BUILTIN_MODEL.files.weights.path), 1_000_000)
    const embedder = openBuiltin({ threads: 1, folder }, { clock: systemClock })
    await assert.rejects(embedder.embed(['text'], document), (error) => {
      assert.ok(error instanceof TidemarkError)
      assert.equal(error.kind, 'permanent')
      assert.equal(error.code, 'embedding-model-damaged')
      assert.match(error.hint ?? '', /npm ci/)
      return true
    })
    await embedder.close()
  })

  test('are told apart from weights that are not there', async () => {
    const embedder = openBuiltin({ threads: 1, folder: join(folder, 'none') }, { clock: systemClock })
    await assert.rejects(embedder.embed(['text'], document), { code: 'embedding-model-missing' })
    await embedder.close()
  })
})

describe('pieces', () => {
  test('hold a few texts or one long one, each text once', () => {
    const texts = ['a'.repeat(3_000), 'b', 'c'.repeat(1_400), 'd'.repeat(9_000), 'e', 'f'.repeat(3_999)]
    assert.deepEqual(cutIntoPieces(texts), [[0, 1], [2], [3], [4, 5]])
  })
})
