/** What the user wrote, attached, sent or marked is theirs: nothing of it is taken away, overwritten or paid for twice. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { SimOptions } from '../../sim/start.ts'
import {
  correctCategory,
  editDraft,
  orderDraft,
  orderRework,
  reclassify,
  requestSync,
  undoEvent,
} from './actions.ts'
import { ANN, type AssistWorld, type AssistWorldOptions, edit, until } from './assist-world.suite.ts'
import { onboardedWorlds } from './onboarded-worlds.suite.ts'

const begun = onboardedWorlds()

async function drafted(options: AssistWorldOptions = {}): Promise<{ w: AssistWorld; thread: string }> {
  const w = await begun(options)
  const { threadId: thread } = w.arrive({ text: 'Are you free on Friday?' })
  await w.sync()
  assert.equal(w.drafts(thread).length, 1)
  return { w, thread }
}

type Script = NonNullable<NonNullable<SimOptions['models']>['script']>
type Asked = Parameters<Script>[0]

function fieldsOf({ json }: Asked): string[] {
  const schema = (json as { schema?: { properties?: object } } | undefined)?.schema
  return Object.keys(schema?.properties ?? {})
}

function purposeOf(asked: Asked): 'classify' | 'context' | 'draft' {
  const fields = fieldsOf(asked)
  if (fields.includes('category')) return 'classify'
  return fields.includes('queries') ? 'context' : 'draft'
}

/** A model that words every draft differently, and counts what it was asked. */
function numbering(isDown: () => number | undefined = () => undefined): { asked: string[]; script: Script } {
  const asked: string[] = []
  const script: Script = (question) => {
    const purpose = purposeOf(question)
    asked.push(purpose)
    if (purpose !== 'draft') return undefined
    const status = isDown()
    if (status !== undefined) return { status }
    const text = `Answer number ${asked.filter((one) => one === 'draft').length}.`
    return { json: Object.fromEntries(fieldsOf(question).map((name) => [name, text])) }
  }
  return { asked, script }
}

const WITH_FILE = [
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain',
  '',
  'Dear Bob, two hours of work.',
  '--b',
  'Content-Type: application/pdf; name=a.pdf',
  'Content-Disposition: attachment; filename=a.pdf',
  '',
  'X',
  '--b--',
  '',
]

describe('an agent on a conversation that was Done', () => {
  for (const [profile, label] of [
    ['desk', []],
    ['nope', ['action_required']],
  ] as const) {
    test(`leaves new mail in the inbox, and Done goes: ${profile}`, async () => {
      const w = await begun({
        models: { script: ({ tools }) => (tools.length > 0 ? { text: 'Seen.' } : undefined) },
        accountSettings: {
          routing: [{ name: 'shop', match: { sender_domain: 'shop.example' }, profile }],
          profiles: [{ name: 'desk', tools: ['escalate'] }],
        } as never,
      })
      const from = 'Eve <eve@shop.example>'
      const { threadId } = w.arrive({ from, subject: 'Parcel', text: 'Hello' })
      await w.sync()
      w.mailbox().modifyThread(threadId, { add: [await w.labelId('done')] })
      await w.sync()
      const late = w.arrive({ from, subject: 'Re: Parcel', text: 'My lawyer will call you.', threadId })
      await w.sync()
      assert.ok(w.mailbox().get(late.id)!.labelIds.has('INBOX'))
      assert.deepEqual(await w.labelsOn(threadId), label)
    })
  }
})

