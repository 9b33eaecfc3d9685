/** Drafts are made once, reworked at most three times, and followed to their end: sent, discarded or edited. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { correctCategory, editDraft, orderDraft, orderRework, requestSync, undoEvent } from './actions.ts'
import {
  ANN,
  type AssistWorld,
  type AssistWorldOptions,
  DATABASES,
  edit,
  until,
} from './assist-world.suite.ts'
import { onboardedWorlds } from './onboarded-worlds.suite.ts'
import { DRAFT_KEY_HEADER } from './reply.ts'

const begun = onboardedWorlds()

async function drafted(options: AssistWorldOptions = {}): Promise<{ w: AssistWorld; thread: string }> {
  const w = await begun(options)
  const { threadId: thread } = w.arrive({ text: 'Are you free on Friday?' })
  await w.sync()
  assert.equal(w.drafts(thread).length, 1)
  return { w, thread }
}

describe('a crash', () => {
  const steps = ['threads.get', 'drafts.create', 'threads.modify', 'messages.get'] as const
  for (const method of steps) {
    for (const when of ['before', 'after'] as const) {
      test(`${when} the work of ${method}, at any of its calls, leads to one draft and one label`, async () => {
        const w = await begun()
        w.sim.faults.set({ rules: [{ do: 'reset', when, methods: [method], max: 2 }] })
        const { threadId: thread } = w.arrive({ text: 'Are you free on Friday?' })
        await w.sync()
        assert.equal(w.drafts(thread).length, 1)
        assert.deepEqual(await w.labelsOn(thread), ['outbox'])
        assert.equal((await w.record(thread))!.status, 'drafted')
      })
    }
  }
})

/** Its call to make a draft works, and nobody is told; the user is quicker than the next try. */
async function madeUnheard(
  options: AssistWorldOptions = {},
  before: (w: AssistWorld, thread: string) => void = () => {},
): Promise<{ w: AssistWorld; thread: string; go: () => Promise<void> }> {
  const w = await begun(options)
  w.sim.faults.set({
    rules: [
      { do: 'reset', when: 'after', methods: ['drafts.create'], max: 1 },
      { do: 'throttle', methods: ['threads.get'], skip: 1, retryAfterSeconds: 0.01 },
    ],
  })
  const { threadId: thread } = w.arrive({ text: 'Are you free on Friday?' })
  before(w, thread)
  await requestSync(w.place, ANN)
  const isMade = (): boolean => w.drafts(thread).some(({ raw }) => raw.includes(DRAFT_KEY_HEADER))
  await until(isMade)
  const go = async (): Promise<void> => {
    w.sim.faults.set({ rules: [] })
    await w.settled()
    await w.sync()
    await w.sync(ANN, { full: true })
  }
  return { w, thread, go }
}

/** As Gmail's own editor does it: nothing of the old message stays but whom it answers. */
function rewrite(w: AssistWorld, thread: string, text: string): string {
  const { id } = w.drafts(thread).find(({ raw }) => raw.includes(DRAFT_KEY_HEADER))!
  const raw = Buffer.from(
    `To: bob@example.net\r\nSubject: Re: x\r\nMessage-ID: <g1@mail.gmail.com>\r\n\r\n${text}`,
  )
  w.mailbox().updateDraft(id, { raw })
  return id
}

