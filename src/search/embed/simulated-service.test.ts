import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { type EmbedderSettings, openEmbedder } from './open.ts'

const TEXTS = ['a boat on the lake', 'the harbour at night', 'a boat at night', 'bread', 'salt']
const DIMS = 64
const document = { purpose: 'document', signal: new AbortController().signal } as const

describe('the simulated embedding service', () => {
  let sim: Sim
  before(async () => {
    sim = await startSim({ embeddings: { models: { small: DIMS }, apiKey: 'sk-test', textsMax: 2 } })
  })
  after(() => sim.close())

  const open = (kind: 'openai' | 'ollama') => {
    const url = kind === 'openai' ? sim.embeddings.baseUrl : sim.embeddings.ollamaUrl
    const settings: EmbedderSettings = { kind, url, model: 'small', key: 'sk-test', dims: DIMS, batch: 2 }
    return openEmbedder(settings, { fetch, clock: systemClock })!
  }

  for (const kind of ['openai', 'ollama'] as const) {
    test(`gives ${kind} the vectors of its texts, in batches that it takes`, async () => {
      const vectors = await open(kind).embed(TEXTS, document)
      assert.equal(vectors.length, TEXTS.length)
      for (const [at, text] of TEXTS.entries()) {
        const wanted = sim.embeddings.vector(text, DIMS)
        const cosine = vectors[at]!.reduce((sum, value, i) => sum + value * wanted[i]!, 0)
        assert.ok(cosine > 0.999, text)
      }
    })

    test(`is refused by ${kind} for good when its vectors have another size, and for now when one is missing`, async () => {
      sim.embeddings.quirks.dimensionOff = 1
      await assert.rejects(open(kind).embed(TEXTS, document), { kind: 'permanent', code: 'embedding-dims' })
      sim.embeddings.quirks.dimensionOff = 0
      sim.embeddings.quirks.losesOne = true
      await assert.rejects(open(kind).embed(TEXTS, document), { kind: 'transient', code: 'embedding-count' })
      sim.embeddings.quirks.losesOne = false
    })
  }
})
