import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { z } from 'zod'
import { FakeClock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { openVault } from '../../../base/vault.ts'
import { fileHome, postgresHome, type Site } from '../../../ledger/home.suite.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { ANN, type Asker, MAIL, openAsker, question } from './asker.suite.ts'
import { LOST_AFTER_MS } from './store.ts'

const BEN = 'ben@example.com'
const DAY_MS = 24 * 60 * 60_000

const schema = z.object({ category: z.enum(['needs_response', 'fyi']) })

let sim: Sim
before(async () => {
  sim = await startSim({ models: { contextTokens: 20_000 } })
})
after(() => sim.close())
beforeEach(() => {
  sim.faults.clear()
  sim.models.clearAnswers()
  sim.models.resetCounters()
})

async function failureOf(work: Promise<unknown>): Promise<TidemarkError> {
  const error = await work.then(
    () => assert.fail('it should have failed'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof TidemarkError, inspect(error))
  return error
}

for (const home of [fileHome(), postgresHome()]) {
  after(() => home.remove())

  describe(`asking models, on ${home.name}`, () => {
    let site: Site
    let asker: Asker
    const open = async (
      settings: Parameters<typeof openAsker>[1] = {},
      more: Parameters<typeof openAsker>[2] = {},
    ) => {
      asker = await openAsker(site.ledger, { base_url: sim.models.baseUrl, ...settings }, more)
      return asker
    }
    const spent = async () => (await asker.store.day(ANN)).spent
    const reserved = async () => (await asker.store.day(ANN)).reserved

    beforeEach(async () => {
      site = await home.fresh()
      return () => site.leave()
    })

    test('a model that the settings do not name is not asked, whoever wants it', async () => {
      const { models, store } = await open({
        model: 'main',
        prices: [{ model: 'sim-model', input: 1, output: 1 }],
      })
      const error = await failureOf(models.ask(question({ model: 'dear-model', schema })))
      assert.equal(error.code, 'model-not-configured')
      assert.deepEqual(await store.calls({ limit: 10 }), [])
      sim.models.answer({ json: { category: 'fyi' } })
      assert.equal((await models.ask(question({ model: 'sim-model', schema }))).model, 'sim-model')
    })

    test('every call is on record with its tokens and its cost', async () => {
      const { models, store } = await open({ input_price: 2, output_price: 10 })
      sim.models.answer({ json: { category: 'fyi' }, usage: { input: 100, output: 7 } })
      const answer = await models.ask(question({ schema }))
      assert.deepEqual(answer.value, { category: 'fyi' })
      assert.deepEqual(answer.usage, { inputTokens: 100, outputTokens: 7 })
      assert.equal(answer.costMicros, 270)
      const [call] = await store.calls({ limit: 10 })
      const { id, account, threadId, purpose, model, outcome, inputTokens, outputTokens, costMicros } = call!
      assert.deepEqual(
        { id, account, threadId, purpose, model, outcome, inputTokens, outputTokens, costMicros },
        {
          id: answer.callId,
          account: ANN,
          threadId: 't1',
          purpose: 'classify',
          model: 'sim-model',
          outcome: 'ok',
          inputTokens: 100,
          outputTokens: 7,
          costMicros: 270,
        },
      )
      assert.deepEqual(await spent(), { costMicros: 270, tokens: 107 })
      assert.deepEqual(await reserved(), { costMicros: 0, tokens: 0 })
      assert.deepEqual(await store.costs({ accounts: [ANN], days: 1 }), [
        {
          day: store.today(),
          purpose: 'classify',
          model: 'sim-model',
          calls: 1,
          failed: 0,
          inputTokens: 100,
          outputTokens: 7,
          costMicros: 270,
        },
      ])
      assert.deepEqual(await store.costs({ accounts: [BEN], days: 1 }), [])
    })

    test('without a model, or without a key where one is needed, nothing is sent and nothing is spent', async () => {
      const off = await failureOf((await open({ provider: 'off' })).models.ask(question()))
      assert.deepEqual([off.code, off.kind], ['no-model', 'permanent'])
      const none = await failureOf((await open({ model: undefined })).models.ask(question()))
      assert.equal(none.code, 'no-model')
      const keyless = await failureOf((await open({ provider: 'anthropic' })).models.ask(question()))
      assert.equal(keyless.code, 'no-model')
      assert.equal(sim.models.counts.calls, 0)
      assert.deepEqual(await asker.store.calls({ limit: 10 }), [])
    })

    test('an answer that is no use is asked for once more, and both calls count', async () => {
      const { models, store } = await open({ input_price: 1, output_price: 1 })
      sim.models.answer(
        { text: 'I think it is news.' },
        { text: 'Here it is: ```json\n{"category":"fyi"}\n```' },
      )
      const answer = await models.ask(question({ schema }))
      assert.deepEqual(answer.value, { category: 'fyi' })
      const [second, first] = await store.calls({ limit: 10 })
      assert.deepEqual([first?.outcome, second?.outcome, second?.repairs], ['unusable', 'ok', first?.id])
      assert.equal(answer.costMicros, first!.costMicros + second!.costMicros)
      assert.deepEqual(answer.usage, {
        inputTokens: sim.models.counts.inputTokens,
        outputTokens: sim.models.counts.outputTokens,
      })
      const told = sim.models.asked
        .at(-1)
        ?.messages.slice(-2)
        .map(({ role, text }) => [role, text])
      assert.equal(told?.[0]?.join(), 'assistant,I think it is news.')
      assert.match(told?.[1]?.join() ?? '', /^user,Your answer cannot be used: it is not JSON\./)
    })

    const useless = {
      nonsense: { text: 'As a language model I talk.' },
      'a category that does not exist': { json: { category: 'urgent' } },
      'an answer that was cut off': { text: '{"category":"fyi"', finish: 'length' as const },
      'an answer that looks whole but was cut off': { text: '{"category":"fyi"}', finish: 'length' as const },
      nothing: { text: '' },
      'the text of an error': { text: '{"error":{"message":"Rate limit reached"}}' },
    }
    for (const [what, said] of Object.entries(useless)) {
      test(`${what}, twice, is no answer, and no third one is paid for`, async () => {
        const { models, store } = await open()
        sim.models.answer(said, said)
        const { code, kind } = await failureOf(models.ask(question({ schema })))
        assert.deepEqual([code, kind], ['model-unusable', 'permanent'])
        assert.deepEqual(
          (await store.calls({ limit: 10 })).map(({ outcome }) => outcome),
          ['unusable', 'unusable'],
        )
        assert.equal((await spent()).tokens, sim.models.counts.inputTokens + sim.models.counts.outputTokens)
      })
    }

    test('what a filter refuses is not asked again', async () => {
      const { models } = await open()
      sim.models.answer({ text: '', finish: 'filtered' })
      assert.equal((await failureOf(models.ask(question()))).code, 'model-unusable')
      assert.equal(sim.models.counts.calls, 1)
    })

    test('calls of tools are an answer, valid or not', async () => {
      const { models } = await open()
      sim.models.answer({
        toolCalls: [
          { name: 'find', input: { q: 'x' } },
          { name: 'send', input: {} },
        ],
      })
      const tools = { find: { description: 'finds', input: z.object({ q: z.string() }) } }
      const { toolCalls, value } = await models.ask(question({ purpose: 'agent', tools }))
      assert.equal(value, undefined)
      assert.deepEqual(
        toolCalls.map(({ name, isValid }) => [name, isValid]),
        [
          ['find', true],
          ['send', false],
        ],
      )
    })

    test('the cap stops a call before anything is sent, until the day ends', async () => {
      const { models, store } = await open({
        input_price: 1,
        output_price: 1,
        day_cost: 0.002,
        max_tokens: 100,
      })
      const usage = { input: 900, output: 50 }
      sim.models.answer({ text: 'one', usage }, { text: 'two', usage })
      await models.ask(question())
      await models.ask(question())
      site.clock.pass(3 * 60 * 60_000)
      const error = await failureOf(models.ask(question()))
      assert.deepEqual([error.code, error.kind], ['model-budget', 'throttled'])
      assert.equal(error.retryAfterMs, store.dayEndMs() - site.ledger.now())
      assert.equal(sim.models.counts.calls, 2)
      await models.ask(question({ account: BEN }))
      site.clock.pass(DAY_MS)
      await models.ask(question())
      assert.equal(sim.models.counts.calls, 4)
    })

    test('tokens are capped as well, for models that cost no money', async () => {
      const { models } = await open({ day_cost: 0, day_tokens: 2_000, max_tokens: 100 })
      sim.models.answer({ text: 'x', usage: { input: 1_800, output: 50 } })
      await models.ask(question())
      assert.equal((await failureOf(models.ask(question()))).code, 'model-budget')
      assert.equal(sim.models.counts.calls, 1)
    })

    test('all mailboxes of a user have one cap together, and those of another one their own', async () => {
      const { models } = await open(
        { day_cost: 0, day_tokens: 2_000, max_tokens: 100 },
        { payerOf: async (account) => (account === BEN ? 'user:2' : 'user:1') },
      )
      sim.models.answer({ text: 'x', usage: { input: 1_800, output: 50 } })
      await models.ask(question())
      const other = 'ann@work.example'
      assert.equal((await failureOf(models.ask(question({ account: other })))).code, 'model-budget')
      await models.ask(question({ account: BEN }))
      assert.deepEqual([(await models.status(other)).today.spent.tokens, sim.models.counts.calls], [1_850, 2])
    })

    test('calls in flight count with their worst case, and who waits for them waits shortly', async () => {
      const { models, store } = await open({ day_cost: 0, day_tokens: 3_000, max_tokens: 100 })
      const worst = { costMicros: 0, tokens: 2_900 }
      const call = {
        account: ANN,
        threadId: 't',
        purpose: 'draft' as const,
        model: 'm',
        repairs: null,
        worst,
      }
      const held = await store.reserve(call, { costMicros: null, tokens: 3_000 })
      assert.ok('id' in held)
      const error = await failureOf(models.ask(question()))
      assert.deepEqual([error.code, error.retryAfterMs], ['model-budget', 15_000])
      const nothing = { inputTokens: 0, outputTokens: 0, costMicros: 0, sealed: null }
      await store.settle(held.id, { outcome: 'failed', code: 'model-down', ...nothing })
      await models.ask(question())
    })

    test('where there is no money to repair an answer, it is an answer that is no use', async () => {
      const { models } = await open({ day_cost: 0, day_tokens: 2_500, max_tokens: 100 })
      sim.models.answer({ text: 'nonsense', usage: { input: 2_000, output: 50 } })
      assert.equal((await failureOf(models.ask(question({ schema })))).code, 'model-unusable')
      assert.equal(sim.models.counts.calls, 1)
    })

    test('a model that is down, throttled, or refuses the key costs nothing and is told as it is', async () => {
      const { models, store } = await open({ input_price: 1 })
      sim.models.answer({ status: 503 }, { status: 429, retryAfterSeconds: 9 }, { status: 401 })
      const down = await failureOf(models.ask(question()))
      assert.deepEqual([down.code, down.kind], ['model-down', 'transient'])
      const throttled = await failureOf(models.ask(question()))
      assert.deepEqual(
        [throttled.code, throttled.kind, throttled.retryAfterMs],
        ['model-down', 'throttled', 9_000],
      )
      assert.equal((await failureOf(models.ask(question()))).code, 'model-refused')
      assert.deepEqual(await spent(), { costMicros: 0, tokens: 0 })
      assert.deepEqual(await reserved(), { costMicros: 0, tokens: 0 })
      assert.deepEqual(
        (await store.calls({ limit: 10 })).map(({ outcome, code }) => [outcome, code]),
        [
          ['failed', 'model-refused'],
          ['failed', 'model-down'],
          ['failed', 'model-down'],
        ],
      )
    })

    test('a call that was sent and never answered counts with its worst case', async () => {
      const clock = new FakeClock()
      const sent = Promise.withResolvers<void>()
      const { models, store } = await open(
        { input_price: 1, output_price: 1, timeout_seconds: 5, max_tokens: 300 },
        {
          clock,
          fetch: (url, init) => {
            sent.resolve()
            return fetch(url, init)
          },
        },
      )
      sim.faults.set({ rules: [{ do: 'stall', service: 'models' }] })
      const failing = failureOf(models.ask(question()))
      await sent.promise
      await clock.advance(5_000)
      assert.equal((await failing).code, 'model-down')
      const [call] = await store.calls({ limit: 1 })
      assert.equal(call?.outputTokens, 300)
      assert.ok(call!.inputTokens > MAIL.length)
      assert.deepEqual(await spent(), { costMicros: call!.costMicros, tokens: call!.costMicros })
    })

    test('a model that does not say what it used has used its worst case', async () => {
      const { models } = await open({ max_tokens: 300 })
      sim.models.answer({ text: 'x', usage: null })
      const { usage } = await models.ask(question())
      assert.equal(usage.outputTokens, 300)
      assert.equal((await spent()).tokens, usage.inputTokens + 300)
    })

    test('zero tokens, and more than there can be, are no count', async () => {
      const { models } = await open({ max_tokens: 300, day_tokens: 0 })
      sim.models.answer(
        { text: 'x', usage: { input: 0, output: 0 } },
        { text: 'x', usage: { input: 1e15, output: 1e15 } },
      )
      const first = await models.ask(question())
      const second = await models.ask(question())
      for (const { usage } of [first, second]) {
        assert.equal(usage.outputTokens, 300)
        assert.ok(usage.inputTokens > MAIL.length && usage.inputTokens < 2_000)
      }
    })

    test('who has stopped before anything was sent pays nothing', async () => {
      const { models } = await open()
      const reason = new Error('stopped')
      await assert.rejects(models.ask(question({ signal: AbortSignal.abort(reason) })), reason)
      assert.deepEqual(await spent(), { costMicros: 0, tokens: 0 })
      assert.deepEqual(await reserved(), { costMicros: 0, tokens: 0 })
      assert.equal(sim.models.counts.calls, 0)
    })

    test('a schema asks for every field, and takes an answer without those that have a fallback', async () => {
      const { models } = await open()
      const fallback = z.object({ category: z.enum(['fyi']), note: z.string().catch('none') })
      sim.models.answer({ json: { category: 'fyi' } })
      assert.deepEqual((await models.ask(question({ schema: fallback }))).value, {
        category: 'fyi',
        note: 'none',
      })
      const asked = sim.models.asked.at(-1)?.json?.schema
      assert.deepEqual([asked?.required, asked?.additionalProperties], [['category', 'note'], false])
      assert.equal(asked?.$schema, undefined)
    })

    test('a crash between reservation and answer counts as spent, and is told as lost', async () => {
      const { store } = await open()
      const worst = { costMicros: 40, tokens: 400 }
      const call = {
        account: ANN,
        threadId: 't',
        purpose: 'draft' as const,
        model: 'm',
        repairs: null,
        worst,
      }
      const held = await store.reserve(call, { costMicros: 100, tokens: 1_000 })
      assert.ok('id' in held)
      assert.deepEqual(await reserved(), worst)
      assert.equal((await store.costs({ days: 1 }))[0]?.costMicros, 40)
      await store.prune(90)
      assert.deepEqual(await reserved(), worst, 'it may still be answered')
      site.clock.pass(LOST_AFTER_MS + 1)
      await store.prune(90)
      assert.deepEqual(await reserved(), { costMicros: 0, tokens: 0 })
      assert.deepEqual(await spent(), worst)
      assert.equal((await store.calls({ limit: 1 }))[0]?.outcome, 'lost')
      const late = {
        outcome: 'ok' as const,
        code: '',
        inputTokens: 1,
        outputTokens: 1,
        costMicros: 1,
        sealed: null,
      }
      assert.equal(await store.settle(held.id, late), false)
      assert.deepEqual(await spent(), worst)
    })

    test('old calls are forgotten after their time, and those of today are not', async () => {
      const { models, store } = await open({ keep_calls_days: 2 })
      await models.ask(question())
      site.clock.pass(3 * DAY_MS)
      await models.ask(question())
      assert.equal(await models.prune(), 1)
      assert.equal((await store.calls({ limit: 10 })).length, 1)
    })

    test('prompts are not kept, unless they are to be: then nobody reads them without the master key', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-asker-'))
      try {
        const vault = await openVault({ env: {}, home: folder })
        const { models, store, settings } = await open({}, { vault })
        const bare = await models.ask(question())
        assert.equal(await models.transcript(bare.callId), undefined)
        assert.equal(vault.isMade, false)
        settings.keep_prompts = 'sealed'
        sim.models.answer({ text: 'my answer' })
        const kept = await models.ask(question())
        const { account, text } = (await models.transcript(kept.callId))!
        assert.equal(account, ANN)
        for (const part of ['You sort mail.', MAIL, 'my answer']) assert.ok(text.includes(part))
        const { bytes } = (await store.sealed(kept.callId))!
        assert.ok(!Buffer.from(bytes).toString('latin1').includes('Friday'))
        assert.deepEqual(
          (await store.calls({ limit: 2 })).map(({ hasPrompt }) => hasPrompt),
          [true, false],
        )
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    })

    test('the cost of a backlog is told before it is run, by its size and then by what such calls used', async () => {
      const { models } = await open({ input_price: 1, output_price: 2, day_cost: 1, day_tokens: 0 })
      const about = { account: ANN, purpose: 'classify' as const, calls: 1_000 }
      const bySize = await models.estimate({ ...about, chars: 4_000 })
      assert.deepEqual(
        [bySize?.basis, bySize?.inputTokens, bySize?.costMicros, bySize?.days],
        ['sizes', 1_500_000, 1_660_000, 2],
      )
      sim.models.answer(
        { text: 'x', usage: { input: 100, output: 10 } },
        { text: 'x', usage: { input: 300, output: 30 } },
      )
      await models.ask(question())
      await models.ask(question())
      const byCalls = await models.estimate(about)
      assert.deepEqual(
        [byCalls?.basis, byCalls?.inputTokens, byCalls?.outputTokens, byCalls?.costMicros, byCalls?.days],
        ['calls', 200_000, 20_000, 240_000, 1],
      )
      asker.settings.provider = 'off'
      assert.equal(await models.estimate(about), undefined)
    })

    test('what may cost money is known of every purpose, and of the models of agents', async () => {
      const prices = [
        { model: 'dear', input: 15, output: 75 },
        { model: 'sim-model', input: 0, output: 0 },
      ]
      const { models, settings } = await open({ agent_model: 'dear', prices })
      assert.deepEqual([models.mayCost([]), models.mayCost(['sim-model'])], [false, false])
      assert.deepEqual([models.mayCost(['']), models.mayCost(['dear'])], [true, true])
      const about = { account: ANN, purpose: 'agent' as const, calls: 10 }
      assert.ok((await models.estimate(about))!.costMicros > 0)
      assert.equal((await models.estimate({ ...about, model: 'sim-model' }))!.costMicros, 0)
      settings.context_model = 'dear'
      assert.equal(models.mayCost([]), true)
      settings.provider = 'off'
      assert.equal(models.mayCost(['dear']), false)
    })

    test('settings that change are taken over by the next call', async () => {
      const { models, settings } = await open()
      await models.ask(question())
      settings.model = 'sim-model-large'
      assert.equal((await models.ask(question())).model, 'sim-model-large')
      assert.deepEqual((await models.status(ANN)).models.draft, 'sim-model-large')
      settings.base_url = sim.models.urlOf('anthropic')
      settings.provider = 'anthropic'
      settings.api_key = 'any'
      await models.ask(question())
      assert.equal(sim.models.asked.at(-1)?.protocol, 'anthropic')
    })

    test('who stops waiting is told their own reason, and what was sent counts', async () => {
      const stop = new AbortController()
      const reason = new Error('stopped by the user')
      const { models } = await open(
        { max_tokens: 300 },
        {
          fetch: (url, init) => {
            stop.abort(reason)
            return fetch(url, init)
          },
        },
      )
      await assert.rejects(models.ask(question({ signal: stop.signal })), reason)
      assert.ok((await spent()).tokens > 300)
    })
  })
}