describe('a draft that was made and not written down, and edited by the user before the next try,', () => {
  for (const database of DATABASES) {
    test(`is taken over as it is: ${database}`, async () => {
      const { w, thread, go } = await madeUnheard({ database })
      const id = rewrite(w, thread, 'Yes, gladly. Ann')
      await go()
      const [draft, ...others] = w.drafts(thread)
      assert.deepEqual([draft!.id, draft!.text, others], [id, 'Yes, gladly. Ann', []])
      const record = (await w.record(thread))!
      assert.deepEqual([record.status, await w.labelsOn(thread)], ['drafted', ['outbox']])
      const [row, ...rows] = await w.tables.drafts(ANN, thread)
      assert.deepEqual([row!.state, row!.draftId, row!.key, rows], ['edited', id, record.draftKey, []])
    })
  }

  test('is the only one also where the user edits it again while it is looked for', async () => {
    const { w, thread, go } = await madeUnheard({})
    const id = rewrite(w, thread, 'Yes')
    w.sim.faults.set({ rules: [{ do: 'stall', methods: ['drafts.list'], max: 1 }] })
    await until(() => w.sim.faults.counts()[0]!.struck > 0)
    w.mailbox().updateDraft(id, {
      raw: Buffer.from('To: bob@example.net\r\nSubject: Re: x\r\n\r\nYes, gladly.'),
    })
    const releasing = setInterval(() => w.sim.faults.release(), 5)
    await go().finally(() => clearInterval(releasing))
    assert.deepEqual(
      w.drafts(thread).map((one) => [one.id, one.text]),
      [[id, 'Yes, gladly.']],
    )
  })

  for (const mark of ['', '✂️']) {
    test(`may be a letter that only the user wrote, and is never put away: by the mark "${mark}"`, async () => {
      const w = await begun()
      w.sim.faults.set({
        rules: [
          { do: 'reset', when: 'before', methods: ['drafts.create'], max: 1 },
          { do: 'throttle', methods: ['threads.get'], skip: 1, retryAfterSeconds: 0.01 },
        ],
      })
      const { threadId: thread } = w.arrive({ text: 'Are you free on Friday?' })
      await requestSync(w.place, ANN)
      await until(() => w.called('drafts.create') > 0)
      const raw = Buffer.from(`To: bob@example.net\r\nSubject: Re: x\r\n\r\n${mark}\r\nMy own letter.`)
      const { id: own } = w.mailbox().createDraft({ raw, threadId: thread })
      w.sim.faults.set({ rules: [] })
      await w.settled()
      await w.sync()
      assert.deepEqual(
        w.drafts(thread).map(({ id }) => id),
        [own],
      )
      for (let n = 0; n < 2; n++) {
        await orderRework(w.place, { account: ANN, thread }, 'Shorter')
        await w.settled()
        await w.sync(ANN, { full: true })
        const there = w.drafts(thread)
        assert.match(there.find(({ id }) => id === own)!.text, /My own letter\./)
        assert.equal(there.length, 2)
      }
    })
  }

  test('stays also where another message came meanwhile, and is sent in the end', async () => {
    const { w, thread, go } = await madeUnheard()
    const id = rewrite(w, thread, 'Yes, gladly. Ann')
    w.arrive({ threadId: thread, text: 'Or on Saturday?' })
    await go()
    assert.deepEqual(
      w.drafts(thread).map(({ id: one, text }) => [one, text]),
      [[id, 'Yes, gladly. Ann']],
    )
    w.mailbox().sendDraft(id)
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'sent')
  })

  test('is told from what the user had begun in the conversation before', async () => {
    let own = ''
    const raw = Buffer.from('To: bob@example.net\r\nSubject: Re\r\n\r\nmy own ✂️ beginning')
    const { w, thread, go } = await madeUnheard({}, (world, of) => {
      own = world.mailbox().createDraft({ raw, threadId: of }).id
    })
    const id = rewrite(w, thread, 'Yes, gladly. Ann')
    w.mailbox().updateDraft(own, { raw: Buffer.from('To: bob@example.net\r\n\r\nmy own ✂️ end') })
    await go()
    const there = w.drafts(thread).map(({ id: one }) => one)
    assert.deepEqual(there.toSorted(), [id, own].toSorted())
    assert.equal((await w.tables.drafts(ANN, thread))[0]!.draftId, id)
  })

  test('and then thrown away, is discarded and not made again by itself', async () => {
    const { w, thread, go } = await madeUnheard()
    rewrite(w, thread, 'Yes, gladly. Ann')
    await go()
    w.mailbox().deleteDraft(w.drafts(thread)[0]!.id)
    await w.sync()
    await w.sync(ANN, { full: true })
    assert.deepEqual([(await w.record(thread))!.status, w.drafts(thread)], ['discarded', []])
  })
})