describe('a draft of the user’s own', () => {
  for (const role of ['needs_response', 'rework'] as const) {
    test(`with an attachment stays where ${role} asks for an answer`, async () => {
      const w = await begun()
      const mail = w.arrive({ text: 'Your parcel has shipped.' })
      await w.sync()
      const raw = ['From: ann@example.com', 'To: bob@example.net', 'Subject: Re: x', ...WITH_FILE].join(
        '\r\n',
      )
      const own = w.mailbox().createDraft({ raw: Buffer.from(raw), threadId: mail.threadId })
      w.mailbox().modifyThread(mail.threadId, { add: [await w.labelId(role)] })
      await w.sync()
      assert.ok(!w.mailbox().get(own.message.id)!.labelIds.has('TRASH'))
      assert.equal(w.drafts(mail.threadId).length, 2)
    })
  }

  test('that was ours and got an attachment stays when it is reworked', async () => {
    const { w, thread } = await drafted()
    const [draft] = w.drafts(thread)
    const raw = ['From: ann@example.com', 'To: bob@example.net', 'Subject: Re: x', ...WITH_FILE].join('\r\n')
    w.mailbox().updateDraft(draft!.id, { raw: Buffer.from(raw) })
    w.mailbox().modifyThread(thread, { add: [await w.labelId('rework')] })
    await w.sync()
    assert.ok(w.drafts(thread).some((one) => one.raw.includes('a.pdf')))
    assert.equal(w.drafts(thread).length, 2)
  })
})

describe('a rework that waits for a model', () => {
  test('ends without a draft where the answer was sent meanwhile', async () => {
    let isDown = false
    const { script } = numbering(() => (isDown ? 503 : undefined))
    const { w, thread } = await drafted({ models: { script } })
    const [draft] = w.drafts(thread)
    isDown = true
    w.mailbox().modifyThread(thread, { add: [await w.labelId('rework')] })
    await requestSync(w.place, ANN)
    await until(async () => (await w.record(thread))!.problemCode === 'model-down')
    w.mailbox().sendDraft(draft!.id)
    isDown = false
    w.clock.aheadMs += 600_000
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'sent')
    assert.deepEqual(await w.labelsOn(thread), [])
    const all = w.mailbox().thread(thread)!.messages
    assert.deepEqual(
      all.map(({ labelIds }) => ['DRAFT', 'TRASH'].filter((label) => labelIds.has(label))),
      [[], []],
    )
  })
})

describe('saving a text on the page', () => {
  for (const [what, head] of [
    ['an attachment', ['To: bob@example.net', ...WITH_FILE]],
    ['Cc', ['To: bob@example.net', 'Cc: boss@example.com', '', 'Mine.']],
    ['Bcc', ['To: bob@example.net', 'Bcc: boss@example.com', '', 'Mine.']],
    ['a further recipient', ['To: bob@example.net, carol@example.net', '', 'Mine.']],
  ] as const) {
    test(`is refused where the draft got ${what} in Gmail`, async () => {
      const { w, thread } = await drafted()
      const [draft] = w.drafts(thread)
      const subject = /^Subject: .*$/m.exec(draft!.raw)![0].trim()
      const raw = ['From: ann@example.com', subject, ...head].join('\r\n')
      w.mailbox().updateDraft(draft!.id, { raw: Buffer.from(raw) })
      await w.sync()
      const saved = editDraft(w.place, { account: ANN, thread }, 'Another.', new AbortController().signal)
      await assert.rejects(saved, { code: 'draft-changed' })
      assert.equal(w.drafts(thread)[0]!.raw, raw)
    })
  }

  test('works where only the text was changed in Gmail', async () => {
    const { w, thread } = await drafted()
    edit(w, w.drafts(thread)[0]!, 'Mine.')
    await w.sync()
    await editDraft(w.place, { account: ANN, thread }, 'Mine, again.', new AbortController().signal)
    assert.match(w.drafts(thread)[0]!.text, /Mine, again\./)
  })
})

