/** What a draft is written from: what was kept, or what Gmail finds, in the style that is for its reader. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { accountKey } from '../../ledger/accounts.ts'
import type { NewDocument } from '../../search/contract.ts'
import type { SimOptions } from '../../sim/start.ts'
import { SERVICE } from './account.ts'
import {
  ANN,
  type AssistWorld,
  type AssistWorldOptions,
  DATABASES,
  startAssistWorld,
} from './assist-world.suite.ts'

let world: AssistWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

type Script = NonNullable<NonNullable<SimOptions['models']>['script']>

/** What models were asked for drafts, as one text each. */
function listening(): { asked: string[]; script: Script } {
  const asked: string[] = []
  const script: Script = ({ messages, json }) => {
    const fields = Object.keys((json?.schema?.properties as object | undefined) ?? {})
    if (!fields.includes('category') && !fields.includes('queries')) {
      asked.push(messages.map(({ text }) => text).join('\n'))
    }
    return undefined
  }
  return { asked, script }
}

async function begun(options: AssistWorldOptions = {}): Promise<{ w: AssistWorld; asked: string[] }> {
  const { asked, script } = listening()
  world = await startAssistWorld({ ...options, models: { script } })
  await world.onboard()
  await world.settled()
  return { w: world, asked }
}

/** A document that was kept, which the named account may see. */
async function keep(w: AssistWorld, to: string, text: string): Promise<void> {
  const { search, ledger } = w.worker
  const document: NewDocument = {
    source: 'drive',
    ref: `offer-${to}`,
    title: 'Offer for the barometers',
    type: 'document',
    mimeType: 'text/plain',
    owner: '',
    people: [],
    folders: [],
    url: 'https://drive.example.com/offer',
    createdAtMs: null,
    modifiedAtMs: w.clock.now(),
    sizeBytes: 1,
    version: '1',
    content: {
      key: `key-${to}`,
      chunks: [{ n: 0, text, headings: [], place: { kind: 'page', page: 1 } }],
      isTruncated: false,
    },
  }
  await search.prepare()
  await ledger.transaction(async (tx) => {
    await search.publish(tx, document)
    const grant = { kind: 'reader' as const, via: 'shared', generation: 1, expiresAtMs: null }
    await search.grant(tx, document, accountKey({ service: SERVICE, name: to }), grant)
  })
}

const MAIL = { subject: 'Barometers', text: 'What did the barometers cost?' }
const PRICE = 'The barometers cost 412 each, with delivery.'

for (const database of DATABASES) {
  describe(`what a draft leans on, on ${database}`, () => {
    test('is what was kept for the owner of the mailbox, named as its source, and Gmail is not searched', async () => {
      const { w, asked } = await begun({ database })
      await keep(w, ANN, PRICE)
      const listed = w.called('messages.list')
      const { threadId } = w.arrive(MAIL)
      await w.sync()
      assert.match(asked[0]!, /412 each/)
      const record = (await w.record(threadId))!
      assert.equal(record.status, 'drafted')
      assert.deepEqual(
        record.sources.map(({ title, url }) => [title, url]),
        [['drive: Offer for the barometers', 'https://drive.example.com/offer']],
      )
      assert.equal(w.called('messages.list'), listed)
    })
  })
}

describe('what a draft leans on', () => {
  test('is never what was kept for somebody else', async () => {
    const { w, asked } = await begun()
    await keep(w, 'ben@example.com', PRICE)
    const { threadId } = w.arrive(MAIL)
    await w.sync()
    assert.deepEqual([asked.length, asked[0]!.includes('412')], [1, false])
    assert.deepEqual((await w.record(threadId))!.sources, [])
  })

  test('is mail that Gmail finds, where nothing of it was kept', async () => {
    const { w, asked } = await begun()
    w.arrive({ subject: 'Barometers in spring', text: PRICE, labelIds: ['UNREAD'] })
    const { threadId } = w.arrive(MAIL)
    await w.sync()
    assert.match(asked[0]!, /412 each/)
    assert.deepEqual(
      (await w.record(threadId))!.sources.map(({ title }) => title),
      ['mail: Barometers in spring'],
    )
  })

  test('is mail that Gmail finds, where what was kept cannot be searched', async () => {
    const { w, asked } = await begun()
    w.kinds.search = async () => {
      throw new Error('the index is being made')
    }
    w.arrive({ subject: 'Barometers in spring', text: PRICE, labelIds: ['UNREAD'] })
    const { threadId } = w.arrive(MAIL)
    await w.sync()
    assert.match(asked[0]!, /412 each/)
    assert.equal((await w.record(threadId))!.status, 'drafted')
    assert.deepEqual(
      w.worker.notes.map(({ code }) => code),
      ['context-failed'],
    )
  })

  test('is nothing where neither can be searched: the draft is written all the same, and that is told', async () => {
    const { w, asked } = await begun()
    w.kinds.search = async () => {
      throw new Error('the index is being made')
    }
    const { threadId } = w.arrive(MAIL)
    w.sim.faults.set({ rules: [{ do: 'error', status: 400, methods: ['messages.list'] }] })
    await w.sync()
    const record = (await w.record(threadId))!
    assert.deepEqual([record.status, record.sources, asked.length], ['drafted', [], 1])
    assert.deepEqual(
      w.worker.notes.map(({ code }) => code),
      ['context-failed', 'context-failed'],
    )
  })
})

test('a draft is in the style of its contact, then of the domain, then of the mailbox', async () => {
  const style = (name: string) => ({ name, rules: [`Write like ${name}.`], signOff: `Yours, ${name}` })
  const { w } = await begun({
    accountSettings: {
      styles: ['friend', 'office', 'usual'].map((name) => ({
        ...style(name),
        examples: [],
        language: '',
      })),
      contacts: { 'bob@office.example': 'friend' },
      domains: { 'office.example': 'office' },
      defaultStyle: 'usual',
    },
  })
  for (const [from, wanted] of [
    ['Bob <bob@office.example>', 'friend'],
    ['Eve <eve@office.example>', 'office'],
    ['Kim <kim@elsewhere.example>', 'usual'],
  ] as const) {
    const { threadId } = w.arrive({ from, text: 'Are you free on Friday?' })
    await w.sync()
    assert.match(w.drafts(threadId)[0]!.text, new RegExp(`Yours, ${wanted}`), from)
  }
})
