import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { z } from 'zod'
import { FakeClock, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { redactValue } from '../../base/redaction.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { type ScriptedServer, sendJson, startServer } from '../scripted-server.suite.ts'
import { type ModelClientOptions, openModelClient } from './client.ts'
import type { ModelRequest } from './conversation.ts'
import { ModelError } from './errors.ts'
import { lookAtModels, modelFor, modelsSection, priceOf } from './settings.ts'

const KEY = 'key-that-nobody-may-see'
const PROMPT =
  'From: Ann <ann@example.com>\nSubject: Plan\n\nThe words of a prompt that nobody may see. Could you answer?'

let sim: Sim
before(async () => {
  sim = await startSim({ models: { apiKey: KEY, contextTokens: 1_000 } })
})
after(() => sim.close())
beforeEach(() => {
  sim.faults.clear()
  sim.log.reset()
  sim.models.clearAnswers()
  sim.models.resetCounters()
})

const PROTOCOLS = { 'openai-compatible': 'openai', anthropic: 'anthropic', google: 'google' } as const
type Provider = keyof typeof PROTOCOLS

function clientOf(
  provider: Provider,
  more: { settings?: Record<string, unknown> } & Partial<Omit<ModelClientOptions, 'settings'>> = {},
) {
  const { settings, ...options } = more
  return openModelClient({
    fetch,
    clock: systemClock,
    ...options,
    settings: modelsSection.schema.parse({
      provider,
      base_url: sim.models.urlOf(PROTOCOLS[provider]),
      api_key: KEY,
      ...settings,
    }),
  })
}

function request(more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'sim-model',
    system: 'You answer.',
    messages: [{ role: 'user', text: PROMPT }],
    maxTokens: 500,
    signal: new AbortController().signal,
    ...more,
  }
}