describe('a draft that is asked for again', () => {
  test('by sorting to the same end stays as it is, and no model is asked for it', async () => {
    const { asked, script } = numbering()
    const { w, thread } = await drafted({ models: { script } })
    const [before] = w.drafts(thread)
    await reclassify(w.place, { account: ANN, thread })
    await w.settled()
    assert.deepEqual(w.drafts(thread), [before])
    const [row] = await w.tables.drafts(ANN, thread)
    assert.equal(row!.state, 'live')
    assert.match(before!.text, new RegExp(row!.text))
    assert.equal((await w.record(thread))!.status, 'drafted')
    assert.equal(asked.filter((purpose) => purpose === 'draft').length, 1)
  })

  test('by an order is another one each time, asked of the model once, and the only one', async () => {
    const { asked, script } = numbering()
    const { w, thread } = await drafted({ models: { script } })
    for (const round of [2, 3]) {
      await orderDraft(w.place, { account: ANN, thread })
      await w.settled()
      assert.deepEqual(
        w.drafts(thread).map(({ text }) => /number \d/.exec(text)![0]),
        [`number ${round}`],
      )
      assert.equal(asked.filter((purpose) => purpose === 'draft').length, round)
    }
    await correctCategory(w.place, { account: ANN, thread }, 'fyi')
    await w.settled()
    await correctCategory(w.place, { account: ANN, thread }, 'needs_response')
    await w.settled()
    assert.equal(asked.filter((purpose) => purpose === 'draft').length, 4)
    assert.equal(w.drafts(thread).length, 1)
  })
})

describe('what a draft costs', () => {
  const draftsIn = (asked: readonly string[]): number => asked.filter((one) => one === 'draft').length
  const contextsIn = (asked: readonly string[]): number => asked.filter((one) => one === 'context').length

  test('its context is asked for once, however often it waits for a model', async () => {
    let isDown = true
    const { asked, script } = numbering(() => (isDown ? 503 : undefined))
    const w = await begun({ models: { script } })
    const { threadId } = w.arrive({ text: 'Are you free on Friday?' })
    await requestSync(w.place, ANN)
    for (let tries = 1; tries <= 3; tries++) {
      const before = draftsIn(asked)
      await until(async () => draftsIn(asked) > before || (tries === 1 && before > 0))
      await until(async () => (await w.jobs('assist.draft')).every(({ state }) => state !== 'claimed'))
      w.clock.aheadMs += 400_000
      await requestSync(w.place, ANN)
    }
    isDown = false
    w.clock.aheadMs += 400_000
    await w.sync()
    assert.equal((await w.record(threadId))!.status, 'drafted')
    assert.equal(contextsIn(asked), 1)
  })

  test('a model that refuses drafts is asked for no context again by later scans', async () => {
    const { asked, script } = numbering(() => 400)
    const w = await begun({ models: { script } })
    w.arrive({ text: 'Are you free on Friday?' })
    await w.sync()
    await w.sync(ANN, { full: true })
    await w.sync(ANN, { full: true })
    assert.equal(contextsIn(asked), 1)
  })

  test('where one question costs more than a day may, the draft ends with its reason and does not wait', async () => {
    const w = await begun({ dayCost: 0.000001, settings: { modelWaitMs: 0 } })
    const { threadId: thread } = w.arrive({ text: 'Are you free on Friday?' })
    await w.sync()
    await orderDraft(w.place, { account: ANN, thread })
    await w.settled()
    assert.equal((await w.record(thread))!.problemCode, 'model-budget')
    assert.ok((await w.jobs('assist.draft')).every(({ state }) => state === 'done'))
  })
})

describe('taking back', () => {
  async function undo(w: AssistWorld, thread: string, what: string): Promise<void> {
    const event = (await w.tables.events(ANN, { thread })).find((one) => one.what === what)
    await undoEvent(w.place, ANN, event!.id)
    await w.settled()
    await w.sync()
    await w.sync(ANN, { full: true })
  }

  test('Done puts the mail back into the inbox', async () => {
    const { w, thread } = await drafted()
    w.mailbox().modifyThread(thread, { add: [await w.labelId('done')] })
    await w.sync()
    assert.ok(!w.mailbox().get(thread)!.labelIds.has('INBOX'))
    await undo(w, thread, 'done')
    assert.ok(w.mailbox().get(thread)!.labelIds.has('INBOX'))
    assert.deepEqual(await w.labelsOn(thread), ['outbox'])
    assert.equal((await w.record(thread))!.status, 'drafted')
  })

  test('a correction that trashed the draft writes one again', async () => {
    const { w, thread } = await drafted()
    await correctCategory(w.place, { account: ANN, thread }, 'fyi')
    await w.settled()
    assert.equal(w.drafts(thread).length, 0)
    await undo(w, thread, 'corrected')
    assert.equal(w.drafts(thread).length, 1)
    assert.equal((await w.record(thread))!.status, 'drafted')
    assert.deepEqual(await w.labelsOn(thread), ['outbox'])
  })
})

