/** What a scan finds is not given to a model that costs money before its user has agreed to the cost. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { SERVICE } from './account.ts'
import { orderDraft, requestSync } from './actions.ts'
import { agreeToCosts, getAccounts } from './api/accounts.ts'
import {
  ANN,
  type AssistWorld,
  type AssistWorldOptions,
  DATABASES,
  startAssistWorld,
  until,
} from './assist-world.suite.ts'
import { agreeToBacklog, backlogOf, backlogText } from './backlog.ts'
import { assistStatus, lookAtAssist, syncStateOf } from './status.ts'
import { setActive, wantSync } from './store/accounts.ts'
import { noteMessages, type ThreadRecord } from './store/records.ts'

let world: AssistWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const PAID: AssistWorldOptions = { dayCost: 1_000, settings: { backlogMax: 3 } }

const DAY_MS = 86_400_000

/** Mail lies in the inbox before anybody looks. */
async function begun(mails: number, options: AssistWorldOptions = PAID): Promise<AssistWorld> {
  world = await startAssistWorld(options)
  for (let n = 0; n < mails; n++) world.arrive({ subject: `Old ${n}` })
  await world.onboard()
  await world.settled()
  return world
}

/** Five drafts waited for a model; then there is one, and it costs money. */
async function heldDrafts(database: (typeof DATABASES)[number]): Promise<AssistWorld> {
  const w = await begun(5, { provider: 'off', database, settings: { backlogMax: 3 } })
  const records = await w.tables.list({ accounts: [ANN], limit: 10 })
  assert.deepEqual(
    records.map(({ problemCode }) => problemCode),
    Array.from({ length: 5 }, () => 'no-model'),
  )
  await w.worker.stop()
  w.workers.splice(0)
  Object.assign(w.options, { provider: 'openai-compatible', dayCost: 1_000 })
  await w.start()
  for (let n = 0; n < 2; n++) await w.sync(ANN, { full: true })
  return w
}

function asked(w: AssistWorld): number {
  return w.sim.models.counts.calls
}

