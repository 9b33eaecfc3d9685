/** What must not happen to a mailbox while the service, other processes or the past are in the way. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FaultRule } from '../../sim/fault-rules.ts'
import { compareStretch } from './compare.ts'
import { noteGone } from './store/tables.ts'
import { ADDRESS, type SyncOptions, type SyncWorld, startSync } from './sync.suite.ts'

type Context = { after(fn: () => Promise<void>): void }

async function syncWorld(t: Context, options: SyncOptions): Promise<SyncWorld> {
  const world = await startSync(options)
  t.after(() => world.close())
  return world
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Longer than five tries of a job take. */
const OUTAGE_MS = 20_000

describe('an outage that lasts longer than all tries of a job', { concurrency: true }, () => {
  const outages: Record<string, FaultRule> = {
    'of the batch endpoint alone': { do: 'error', status: 503, methods: ['batch'] },
    'of every message, named by its answer': { do: 'error', status: 503, on: 'part' },
    'of listing alone': { do: 'error', status: 503, methods: ['messages.list'], skip: 20 },
    'of everything': { do: 'error', status: 503 },
  }
  for (const [what, rule] of Object.entries(outages)) {
    test(`${what} makes no message bad and fails no job`, async (t) => {
      const world = await syncWorld(t, { messages: 14 })
      world.sim.faults.add(rule)
      const synced = world.sync()
      await pause(OUTAGE_MS)
      assert.equal((await world.status()).bad, 0)
      assert.deepEqual(await world.engine.ledger.jobs({ state: 'failed' }), [])
      world.sim.faults.clear()
      await synced
      const { listed, stored, bad } = await world.status()
      assert.deepEqual({ listed, stored, bad }, { listed: 14, stored: 14, bad: 0 })
      assert.deepEqual(await world.engine.ledger.jobs({ state: 'failed' }), [])
    })
  }

  test('poison messages all over the mailbox do not pass for one', async (t) => {
    const world = await syncWorld(t, { messages: 14 })
    const victims = [...world.sim.mailbox(ADDRESS).dump()].filter((_, index) => index % 3 === 0)
    for (const { id } of victims) world.sim.faults.poison({ id, mode: 'batch' })
    await world.sync()
    const { stored, bad } = await world.status()
    assert.deepEqual({ stored, bad }, { stored: 14 - victims.length, bad: victims.length })
  })
})

describe('a comparison that is wanted before the slices are listed', () => {
  test('waits for them, so that the mark passes nothing that is not stored', async (t) => {
    const world = await syncWorld(t, { messages: 60 })
    const { engine, kinds, account } = world
    const stream = { stream: account.stream }
    const count = async (kind: string, stage?: string): Promise<number> =>
      (await engine.ledger.tallies())
        .filter((one) => one.kind === kind && (stage === undefined || one.stage === stage))
        .reduce((sum, { n }) => sum + n, 0)
    const until = async (is: () => Promise<boolean>): Promise<void> => {
      for (let turn = 0; turn < 1_000 && !(await is()); turn++) await pause(20)
      assert.ok(await is())
    }
    await engine.pause('kind', 'mail.fetch')
    await engine.pause('kind', 'mail.list')
    await engine.enqueue(kinds.plan, { account: ADDRESS }, stream)
    await until(async () => (await count('mail.list')) > 0)
    await engine.enqueue(kinds.reconcile, { account: ADDRESS }, stream)
    await until(
      async () => (await count('mail.reconcile', 'time')) + (await count('mail.reconcile', 'done')) > 0,
    )
    await engine.resume('kind', 'mail.list')
    await until(async () => (await count('mail.list', 'done')) === (await count('mail.list')))
    await until(async () => (await count('mail.reconcile', 'done')) > 0)
    const [first] = [...world.sim.mailbox(ADDRESS).dump()].sort((a, b) => a.internalMs - b.internalMs)
    assert.equal((await world.status()).stored, 0)
    assert.ok((await world.status()).mark_at * 1000 <= first!.internalMs)
    await engine.resume('kind', 'mail.fetch')
    await engine.drained()
    const { listed, stored } = await world.status()
    assert.deepEqual({ listed, stored }, { listed: 60, stored: 60 })
  })
})