test('a conversation that is thrown away before a decision about it has reached Gmail is looked at for that, and then no more', async () => {
  const { w, thread } = await drafted()
  w.sim.faults.set({ rules: [{ do: 'error', status: 429, methods: ['threads.get'], max: 3 }] })
  await correctCategory(w.place, { account: ANN, thread }, 'action_required')
  w.mailbox().trashThread(thread)
  await w.settled()
  const looks = async (): Promise<number> => (await w.jobs('assist.cleanup')).length
  const before = await looks()
  await w.sync(ANN, { full: true })
  assert.equal(await looks(), before)
  for (const { id, labelIds } of w.mailbox().thread(thread)!.messages) {
    if (!labelIds.has('DRAFT')) w.mailbox().untrash(id)
  }
  await w.sync(ANN, { full: true })
  const record = (await w.record(thread))!
  assert.deepEqual([record.category, await w.labelsOn(thread)], ['action_required', ['action_required']])
})

for (const role of ['payment_request', 'needs_response', 'rework'] as const) {
  test(`a conversation in spam whose draft the user gave ${role} is looked at for that, and then no more`, async () => {
    const { w, thread } = await drafted()
    const { messageId } = w.drafts(thread)[0]!
    w.mailbox().modify(thread, { add: ['SPAM'] })
    await w.sync(ANN, { full: true })
    w.mailbox().modify(messageId, { add: [await w.labelId(role)] })
    await w.sync(ANN, { full: true })
    const looks = async (): Promise<number> =>
      (await w.jobs()).filter(({ kind }) => kind !== 'assist.sync').length
    const before = await looks()
    await w.sync(ANN, { full: true })
    assert.equal(await looks(), before)
  })
}