describe('a draft', () => {
  test('that was sent is sent, and the Outbox label goes', async () => {
    const { w, thread } = await drafted()
    w.mailbox().sendDraft(w.drafts(thread)[0]!.id)
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'sent')
    assert.deepEqual(await w.labelsOn(thread), [])
    assert.equal((await w.tables.drafts(ANN, thread))[0]!.state, 'sent')
  })

  test('that was discarded is not sent: it waits for the user again', async () => {
    const { w, thread } = await drafted()
    w.mailbox().deleteDraft(w.drafts(thread)[0]!.id)
    await w.sync()
    const record = (await w.record(thread))!
    assert.equal(record.status, 'discarded')
    assert.deepEqual(await w.labelsOn(thread), ['needs_response'])
    assert.ok((await w.eventsOf(thread)).includes('discarded'))
    await w.sync()
    await w.sync(ANN, { full: true })
    assert.equal((await w.record(thread))!.status, 'discarded')
    assert.deepEqual(w.drafts(thread), [])
  })

  test('that is still there while the user wrote another answer is left alone', async () => {
    const { w, thread } = await drafted()
    w.mailbox().send({
      raw: Buffer.from('To: bob@example.net\r\nSubject: Re: x\r\n\r\nYes.'),
      threadId: thread,
    })
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'drafted')
    assert.equal(w.drafts(thread).length, 1)
  })

  test('that the user has edited and sent is sent', async () => {
    const { w, thread } = await drafted()
    edit(w, w.drafts(thread)[0]!, 'Yes, gladly.')
    await w.sync()
    assert.equal((await w.tables.drafts(ANN, thread))[0]!.state, 'edited')
    assert.equal((await w.record(thread))!.status, 'drafted')
    w.mailbox().sendDraft(w.drafts(thread)[0]!.id)
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'sent')
  })

  test('whose end was missed by history is found by the next scan', async () => {
    const { w, thread } = await drafted()
    w.mailbox().sendDraft(w.drafts(thread)[0]!.id)
    w.mailbox().expireHistory()
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'sent')
  })

  test('is not written where the user has answered already', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Are you free?' })
    w.mailbox().send({
      raw: Buffer.from('To: bob@example.net\r\nSubject: Re\r\n\r\nYes.'),
      threadId: mail.threadId,
    })
    await w.sync()
    assert.equal((await w.record(mail.threadId))!.status, 'sent')
    assert.deepEqual(w.drafts(mail.threadId), [])
  })

  test('that is all that is left of a conversation stays, and is looked at once', async () => {
    const { w, thread } = await drafted()
    w.mailbox().delete(thread)
    await w.sync()
    await w.sync(ANN, { full: true })
    const before = (await w.jobs('assist.cleanup')).length
    await w.sync(ANN, { full: true })
    assert.equal((await w.jobs('assist.cleanup')).length, before)
    assert.equal(w.drafts(thread).length, 1)
  })

  test('can be edited on a page, and is the user’s from then on', async () => {
    const { w, thread } = await drafted()
    await editDraft(w.place, { account: ANN, thread }, 'My own answer', new AbortController().signal)
    await w.sync()
    const [draft, ...others] = w.drafts(thread)
    assert.equal(others.length, 0)
    assert.match(draft!.text, /My own answer/)
    assert.equal((await w.tables.drafts(ANN, thread))[0]!.state, 'edited')
  })
})