describe('what is stored', () => {
  test('an imported message is fetched by the sync, and the bytes of the cloud take its place', async (t) => {
    const world = await syncWorld(t, { messages: 10 })
    const [message] = [...world.sim.mailbox(ADDRESS).dump()]
    const { archive } = world.account
    await archive.store([
      {
        ...{ id: message!.id, threadId: message!.threadId, historyId: '0', labelIds: [] },
        ...{
          internalMs: message!.internalMs,
          raw: Buffer.from('Subject: other\r\n\r\n'),
          source: 'import',
        },
      },
    ])
    await world.sync()
    const stored = await archive.message(message!.id)
    assert.deepEqual([stored?.source, stored?.sha256], ['gmail', message!.sha256()])
    assert.equal((await world.status()).stored, 10)
  })

  test('a message that was seen to be gone is marked, though the attempt that stored it ended before it looked', async (t) => {
    const world = await syncWorld(t, { messages: 10 })
    const { engine, kinds, account } = world
    await world.sync()
    const { id } = [...world.sim.mailbox(ADDRESS).dump()][0]!
    await engine.transaction((tx) => noteGone(tx, ADDRESS, [id], Date.now()))
    await engine.enqueue(kinds.fetch, { account: ADDRESS, ids: [id] }, { stream: account.stream })
    await engine.drained()
    assert.notEqual((await account.archive.message(id))?.deletedAtMs, null)

    // It is there after all: whoever fetches it takes the mark off.
    await pause(2)
    await engine.enqueue(
      kinds.fetch,
      { account: ADDRESS, ids: [id], refresh: true },
      { stream: account.stream },
    )
    await engine.drained()
    assert.equal((await account.archive.message(id))?.deletedAtMs, null)
    assert.equal((await world.tables.gone(ADDRESS, [id])).size, 0)
  })
})

describe('pages that change while they are turned', () => {
  test('a label is not lost because a message hid from one listing', async (t) => {
    const world = await syncWorld(t, { messages: 10 })
    await world.sync()
    const { account } = world
    let hidden: string | undefined
    const client = Object.create(account.client) as typeof account.client
    client.listIds = async (page) => {
      const answer = await account.client.listIds(page)
      if (!page.labelIds || hidden !== undefined) return answer
      hidden = answer.ids[0]?.id
      return { ...answer, ids: answer.ids.slice(1) }
    }
    const labelIds = (await account.client.labels()).map(({ id }) => id)
    const options = { labelIds, signal: new AbortController().signal }
    const { relabeled } = await compareStretch({ ...account, client }, { fromS: null, toS: null }, options)
    assert.notEqual(hidden, undefined)
    assert.deepEqual(relabeled, [])
  })

  test('what happens between two pages of the history is found by the next look', async (t) => {
    const world = await syncWorld(t, { messages: 10 })
    await world.sync()
    const { client, archive } = world.account
    const mailbox = world.sim.mailbox(ADDRESS)
    const plain = client.history.bind(client)
    const arrived: string[] = []
    // Pages of one listing show what was there when the first was made.
    client.history = async (page) => {
      if (page.pageToken === undefined) return { ...(await plain(page)), nextPageToken: 'second' }
      arrived.push(mailbox.insert({ raw: Buffer.from('Subject: late\r\n\r\n'), labelIds: ['INBOX'] }).id)
      const { historyId } = await client.profile()
      return { records: [], historyId, nextPageToken: undefined }
    }
    mailbox.insert({ raw: Buffer.from('Subject: early\r\n\r\n'), labelIds: ['INBOX'] })
    await world.follow()
    client.history = plain
    await world.follow()
    assert.ok(arrived.length > 0)
    assert.equal((await archive.stored(arrived)).size, arrived.length)
  })
})