describe('a conversation that comes back', () => {
  type Place = 'trash' | 'spam'

  function putAway(w: AssistWorld, thread: string, place: Place): void {
    if (place === 'trash') w.mailbox().trashThread(thread)
    else w.mailbox().modifyThread(thread, { add: ['SPAM'] })
  }

  async function comesBack(w: AssistWorld, thread: string, place: Place, full: boolean): Promise<void> {
    w.mailbox().modifyThread(thread, { remove: [place.toUpperCase()], add: ['INBOX'] })
    await w.sync(ANN, { full })
  }

  for (const place of ['trash', 'spam'] as const) {
    test(`from the ${place} has its label again, which is no word of the user`, async () => {
      const w = await begun()
      const { threadId } = w.arrive({ text: 'Your parcel has shipped.' })
      await w.sync()
      putAway(w, threadId, place)
      await w.sync(ANN, { full: true })
      assert.equal((await w.record(threadId))!.label, null)
      await comesBack(w, threadId, place, true)
      const { label, by } = (await w.record(threadId))!
      assert.deepEqual([label, by, await w.labelsOn(threadId)], ['fyi', 'model', ['fyi']])
      assert.deepEqual([await w.tables.examples(ANN), await w.tables.rules(ANN)], [[], []])
      assert.deepEqual(await w.eventsOf(threadId), ['classified'])
    })
  }

  for (const full of [true, false]) {
    test(`from the trash with its draft is as it was, and no model is asked: by ${full ? 'a scan' : 'history'}`, async () => {
      const { asked, script } = numbering()
      const { w, thread } = await drafted({ models: { script } })
      const before = w.drafts(thread)
      const calls = asked.length
      w.mailbox().trashThread(thread)
      await w.sync(ANN, { full })
      assert.equal((await w.record(thread))!.status, 'discarded')
      await comesBack(w, thread, 'trash', full)
      const { status, label } = (await w.record(thread))!
      assert.deepEqual([status, label, await w.labelsOn(thread)], ['drafted', 'outbox', ['outbox']])
      assert.deepEqual([w.drafts(thread), asked.length], [before, calls])
      assert.ok(!(await w.eventsOf(thread)).includes('asked'))
      // It is known as ours: an answer that is asked for takes its place.
      await orderDraft(w.place, { account: ANN, thread })
      await w.settled()
      assert.equal(w.drafts(thread).length, 1)
    })

    test(`from the trash without its draft waits for its user, and no model is asked: by ${full ? 'a scan' : 'history'}`, async () => {
      const { asked, script } = numbering()
      const { w, thread } = await drafted({ models: { script } })
      const calls = asked.length
      w.mailbox().trashThread(thread)
      await w.sync(ANN, { full })
      for (const { id, labelIds } of w.mailbox().thread(thread)!.messages) {
        if (!labelIds.has('DRAFT')) w.mailbox().untrash(id)
      }
      await w.sync(ANN, { full })
      const { status, label } = (await w.record(thread))!
      assert.deepEqual([status, label], ['discarded', 'needs_response'])
      assert.deepEqual([await w.labelsOn(thread), asked.length], [['needs_response'], calls])
      // Taken off, and set by the user: that is the wish.
      const id = await w.labelId('needs_response')
      w.mailbox().modifyThread(thread, { remove: [id] })
      await w.sync(ANN, { full })
      w.mailbox().modifyThread(thread, { add: [id] })
      await w.sync(ANN, { full })
      assert.deepEqual([(await w.record(thread))!.status, w.drafts(thread).length], ['drafted', 1])
    })
  }

  for (const full of [true, false]) {
    test(`with its draft after new mail got another has the newer one: by ${full ? 'a scan' : 'history'}`, async () => {
      const { script } = numbering()
      const { w, thread } = await drafted({ models: { script } })
      w.mailbox().trashThread(thread)
      await w.sync(ANN, { full })
      w.arrive({ threadId: thread, text: 'Could you answer, please?' })
      await w.sync(ANN, { full })
      await comesBack(w, thread, 'trash', full)
      assert.deepEqual(
        w.drafts(thread).map(({ text }) => /number \d/.exec(text)![0]),
        ['number 2'],
      )
      const { status, label } = (await w.record(thread))!
      assert.deepEqual([status, label, await w.labelsOn(thread)], ['drafted', 'outbox', ['outbox']])
    })
  }

  test('with words of the user in its draft keeps them, also where new mail wants another', async () => {
    const { w, thread } = await drafted()
    edit(w, w.drafts(thread)[0]!, 'Half an answer')
    await w.sync()
    w.mailbox().trashThread(thread)
    await w.sync(ANN, { full: true })
    await comesBack(w, thread, 'trash', true)
    w.arrive({ threadId: thread, text: 'Could you answer, please?' })
    await w.sync()
    assert.deepEqual(
      w.drafts(thread).map(({ text }) => text),
      ['Half an answer'],
    )
  })

  test('with words that the user wrote on the page keeps them where no answer is wanted any more', async () => {
    const { w, thread } = await drafted()
    await editDraft(w.place, { account: ANN, thread }, 'Half an answer', new AbortController().signal)
    w.mailbox().trashThread(thread)
    await w.sync(ANN, { full: true })
    await comesBack(w, thread, 'trash', true)
    await correctCategory(w.place, { account: ANN, thread }, 'fyi')
    await w.settled()
    assert.match(w.drafts(thread)[0]!.text, /Half an answer/)
  })

  test('with a draft that the user only gave another recipient keeps it where no answer is wanted any more', async () => {
    const { w, thread } = await drafted()
    const { id, raw } = w.drafts(thread)[0]!
    const copied = raw.replace(/^To: /m, 'Cc: boss@example.com\r\nTo: ')
    w.mailbox().updateDraft(id, { raw: Buffer.from(copied) })
    await w.sync()
    const { messageId } = w.drafts(thread)[0]!
    w.mailbox().trash(messageId)
    await w.sync()
    w.mailbox().untrash(messageId)
    await w.sync()
    await correctCategory(w.place, { account: ANN, thread }, 'fyi')
    await w.settled()
    assert.deepEqual(
      w.drafts(thread).map((one) => one.raw),
      [copied],
    )
  })

  for (const full of [true, false]) {
    test(`with two drafts of ours has the newer one: by ${full ? 'a scan' : 'history'}`, async () => {
      const { script } = numbering()
      const { w, thread } = await drafted({ models: { script } })
      w.mailbox().trash(w.drafts(thread)[0]!.messageId)
      await w.sync(ANN, { full })
      w.clock.aheadMs += 1_000
      await orderDraft(w.place, { account: ANN, thread })
      await w.settled()
      w.mailbox().trashThread(thread)
      await w.sync(ANN, { full })
      assert.equal((await w.record(thread))!.status, 'discarded')
      await comesBack(w, thread, 'trash', full)
      assert.deepEqual(
        w.drafts(thread).map(({ text }) => /number \d/.exec(text)![0]),
        ['number 2'],
      )
      const { status, draftKey } = (await w.record(thread))!
      const live = (await w.tables.drafts(ANN, thread)).filter(({ state }) => state === 'live')
      assert.deepEqual([status, live.map(({ key }) => key)], ['drafted', [draftKey]])
    })

    for (const where of ['in the trash', 'as it is taken out'] as const) {
      test(`with Needs Response, which the user set ${where}, gets its answer: by ${full ? 'a scan' : 'history'}`, async () => {
        const w = await begun()
        const { threadId } = w.arrive({ text: 'Your parcel has shipped.' })
        await w.sync()
        putAway(w, threadId, 'trash')
        await w.sync(ANN, { full: true })
        w.mailbox().modifyThread(threadId, { add: [await w.labelId('needs_response')] })
        if (where === 'in the trash') await w.sync(ANN, { full })
        await comesBack(w, threadId, 'trash', full)
        const { status, category, by } = (await w.record(threadId))!
        assert.deepEqual([status, category, by], ['drafted', 'needs_response', 'user'])
        assert.deepEqual([await w.labelsOn(threadId), w.drafts(threadId).length], [['outbox'], 1])
        assert.ok((await w.eventsOf(threadId)).includes('asked'))
      })
    }

    test(`and is answered with its draft before the next look has no label: by ${full ? 'a scan' : 'history'}`, async () => {
      const { w, thread } = await drafted()
      const [draft] = w.drafts(thread)
      w.mailbox().trashThread(thread)
      await w.sync(ANN, { full })
      w.mailbox().modifyThread(thread, { remove: ['TRASH'], add: ['INBOX'] })
      w.mailbox().sendDraft(draft!.id)
      await w.sync(ANN, { full })
      await w.sync(ANN, { full: true })
      const { status, label } = (await w.record(thread))!
      assert.deepEqual([status, label, await w.labelsOn(thread)], ['sent', null, []])
    })
  }

  test('with its draft, and is sorted again before the next look, keeps it, and no model is asked for another', async () => {
    const { asked, script } = numbering()
    const { w, thread } = await drafted({ models: { script } })
    const before = w.drafts(thread)
    w.mailbox().trash(before[0]!.messageId)
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'discarded')
    w.mailbox().untrash(before[0]!.messageId)
    await reclassify(w.place, { account: ANN, thread })
    await w.settled()
    assert.deepEqual([w.drafts(thread), asked.filter((one) => one === 'draft').length], [before, 1])
    const [row, ...rows] = await w.tables.drafts(ANN, thread)
    assert.deepEqual([row!.state, rows, (await w.record(thread))!.status], ['live', [], 'drafted'])
  })

  test('and was given to its user after the last rework is no correction', async () => {
    const { w, thread } = await drafted()
    for (let n = 0; n < 3; n++) {
      w.mailbox().modifyThread(thread, { add: [await w.labelId('rework')] })
      await w.sync()
    }
    assert.deepEqual(await w.labelsOn(thread), ['action_required'])
    w.mailbox().trashThread(thread)
    await w.sync(ANN, { full: true })
    await comesBack(w, thread, 'trash', true)
    const { label, category, by } = (await w.record(thread))!
    assert.deepEqual([label, category, by], ['action_required', 'needs_response', 'model'])
    assert.deepEqual([await w.labelsOn(thread), await w.tables.examples(ANN)], [['action_required'], []])
    assert.ok(!(await w.eventsOf(thread)).includes('corrected'))
    // What each rework has put away is not back with it.
    const live = (await w.tables.drafts(ANN, thread)).filter(({ state }) => state === 'live')
    assert.deepEqual(
      w.drafts(thread).map(({ messageId }) => messageId),
      live.map(({ messageId }) => messageId),
    )
    assert.equal(live.length, 1)
  })

  for (const isSeen of [false, true]) {
    const when = isSeen ? 'after it was seen there' : 'before anybody has looked'
    test(`with drafts that we had replaced has the one that took their place: ${when}`, async () => {
      const { w, thread } = await drafted()
      await orderRework(w.place, { account: ANN, thread }, 'Shorter')
      await w.settled()
      const before = w.drafts(thread)
      w.mailbox().trashThread(thread)
      if (isSeen) await w.sync()
      w.mailbox().untrashThread(thread)
      assert.equal(w.drafts(thread).length, 2)
      await w.sync()
      assert.deepEqual(w.drafts(thread), before)
      assert.equal((await w.record(thread))!.status, 'drafted')
    })
  }

  test('where no answer is wanted has one of the drafts that we had put away at most', async () => {
    const { w, thread } = await drafted()
    await orderRework(w.place, { account: ANN, thread }, 'Shorter')
    await w.settled()
    await correctCategory(w.place, { account: ANN, thread }, 'fyi')
    await w.settled()
    w.mailbox().trashThread(thread)
    await w.sync()
    w.mailbox().untrashThread(thread)
    assert.equal(w.drafts(thread).length, 2)
    await w.sync()
    assert.equal(w.drafts(thread).length, 1)
  })

  test('only by its draft is found by a scan, also where no other draft is open', async () => {
    const { w, thread } = await drafted()
    const { messageId } = w.drafts(thread)[0]!
    w.mailbox().trash(messageId)
    await w.sync()
    assert.equal((await w.record(thread))!.status, 'discarded')
    w.mailbox().untrash(messageId)
    await w.sync(ANN, { full: true })
    assert.equal((await w.record(thread))!.status, 'drafted')
  })

  for (const place of ['trash', 'spam'] as const) {
    test(`is on the board again, and was not while it was in the ${place}`, async () => {
      const w = await begun()
      const { threadId } = w.arrive({ text: 'Your parcel has shipped.' })
      const shown = async (): Promise<unknown> => [
        (await w.tables.list({ accounts: [ANN], limit: 10 })).map(({ thread }) => thread),
        (await w.tables.counts(ANN)).map(({ category, count }) => [category, count]),
      ]
      await w.sync()
      assert.deepEqual(await shown(), [[threadId], [['fyi', 1]]])
      putAway(w, threadId, place)
      await w.sync()
      assert.deepEqual(await shown(), [[], []])
      await comesBack(w, threadId, place, false)
      assert.deepEqual(await shown(), [[threadId], [['fyi', 1]]])
    })
  }

  test('only by a draft that we had replaced, which the user wants, leaves it to them', async () => {
    const { w, thread } = await drafted()
    const { messageId } = w.drafts(thread)[0]!
    await orderRework(w.place, { account: ANN, thread }, 'Shorter')
    await w.settled()
    w.mailbox().untrash(messageId)
    await w.sync()
    await w.sync(ANN, { full: true })
    assert.equal(w.drafts(thread).length, 2)
  })

  test('into the inbox and is Done stays there', async () => {
    const { w, thread } = await drafted()
    w.mailbox().modifyThread(thread, { add: [await w.labelId('done')] })
    await w.sync()
    const before = await w.eventsOf(thread)
    w.mailbox().trashThread(thread)
    await w.sync(ANN, { full: true })
    await comesBack(w, thread, 'trash', true)
    assert.deepEqual(
      [(await w.record(thread))!.label, await w.eventsOf(thread)],
      ['done', [...before, 'draft-back']],
    )
    assert.ok(w.mailbox().get(thread)!.labelIds.has('INBOX'))
  })
})