describe('a rework', () => {
  /** Writes above the mark, and sets the label. */
  async function rework(w: AssistWorld, thread: string, instruction: string): Promise<void> {
    const [draft] = w.drafts(thread)
    if (draft) edit(w, draft, `${instruction}\n\n✂️\n\nthe old text`)
    w.mailbox().modifyThread(thread, { add: [await w.labelId('rework')] })
    await w.sync()
    await w.sync()
  }

  test('takes what stands above the mark as instruction and replaces the draft', async () => {
    const { w, thread } = await drafted()
    await rework(w, thread, 'Please say no')
    const [draft, ...others] = w.drafts(thread)
    assert.equal(others.length, 0)
    assert.match(draft!.text, /Please say no/)
    assert.deepEqual(await w.labelsOn(thread), ['outbox'])
    assert.equal((await w.record(thread))!.reworks, 1)
  })

  test('is done three times; the third goes to Action Required, the fourth is refused', async () => {
    const { w, thread } = await drafted()
    for (const round of [1, 2, 3]) await rework(w, thread, `Change ${round}`)
    assert.equal((await w.record(thread))!.reworks, 3)
    assert.deepEqual(await w.labelsOn(thread), ['action_required'])
    assert.match(w.drafts(thread)[0]!.text, /Change 3/)
    const before = w.drafts(thread)[0]!
    const asked = w.sim.models.counts.calls
    await rework(w, thread, 'Change 4')
    assert.equal((await w.record(thread))!.reworks, 3)
    assert.deepEqual(await w.labelsOn(thread), ['action_required'])
    assert.equal(w.drafts(thread)[0]!.id, before.id)
    assert.match(w.drafts(thread)[0]!.text, /Change 4/)
    assert.equal(w.sim.models.counts.calls, asked)
    assert.ok((await w.eventsOf(thread)).includes('rework-refused'))
  })

  test('of a conversation in which nobody else has written is refused with its reason, and its label goes', async () => {
    const { w, thread } = await drafted()
    w.mailbox().sendDraft(w.drafts(thread)[0]!.id)
    await w.sync()
    w.mailbox().delete(thread)
    await rework(w, thread, '')
    assert.deepEqual(await w.labelsOn(thread), [])
    assert.equal((await w.record(thread))!.problemCode, 'nobody')
  })

  test('of a draft that the user edits while a model is asked is dropped: their words stay, and are the only draft', async () => {
    let act = (): void => {}
    const script: NonNullable<AssistWorldOptions['models']>['script'] = ({ messages }) => {
      if (!messages.some(({ text }) => text.includes('message to sort'))) act()
      return undefined
    }
    const { w, thread } = await drafted({ models: { script } })
    const [before] = w.drafts(thread)
    act = () => {
      act = () => {}
      edit(w, before!, 'I am at it myself.')
    }
    await orderRework(w.place, { account: ANN, thread }, 'Shorter')
    await w.settled()
    await w.sync(ANN, { full: true })
    assert.deepEqual(
      w.drafts(thread).map(({ id, text }) => [id, text]),
      [[before!.id, 'I am at it myself.']],
    )
    const { status, order } = (await w.record(thread))!
    assert.deepEqual([status, order, await w.labelsOn(thread)], ['drafted', null, ['outbox']])
  })

  test('whose new draft is there when the user edits the old one ends with theirs alone', async () => {
    const { w, thread } = await drafted()
    const [before] = w.drafts(thread)
    w.sim.faults.set({ rules: [{ do: 'throttle', methods: ['messages.trash'], retryAfterSeconds: 0.01 }] })
    await orderRework(w.place, { account: ANN, thread }, 'Shorter')
    await until(() => w.drafts(thread).length >= 2)
    edit(w, before!, 'I am at it myself.')
    w.sim.faults.set({ rules: [] })
    await w.settled()
    await w.sync(ANN, { full: true })
    assert.deepEqual(
      w.drafts(thread).map(({ id, text }) => [id, text]),
      [[before!.id, 'I am at it myself.']],
    )
    assert.equal((await w.record(thread))!.status, 'drafted')
  })

  test('asked for on a page is done once', async () => {
    const { w, thread } = await drafted()
    await orderRework(w.place, { account: ANN, thread }, 'Shorter')
    await w.settled()
    assert.equal(w.drafts(thread).length, 1)
    assert.match(w.drafts(thread)[0]!.text, /Shorter/)
  })
})

describe('Needs Response by hand', () => {
  test('turns the user’s notes into a draft, and the notes stay as they are', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Your parcel has shipped. No reply needed.' })
    await w.sync()
    assert.deepEqual(await w.labelsOn(mail.threadId), ['fyi'])
    const notes = w.mailbox().createDraft({
      raw: Buffer.from('To: bob@example.net\r\nSubject: Re\r\n\r\nthank him warmly'),
      threadId: mail.threadId,
    })
    w.mailbox().modifyThread(mail.threadId, { add: [await w.labelId('needs_response')] })
    await w.sync()
    const made = w.drafts(mail.threadId).filter(({ messageId }) => messageId !== notes.message.id)
    assert.equal(made.length, 1)
    assert.match(made[0]!.text, /thank him warmly/)
    assert.ok(!w.mailbox().get(notes.message.id)!.labelIds.has('TRASH'))
    assert.deepEqual(await w.labelsOn(mail.threadId), ['outbox'])
    assert.equal((await w.record(mail.threadId))!.by, 'user')
  })

  test('asked for on the command line works without a label', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    await orderDraft(w.place, { account: ANN, thread: mail.threadId }, 'say thanks')
    await w.settled()
    assert.match(w.drafts(mail.threadId)[0]!.text, /say thanks/)
  })
})

