import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { fileHome, postgresHome } from '../../../ledger/home.suite.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { ANN, type Asked, askElsewhere, askUntilSpent, openAsker } from './asker.suite.ts'
import { ModelCalls } from './store.ts'

const PROCESSES = 3
const ASKERS = 4

let sim: Sim
before(async () => {
  sim = await startSim({ models: {} })
})
after(() => sim.close())
beforeEach(() => sim.models.resetCounters())

for (const home of [fileHome(), postgresHome()]) {
  after(() => home.remove())

  describe(`the cap of a payer, on ${home.name}`, () => {
    test('holds whatever is asked at once, however it ends, and its books balance', async () => {
      const call = fc.record({
        worst: fc.integer({ min: 1, max: 400 }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        end: fc.constantFrom('ok', 'failed', 'crash'),
      })
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 2_000 }),
          fc.array(call, { maxLength: 24 }),
          async (max, calls) => {
            const { ledger, leave } = await home.fresh()
            try {
              const store = await ModelCalls.open(ledger)
              const cap = { costMicros: max, tokens: max }
              const counted = await Promise.all(
                calls.map(async ({ worst: most, share, end }) => {
                  const worst = { costMicros: most, tokens: most }
                  const about = {
                    account: ANN,
                    threadId: '',
                    purpose: 'draft' as const,
                    model: 'm',
                    repairs: null,
                    worst,
                  }
                  const held = await store.reserve(about, cap)
                  const { spent, reserved } = await store.day(ANN)
                  assert.ok(spent.costMicros + reserved.costMicros <= max)
                  assert.ok(spent.tokens + reserved.tokens <= max)
                  if ('refused' in held) return 0
                  if (end === 'crash') return most
                  const used = end === 'ok' ? Math.floor(most * share) : 0
                  const settlement = {
                    inputTokens: used,
                    outputTokens: 0,
                    costMicros: used,
                    sealed: null,
                    code: '',
                  }
                  const settled = await Promise.all([
                    store.settle(held.id, { outcome: end, ...settlement }),
                    store.settle(held.id, { outcome: end, ...settlement }),
                  ])
                  assert.deepEqual(settled.sort(), [false, true])
                  return used
                }),
              )
              const { spent, reserved } = await store.day(ANN)
              const whole = counted.reduce<number>((sum, one) => sum + one, 0)
              assert.equal(spent.costMicros + reserved.costMicros, whole)
              assert.equal(spent.tokens + reserved.tokens, whole)
              const [costs] = await store.costs({ days: 1 })
              assert.equal(costs?.costMicros ?? 0, whole)
            } finally {
              await leave()
            }
          },
        ),
        { numRuns: 15 },
      )
    })

    test(`is not passed by ${PROCESSES} processes that ask at once, and is used up by them`, async () => {
      const { ledger, clock, url, leave } = await home.fresh()
      try {
        const usage = { input: 200, output: 20 }
        sim.models.script = () => ({ text: 'Fine.', usage })
        const settings = {
          base_url: sim.models.baseUrl,
          input_price: 1,
          output_price: 10,
          day_cost: 0.02,
          day_tokens: 0,
          max_tokens: 64,
        }
        const { models, store } = await openAsker(ledger, settings)
        const tasks = Array.from({ length: PROCESSES - 1 }, () =>
          askElsewhere({ url, nowMs: clock.now(), settings, askers: ASKERS }),
        )
        const here = Array.from({ length: ASKERS }, () => askUntilSpent(models))
        const all: Asked[] = (await Promise.all([...tasks, Promise.all(here)])).flat()
        assert.deepEqual(
          all.flatMap(({ errors }) => errors),
          [],
        )
        const answered = all.reduce((sum, one) => sum + one.answered, 0)
        const cost = usage.input * 1 + usage.output * 10
        assert.equal(answered, sim.models.counts.answered)
        assert.equal(
          all.reduce((sum, one) => sum + one.costMicros, 0),
          answered * cost,
        )
        assert.ok(answered * cost <= 20_000, `${answered} answers cost ${answered * cost}`)
        const { spent, reserved } = await store.day(ANN)
        assert.deepEqual([spent.costMicros, reserved.costMicros], [answered * cost, 0])
        // What is left is less than a call may cost at worst: a prompt of some 300 bytes, and 64 tokens.
        assert.ok(20_000 - spent.costMicros < 2_000, `${spent.costMicros} of 20000 were used`)
      } finally {
        sim.models.script = undefined
        await leave()
      }
    })
  })
}