for (const database of DATABASES) {
  describe(`a backlog for a model that costs money, on ${database}`, () => {
    test('waits for a yes and is told with its cost, while new mail is sorted', async () => {
      const w = await begun(5, { ...PAID, database })
      assert.deepEqual([asked(w), (await w.tables.balance(ANN)).held], [0, 5])
      const fresh = w.arrive({ subject: 'New' })
      await w.sync()
      assert.equal((await w.record(fresh.threadId))!.status, 'drafted')
      assert.deepEqual(await w.tables.balance(ANN), {
        inbox: 6,
        classified: 1,
        skipped: 0,
        onTheirWay: 5,
        held: 5,
      })
      const before = asked(w)
      await w.sync(ANN, { full: true })
      assert.deepEqual([asked(w), (await w.tables.balance(ANN)).held], [before, 5])
      const backlog = await backlogOf({ tables: w.tables, models: w.worker.models }, ANN)
      assert.deepEqual([backlog.mails, backlog.threads, backlog.classify!.calls], [5, 5, 5])
      assert.ok(backlog.classify!.costMicros > 0 && backlog.draft!.costMicros > 0)
      assert.match(
        backlogText(backlog),
        /^Sorting 5 waiting messages in 5 threads with sim-model costs about 0\.0/,
      )
      const [need] = (await (await lookAtAssist(w.worker.ledger)).needs!()) ?? []
      assert.match(need!.text, /5 mails of ann@example\.com wait, because sorting them costs money/)
      const [status] = await assistStatus(w.worker.ledger, w.tables, [ANN])
      assert.equal(syncStateOf(status!).phase, 'idle')
      assert.equal(await agreeToBacklog(w.place, ANN), true)
      await w.settled()
      assert.deepEqual(await w.tables.balance(ANN), {
        inbox: 6,
        classified: 6,
        skipped: 0,
        onTheirWay: 0,
        held: 0,
      })
    })

    test('that was agreed to before it was found does not wait, and the next one is asked about again', async () => {
      const w = await startAssistWorld({ ...PAID, database })
      world = w
      await w.onboard()
      await w.settled()
      for (let n = 0; n < 5; n++) w.arrive()
      w.mailbox().expireHistory()
      await agreeToBacklog(w.place, ANN, { ahead: true })
      await w.settled()
      assert.equal((await w.tables.backlog(ANN, 'all')).mails, 0)
      for (let n = 0; n < 5; n++) w.arrive()
      w.mailbox().expireHistory()
      await w.sync()
      assert.equal((await w.tables.balance(ANN)).held, 5)
    })

    test('that history tells of at once, after a time without the assistant, waits as well', async () => {
      const w = await begun(0, { ...PAID, database })
      for (let n = 0; n < 5; n++) w.arrive({ subject: `Old ${n}` })
      w.clock.aheadMs += DAY_MS
      await w.sync()
      assert.deepEqual([asked(w), (await w.tables.balance(ANN)).held], [0, 5])
      const text = backlogText(await backlogOf({ tables: w.tables, models: w.worker.models }, ANN))
      assert.match(text, /^Sorting 5 waiting messages/)
      const fresh = w.arrive({ subject: 'New' })
      await w.sync()
      assert.equal((await w.record(fresh.threadId))!.status, 'drafted')
      await agreeToBacklog(w.place, ANN)
      await w.settled()
      const { classified, held } = await w.tables.balance(ANN)
      assert.deepEqual([classified, held], [6, 0])
    })

    test('of drafts that waited for a model is told when there is one that costs money, and waits', async () => {
      const w = await heldDrafts(database)
      const records = await w.tables.list({ accounts: [ANN], limit: 10 })
      assert.deepEqual([asked(w), await w.tables.heldDrafts(ANN)], [0, 5])
      assert.match((await w.record(records[0]!.thread))!.problem!, /until you agree/)
      const text = backlogText(await backlogOf({ tables: w.tables, models: w.worker.models }, ANN))
      assert.match(text, /^Writing 5 drafts that waited for a model costs about 0\.0/)
      const [need] = (await (await lookAtAssist(w.worker.ledger)).needs!()) ?? []
      assert.match(need!.text, /5 drafts of ann@example\.com wait, because writing them costs money/)
      // What the user asks for themself needs no other yes.
      await orderDraft(w.place, { account: ANN, thread: records[0]!.thread })
      await w.settled()
      assert.deepEqual([w.called('drafts.create'), await w.tables.heldDrafts(ANN)], [1, 4])
      await agreeToBacklog(w.place, ANN)
      await w.settled()
      assert.deepEqual([w.called('drafts.create'), await w.tables.heldDrafts(ANN)], [5, 0])
    })

    for (const [what, happens] of [
      [
        'where their label is deleted in Gmail',
        async (w: AssistWorld) => {
          w.mailbox().deleteLabel(await w.labelId('needs_response'))
          await w.sync()
        },
      ],
      [
        'where a conversation comes back from the trash',
        async (w: AssistWorld, thread: string) => {
          w.mailbox().trashThread(thread)
          await w.sync(ANN, { full: true })
          w.mailbox().untrashThread(thread)
        },
      ],
    ] as const) {
      test(`of drafts waits for its yes also ${what}`, async () => {
        const w = await heldDrafts(database)
        const [{ thread }] = (await w.tables.list({ accounts: [ANN], limit: 1 })) as [ThreadRecord]
        await happens(w, thread)
        for (let n = 0; n < 2; n++) await w.sync(ANN, { full: true })
        assert.deepEqual([asked(w), w.called('drafts.create'), await w.tables.heldDrafts(ANN)], [0, 0, 5])
        assert.deepEqual(await w.labelsOn(thread), ['needs_response'])
        await agreeToBacklog(w.place, ANN)
        await w.settled()
        assert.deepEqual([w.called('drafts.create'), await w.tables.heldDrafts(ANN)], [5, 0])
      })
    }
  })
}

