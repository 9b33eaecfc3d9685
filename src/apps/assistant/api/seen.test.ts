/** What an agent asks its owner to look at, until the owner has. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { RequestUser } from '../../../app/user.ts'
import { SERVICE } from '../account.ts'
import { ANN, type AssistWorld, startAssistWorld } from '../assist-world.suite.ts'
import { noteSeen } from './access.ts'
import type { AssistServices } from './route.ts'
import { getRun } from './rules.ts'
import { getThread } from './threads.ts'

describe('an escalation', () => {
  let w: AssistWorld
  let services: AssistServices
  let owner: RequestUser
  let thread: string

  beforeEach(async () => {
    w = await startAssistWorld({
      models: {
        script: ({ tools, messages }) => {
          if (tools.length === 0) return undefined
          const isFirst = !messages.some(({ role }) => role === 'assistant')
          if (!isFirst) return { text: 'Seen to.' }
          return { toolCalls: [{ name: 'escalate', input: { reason: 'A lawyer writes.' } }] }
        },
      },
      accountSettings: {
        routing: [{ name: 'shop', match: { sender_domain: 'shop.example' }, profile: 'desk' }],
        profiles: [{ name: 'desk', tools: ['escalate'] }],
      },
    })
    await w.onboard()
    await w.settled()
    thread = w.arrive({ from: 'Eve <eve@shop.example>', text: 'My lawyer will call.' }).threadId
    await w.sync()
    assert.equal((await w.worker.runs.escalated()).length, 1)
    const { accounts, ledger, tables, runs } = w.worker
    const assist = { tables, agents: { store: runs } }
    services = { accounts, ledger, clock: w.clock, assist } as unknown as AssistServices
    const { userId: id } = (await accounts.find(SERVICE, ANN))!
    owner = { id, name: 'ann', role: 'member' } as RequestUser
  })
  afterEach(() => w.close())

  test('is seen once its owner opens the run', async () => {
    const { id } = (await w.worker.runs.escalated())[0]!
    await getRun.handle({ params: { id }, user: owner } as never, services as never)
    assert.deepEqual(await w.worker.runs.escalated(), [])
  })

  test('is seen once its owner opens the thread', async () => {
    await getThread.handle({ params: { account: ANN, thread }, user: owner } as never, services as never)
    assert.deepEqual(await w.worker.runs.escalated(), [])
  })

  test('stays where somebody else looks', async () => {
    await noteSeen(services, { ...owner, id: owner.id + 1, role: 'admin' }, { account: ANN, thread })
    assert.equal((await w.worker.runs.escalated()).length, 1)
  })
})
