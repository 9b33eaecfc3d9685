import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateText, type LanguageModel, Output, streamText, tool } from 'ai'
import { z } from 'zod'
import { type Sim, startSim } from '../start.ts'
import type { Protocol } from './exchange.ts'
import { SIGNATURE } from './sensible.ts'

const KEY = 'sk-test-of-the-simulated-model'
const MAIL = 'From: Ann Miller <ann@example.com>\nSubject: Re: Lunch in Bern\n\nCould you come on Friday?'

let sim: Sim
before(async () => {
  sim = await startSim({ models: { models: ['sim-model', 'claude-sonnet-4-5'], apiKey: KEY } })
})
after(() => sim.close())
beforeEach(() => {
  sim.faults.clear()
  sim.models.clearAnswers()
  sim.models.resetCounters()
  sim.models.mode = 'sensible'
})

function modelOf(protocol: Protocol, { name = 'sim-model', apiKey = KEY } = {}): LanguageModel {
  const baseURL = sim.models.urlOf(protocol)
  switch (protocol) {
    case 'openai':
      return createOpenAICompatible({ name: 'sim', baseURL, apiKey, supportsStructuredOutputs: true })(name)
    case 'anthropic':
      return createAnthropic({ baseURL, apiKey })(name)
    case 'google':
      return createGoogle({ baseURL, apiKey })(name)
  }
}

const classification = z.object({
  category: z.enum(['needs_response', 'action_required', 'payment_request', 'fyi', 'waiting']),
  confidence: z.number().min(0).max(1),
  reasoning: z.string(),
})
const search = tool({ description: 'finds mail', inputSchema: z.object({ query: z.string() }) })

for (const protocol of ['openai', 'anthropic', 'google'] as const) {
  describe(`the ai SDK, unchanged, over the protocol of ${protocol}`, () => {
    test('gets a text, what it cost in tokens, and why it ended', async () => {
      const answer = await generateText({
        model: modelOf(protocol),
        instructions: 'You answer mail.',
        prompt: MAIL,
        maxRetries: 0,
      })
      assert.match(answer.text, /^Hello Ann,\n\nthank you for your message about "Lunch in Bern"/)
      assert.ok(answer.text.endsWith(SIGNATURE))
      assert.equal(answer.finishReason, 'stop')
      assert.equal(answer.usage.inputTokens, sim.models.counts.inputTokens)
      assert.equal(answer.usage.outputTokens, sim.models.counts.outputTokens)
      const [asked] = sim.models.asked
      assert.deepEqual(
        asked?.messages.map(({ role, text }) => [role, text]),
        [
          ['system', 'You answer mail.'],
          ['user', MAIL],
        ],
      )
    })

    test('gets JSON of its schema', async () => {
      for (const name of ['sim-model', 'claude-sonnet-4-5']) {
        const answer = await generateText({
          model: modelOf(protocol, { name }),
          prompt: MAIL,
          output: Output.object({ schema: classification }),
          maxRetries: 0,
        })
        assert.equal(answer.output.category, 'needs_response')
        assert.match(answer.output.reasoning, /simulated/)
      }
    })

    test('gets calls of tools, and tells what came of them', async () => {
      const model = modelOf(protocol)
      const first = await generateText({ model, prompt: MAIL, tools: { search }, maxRetries: 0 })
      assert.equal(first.finishReason, 'tool-calls')
      const [call] = first.toolCalls
      assert.equal(call?.toolName, 'search')
      assert.deepEqual(call?.input, { query: 'Lunch Bern' })
      const second = await generateText({
        model,
        messages: [
          { role: 'user', content: MAIL },
          ...first.responseMessages,
          {
            role: 'tool',
            content: [
              {
                type: 'tool-result',
                toolCallId: call!.toolCallId,
                toolName: 'search',
                output: { type: 'text', value: 'two mails' },
              },
            ],
          },
        ],
        tools: { search },
        maxRetries: 0,
      })
      assert.match(second.text, /^Done, after 1 call of tools/)
      assert.ok(
        sim.models.asked.at(-1)?.messages.some((one) => one.role === 'tool' && /two mails/.test(one.text)),
      )
    })

    test('is refused in the words of that service', async () => {
      const ask = (model: LanguageModel) => generateText({ model, prompt: MAIL, maxRetries: 0 })
      const status = (wanted: number) => (error: unknown) => {
        assert.ok(APICallError.isInstance(error), String(error))
        assert.equal(error.statusCode, wanted)
        // The SDK understood the answer: its message is that of the service.
        assert.notEqual(error.data, undefined)
        return true
      }
      await assert.rejects(
        ask(modelOf(protocol, { apiKey: 'sk-wrong' })),
        status(protocol === 'google' ? 400 : 401),
      )
      await assert.rejects(ask(modelOf(protocol, { name: 'none' })), status(404))
      sim.faults.set({ rules: [{ do: 'throttle', retryAfterSeconds: 7, service: 'models', max: 1 }] })
      await assert.rejects(ask(modelOf(protocol)), (error) => {
        assert.equal((error as APICallError).responseHeaders?.['retry-after'], '7')
        return status(429)(error)
      })
      sim.models.answer({ status: 503 })
      await assert.rejects(ask(modelOf(protocol)), status(503))
    })

    test('gets what a test has it say: half an answer, a call that is no JSON, a filter', async () => {
      const model = modelOf(protocol)
      const cut = await generateText({ model, prompt: MAIL, maxOutputTokens: 5, maxRetries: 0 })
      assert.equal(cut.finishReason, 'length')
      assert.equal(cut.text.length, 20)
      sim.models.answer({ text: '', finish: 'filtered' }, { text: 'x', usage: { input: 11, output: 7 } })
      const filtered = await generateText({ model, prompt: MAIL, maxRetries: 0 })
      assert.equal(filtered.finishReason, 'content-filter')
      const counted = await generateText({ model, prompt: MAIL, maxRetries: 0 })
      assert.deepEqual([counted.usage.inputTokens, counted.usage.outputTokens], [11, 7])
      sim.models.answer({ text: 'x', isMalformed: true })
      await assert.rejects(generateText({ model, prompt: MAIL, maxRetries: 0 }), APICallError)
    })

    test('streams, with calls of tools and what it cost', async () => {
      const model = modelOf(protocol)
      const stream = streamText({ model, prompt: MAIL, maxRetries: 0 })
      const pieces: string[] = []
      for await (const piece of stream.textStream) pieces.push(piece)
      assert.ok(pieces.length > 3)
      assert.match(pieces.join(''), /Lunch in Bern/)
      assert.equal((await stream.usage).outputTokens, sim.models.counts.outputTokens)
      sim.models.answer({ toolCalls: [{ name: 'search', input: { query: 'a' } }] })
      const calling = streamText({ model, prompt: MAIL, tools: { search }, maxRetries: 0 })
      assert.deepEqual(
        (await calling.toolCalls).map(({ toolName, input }) => [toolName, input]),
        [['search', { query: 'a' }]],
      )
    })
  })
}