/** What is thrown, and that it tells nothing that it must not: not in what is printed of it, nor in what is logged. */
async function failureOf(work: Promise<unknown>): Promise<ModelError> {
  const error = await work.then(
    () => assert.fail('it should have failed'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof ModelError, inspect(error))
  const told = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(redactValue(error))
  assert.doesNotMatch(told, /key-that-nobody|words of a prompt|words of an answer/)
  return error
}

const schema = z.toJSONSchema(z.object({ category: z.enum(['fyi', 'needs_response']) }))

for (const provider of Object.keys(PROTOCOLS) as Provider[]) {
  describe(`a model of ${provider}`, () => {
    test('answers with a text, JSON, or calls of tools, and says what it used', async () => {
      const client = clientOf(provider)
      const text = await client.ask(request())
      assert.match(text.text, /simulated model/)
      assert.equal(text.finish, 'stop')
      assert.deepEqual(text.usage, {
        inputTokens: sim.models.counts.inputTokens,
        outputTokens: sim.models.counts.outputTokens,
      })
      const json = await client.ask(request({ schema }))
      assert.deepEqual(JSON.parse(json.text), { category: 'needs_response' })
      sim.models.answer({
        toolCalls: [
          { name: 'search', input: { query: 'plan' } },
          { name: 'search', input: { query: 7 } },
          { name: 'send_email', input: { to: 'eve@evil.example' } },
        ],
      })
      const tools = {
        search: { description: 'finds', input: z.object({ query: z.string() }) },
        other: {
          description: 'of a server',
          input: { type: 'object', properties: { a: { type: 'string' } } },
        },
      }
      const called = await client.ask(request({ tools }))
      assert.deepEqual(
        called.toolCalls.map(({ name, input, isValid }) => ({ name, input, isValid })),
        [
          { name: 'search', input: { query: 'plan' }, isValid: true },
          { name: 'search', input: { query: 7 }, isValid: false },
          { name: 'send_email', input: { to: 'eve@evil.example' }, isValid: false },
        ],
      )
      const [{ id, name, input }] = called.toolCalls as [(typeof called.toolCalls)[0]]
      await client.ask(
        request({
          tools,
          messages: [
            { role: 'user', text: PROMPT },
            { role: 'assistant', text: '', toolCalls: [{ id, name, input }] },
            { role: 'tool', results: [{ id, name, text: 'two mails about it' }] },
          ],
        }),
      )
      const [told] = sim.models.asked.at(-1)?.messages.filter(({ role }) => role === 'tool') ?? []
      assert.match(told?.text ?? '', /two mails about it/)
      assert.deepEqual(
        sim.models.asked.at(-1)?.tools.map((tool) => tool.name),
        ['search', 'other'],
      )
    })

    test('answers with nonsense, or half, and it is told as it is: an answer that was cut off', async () => {
      const client = clientOf(provider)
      sim.models.answer(
        { text: 'no JSON at all' },
        { text: '{"category": "f', finish: 'length' },
        { text: '', finish: 'filtered' },
      )
      const nonsense = await client.ask(request({ schema }))
      assert.deepEqual([nonsense.text, nonsense.finish], ['no JSON at all', 'stop'])
      assert.ok(nonsense.usage.outputTokens! > 0)
      const cut = await client.ask(request({ schema }))
      assert.equal(cut.finish, 'length')
      assert.equal((await client.ask(request({ schema }))).finish, 'filtered')
    })

    test('that asks to wait is throttled for as long, at no cost', async () => {
      sim.faults.set({ rules: [{ do: 'throttle', retryAfterSeconds: 7, service: 'models' }] })
      const { kind, code, retryAfterMs, mayCost } = await failureOf(clientOf(provider).ask(request()))
      assert.deepEqual([kind, code, retryAfterMs, mayCost], ['throttled', 'model-down', 7_000, false])
      assert.equal(sim.log.counts().requests['models.ask']?.['429'], 1)
    })

    test('that refuses the key, or does not know the model, is for the user to mend', async () => {
      const wrong = await failureOf(
        clientOf(provider, { settings: { api_key: `wrong-${KEY}` } }).ask(request()),
      )
      assert.deepEqual([wrong.kind, wrong.code, wrong.mayCost], ['permanent', 'model-refused', false])
      assert.match(wrong.hint ?? '', /models\.api_key/)
      const unknown = await failureOf(clientOf(provider).ask(request({ model: 'none' })))
      assert.deepEqual([unknown.kind, unknown.code], ['permanent', 'model-refused'])
      assert.match(unknown.hint ?? '', /names of the models/)
    })

    test('cannot read a prompt that is longer than its context', async () => {
      const long = request({ messages: [{ role: 'user', text: `${PROMPT} `.repeat(100) }] })
      const { kind, code, mayCost } = await failureOf(clientOf(provider).ask(long))
      assert.deepEqual([kind, code, mayCost], ['permanent', 'model-unusable', false])
    })

    test('that fails, breaks off, or answers with a page is down; what it may have charged for is told', async () => {
      const client = clientOf(provider)
      const down = async (rule: Parameters<Sim['faults']['add']>[0]): Promise<boolean> => {
        sim.faults.set({ rules: [rule] })
        const { kind, code, mayCost } = await failureOf(client.ask(request()))
        assert.deepEqual([kind, code], ['transient', 'model-down'], JSON.stringify(rule))
        return mayCost
      }
      assert.equal(await down({ do: 'error', status: 503 }), false)
      assert.equal(await down({ do: 'error', status: 529 }), false)
      assert.equal(await down({ do: 'reset', when: 'after' }), true)
      assert.equal(await down({ do: 'truncate', share: 0.5 }), true)
      assert.equal(await down({ do: 'truncate', share: 0.5, close: false }), true)
      assert.equal(await down({ do: 'content-type' }), true)
    })

    test('that is silent is given up after its time, and may cost all the same', async () => {
      const clock = new FakeClock()
      const asked = Promise.withResolvers<void>()
      const client = clientOf(provider, {
        clock,
        fetch: (url, init) => {
          asked.resolve()
          return fetch(url, init)
        },
        settings: { timeout_seconds: 30 },
      })
      sim.faults.set({ rules: [{ do: 'stall', service: 'models' }] })
      const answer = failureOf(client.ask(request()))
      await asked.promise
      await clock.advance(30_000)
      const { kind, code, message, mayCost } = await answer
      assert.deepEqual([kind, code, mayCost], ['transient', 'model-down', true])
      assert.equal(message, 'The language model did not answer within 30 s')
      assert.equal(clock.pendingTimers, 0)
    })
  })
}

describe('the client', () => {
  test('stops when its caller does, for the reason that the caller gave', async () => {
    const stop = new AbortController()
    const reason = new Error('the job was stopped')
    const client = clientOf('openai-compatible', {
      fetch: (url, init) => {
        stop.abort(reason)
        return fetch(url, init)
      },
    })
    await assert.rejects(client.ask(request({ signal: stop.signal })), reason)
  })

  test('follows no redirect: neither the key nor the mail goes to another host', async () => {
    const other = await startServer((_request, answer) => sendJson(answer, {}))
    const first = await startServer((_request, answer) => {
      answer.writeHead(307, { location: `${other.url}/chat/completions` }).end()
    })
    try {
      const client = clientOf('openai-compatible', { settings: { base_url: first.url } })
      const { code, kind } = await failureOf(client.ask(request()))
      assert.deepEqual([code, kind], ['model-refused', 'permanent'])
      assert.deepEqual([first.requests.length, other.requests.length], [1, 0])
    } finally {
      await first.close()
      await other.close()
    }
  })

  test('asks in the clear on this machine only', () => {
    const settings = modelsSection.schema.parse({ provider: 'openai-compatible' })
    for (const base_url of ['http://example.com/v1', 'ftp://127.0.0.1/', 'nothing']) {
      assert.throws(() => modelsSection.schema.parse({ base_url }))
      assert.throws(
        () => openModelClient({ settings: { ...settings, base_url }, fetch, clock: systemClock }),
        (error) => error instanceof TidemarkError && error.code === 'model-url',
      )
    }
    assert.equal(
      modelsSection.schema.parse({ base_url: 'http://localhost:11434/v1' }).base_url,
      'http://localhost:11434/v1',
    )
  })

  test('reads a few megabytes of an answer and no more', async () => {
    let server: ScriptedServer | undefined
    try {
      server = await startServer((_request, answer) => {
        answer.writeHead(200, { 'content-type': 'application/json' })
        answer.write('{"words of an answer": "')
        const more = (): void => {
          while (!answer.destroyed && answer.write('x'.repeat(100_000)));
          answer.once('drain', more)
        }
        more()
      })
      const client = clientOf('openai-compatible', { settings: { base_url: server.url } })
      const { code, message } = await failureOf(client.ask(request()))
      assert.equal(code, 'model-down')
      assert.match(message, /more than 4 MB/)
    } finally {
      await server?.close()
    }
  })

  test('that nobody listens to has cost nothing', async () => {
    const gone = await startServer(() => undefined)
    await gone.close()
    const { code, mayCost } = await failureOf(
      clientOf('openai-compatible', { settings: { base_url: gone.url } }).ask(request()),
    )
    assert.deepEqual([code, mayCost], ['model-down', false])
  })

  test('asks servers that know no schemas, or not even JSON, in words', async () => {
    for (const json of ['object', 'none'] as const) {
      const client = clientOf('openai-compatible', { settings: { json } })
      sim.models.answer({ json: { category: 'fyi' } })
      assert.equal((await client.ask(request({ schema }))).text, '{"category":"fyi"}')
      const asked = sim.models.asked.at(-1)
      assert.deepEqual(asked?.json, json === 'object' ? { schema: undefined } : undefined)
      assert.match(asked?.messages[0]?.text ?? '', /JSON Schema:\n\{.*"needs_response"/)
    }
  })

  test('asks OpenAI itself by the name that its newer models have for the limit, and others by the old one', async () => {
    const bodies: Record<string, unknown>[] = []
    const carried: ModelClientOptions['fetch'] = (url, init) => {
      bodies.push(JSON.parse(String(init.body)))
      return fetch(url.replace('https://api.openai.com/v1', sim.models.baseUrl), init)
    }
    await clientOf('openai-compatible', { settings: { base_url: undefined }, fetch: carried }).ask(
      request({ schema }),
    )
    await clientOf('openai-compatible', { fetch: carried }).ask(request({ schema }))
    assert.deepEqual(
      bodies.map(({ max_tokens, max_completion_tokens }) => [max_tokens, max_completion_tokens]),
      [
        [undefined, 500],
        [500, undefined],
      ],
    )
    assert.deepEqual(
      (bodies[0]!.response_format as { json_schema: { strict: boolean } }).json_schema.strict,
      false,
    )
  })

  test('tells an account without credit from one that asks too often', async () => {
    sim.models.answer({ status: 429, code: 'insufficient_quota' })
    const { kind, retryAfterMs, hint } = await failureOf(clientOf('openai-compatible').ask(request()))
    assert.deepEqual([kind, retryAfterMs], ['throttled', 3_600_000])
    assert.match(hint ?? '', /no credit/)
  })
})

test('a purpose has its own model, or that of all; a model has its own price, or that of all', () => {
  const settings = modelsSection.schema.parse({
    provider: 'google',
    model: 'large',
    classify_model: 'small',
    input_price: 3,
    output_price: 15,
    prices: [{ model: 'small', input: 0.1, output: 0.4 }],
  })
  assert.equal(modelFor(settings, 'classify'), 'small')
  assert.equal(modelFor(settings, 'draft'), 'large')
  assert.equal(modelFor({ ...settings, provider: 'off' }, 'draft'), undefined)
  assert.deepEqual({ ...priceOf(settings, 'small') }, { model: 'small', input: 0.1, output: 0.4 })
  assert.deepEqual(priceOf(settings, 'large'), { input: 3, output: 15 })
})

test('a model without a price beside a list of prices costs as the dearest of them, and never nothing', () => {
  const prices = [
    { model: 'small', input: 0.1, output: 9 },
    { model: 'large', input: 3, output: 0.4 },
  ]
  const settings = modelsSection.schema.parse({ provider: 'google', model: 'small', prices })
  assert.deepEqual(priceOf(settings, 'other'), { input: 3, output: 9 })
})

test('the doctor tells what is missing: a model, a key, prices of what is not on this machine', () => {
  const look = (input: Record<string, unknown>) => {
    const [found] = lookAtModels(modelsSection.schema.parse(input))
    return [found?.level, found?.hint ?? '']
  }
  assert.deepEqual(look({}), ['ok', ''])
  const local = { provider: 'openai-compatible', base_url: 'http://127.0.0.1:1/v1' }
  assert.deepEqual(look(local), ['problem', 'Set models.model.'])
  assert.deepEqual(look({ ...local, model: 'm' }), ['ok', ''])
  const far = { provider: 'anthropic', model: 'm', api_key: 'key-that-nobody-may-see' }
  assert.match(look({ ...far, api_key: undefined })[1]!, /models\.api_key/)
  assert.deepEqual(look(far)[0], 'warning')
  assert.deepEqual(look({ ...far, input_price: 3 }), ['ok', ''])
})
