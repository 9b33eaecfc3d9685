/** Mail comes in, is sorted, drafted, answered: over the simulated Gmail and the simulated model, by HTTP. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { requestSync } from './actions.ts'
import {
  ANN,
  type AssistWorld,
  type AssistWorldOptions,
  DATABASES,
  edit,
  startAssistWorld,
  until,
} from './assist-world.suite.ts'
import { DRAFT_KEY_HEADER } from './reply.ts'

let world: AssistWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

async function begun(options: AssistWorldOptions = {}): Promise<AssistWorld> {
  world = await startAssistWorld(options)
  await world.onboard()
  await world.settled()
  return world
}

for (const database of DATABASES) {
  describe(`on ${database}`, () => {
    test('a question is labelled, drafted in its thread to its sender, and moved to the Outbox', async () => {
      const w = await begun({ database })
      const mail = w.arrive({ subject: 'Lunch', text: 'Are you free on Friday?' })
      await w.sync()
      const record = (await w.record(mail.threadId))!
      assert.equal(record.category, 'needs_response')
      assert.equal(record.status, 'drafted')
      assert.equal(record.by, 'model')
      assert.deepEqual(await w.labelsOn(mail.threadId), ['outbox'])
      const [draft, ...others] = w.drafts(mail.threadId)
      assert.equal(others.length, 0)
      assert.match(draft!.raw, /^To: .*<bob@example\.net>/m)
      assert.match(draft!.raw, /^Subject: Re: Lunch/m)
      assert.match(draft!.raw, new RegExp(`^${DRAFT_KEY_HEADER}: ${record.draftKey}`, 'm'))
      assert.match(draft!.text, /✂️/)
      assert.deepEqual(await w.eventsOf(mail.threadId), ['classified', 'draft-created'])
      assert.equal(w.mailbox().list({ labelIds: ['SENT'] }).messages.length, 0)
    })

    test('three messages in one conversation are one job of sorting', async () => {
      const w = await begun({ database })
      const first = w.arrive({ subject: 'Plan' })
      w.arrive({ subject: 'Re: Plan', threadId: first.threadId })
      w.arrive({ subject: 'Re: Plan', threadId: first.threadId })
      await w.sync()
      assert.equal((await w.jobs('assist.classify')).length, 1)
      assert.equal(w.drafts(first.threadId).length, 1)
      assert.deepEqual(await w.tables.balance(ANN), {
        inbox: 3,
        classified: 3,
        skipped: 0,
        onTheirWay: 0,
        held: 0,
      })
    })

    test('a settled mailbox stays settled: two syncs later there is no new job', async () => {
      const w = await begun({ database })
      w.arrive({ text: 'Are you free?' })
      w.arrive({ text: 'Your parcel has shipped.' })
      await w.sync()
      await w.sync()
      const before = (await w.jobs()).filter(({ kind }) => kind !== 'assist.sync').length
      const changes = w.mailbox().historyId
      await w.sync()
      await w.sync(ANN, { full: true })
      await w.sync()
      const after = (await w.jobs()).filter(({ kind }) => kind !== 'assist.sync').length
      assert.equal(after, before)
      assert.equal(w.mailbox().historyId, changes)
    })

    test('mail that three workers sort at once has one label and one draft each', async () => {
      const w = await begun({ database })
      await w.start()
      await w.start()
      const mails = Array.from({ length: 12 }, (_, n) => w.arrive({ subject: `Question ${n}` }))
      await w.sync()
      await w.sync()
      for (const { threadId } of mails) {
        assert.deepEqual(await w.labelsOn(threadId), ['outbox'])
        assert.equal(w.drafts(threadId).length, 1)
      }
    })
  })
}

describe('onboarding', () => {
  test('done twice, it finds its labels and changes nothing', async () => {
    const w = await begun()
    const before = w.mailbox().labels()
    const row = (await w.tables.account(ANN))!
    assert.equal(before.filter(({ name }) => name.startsWith('🤖 AI')).length, 9)
    await w.onboard()
    await w.settled()
    assert.deepEqual(w.mailbox().labels(), before)
    assert.deepEqual((await w.tables.account(ANN))!.labels, row.labels)
  })

  test('done twice at once, it ends with one set of labels', async () => {
    world = await startAssistWorld()
    await Promise.all([world.onboard(), world.onboard()])
    await world.settled()
    assert.equal(
      world
        .mailbox()
        .labels()
        .filter(({ name }) => name.startsWith('🤖 AI')).length,
      9,
    )
  })

  test('mail that was in the inbox before is sorted by the first scan', async () => {
    world = await startAssistWorld()
    const mail = world.arrive({ text: 'Could you help me?' })
    await world.onboard()
    await world.settled()
    assert.equal((await world.record(mail.threadId))!.status, 'drafted')
  })
})

describe('sorting', () => {
  test('what a program sent is never drafted, whatever the model says', async () => {
    const w = await begun({
      models: {
        script: ({ json }) =>
          json
            ? { json: { category: 'needs_response', confidence: 1, reasoning: 'x', language: '', style: '' } }
            : undefined,
      },
    })
    const mail = w.arrive({
      headers: ['List-Id: <news.example.net>', 'Precedence: bulk'],
      text: 'Are you free?',
    })
    await w.sync()
    const record = (await w.record(mail.threadId))!
    assert.equal(record.isAutomated, true)
    assert.notEqual(record.category, 'needs_response')
    assert.deepEqual(w.drafts(mail.threadId), [])
  })

  test('a sender on the blacklist is sorted without asking a model', async () => {
    const w = await begun({ accountSettings: { blacklist: ['*@ads.example'] } })
    const mail = w.arrive({ from: 'Ads <x@ads.example>', text: 'Are you free?' })
    await w.sync()
    assert.equal((await w.record(mail.threadId))!.by, 'rule')
    assert.equal(w.sim.models.counts.calls, 0)
  })

  test('a new message in an answered conversation is sorted again', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Are you free?' })
    await w.sync()
    w.mailbox().sendDraft(w.drafts(mail.threadId)[0]!.id)
    await w.sync()
    assert.equal((await w.record(mail.threadId))!.status, 'sent')
    w.arrive({ subject: 'Re: A question', threadId: mail.threadId, text: 'And on Monday, could you?' })
    await w.sync()
    const record = (await w.record(mail.threadId))!
    assert.equal(record.status, 'drafted')
    assert.equal(w.drafts(mail.threadId).length, 1)
  })

  for (const [text, label] of [
    ['I will get back to you.', 'waiting'],
    ['Your parcel has shipped.', 'fyi'],
    ['Please sign the contract.', 'action_required'],
  ] as const) {
    test(`a new message in a conversation that is ${label} is sorted again`, async () => {
      const w = await begun()
      const { threadId } = w.arrive({ text })
      await w.sync()
      assert.deepEqual(await w.labelsOn(threadId), [label])
      w.arrive({ threadId, text: 'Are you free on Friday?' })
      await w.sync()
      assert.deepEqual(await w.labelsOn(threadId), ['outbox'])
      assert.equal(w.drafts(threadId).length, 1)
    })
  }

  test('a draft that waits is written anew when a message comes, and the old one goes to the trash', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Are you free?' })
    await w.sync()
    const [old] = w.drafts(mail.threadId)
    w.arrive({ subject: 'Re: A question', threadId: mail.threadId, text: 'Or rather on Monday?' })
    await w.sync()
    const [draft, ...others] = w.drafts(mail.threadId)
    assert.equal(others.length, 0)
    assert.notEqual(draft!.messageId, old!.messageId)
    assert.ok(w.mailbox().get(old!.messageId)!.labelIds.has('TRASH'))
  })

  test('a draft that the user is editing stays when a message comes', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Are you free?' })
    await w.sync()
    const [old] = w.drafts(mail.threadId)
    edit(w, old!, 'My own words')
    w.arrive({ subject: 'Re: A question', threadId: mail.threadId, text: 'Or rather on Monday?' })
    await w.sync()
    const [draft, ...others] = w.drafts(mail.threadId)
    assert.equal(others.length, 0)
    assert.match(draft!.text, /My own words/)
  })

  test('sorted again as something else, an untouched draft goes to the trash, and an edited one stays', async () => {
    const w = await begun()
    const [plain, touched] = [w.arrive({ text: 'Are you free?' }), w.arrive({ text: 'Could you come?' })]
    await w.sync()
    edit(w, w.drafts(touched.threadId)[0]!, 'My own words')
    await w.sync()
    const { correctCategory } = await import('./actions.ts')
    for (const { threadId } of [plain, touched])
      await correctCategory(w.place, { account: ANN, thread: threadId }, 'fyi')
    await w.settled()
    assert.deepEqual(w.drafts(plain.threadId), [])
    assert.equal(w.drafts(touched.threadId).length, 1)
    for (const { threadId } of [plain, touched]) assert.deepEqual(await w.labelsOn(threadId), ['fyi'])
  })
})

for (const full of [true, false]) {
  test(`mail that was thrown away before it was sorted is sorted when it is back: by ${full ? 'a scan' : 'history'}`, async () => {
    const w = await begun()
    const rule = {
      do: 'throttle',
      methods: ['messages.get', 'threads.get'],
      retryAfterSeconds: 0.01,
    } as const
    w.sim.faults.set({ rules: [rule] })
    const { threadId } = w.arrive({ text: 'Your parcel has shipped.' })
    await requestSync(w.place, ANN)
    await until(async () => (await w.jobs('assist.classify')).length > 0)
    w.mailbox().trashThread(threadId)
    w.sim.faults.set({ rules: [] })
    await w.settled()
    assert.equal((await w.record(threadId))!.category, null)
    w.mailbox().modifyThread(threadId, { remove: ['TRASH'], add: ['INBOX'] })
    await w.sync(ANN, { full })
    assert.equal((await w.record(threadId))!.category, 'fyi')
  })
}

test('mail that is taken out of the trash while it is looked at to be sorted is sorted', async () => {
  const w = await begun()
  const methods = ['messages.get', 'threads.get']
  w.sim.faults.set({ rules: [{ do: 'throttle', methods, retryAfterSeconds: 0.01 }] })
  const { threadId } = w.arrive({ text: 'Your parcel has shipped.' })
  await requestSync(w.place, ANN)
  await until(async () => (await w.jobs('assist.classify')).length > 0)
  w.mailbox().trashThread(threadId)
  // It is read in the trash, and its answer comes later.
  w.sim.faults.set({ rules: [{ do: 'stall', at: 'middle', methods, max: 1 }] })
  await until(() => w.sim.faults.counts()[0]!.struck > 0)
  w.mailbox().modifyThread(threadId, { remove: ['TRASH'] })
  const listed = w.called('history.list')
  await requestSync(w.place, ANN)
  const isOver = async (): Promise<boolean> =>
    (await w.jobs('assist.sync')).every(({ state }) => state !== 'pending' && state !== 'claimed')
  await until(async () => w.called('history.list') > listed && (await isOver()))
  const releasing = setInterval(() => w.sim.faults.release(), 5)
  await w.settled().finally(() => clearInterval(releasing))
  assert.equal((await w.record(threadId))!.category, 'fyi')
})
