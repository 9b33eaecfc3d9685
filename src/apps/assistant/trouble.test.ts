/** Models that are down, over their budget or talk nonsense; histories that expire; pushes that come early; agents. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { accountSettings, streamOf } from './account.ts'
import { orderDraft, requestSync, switchAccount } from './actions.ts'
import { ANN, type AssistWorld, type AssistWorldOptions, bodyOf } from './assist-world.suite.ts'
import { briefingOf } from './briefing.ts'
import { settingsFromToml, settingsToToml } from './config-import.ts'
import { createRule, replayRule } from './learning.ts'
import { onboardedWorlds } from './onboarded-worlds.suite.ts'
import { assistStatus, lookAtAssist, undraftedText } from './status.ts'
import { isLaterHistory } from './store/accounts.ts'

const begun = onboardedWorlds()

const signal = new AbortController().signal

describe('a model', () => {
  test('that is down for longer than is waited is replaced by the local classifier, which says so; no draft is made', async () => {
    const w = await begun({ settings: { modelWaitMs: 0 } })
    w.sim.faults.set({ rules: [{ do: 'error', status: 503, service: 'models' }] })
    const mail = w.arrive({ text: 'Are you free on Friday?' })
    await requestSync(w.place, ANN)
    const record = await until(w, async () => {
      const one = await w.record(mail.threadId)
      return one?.isApplied && one.category !== null ? one : undefined
    })
    assert.equal(record.by, 'local')
    assert.match(record.reasoning, /^Sorted without a language model, by its words[^(]*\. \((?!.*without)/)
    assert.deepEqual(w.drafts(mail.threadId), [])
  })

  test('that is down for a moment is waited for, and its answer counts', async () => {
    const w = await begun()
    w.sim.faults.set({ rules: [{ do: 'error', status: 503, service: 'models', max: 1 }] })
    const mail = w.arrive({ text: 'Are you free on Friday?' })
    await w.sync()
    const record = (await w.record(mail.threadId))!
    assert.equal(record.by, 'model')
    assert.equal(record.status, 'drafted')
    assert.equal((await w.tables.account(ANN))!.problemCode, null)
  })

  test('that is too slow is no answer: it is asked again, and the call that nobody waited for is counted', async () => {
    const w = await begun({ modelSeconds: 1 })
    w.sim.faults.set({ rules: [{ do: 'stall', ms: null, service: 'models', max: 2 }] })
    const { threadId } = w.arrive({ text: 'Are you free on Friday?' })
    await w.sync()
    const record = (await w.record(threadId))!
    assert.deepEqual([record.by, record.status, record.problem], ['model', 'drafted', null])
    const calls = await w.worker.calls.calls({ accounts: [ANN], threadId, limit: 10 })
    assert.equal(calls.filter(({ code }) => code === 'model-down').length, 2)
  })

  test('that talks nonsense leaves mail to the user, with little confidence, and no nonsense in a draft', async () => {
    const w = await begun()
    w.sim.models.quirks.isNonsense = true
    const mail = w.arrive({ text: 'Are you free on Friday?' })
    await unusableUntil(w, mail.threadId, /try 2 of 3/)
    const record = (await w.record(mail.threadId))!
    assert.deepEqual([record.category, record.by], ['needs_response', 'default'])
    assert.ok(record.confidence < 0.5)
    assert.equal(record.problemCode, 'model-unusable')
    assert.deepEqual(w.drafts(mail.threadId), [])
    assert.deepEqual(await w.labelsOn(mail.threadId), ['needs_response'])
    const [status] = await assistStatus(w.worker.ledger, w.tables, [ANN])
    assert.match(undraftedText(status!), /^1 draft is not written: the model gave no answer .* asked again/)
  })

  test('that talks nonsense is asked for a draft three times, and its fourth answer is a draft where somebody asks', async () => {
    const w = await begun()
    w.sim.models.quirks.isNonsense = true
    const { threadId } = w.arrive({ text: 'Are you free on Friday?' })
    for (const told of [/try 2 of 3/, /try 3 of 3/, /3 times in a row\. .* when you ask/]) {
      await unusableUntil(w, threadId, told)
      w.clock.aheadMs += 3_600_000
    }
    await w.sync()
    await w.sync()
    const asked = draftsAsked(w)
    assert.equal(asked, 6, 'three tries, each with one word of what was wrong')
    assert.deepEqual(await w.eventsOf(threadId), ['classified', 'draft-failed'])
    w.sim.models.quirks.isNonsense = false
    await w.sync(ANN, { full: true })
    assert.equal((await w.record(threadId))!.status, 'drafted')
    assert.equal(w.drafts(threadId).length, 1)
  })

  test('that has talked nonsense is asked at once where somebody asks, or new mail comes, and the later try is over', async () => {
    const w = await begun()
    w.sim.models.quirks.isNonsense = true
    const threads = [w.arrive({ text: 'Are you free?' }), w.arrive({ text: 'Are you there?' })]
    for (const { threadId } of threads) await unusableUntil(w, threadId, /try 2 of 3/)
    w.sim.models.quirks.isNonsense = false
    await orderDraft(w.place, { account: ANN, thread: threads[0]!.threadId })
    w.arrive({ threadId: threads[1]!.threadId, text: 'Could you answer?' })
    await requestSync(w.place, ANN)
    for (const { threadId } of threads) {
      await until(w, async () => ((await w.record(threadId))!.status === 'drafted' ? true : undefined))
    }
    const asked = draftsAsked(w)
    w.clock.aheadMs += 3_600_000
    await w.sync()
    assert.equal(draftsAsked(w), asked)
    for (const { threadId } of threads) assert.equal(w.drafts(threadId).length, 1)
  })

  test('that gave a draft at its second try is asked no more where a crash comes before that is in Gmail: the draft is there', async () => {
    const w = await begun()
    w.sim.models.quirks.isNonsense = true
    const { threadId } = w.arrive({ text: 'Are you free on Friday?' })
    await unusableUntil(w, threadId, /try 2 of 3/)
    w.sim.models.quirks.isNonsense = false
    const asked = draftsAsked(w)
    w.sim.faults.set({ rules: [{ do: 'reset', when: 'before', methods: ['drafts.create'], max: 1 }] })
    w.clock.aheadMs += 3_600_000
    await w.settled()
    assert.equal(w.drafts(threadId).length, 1)
    assert.deepEqual(await w.labelsOn(threadId), ['outbox'])
    assert.equal((await w.record(threadId))!.status, 'drafted')
    assert.equal(draftsAsked(w), asked + 1)
  })

  test('that is asked again by a sync is not paid for the same draft by the later try that is due meanwhile', async () => {
    const w = await begun()
    w.sim.models.quirks.isNonsense = true
    const { threadId } = w.arrive({ text: 'Are you free on Friday?' })
    await unusableUntil(w, threadId, /try 2 of 3/)
    w.sim.models.quirks.isNonsense = false
    const asked = draftsAsked(w)
    w.sim.faults.set({ rules: [{ do: 'stall', at: 'middle', service: 'models', max: 1 }] })
    await requestSync(w.place, ANN, { full: true })
    await until(w, async () => {
      const [call] = await w.worker.calls.calls({ accounts: [ANN], limit: 1 })
      return call?.outcome === 'open' ? true : undefined
    })
    w.clock.aheadMs += 3_600_000
    await until(w, async () => {
      const later = (await w.jobs('assist.draft')).find(({ key }) => key?.endsWith('again 1'))
      return later?.state === 'done' ? true : undefined
    })
    w.sim.faults.release()
    await w.settled()
    assert.equal(draftsAsked(w), asked + 1)
    assert.equal(w.drafts(threadId).length, 1)
    assert.equal((await w.record(threadId))!.status, 'drafted')
  })

  test('that is not configured leaves sorting to the local classifier, and drafts wait with a reason', async () => {
    const w = await begun({ provider: 'off' })
    const mail = w.arrive({ text: 'Could you tell me when you have time for a call on Friday?' })
    await w.sync()
    const record = (await w.record(mail.threadId))!
    assert.equal(record.by, 'local')
    assert.equal((await w.tables.account(ANN))!.problemCode, 'no-model')
    if (record.category === 'needs_response') assert.equal(record.problemCode, 'no-model')
    assert.deepEqual(w.drafts(mail.threadId), [])
  })
})

describe('a history', () => {
  test('that is gone leads to a scan that finds new mail, labels of the user and their Done', async () => {
    const w = await begun()
    const first = w.arrive({ text: 'Your parcel has shipped.' })
    await w.sync()
    w.mailbox().modifyThread(first.threadId, { add: [await w.labelId('done')] })
    const second = w.arrive({ text: 'Are you free?' })
    w.mailbox().expireHistory()
    await w.sync()
    assert.equal((await w.record(first.threadId))!.status, 'archived')
    assert.equal((await w.record(second.threadId))!.status, 'drafted')
  })

  test('that is gone does not hide mail that got a label before anybody saw it', async () => {
    const w = await begun()
    const [sorted, odd] = [
      w.arrive({ text: 'Are you free?' }),
      w.arrive({ text: 'Your parcel has shipped.' }),
    ]
    w.mailbox().modifyThread(sorted.threadId, { add: [await w.labelId('waiting')] })
    w.mailbox().modifyThread(odd.threadId, { add: [await w.labelId('outbox')] })
    const asked = w.arrive({ text: 'Your parcel has shipped.' })
    w.mailbox().modifyThread(asked.threadId, { add: [await w.labelId('needs_response')] })
    w.mailbox().expireHistory()
    await w.sync()
    const record = (await w.record(sorted.threadId))!
    assert.deepEqual([record.category, record.by], ['waiting', 'user'])
    assert.equal((await w.record(asked.threadId))!.status, 'drafted')
    assert.equal((await w.record(odd.threadId))!.category, 'fyi')
    assert.deepEqual(await w.labelsOn(odd.threadId), ['fyi'])
    assert.deepEqual(await w.tables.balance(ANN), {
      inbox: 3,
      classified: 3,
      skipped: 0,
      onTheirWay: 0,
      held: 0,
    })
    await w.sync(ANN, { full: true })
    assert.equal((await w.record(asked.threadId))!.by, 'user')
  })

  test('whose listing fails moves nothing, and is read again', async () => {
    const w = await begun()
    const { cursor } = (await w.tables.account(ANN))!
    w.sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['history.list'], max: 1 }] })
    const mail = w.arrive({ text: 'Are you free?' })
    await w.sync()
    assert.ok(isLaterHistory((await w.tables.account(ANN))!.cursor!, cursor))
    assert.equal((await w.record(mail.threadId))!.status, 'drafted')
  })

  test('is read to its end through empty pages', async () => {
    const w = await begun()
    w.mailbox().switches.emptyHistoryPages = true
    const mails = Array.from({ length: 5 }, () => w.arrive({ text: 'Your parcel has shipped.' }))
    await w.sync()
    for (const { threadId } of mails) assert.equal((await w.record(threadId))!.category, 'fyi')
  })

  test('id is compared as 64 bits', () => {
    assert.ok(isLaterHistory('18014398509000002', '18014398509000001'))
    assert.ok(isLaterHistory('10', '9'))
    assert.ok(!isLaterHistory('9', '9'))
    assert.ok(isLaterHistory('1', null))
  })

  test('a push that comes while a sync is under way is not lost', async () => {
    const w = await begun()
    for (let n = 0; n < 6; n++) {
      w.arrive({ text: 'Your parcel has shipped.' })
      await requestSync(w.place, ANN, { historyId: String(w.mailbox().historyId) })
    }
    await w.settled()
    assert.equal((await w.tables.balance(ANN)).classified, 6)
  })
})

test('a label that the user has deleted is made again by the next scan, and one that was renamed is kept', async () => {
  const w = await begun()
  const { labels } = (await w.tables.account(ANN))!
  w.mailbox().deleteLabel(labels.fyi)
  w.mailbox().updateLabel(labels.done, { name: 'Erledigt' })
  const mail = w.arrive({ text: 'Your parcel has shipped.' })
  await w.sync(ANN, { full: true })
  const now = (await w.tables.account(ANN))!.labels
  assert.notEqual(now.fyi, labels.fyi)
  assert.equal(now.done, labels.done)
  assert.deepEqual(await w.labelsOn(mail.threadId), ['fyi'])
})

test('a push that names a history which never comes is not waited for without end', async () => {
  const w = await begun()
  await requestSync(w.place, ANN, { historyId: '99999999999999999999' })
  await w.settled()
  assert.equal((await w.tables.account(ANN))!.pushedHistory, null)
})

test('pushes are asked for where a topic is configured, and until when is kept', async () => {
  const w = await begun({ settings: { pushTopic: 'projects/p/topics/t' } })
  const row = (await w.tables.account(ANN))!
  assert.ok(row.watchExpiresAtMs! > w.clock.now() + 6 * 86_400_000)
  assert.equal(row.watchProblem, null)
})

test('pushes that Gmail refuses are told, and asked for again', async () => {
  const w = await begun({ settings: { pushTopic: 'projects/p/topics/t', attempts: 1 } })
  w.sim.faults.set({ rules: [{ do: 'error', status: 403, methods: ['watch'], max: 1 }] })
  const ask = async (): Promise<void> => {
    await w.worker.engine.enqueue(w.kinds.watch, { account: ANN }, { stream: streamOf(ANN) })
    await w.settled()
  }
  await ask()
  const problem = (await w.tables.account(ANN))!.watchProblem
  assert.ok(problem)
  const [need] = (await (await lookAtAssist(w.worker.ledger)).needs!()) ?? []
  assert.ok(need!.text.includes(problem))
  await ask()
  assert.equal((await w.tables.account(ANN))!.watchProblem, null)
})

test('a follow-up whose call to Gmail fails once comes back to the inbox all the same', async () => {
  const w = await begun()
  const raw = Buffer.from(
    `From: ${ANN}\r\nTo: bob@example.net\r\nSubject: Offer\r\n\r\nCould you send the offer?`,
  )
  const { id, threadId } = w.mailbox().send({ raw })
  await w.sync()
  w.clock.aheadMs += 8 * 86_400_000
  w.sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['threads.modify'], max: 1 }] })
  await w.worker.engine.enqueue(w.kinds.followUp, { account: ANN }, { stream: streamOf(ANN) })
  await w.settled()
  assert.ok(w.mailbox().get(id)!.labelIds.has('INBOX'))
  assert.deepEqual(await w.labelsOn(threadId), ['waiting'])
})

test('a mailbox that is switched off is left alone', async () => {
  const w = await begun()
  await switchAccount(w.place, ANN, false)
  const mail = w.arrive({ text: 'Are you free?' })
  assert.equal(await requestSync(w.place, ANN), false)
  await w.settled()
  assert.equal(await w.record(mail.threadId), undefined)
})

test('a mailbox that is switched off while jobs wait asks nobody, and goes on when it is on again', async () => {
  let isDown = true
  let asked = 0
  const script: NonNullable<AssistWorldOptions['models']>['script'] = ({ messages }) => {
    asked += 1
    const isSorting = messages.some(({ text }) => text.includes('message to sort'))
    return isDown && !isSorting ? { status: 503 } : undefined
  }
  const w = await begun({ models: { script } })
  const { threadId } = w.arrive({ text: 'Are you free on Friday?' })
  await requestSync(w.place, ANN)
  await until(w, async () => ((await w.record(threadId))?.problemCode ? true : undefined))
  await switchAccount(w.place, ANN, false)
  isDown = false
  const before = [asked, w.called('threads.get'), w.called('getProfile')]
  w.clock.aheadMs += 600_000
  await w.settled()
  assert.deepEqual([asked, w.called('threads.get'), w.called('getProfile')], before)
  assert.deepEqual(w.drafts(threadId), [])
  await switchAccount(w.place, ANN, true)
  await w.sync()
  assert.equal((await w.record(threadId))!.status, 'drafted')
})

test('a rule of the user decides without a model, and can be tried on past mail first', async () => {
  const w = await begun()
  const past = w.arrive({ from: 'Shop <shop@shop.example>', text: 'Your parcel has shipped.' })
  await w.sync()
  const rule = { match: { from: '*@shop.example' }, category: 'payment_request' as const }
  const replay = await replayRule(w.kinds, ANN, rule, signal)
  assert.deepEqual([replay.fits, replay.changes], [1, 1])
  assert.equal((await w.record(past.threadId))!.category, 'fyi')
  await createRule(w.kinds, ANN, rule)
  const asked = w.sim.models.counts.calls
  const mail = w.arrive({ from: 'Shop <shop@shop.example>', text: 'Your parcel has shipped.' })
  await w.sync()
  const record = (await w.record(mail.threadId))!
  assert.deepEqual([record.category, record.by], ['payment_request', 'rule'])
  assert.equal(w.sim.models.counts.calls, asked)
  assert.equal((await w.tables.rules(ANN))[0]!.hits, 1)
})

test('sent mail that asks for something and gets no answer comes back as Waiting', async () => {
  const w = await begun()
  const mail = w.arrive({ text: 'Are you free?' })
  await w.sync()
  w.mailbox().sendDraft(w.drafts(mail.threadId)[0]!.id, {
    raw: Buffer.from('To: bob@example.net\r\nSubject: Re: x\r\n\r\nYes. Could you bring the plan?'),
    threadId: mail.threadId,
  })
  await w.sync()
  assert.notEqual((await w.record(mail.threadId))!.followUpAtMs, null)
  w.clock.aheadMs = 8 * 86_400_000
  await w.worker.engine.enqueue(w.kinds.followUp, { account: ANN }, { stream: `assist:${ANN}` })
  await w.settled()
  const record = (await w.record(mail.threadId))!
  assert.deepEqual([record.label, record.followUpAtMs], ['waiting', null])
  assert.deepEqual(await w.labelsOn(mail.threadId), ['waiting'])
  assert.ok((await w.eventsOf(mail.threadId)).includes('follow-up'))
})

test('the briefing says what came and what waits, in sums that hold', async () => {
  const w = await begun()
  w.arrive({ subject: 'Lunch', text: 'Are you free?' })
  w.arrive({ text: 'Your parcel has shipped.' })
  await w.sync()
  const briefing = await briefingOf(w.kinds, ANN)
  assert.deepEqual(
    briefing.drafts.map(({ subject }) => subject),
    ['Lunch'],
  )
  assert.match(briefing.text, /inbox 2 = 2 classified \+ 0 skipped \+ 0 on their way/)
})

test('the briefing is put into the mailbox once a day where its user wants it, is no news, and is sent by nobody', async () => {
  const w = await begun({ accountSettings: { briefing: true } })
  w.arrive({ subject: 'Lunch', text: 'Are you free?' })
  await w.sync()
  const brief = briefer(w)
  const asked = w.sim.models.counts.calls
  assert.deepEqual([await brief(), await brief()], [1, 1])
  w.clock.aheadMs += 86_400_000
  assert.equal(await brief(), 2)
  const { classified, onTheirWay } = await w.tables.balance(ANN)
  assert.deepEqual([classified, onTheirWay, w.sim.models.counts.calls], [1, 0, asked])
  assert.equal(w.mailbox().list({ labelIds: ['SENT'], maxResults: 10 }).messages.length, 0)
})

for (const when of ['before', 'after'] as const) {
  test(`a briefing whose way into the mailbox is cut off ${when} its work is there once`, async () => {
    const w = await begun({ accountSettings: { briefing: true } })
    w.sim.faults.set({ rules: [{ do: 'reset', when, methods: ['messages.insert'], max: 1 }] })
    assert.equal(await briefer(w)(), 1)
  })
}

for (const hour of [12, 23]) {
  test(`a briefing that is cut off at ${hour}:00 and written an hour later tells all since the one before`, async () => {
    const w = await begun({ accountSettings: { briefing: true } })
    const brief = briefer(w)
    await brief()
    w.arrive({ subject: 'Lunch', text: 'Are you free?' })
    await w.sync()
    // Nobody was there for two days.
    w.clock.aheadMs += (48 + hour - 12) * 3_600_000
    const isTried = (): boolean => w.called('messages.insert') > 1
    w.sim.faults.set({
      rules: [{ do: 'throttle', methods: ['messages.insert'], max: 1, retryAfterSeconds: 3_600 }],
    })
    await w.worker.engine.enqueue(w.kinds.briefing, { account: ANN }, { stream: streamOf(ANN) })
    await until(w, async () => (isTried() ? true : undefined))
    w.clock.aheadMs += 3_600_000
    await w.settled()
    const texts = briefings(w)
    assert.equal(texts.length, 2)
    assert.match(texts.at(-1)!, /^1 conversations were sorted, 1 drafts written/)
  })
}

/** At noon, so that the day is the same for all of them. */
function briefer(w: AssistWorld): () => Promise<number> {
  const dayMs = 86_400_000
  w.clock.aheadMs += (Math.floor(w.clock.now() / dayMs) + 1.5) * dayMs - w.clock.now()
  return async () => {
    await w.worker.engine.enqueue(w.kinds.briefing, { account: ANN }, { stream: streamOf(ANN) })
    await w.settled()
    await w.sync()
    return briefings(w).length
  }
}

