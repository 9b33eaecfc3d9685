import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { FakeClock, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { type Script, type ScriptedServer, sendJson, startServer } from '../../cloud/scripted-server.suite.ts'
import { createLimits } from '../../engine/limits/limits.ts'
import { MemoryBudgetStore } from '../../ledger/memory-budgets.ts'
import { type EmbedderSettings, openEmbedder, priceBudget } from './open.ts'

const signal = new AbortController().signal
const document = { purpose: 'document', signal } as const

let server: ScriptedServer
let script: Script

before(async () => {
  server = await startServer((request, answer) => script(request, answer))
})
beforeEach(() => {
  server.requests.length = 0
})
after(() => server.close())

function settings(more: object = {}): EmbedderSettings {
  const all = { kind: 'openai', url: `${server.url}/v1/`, model: 'small', key: 'k-1', dims: 2, batch: 2 }
  return { ...all, ...more } as EmbedderSettings
}

function open(more?: object) {
  return openEmbedder(settings(more), { fetch, clock: systemClock })!
}

/** Vectors that tell which text they are of: its length. */
const answerAsOpenAi: Script = ({ body }, answer) => {
  const { input } = JSON.parse(body) as { input: string[] }
  const data = input.map((text, index) => ({ object: 'embedding', index, embedding: [text.length, 1] }))
  sendJson(answer, { object: 'list', data: data.reverse(), usage: { total_tokens: 7 } })
}

describe('a service like OpenAI', () => {
  test('is asked in batches, and its vectors come back in the order of the texts with length 1', async () => {
    script = answerAsOpenAi
    const embedder = open()
    const vectors = await embedder.embed(['a', 'bb', 'ccc'], document)
    assert.deepEqual(
      vectors.map(([x, y]) => Math.round(x! / y!)),
      [1, 2, 3],
    )
    for (const [x, y] of vectors) assert.ok(Math.abs(Math.hypot(x!, y!) - 1) < 1e-6)
    assert.deepEqual(
      server.requests.map(({ path, headers, body }) => [path, headers.authorization, JSON.parse(body)]),
      [['a', 'bb'], ['ccc']].map((input) => [
        '/v1/embeddings',
        'Bearer k-1',
        { model: 'small', input, encoding_format: 'float' },
      ]),
    )
    assert.deepEqual([embedder.model, embedder.dims], ['openai:small', 2])
  })

  test('is asked for a number of dimensions only where the model has a choice', async () => {
    script = answerAsOpenAi
    await open({ model: 'text-embedding-3-small' }).embed(['a'], document)
    assert.equal(JSON.parse(server.requests[0]!.body).dimensions, 2)
  })

  test('gets the words that its model wants before a query', async () => {
    script = answerAsOpenAi
    await open({ prefix: { query: 'query: ' } }).embed(['where'], { purpose: 'query', signal })
    assert.deepEqual(JSON.parse(server.requests[0]!.body).input, ['query: where'])
  })

  const failures: [status: number, headers: Record<string, string>, kind: string, retryAfterMs?: number][] = [
    [429, { 'retry-after': '7' }, 'throttled', 7_000],
    [429, {}, 'throttled', undefined],
    [401, {}, 'auth'],
    [403, {}, 'auth'],
    [400, {}, 'permanent'],
    [404, {}, 'permanent'],
    [307, { location: 'http://127.0.0.1:1/' }, 'permanent'],
    [500, {}, 'transient'],
    [503, { 'retry-after': '2' }, 'transient', 2_000],
  ]
  for (const [status, headers, kind, retryAfterMs] of failures) {
    test(`that answers ${status}${headers['retry-after'] ? ' with a wait' : ''} is ${kind}, and nothing is quoted`, async () => {
      script = (_, answer) => {
        answer.writeHead(status, { 'content-type': 'application/json', ...headers })
        answer.end(JSON.stringify({ error: { message: 'wrong key k-1 for "my text"', code: 'some_code' } }))
      }
      await assert.rejects(open().embed(['my text'], document), (error) => {
        assert.ok(error instanceof TidemarkError)
        assert.deepEqual([error.kind, error.retryAfterMs], [kind, retryAfterMs])
        assert.match(error.message, /some_code/)
        assert.doesNotMatch(error.message, /k-1|my text/)
        return true
      })
    })
  }

  test('whose vectors have another size is refused, and the right size is said', async () => {
    script = (_, answer) => sendJson(answer, { data: [{ index: 0, embedding: [1, 2, 3] }] })
    await assert.rejects(open().embed(['a'], document), (error) => {
      assert.ok(error instanceof TidemarkError)
      assert.deepEqual([error.kind, error.code], ['permanent', 'embedding-dims'])
      assert.match(error.hint ?? '', /to 3/)
      return true
    })
  })

  test('that leaves out a vector, answers no vectors, or breaks off is transient', async () => {
    const scripts: Script[] = [
      (_, answer) => sendJson(answer, { data: [] }),
      (_, answer) => sendJson(answer, { hello: 'world' }),
      (_, answer) => answer.end('<html>'),
      (_, answer) => answer.destroy(),
    ]
    for (const one of scripts) {
      script = one
      await assert.rejects(open().embed(['a'], document), { kind: 'transient' })
    }
  })

  test('that is silent is given up when the caller says so', async () => {
    const controller = new AbortController()
    const reason = new Error('60 s are over')
    script = () => controller.abort(reason)
    await assert.rejects(open().embed(['a'], { purpose: 'document', signal: controller.signal }), reason)
  })

  test('is not asked in the clear beyond this machine', () => {
    for (const url of ['http://example.com/v1', 'ftp://127.0.0.1/', 'nonsense']) {
      assert.throws(() => open({ url }), { code: 'embedding-url' })
    }
  })
})

describe('Ollama', () => {
  test('is asked without a key, and answers in order', async () => {
    script = ({ body }, answer) => {
      const { input } = JSON.parse(body) as { input: string[] }
      sendJson(answer, { model: 'nomic', embeddings: input.map((text) => [text.length, 1]) })
    }
    const embedder = open({ kind: 'ollama', url: server.url, key: undefined })
    const vectors = await embedder.embed(['a', 'bb', 'ccc'], document)
    assert.deepEqual(
      vectors.map(([x, y]) => Math.round(x! / y!)),
      [1, 2, 3],
    )
    const { path, headers, body } = server.requests[0]!
    assert.deepEqual([path, headers.authorization], ['/api/embed', undefined])
    assert.deepEqual(JSON.parse(body), { model: 'small', input: ['a', 'bb'] })
  })

  test('that has not got the model says so', async () => {
    script = (_, answer) => sendJson(answer, { error: 'model "small" not found, try pulling it first' }, 404)
    await assert.rejects(open({ kind: 'ollama' }).embed(['a'], document), /try pulling it first/)
  })
})

describe('the price of a service', () => {
  test('becomes a flow of tokens that spends the money of a day in a day', () => {
    const spec = priceBudget({ pricePerMillion: 0.02, budgetPerDay: 0.5 })
    assert.equal(Math.round(spec!.rate * 24 * 60 * 60), 25_000_000)
    assert.equal(priceBudget({ pricePerMillion: 0, budgetPerDay: 1 }), undefined)
    assert.equal(priceBudget({ pricePerMillion: 1, budgetPerDay: 0 }), undefined)
  })

  test('holds calls back when an hour of it is spent, until there is more', async () => {
    script = answerAsOpenAi
    const clock = new FakeClock()
    const limits = createLimits({ store: new MemoryBudgetStore(), clock, random: () => 0.5 })
    // 24 tokens a day, one an hour.
    const budget = limits.budget('embeddings', priceBudget({ pricePerMillion: 1e6, budgetPerDay: 24 })!)
    const embedder = openEmbedder(settings(), { fetch, clock, budget })!
    await embedder.embed(['abc'], document)
    let isDone = false
    const second = embedder.embed(['def'], document).then(() => {
      isDone = true
    })
    await clock.advance(30 * 60_000)
    assert.deepEqual([isDone, server.requests.length], [false, 1])
    await clock.advance(31 * 60_000)
    await second
    assert.equal(server.requests.length, 2)
    await limits.close()
  })
})

test('an embedder that is switched off is none', () => {
  assert.equal(openEmbedder({ kind: 'off' }, { fetch, clock: systemClock }), undefined)
})
