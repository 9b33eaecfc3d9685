/** Labels on conversations that change while a job is at work on them. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { correctCategory } from './actions.ts'
import { ANN, type AssistWorld, bySubject, startAssistWorld } from './assist-world.suite.ts'
import { setLabel } from './labels.ts'

let world: AssistWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

describe('setting the label of a conversation', () => {
  const begin = async () => {
    world = await startAssistWorld()
    await world.onboard()
    await world.settled()
    const account = await world.kinds.accounts.get(ANN)
    return { w: world, account, signal: new AbortController().signal }
  }

  test('leaves a wish alone that the user put there since it was read, and takes off what was seen', async () => {
    const { w, account, signal } = await begin()
    const { id, threadId } = w.arrive({ text: 'For your information.' })
    await account.client.modifyThread({ threadId, add: [account.labels.rework, account.labels.waiting] })
    const wish = { thread: threadId, label: 'fyi' as const, messages: [id] }
    await setLabel(account, { ...wish, known: new Set() }, signal)
    assert.deepEqual((await w.labelsOn(threadId)).toSorted(), ['fyi', 'rework'])
    await setLabel(account, { ...wish, known: new Set(['rework'] as const) }, signal)
    assert.deepEqual(await w.labelsOn(threadId), ['fyi'])
  })

  test('Done archives what was read, and mail that came since stays in the inbox', async () => {
    const { w, account, signal } = await begin()
    const read = w.arrive({ subject: 'Plan' })
    const late = w.arrive({ subject: 'Re: Plan', threadId: read.threadId })
    const known = new Set(['done'] as const)
    await setLabel(account, { thread: read.threadId, label: 'done', known, messages: [read.id] }, signal)
    const inbox = w.mailbox().list({ labelIds: ['INBOX'] }).messages
    assert.deepEqual(
      inbox.map(({ id }) => id),
      [late.id],
    )
  })
})

test('two decisions of a person at the same moment are both written, one after the other', async () => {
  world = await startAssistWorld()
  await world.onboard()
  const { threadId: thread } = world.arrive({ text: 'For your information.' })
  await world.sync()
  const of = { account: ANN, thread }
  await Promise.all([
    correctCategory(world.place, of, 'fyi'),
    correctCategory(world.place, of, 'waiting'),
    correctCategory(world.place, of, 'action_required'),
  ])
  await world.settled()
  const corrected = (await world.eventsOf(thread)).filter((what) => what === 'corrected')
  assert.equal(corrected.length, 3)
  const { category, label } = (await world.record(thread))!
  assert.equal(label, category)
  assert.deepEqual(await world.labelsOn(thread), [label])
})

test('a label of ours that Gmail tells of late, after another has taken its place, is no word of the user', async () => {
  const w = await startAssistWorld({ models: { script: bySubject({ Pump: 'waiting', Plan: 'fyi' }) } })
  world = w
  await w.onboard()
  await w.settled()
  const fyi = await w.labelId('fyi')
  const mailbox = w.mailbox()
  const history = mailbox.history.bind(mailbox)
  type Page = Exclude<ReturnType<typeof history>, 'expired'>
  let isHeld = true
  const held: Page['history'] = []
  mailbox.history = (request) => {
    const page = history(request)
    if (page === 'expired') return page
    const isLate = ({ labelsAdded = [], labelsRemoved = [] }: Page['history'][number]): boolean =>
      [...labelsAdded, ...labelsRemoved].some(({ labelIds }) => labelIds.includes(fyi))
    if (!isHeld) return { ...page, history: [...page.history, ...held.splice(0)] }
    held.push(...page.history.filter(isLate))
    return { ...page, history: page.history.filter((record) => !isLate(record)) }
  }
  const { threadId } = w.arrive({ subject: 'Plan' })
  await w.sync()
  await w.sync()
  assert.deepEqual(await w.labelsOn(threadId), ['fyi'])
  w.arrive({ subject: 'Pump', threadId })
  await w.sync()
  await w.sync()
  assert.deepEqual(await w.labelsOn(threadId), ['waiting'])
  // Only that it came, and not that it went.
  held.splice(0, held.length, ...held.filter((record) => (record.labelsAdded ?? []).length > 0))
  assert.ok(held.length > 0)
  isHeld = false
  w.arrive({ subject: 'Plan again' })
  await w.sync()
  assert.equal(held.length, 0)
  const record = (await w.record(threadId))!
  assert.deepEqual([record.category, record.by, record.label], ['waiting', 'model', 'waiting'])
  assert.deepEqual(await w.labelsOn(threadId), ['waiting'])
  assert.ok(!(await w.eventsOf(threadId)).includes('corrected'))
  assert.deepEqual([await w.tables.examples(ANN), await w.tables.rules(ANN)], [[], []])
})