/** Their texts, oldest first. */
function briefings(w: AssistWorld): string[] {
  const all = [...w.mailbox().dump()].map(({ id }) => w.mailbox().get(id)!)
  const found = all.filter((message) => /^Subject: Briefing of/m.test(message.raw().toString('utf8')))
  return found
    .toSorted((a, b) => a.internalMs - b.internalMs)
    .map((message) => bodyOf(message.raw().toString('utf8')))
}

test('an agent that nobody has configured leaves the mail to the user', async () => {
  const w = await begun({
    accountSettings: {
      routing: [
        { name: 'shop', match: { sender_domain: ['shop.example'] }, route: 'agent', profile: 'nobody' },
      ],
    },
  })
  const mail = w.arrive({ from: 'Shop <a@shop.example>', text: 'Where is my parcel?' })
  await w.sync()
  const record = (await w.record(mail.threadId))!
  assert.equal(record.status, 'skipped')
  assert.deepEqual(await w.labelsOn(mail.threadId), ['action_required'])
  const [run] = await w.worker.runs.runs({ accounts: [ANN] })
  assert.deepEqual([run!.status, run!.code], ['error', 'profile-unknown'])
})

test('settings become TOML and come back the same', () => {
  const settings = accountSettings.parse({
    name: 'Ann',
    styles: [{ name: 'formal', rules: ['Say Sie.'], signOff: 'Best, Ann' }],
    contacts: { 'bob@example.net': 'formal' },
    blacklist: ['*@ads.example'],
    followUpDays: 2,
  })
  assert.deepEqual(accountSettings.parse(settingsFromToml(settingsToToml(settings))), settings)
  assert.throws(() => settingsFromToml('styles = 3'), /cannot be taken over/)
})

/** Looks, and goes on when the thread is told of so: what is tried again later is not waited for. */
async function unusableUntil(w: AssistWorld, thread: string, told: RegExp): Promise<void> {
  await requestSync(w.place, ANN)
  await until(w, async () => {
    const record = await w.record(thread)
    return record?.isApplied && told.test(record.problem ?? '') ? true : undefined
  })
}

function draftsAsked(w: AssistWorld): number {
  const isDraft = (texts: string): boolean => texts.includes('Write the draft of the answer')
  return w.sim.models.asked.filter(({ messages }) => isDraft(messages.map(({ text }) => text).join())).length
}

async function until<T>(w: AssistWorld, look: () => Promise<T | undefined>): Promise<T> {
  for (let round = 0; round < 500; round++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise<void>((resolve) => void w.clock.timer(20, resolve))
  }
  throw new Error('it did not come to that')
}