describe('a backlog', () => {
  test('is not what comes while the assistant looks, however few may be found at once', async () => {
    const w = await begun(0, { ...PAID, settings: { backlogMax: 0 } })
    for (let n = 0; n < 3; n++) w.arrive({ subject: `New ${n}` })
    await w.sync()
    assert.deepEqual([(await w.tables.balance(ANN)).held, w.called('drafts.create')], [0, 3])
    w.clock.aheadMs += DAY_MS
    w.arrive({ subject: 'While it was off' })
    await w.sync()
    assert.deepEqual([(await w.tables.balance(ANN)).held, w.called('drafts.create')], [1, 3])
  })

  test('is also what comes in masses while the assistant looks', async () => {
    const w = await begun(0)
    for (let n = 0; n < 51; n++) w.arrive({ subject: `Mass ${n}` })
    await w.sync()
    assert.deepEqual([asked(w), (await w.tables.balance(ANN)).held], [0, 51])
  })

  test('of few mails does not wait', async () => {
    const w = await begun(3)
    assert.deepEqual([(await w.tables.balance(ANN)).held, w.called('drafts.create')], [0, 3])
  })

  test('does not wait where the model is here and has no price, or where there is none', async () => {
    for (const options of [{}, { provider: 'off' as const }]) {
      const w = await begun(5, { settings: { backlogMax: 0 }, ...options })
      const { held, classified } = await w.tables.balance(ANN)
      assert.deepEqual([held, classified], [0, 5])
      await w.close()
      world = undefined
    }
  })

  test('that got another message is sorted with it', async () => {
    const w = await begun(5)
    const [threadId] = w
      .mailbox()
      .list({ labelIds: ['INBOX'], maxResults: 10 })
      .messages.map((one) => one.threadId)
    w.arrive({ threadId: threadId!, subject: 'Re: Old' })
    await w.sync()
    assert.equal((await w.record(threadId!))!.status, 'drafted')
    assert.equal((await w.tables.balance(ANN)).held, 4)
  })

  test('is told to its owner and agreed to by them over the API, and by nobody else', async () => {
    const w = await begun(5)
    const { accounts, ledger, tables, models, engine, kinds } = w.worker
    const services = { accounts, ledger, engine, clock: w.clock, assist: { tables, models, kinds } } as never
    const { userId: id } = (await accounts.find(SERVICE, ANN))!
    const owner = { id, name: 'ann', role: 'member' }
    const params = { account: ANN }
    const answer = await getAccounts.handle({ user: owner } as never, services)
    const { items } = answer as { items: { held: number; backlog: string | null }[] }
    assert.equal(items[0]!.held, 5)
    assert.match(items[0]!.backlog!, /^Sorting 5 waiting messages .* costs about/)
    const stranger = { ...owner, id: id + 1 }
    await assert.rejects(async () => agreeToCosts.handle({ params, user: stranger } as never, services))
    assert.equal((await w.tables.balance(ANN)).held, 5)
    await agreeToCosts.handle({ params, user: owner } as never, services)
    await w.settled()
    assert.equal((await w.tables.balance(ANN)).classified, 5)
  })

  for (const ahead of [true, false]) {
    test(`that is being found is ${ahead ? '' : 'not '}agreed to by a yes ${ahead ? 'ahead' : 'to what is held'}`, async () => {
      const w = await startAssistWorld(PAID)
      world = w
      for (let n = 0; n < 5; n++) w.arrive()
      // The scan is at work for so long that the yes comes in the middle of it.
      w.sim.faults.set({
        rules: [{ do: 'latency', methods: ['messages.list'], latency: { kind: 'fixed', ms: 50 } }],
      })
      await w.onboard()
      await until(() => w.called('messages.list') >= 3)
      await agreeToBacklog(w.place, ANN, { ahead })
      await w.settled()
      const { held, classified } = await w.tables.balance(ANN)
      assert.deepEqual([held, classified], ahead ? [0, 5] : [5, 0])
    })
  }

  test('waits also where only an agent of the routing costs money, and is told with its cost', async () => {
    const profiles = [{ name: 'desk', model: 'dear', tools: ['escalate'] }]
    const routing = [{ name: 'shop', match: { sender_domain: 'shop.example' }, profile: 'desk' }]
    const options = { prices: { dear: 15 }, settings: { backlogMax: 3 } }
    const w = await begun(5, { ...options, accountSettings: { profiles, routing } })
    assert.equal((await w.tables.balance(ANN)).held, 5)
    const backlog = await backlogOf({ tables: w.tables, models: w.worker.models }, ANN)
    assert.deepEqual([backlog.classify!.costMicros, backlog.agent!.model], [0, 'dear'])
    assert.ok(backlog.agent!.costMicros > 0 && backlog.context!.calls === 5)
    assert.match(backlogText(backlog), /Agents cost [\d.]+ .* at most/)
    await w.close()
    const unrouted = await begun(5, { ...options, accountSettings: { profiles } })
    assert.equal((await unrouted.tables.balance(ANN)).held, 0)
  })

  test('that is being found has no price yet', async () => {
    const w = await begun(5)
    const text = async () => backlogText(await backlogOf({ tables: w.tables, models: w.worker.models }, ANN))
    assert.match(await text(), /^Sorting 5 waiting messages/)
    const more = [{ id: 'm-more', threadId: 't-more' }]
    await w.worker.ledger.transaction((tx) => noteMessages(tx, ANN, more, w.clock.now() + 1, 'held'))
    assert.match(await text(), /^Mail is still being counted/)
  })

  test('is not agreed to by a yes of long ago: it ends with the scan, and where the mailbox is switched off', async () => {
    const w = await begun(0)
    const agreed = () =>
      w.worker.ledger.transaction((tx) =>
        tx.get<{ n: number }>(`SELECT backlog_agreed AS n FROM assist_accounts WHERE account = ?`, [ANN]),
      )
    await agreeToBacklog(w.place, ANN, { ahead: true })
    await w.settled()
    assert.equal(Number((await agreed())!.n), 0)
    const free = await startAssistWorld({})
    try {
      await free.onboard()
      await free.settled()
      await agreeToBacklog(free.place, ANN, { ahead: true })
      await free.settled()
      const row = await free.worker.ledger.transaction((tx) =>
        tx.get<{ n: number }>(`SELECT backlog_agreed AS n FROM assist_accounts WHERE account = ?`, [ANN]),
      )
      assert.equal(Number(row!.n), 0)
    } finally {
      await free.close()
    }
    await w.worker.ledger.transaction(async (tx) => {
      await wantSync(tx, ANN, { agrees: true, nowMs: w.clock.now() })
      await setActive(tx, ANN, false)
    })
    assert.equal(Number((await agreed())!.n), 0)
  })
})

test('a draft that a model refused for good is asked for again on request, and not by each scan', async () => {
  let refuses = true
  let drafts = 0
  world = await startAssistWorld({
    settings: { fullScanMs: 0 },
    models: {
      script: ({ messages }) => {
        if (messages.some(({ text }) => text.includes('message to sort'))) return undefined
        drafts += 1
        return refuses ? { status: 401 } : undefined
      },
    },
  })
  const w = world
  await w.onboard()
  await w.settled()
  const threads = [w.arrive(), w.arrive(), w.arrive()].map(({ threadId }) => threadId)
  await w.sync()
  const first = drafts
  assert.ok(first >= 3)
  for (let n = 0; n < 3; n++) await w.sync()
  assert.equal(drafts, first)
  assert.equal((await w.record(threads[0]!))!.problemCode, 'model-refused')
  refuses = false
  const { threadId } = w.arrive()
  await w.sync()
  assert.equal((await w.record(threadId))!.status, 'drafted')
  // Drafts are written again: those that were refused are asked for by the next scan.
  await requestSync(w.place, ANN)
  await w.settled()
  for (const thread of threads) assert.equal((await w.record(thread))!.status, 'drafted')
})
