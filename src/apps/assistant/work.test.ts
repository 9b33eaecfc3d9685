/** What becomes of a mailbox that is connected no more, and of what is too old. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { SERVICE } from './account.ts'
import { ANN, type AssistWorld, startAssistWorld } from './assist-world.suite.ts'
import { LOST_AFTER_MS } from './models/store.ts'
import type { AssistRuntime } from './runtime.ts'
import { startAccounts, startAssistWork } from './work.ts'

const DAY_MS = 86_400_000

let w: AssistWorld
beforeEach(async () => {
  w = await startAssistWorld({
    models: { script: ({ tools }) => (tools.length > 0 ? { text: 'Read: private things.' } : undefined) },
    accountSettings: {
      routing: [{ name: 'shop', match: { sender_domain: 'shop.example' }, profile: 'desk' }],
      profiles: [{ name: 'desk', tools: ['escalate'] }],
    },
  })
  await w.onboard()
  await w.settled()
  w.arrive({ from: 'Eve <eve@shop.example>', text: 'Where is my parcel?' })
  await w.sync()
  assert.equal((await runs()).length, 1)
})
afterEach(() => w.close())

const runs = () => w.worker.runs.runs({ accounts: [ANN] })

/** The parts of one that a mailbox is given its work by. */
const INTERVALS = { poll_minutes: 15, watch_hours: 24, follow_up_hour: 7, briefing_hour: 6 }

function runtime(keepDays = 90, intervals = INTERVALS): AssistRuntime {
  const { ledger, engine, accounts, tables, kinds } = w.worker
  const assist = {
    tables,
    kinds,
    accounts: kinds.accounts,
    settings: w.settings,
    agents: kinds.agents,
    models: { prune: async () => 0 },
  }
  const config = { assist: intervals, models: { keep_calls_days: keepDays } }
  return { ledger, engine, accounts, assist, config, role: 'all' } as unknown as AssistRuntime
}

test('runs of agents, and what they read, go with the account', async () => {
  const [run] = await runs()
  await w.worker.accounts.remove((await w.worker.accounts.find(SERVICE, ANN))!.id)
  await startAccounts(runtime())
  assert.deepEqual(await runs(), [])
  assert.deepEqual(await w.worker.runs.steps(run!.id), [])
  assert.equal(await w.tables.account(ANN), undefined)
})

test('a mailbox is looked at, watched, reminded of and briefed as the settings say, also where they change', async () => {
  const specs = async (): Promise<Record<string, string>> => {
    const own = (await w.worker.ledger.schedules()).filter(({ name }) => name.startsWith('assist.'))
    return Object.fromEntries(own.map(({ name, spec }) => [name.split(' ')[0], spec] as const))
  }
  await startAccounts(runtime())
  assert.deepEqual(await specs(), {
    'assist.sync': 'every 15m',
    'assist.watch': 'every 24h',
    'assist.follow-up': 'cron 0 7 * * 1-5',
    'assist.briefing': 'cron 30 6 * * *',
  })
  const others = { poll_minutes: 5, watch_hours: 12, follow_up_hour: 9, briefing_hour: 4 }
  await startAccounts(runtime(90, others))
  assert.deepEqual(await specs(), {
    'assist.sync': 'every 5m',
    'assist.watch': 'every 12h',
    'assist.follow-up': 'cron 0 9 * * 1-5',
    'assist.briefing': 'cron 30 4 * * *',
  })
})

test('what a mailbox has cost today, or may cost yet, counts for its user also when it is removed and connected again', async () => {
  const store = w.worker.calls
  // At noon, so that the day does not end meanwhile.
  w.clock.aheadMs += 1.5 * DAY_MS - (w.clock.now() % DAY_MS)
  const call = {
    account: ANN,
    payer: 'user:1',
    threadId: 't',
    purpose: 'draft' as const,
    model: 'm',
    repairs: null,
    worst: { costMicros: 400, tokens: 40 },
  }
  const cap = { costMicros: 1_000, tokens: null }
  const [ended, open] = [await store.reserve(call, cap), await store.reserve(call, cap)]
  assert.ok('id' in ended && 'id' in open)
  const small = await store.reserve({ ...call, worst: { costMicros: 200, tokens: 20 } }, cap)
  assert.ok('id' in small)
  const used = { inputTokens: 20, outputTokens: 20, costMicros: 400 }
  await store.settle(ended.id, { outcome: 'ok', code: '', sealed: null, ...used })
  await w.worker.accounts.remove((await w.worker.accounts.find(SERVICE, ANN))!.id)
  await startAccounts(runtime())
  await w.connect(ANN)
  assert.deepEqual(await store.calls({ accounts: [ANN], limit: 10 }), [])
  const { spent, reserved } = await store.day('user:1')
  assert.deepEqual([spent.costMicros, reserved.costMicros], [400, 600])
  assert.ok('refused' in (await store.reserve(call, cap)))
  // Who was in the middle of it when the mailbox went tells what it cost, and nothing of what was said is kept.
  const told = { inputTokens: 5, outputTokens: 5, costMicros: 100 }
  assert.ok(await store.settle(open.id, { outcome: 'ok', code: '', sealed: Buffer.from('x'), ...told }))
  assert.equal(await store.sealed(open.id), undefined)
  const after = await store.day('user:1')
  assert.deepEqual([after.spent.costMicros, after.reserved.costMicros], [500, 200])
  // Whoever died in the middle of it tells nothing: it counts as the most that it could cost.
  w.clock.aheadMs += LOST_AFTER_MS + 1_000
  await store.prune(30)
  const lost = await store.day('user:1')
  assert.deepEqual([lost.spent.costMicros, lost.reserved.costMicros], [700, 0])
})

test('runs of agents that ended longer ago than calls are kept go, and younger ones stay', async () => {
  const [run] = await runs()
  const round = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const app = runtime()
    const prune = app.assist.agents.prune
    app.assist.agents = {
      ...app.assist.agents,
      prune: async (days) => {
        await prune(days)
        resolve()
      },
    }
    const onError = (thrown: unknown): never => assert.fail(String(thrown))
    const work = await startAssistWork(app, { clock: w.clock, onError, everyMs: 1 })
    await promise
    await work.stop()
  }
  w.clock.aheadMs += 89 * 86_400_000
  await round()
  assert.equal((await runs()).length, 1)
  w.clock.aheadMs += 2 * 86_400_000
  await round()
  assert.deepEqual(await runs(), [])
  assert.deepEqual(await w.worker.runs.steps(run!.id), [])
})
