import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Sim, startSim } from '../start.ts'
import { embedText } from './vectors.ts'

let sim: Sim
before(async () => {
  sim = await startSim({ embeddings: { models: { small: 64 }, apiKey: 'sk-test' } })
})
after(() => sim.close())

async function post(path: string, body: unknown, key = 'sk-test') {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  const answer = await fetch(`${sim.baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, headers: answer.headers, json: JSON.parse(await answer.text()) }
}

function dot(one: Iterable<number>, other: Iterable<number>): number {
  const numbers = [...other]
  return [...one].reduce((sum, value, at) => sum + value * numbers[at]!, 0)
}

describe('vectors', () => {
  test('texts that share words are near, others are not, and all have the length one', () => {
    const [plan, near, far] = [
      'The plan for the harbour gateway in March',
      'A plan of the harbour gateway for April',
      'Peel the apples and slice them thinly',
    ].map((text) => embedText(text, 256))
    assert.ok(dot(plan!, near!) > dot(plan!, far!) + 0.2)
    assert.ok(Math.abs(dot(plan!, plan!) - 1) < 1e-5)
    assert.equal(dot(embedText('', 8), embedText('', 8)), 1)
  })
})

describe('the endpoint', () => {
  test('answers as OpenAI does: vectors in order, as numbers or base64, of the length asked for', async () => {
    const input = ['one text', 'another text']
    const { json } = await post('/v1/embeddings', { model: 'small', input })
    assert.deepEqual(
      json.data.map(({ index }: { index: number }) => index),
      [0, 1],
    )
    assert.deepEqual(json.data[1].embedding, [...embedText(input[1]!, 64)])
    const coded = await post('/v1/embeddings', {
      model: 'small',
      input: 'one text',
      encoding_format: 'base64',
      dimensions: 32,
    })
    const bytes = Buffer.from(coded.json.data[0].embedding, 'base64')
    assert.equal(bytes.length, 32 * 4)
    const models = await fetch(`${sim.embeddings.baseUrl}/models`, {
      headers: { authorization: 'Bearer sk-test' },
    })
    assert.deepEqual(
      ((await models.json()) as { data: { id: string }[] }).data.map(({ id }) => id),
      ['small'],
    )
    assert.equal((await post('/v1/embeddings', { model: 'small', input }, 'wrong')).status, 401)
    assert.equal((await post('/v1/embeddings', { model: 'none', input })).json.error.code, 'model_not_found')
    assert.equal((await post('/v1/embeddings', { model: 'small', input: [''] })).status, 400)
  })

  test('answers as Ollama does', async () => {
    const { json } = await post('/api/embed', { model: 'small:latest', input: ['one text'] })
    assert.deepEqual(json.embeddings, [[...embedText('one text', 64)]])
    assert.equal((await post('/api/embed', { model: 'none', input: 'x' })).status, 404)
  })

  test('counts every text and how often it came', async () => {
    sim.embeddings.resetCounters()
    await post('/v1/embeddings', { model: 'small', input: ['twice', 'once'] })
    await post('/v1/embeddings', { model: 'small', input: ['twice'] })
    assert.deepEqual(sim.embeddings.counts, { calls: 2, texts: 3, repeated: 1, characters: 14 })
    assert.equal(sim.embeddings.timesEmbedded('twice'), 2)
  })

  test('can be throttled, answer too short, be malformed, and lose a vector', async () => {
    const ask = () => post('/v1/embeddings', { model: 'small', input: ['a', 'b'] })
    sim.faults.set({ rules: [{ do: 'throttle', retryAfterSeconds: 3, service: 'embeddings', max: 1 }] })
    const throttled = await ask()
    assert.equal(throttled.status, 429)
    assert.equal(throttled.headers.get('retry-after'), '3')
    sim.embeddings.quirks.dimensionOff = -1
    assert.equal((await ask()).json.data[0].embedding.length, 63)
    sim.embeddings.quirks.dimensionOff = 0
    sim.embeddings.quirks.losesOne = true
    assert.equal((await ask()).json.data.length, 1)
    sim.embeddings.quirks.losesOne = false
    sim.embeddings.quirks.isMalformed = true
    await assert.rejects(ask, SyntaxError)
    sim.embeddings.quirks.isMalformed = false
    const { status } = await fetch(`${sim.controlUrl}/embeddings/quirks`, {
      method: 'PUT',
      body: '{"losesOne":false}',
    })
    assert.equal(status, 200)
  })
})