describe('what the user does with labels', () => {
  test('Done takes all other labels and INBOX away', async () => {
    const { w, thread } = await drafted()
    w.mailbox().modifyThread(thread, { add: [await w.labelId('done')] })
    await w.sync()
    assert.deepEqual(await w.labelsOn(thread), ['done'])
    assert.equal((await w.record(thread))!.status, 'archived')
    assert.ok(!w.mailbox().get(thread)!.labelIds.has('INBOX'))
  })

  test('Done that comes with an edit of the draft leaves it known as the user’s', async () => {
    const { w, thread } = await drafted()
    edit(w, w.drafts(thread)[0]!, 'My own words')
    w.mailbox().modifyThread(thread, { add: [await w.labelId('done')] })
    await w.sync()
    const [row] = await w.tables.drafts(ANN, thread)
    assert.deepEqual([row!.state, row!.messageId], ['edited', w.drafts(thread)[0]!.messageId])
    assert.equal((await w.record(thread))!.status, 'archived')
  })

  test('mail that came after Done and before the look stays in the inbox, and is sorted as news', async () => {
    const { w, thread } = await drafted()
    w.mailbox().modifyThread(thread, { add: [await w.labelId('done')] })
    const late = w.arrive({ threadId: thread, text: 'One more thing: could you call me today?' })
    await w.sync()
    assert.ok(w.mailbox().get(late.id)!.labelIds.has('INBOX'))
    assert.ok(!w.mailbox().get(thread)!.labelIds.has('INBOX'))
    assert.equal((await w.record(thread))!.answered, late.id)
    assert.deepEqual(await w.labelsOn(thread), ['outbox'])
  })

  test('mail that came after Done in a conversation that nobody knew stays in the inbox, and is sorted', async () => {
    const w = await begun()
    const first = w.arrive({ text: 'Hello.' })
    w.mailbox().modifyThread(first.threadId, { add: [await w.labelId('done')] })
    const late = w.arrive({ threadId: first.threadId, text: 'Could you call me today?' })
    await w.sync()
    assert.ok(w.mailbox().get(late.id)!.labelIds.has('INBOX'))
    assert.equal((await w.record(first.threadId))!.answered, late.id)
  })

  test('the same where only a scan finds both', async () => {
    const w = await begun()
    const first = w.arrive({ text: 'Hello.' })
    w.mailbox().modifyThread(first.threadId, { add: [await w.labelId('done')] })
    const late = w.arrive({ threadId: first.threadId, text: 'Could you call me today?' })
    w.mailbox().expireHistory()
    await w.sync()
    assert.ok(w.mailbox().get(late.id)!.labelIds.has('INBOX'))
    assert.equal((await w.record(first.threadId))!.answered, late.id)
  })

  test('another category is a correction, which becomes an example and a rule that is off', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    w.mailbox().modifyThread(mail.threadId, { add: [await w.labelId('action_required')] })
    await w.sync()
    assert.deepEqual(await w.labelsOn(mail.threadId), ['action_required'])
    const record = (await w.record(mail.threadId))!
    assert.deepEqual([record.category, record.by], ['action_required', 'user'])
    const [rule] = await w.tables.rules(ANN)
    assert.deepEqual(
      [rule!.match.from, rule!.category, rule!.enabled],
      ['bob@example.net', 'action_required', false],
    )
    assert.equal((await w.tables.examples(ANN))[0]!.category, 'action_required')
  })

  test('a label that is taken away stays away', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    w.mailbox().modifyThread(mail.threadId, { remove: [await w.labelId('fyi')] })
    await w.sync()
    await w.sync(ANN, { full: true })
    assert.deepEqual(await w.labelsOn(mail.threadId), [])
    assert.equal((await w.record(mail.threadId))!.label, null)
  })

  test('a label that is taken away goes with one that says nothing and was put in its place', async () => {
    const w = await begun()
    const { threadId } = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    const [fyi, outbox] = [await w.labelId('fyi'), await w.labelId('outbox')]
    w.mailbox().modifyThread(threadId, { remove: [fyi], add: [outbox] })
    await w.sync()
    assert.deepEqual([await w.labelsOn(threadId), (await w.record(threadId))!.label], [[], null])
  })

  test('a label that is taken away while a rework is under way is no reason not to write it', async () => {
    const w = await begun()
    const { threadId } = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    w.sim.faults.set({ rules: [{ do: 'error', status: 503, service: 'models' }] })
    w.mailbox().modifyThread(threadId, { add: [await w.labelId('rework')] })
    await requestSync(w.place, ANN)
    await until(async () => (await w.record(threadId))!.problemCode === 'model-down')
    w.mailbox().modifyThread(threadId, { remove: [await w.labelId('fyi')] })
    await requestSync(w.place, ANN)
    await until(async () => (await w.eventsOf(threadId)).includes('unlabelled'))
    w.sim.faults.set({ rules: [] })
    w.clock.aheadMs += 600_000
    await w.sync()
    assert.equal((await w.record(threadId))!.status, 'drafted')
    assert.deepEqual([await w.labelsOn(threadId), w.drafts(threadId).length], [['outbox'], 1])
  })

  test('a draft that waited for a model undoes nothing of what the user has labelled since it was not wanted any more', async () => {
    const w = await begun()
    const { threadId: thread } = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    w.sim.faults.set({ rules: [{ do: 'error', status: 503, service: 'models' }] })
    await correctCategory(w.place, { account: ANN, thread }, 'needs_response')
    await until(async () => (await w.record(thread))!.problemCode === 'model-down')
    await correctCategory(w.place, { account: ANN, thread }, 'fyi')
    await until(async () => {
      const { label, isApplied } = (await w.record(thread))!
      return label === 'fyi' && isApplied
    })
    const [fyi, action] = [await w.labelId('fyi'), await w.labelId('action_required')]
    w.mailbox().modifyThread(thread, { remove: [fyi], add: [action] })
    w.clock.aheadMs += 600_000
    await w.settled()
    assert.deepEqual(await w.labelsOn(thread), ['action_required'], 'the next try of the draft')
    await w.sync()
    assert.equal((await w.record(thread))!.category, 'action_required')
  })

  test('a category that is chosen while a draft is on its way to Gmail is what the conversation has in the end', async () => {
    const w = await begun()
    const { threadId: thread } = w.arrive({ text: 'Are you free on Friday?' })
    // The first label is that of sorting, the second that of the draft: it comes after the decision.
    w.sim.faults.set({ rules: [{ do: 'stall', at: 'start', methods: ['threads.modify'], skip: 1, max: 1 }] })
    await requestSync(w.place, ANN)
    await until(() => w.sim.faults.counts()[0]!.struck > 0)
    await correctCategory(w.place, { account: ANN, thread }, 'fyi')
    await until(async () => {
      const { label, isApplied } = (await w.record(thread))!
      return label === 'fyi' && isApplied
    })
    // A stall is counted a moment before it holds.
    const releasing = setInterval(() => w.sim.faults.release(), 5)
    await w.settled().finally(() => clearInterval(releasing))
    await w.sync()
    assert.deepEqual([await w.labelsOn(thread), (await w.record(thread))!.label], [['fyi'], 'fyi'])
    assert.equal(w.drafts(thread).length, 0)
  })

  test('a sorted label can be undone, and its reason is told', async () => {
    const w = await begun()
    const mail = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    const [event] = await w.tables.events(ANN, { thread: mail.threadId })
    assert.equal(event!.what, 'classified')
    assert.notEqual(event!.why, '')
    await undoEvent(w.place, ANN, event!.id)
    await w.settled()
    assert.deepEqual(await w.labelsOn(mail.threadId), [])
    await w.sync(ANN, { full: true })
    assert.deepEqual(await w.labelsOn(mail.threadId), [])
  })
})
