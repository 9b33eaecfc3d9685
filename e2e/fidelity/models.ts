/** The ai SDK with the protocols of three providers, against the simulated language model and embeddings. */
import assert from 'node:assert/strict'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { embedMany, generateText, type LanguageModel, Output, streamText, tool } from 'ai'
import { z } from 'zod'
import type { Sim } from '../../src/sim/start.ts'
import { API_KEY, type Call, type Client, callsOf, MODEL, refusal } from './harness.ts'

/** The SDK warns of models that it does not know, on every call. */
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

const PROTOCOLS = ['openai', 'anthropic', 'google'] as const
type Protocol = (typeof PROTOCOLS)[number]

const PACKAGES: Readonly<Record<Protocol, string>> = {
  openai: '@ai-sdk/openai-compatible 3',
  anthropic: '@ai-sdk/anthropic 4',
  google: '@ai-sdk/google 4',
}
const MAIL = 'From: Ann Miller <ann@example.com>\nSubject: Re: Lunch\n\nCould you come on Friday?'

export const modelClients: readonly Client[] = [
  ...PROTOCOLS.map((protocol) => ({
    client: `ai 7, ${PACKAGES[protocol]}`,
    world: { models: { models: [MODEL], apiKey: API_KEY } },
    calls: (sim: Sim) => modelCalls(sim, protocol),
  })),
  {
    client: `ai 7, ${PACKAGES.openai} (embeddings)`,
    world: { embeddings: { models: { small: 64 }, apiKey: API_KEY } },
    calls: (sim) => {
      const provider = createOpenAICompatible({
        name: 'sim',
        baseURL: sim.embeddings.baseUrl,
        apiKey: API_KEY,
      })
      return callsOf({
        embedMany: async () => {
          const model = provider.embeddingModel('small')
          const { embeddings } = await embedMany({ model, values: ['one', 'two'], maxRetries: 0 })
          assert.deepEqual(
            embeddings.map(({ length }) => length),
            [64, 64],
          )
        },
      })
    },
  },
]

function modelOf(sim: Sim, protocol: Protocol, apiKey = API_KEY): LanguageModel {
  const baseURL = sim.models.urlOf(protocol)
  switch (protocol) {
    case 'openai':
      return createOpenAICompatible({ name: 'sim', baseURL, apiKey, supportsStructuredOutputs: true })(MODEL)
    case 'anthropic':
      return createAnthropic({ baseURL, apiKey })(MODEL)
    case 'google':
      return createGoogle({ baseURL, apiKey })(MODEL)
  }
}

function modelCalls(sim: Sim, protocol: Protocol): readonly Call[] {
  const model = modelOf(sim, protocol)
  const maxRetries = 0
  return callsOf({
    generateText: async () => {
      const { text, usage } = await generateText({ model, maxRetries, prompt: MAIL })
      assert.ok(text.length > 0 && (usage.totalTokens ?? 0) > 0)
    },
    'generateText with a schema': async () => {
      const schema = z.object({ reasoning: z.string(), confidence: z.number() })
      const { output } = await generateText({
        model,
        maxRetries,
        prompt: MAIL,
        output: Output.object({ schema }),
      })
      assert.equal(typeof output.reasoning, 'string')
    },
    'generateText with tools': async () => {
      const find = tool({ description: 'finds mail', inputSchema: z.object({ query: z.string() }) })
      const { finishReason } = await generateText({ model, maxRetries, prompt: MAIL, tools: { find } })
      assert.ok(finishReason === 'tool-calls' || finishReason === 'stop')
    },
    streamText: async () => {
      let text = ''
      for await (const piece of streamText({ model, maxRetries, prompt: MAIL }).textStream) text += piece
      assert.ok(text.length > 0)
    },
    'a wrong key is refused': async () => {
      const wrong = modelOf(sim, protocol, 'sk-wrong')
      const status = await refusal(generateText({ model: wrong, maxRetries, prompt: MAIL }))
      assert.ok(status === 400 || status === 401, String(status))
    },
  })
}