describe('new mail', () => {
  for (const role of ['done', 'fyi'] as const) {
    test(`is sorted where an edited draft was left behind and ${role} was set`, async () => {
      const { w, thread } = await drafted()
      edit(w, w.drafts(thread)[0]!, 'Half an answer')
      await w.sync()
      w.mailbox().modifyThread(thread, { add: [await w.labelId(role)] })
      await w.sync()
      const late = w.arrive({ threadId: thread, text: 'Could you call me on Monday?' })
      await w.sync()
      const record = (await w.record(thread))!
      assert.deepEqual([record.answered, record.category], [late.id, 'needs_response'])
      assert.ok(w.mailbox().get(late.id)!.labelIds.has('INBOX'))
      assert.match(w.drafts(thread)[0]!.text, /Half an answer/)
    })
  }

  for (const isKnown of [false, true]) {
    const where = isKnown ? 'in a conversation that was sorted' : 'in a new conversation'
    test(`in the inbox is sorted ${where}, also where a filter kept a later message out of it`, async () => {
      const w = await begun()
      const atMs = w.clock.now()
      const labelIds = isKnown ? ['INBOX'] : ['UNREAD']
      const { threadId } = w.arrive({ text: 'Your parcel has shipped.', labelIds, atMs: atMs - 30_000 })
      await w.sync()
      const mail = w.arrive({ threadId, text: 'Can you call me today, please?', atMs: atMs - 20_000 })
      w.arrive({ threadId, text: 'Ticket updated.', labelIds: ['UNREAD'], atMs: atMs - 10_000 })
      await w.sync()
      assert.equal((await w.record(threadId))!.category, 'needs_response')
      const row = (await w.tables.messages(ANN, threadId)).find(({ message }) => message === mail.id)
      assert.equal(row!.state, 'classified')
    })
  }
})

describe('a conversation that was thrown away before it was sorted, and comes back', () => {
  for (const isOnlyOwn of [false, true]) {
    test(`counts as what came to the inbox, and not as what its user wrote: ${isOnlyOwn ? 'alone' : 'with mail of others'}`, async () => {
      const w = await begun()
      const raw = Buffer.from(`From: ${ANN}\r\nTo: bob@example.net\r\nSubject: Offer\r\n\r\nHere it is.`)
      const { threadId } = isOnlyOwn
        ? w.mailbox().send({ raw })
        : w.arrive({ text: 'Your parcel has shipped.' })
      if (!isOnlyOwn) w.mailbox().send({ raw, threadId })
      w.mailbox().createDraft({ raw, threadId })
      w.mailbox().trashThread(threadId)
      await w.sync()
      assert.equal((await w.record(threadId))?.category, null)
      w.mailbox().untrashThread(threadId)
      await w.sync()
      const { inbox, classified, skipped, onTheirWay } = await w.tables.balance(ANN)
      const mails = isOnlyOwn ? 0 : 1
      assert.deepEqual([inbox, classified, skipped, onTheirWay], [mails, mails, 0, 0])
    })
  }
})
