/** The names of the assistant's labels: which are taken, what a new one does, and labels that were deleted. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { UsageError } from '../../base/errors.ts'
import { DEFAULT_LABELS } from './account.ts'
import { changeSettings } from './actions.ts'
import { ANN, type AssistWorld, type AssistWorldOptions, startAssistWorld } from './assist-world.suite.ts'
import { settingsFromToml } from './config-import.ts'
import { ensureLabels } from './labels.ts'

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

const signal = new AbortController().signal

describe('a name of a label', () => {
  const refused: [what: string, toml: string, why: RegExp][] = [
    ['of Gmail itself', 'fyi = "Trash"', /labels\.fyi: "Trash" is a label of Gmail itself/],
    [
      'below one of Gmail itself',
      'waiting = "INBOX/later"',
      /labels\.waiting: .* is a label of Gmail itself/,
    ],
    ['as the API of Gmail says it', 'fyi = "CATEGORY_UPDATES"', /a label of Gmail itself/],
    ['that two roles would have', 'fyi = "Later"\nwaiting = "later"', /is the label of \w+, too/],
    [
      'that another role has by itself',
      `fyi = "${DEFAULT_LABELS.done}"`,
      /labels\.fyi: .* the label of done/,
    ],
    ['with nothing between two slashes', 'fyi = "a//b"', /is no name of a label/],
  ]
  for (const [what, toml, why] of refused) {
    test(`${what} is refused when settings are taken over`, () => {
      assert.throws(
        () => settingsFromToml(`[labels]\n${toml}`),
        (thrown) =>
          thrown instanceof UsageError && thrown.code === 'import-invalid' && why.test(thrown.message),
      )
    })
  }

  test('of Gmail itself is refused when a mailbox begins, and nothing is made', async () => {
    world = await startAssistWorld({ accountSettings: { labels: { fyi: 'Starred' } } })
    await assert.rejects(world.onboard(), (thrown) => {
      return thrown instanceof UsageError && /"Starred" is a label of Gmail itself/.test(thrown.message)
    })
    assert.equal(world.called('labels.create'), 0)
    assert.equal(await world.tables.account(ANN), undefined)
  })

  test('is looked for among labels of the user only, whatever Gmail calls its own', async () => {
    const w = await begun()
    const { client } = await w.kinds.accounts.get(ANN)
    await assert.rejects(ensureLabels(client, { fyi: 'TRASH' }, signal))
  })
})

describe('labels with a past', () => {
  const NEWS = { subject: 'Newsletter', text: 'News.', headers: ['List-Unsubscribe: <mailto:x@y.example>'] }
  const sorted = async () => {
    const w = await begun()
    const asked = w.arrive({ text: 'Are you free on Friday?' }).threadId
    const news = w.arrive(NEWS).threadId
    await w.sync()
    assert.deepEqual([await w.labelsOn(asked), await w.labelsOn(news)], [['outbox'], ['fyi']])
    const ids = (await w.tables.account(ANN))!.labels
    const nameOf = (id: string): string | undefined => w.mailbox().label(id)?.name
    const isKept = async (): Promise<void> => {
      assert.deepEqual([await w.labelsOn(asked), await w.labelsOn(news)], [['outbox'], ['fyi']])
      assert.deepEqual([(await w.record(asked))!.label, (await w.record(news))!.label], ['outbox', 'fyi'])
      assert.equal((await w.record(asked))!.status, 'drafted')
      assert.ok(!(await w.eventsOf(asked)).includes('unlabelled'))
      assert.ok(!(await w.eventsOf(news)).includes('unlabelled'))
      assert.equal(w.drafts(asked).length, 1)
    }
    return { w, asked, news, ids, nameOf, isKept }
  }

  test('are renamed in Gmail at the next sync when the settings call them otherwise, and stay where they are', async () => {
    const { w, ids, nameOf, isKept } = await sorted()
    await changeSettings(w.place, ANN, { labels: { outbox: 'My/Out', fyi: 'My/FYI' } })
    await w.sync()
    assert.deepEqual([nameOf(ids.outbox), nameOf(ids.fyi)], ['My/Out', 'My/FYI'])
    assert.deepEqual((await w.tables.account(ANN))!.labels, ids)
    await w.sync(ANN, { full: true })
    await isKept()
  })

  test('swap their names without mixing up what they are on', async () => {
    const { w, ids, nameOf, isKept } = await sorted()
    const { outbox, fyi } = DEFAULT_LABELS
    await changeSettings(w.place, ANN, { labels: { outbox: fyi, fyi: outbox } })
    await w.sync()
    await w.sync(ANN, { full: true })
    assert.deepEqual([nameOf(ids.outbox), nameOf(ids.fyi)], [fyi, outbox])
    await isKept()
  })

  test('keep the name that the user gave them in Gmail, also when the mailbox is onboarded again', async () => {
    const { w, ids, nameOf, isKept } = await sorted()
    w.mailbox().updateLabel(ids.fyi, { name: 'Mine' })
    await w.onboard()
    await w.settled()
    assert.equal(nameOf(ids.fyi), 'Mine')
    await isKept()
  })

  for (const full of [true, false]) {
    const found = full ? 'a scan' : 'history'
    test(`that were deleted, as ${found} tells, are made again and put where they were`, async () => {
      const { w, ids, isKept } = await sorted()
      w.mailbox().deleteLabel(ids.outbox)
      w.mailbox().deleteLabel(ids.fyi)
      await w.sync(ANN, { full })
      await w.sync(ANN, { full: true })
      assert.notEqual((await w.tables.account(ANN))!.labels.outbox, ids.outbox)
      await isKept()
    })
  }

  test('take over one of the user that has the wanted name, and are put where they were', async () => {
    const { w, isKept } = await sorted()
    const { id } = w.mailbox().createLabel({ name: 'Reading' })
    await changeSettings(w.place, ANN, { labels: { fyi: 'Reading' } })
    await w.sync()
    assert.equal(await w.labelId('fyi'), id)
    await isKept()
  })
})
