/** What must not happen to a mailbox while the service, other processes or the past are in the way. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import type { JobRow } from '../../ledger/contract.ts'
import type { FaultRule } from '../../sim/fault-rules.ts'
import { compareStretch } from './compare.ts'
import type { IdEntry } from './store/contract.ts'
import { noteFresh, noteGone } from './store/tables.ts'
import { ADDRESS, type SyncOptions, type SyncWorld, startSync } from './sync.suite.ts'
import { importMessages } from './transfer/import.ts'
import { openSource } from './transfer/source.ts'

type Context = { after(fn: () => Promise<void>): void }

async function syncWorld(t: Context, options: SyncOptions): Promise<SyncWorld> {
  const world = await startSync(options)
  t.after(() => world.close())
  return world
}

test('messages that another process lists at the same moment are counted once', async (t) => {
  const world = await syncWorld(t, { messages: 9 })
  const { tables, engine } = world
  const unlisted = tables.unlisted.bind(tables)
  let others: string[] = []
  tables.unlisted = async (account, ids) => {
    const fresh = await unlisted(account, ids)
    if (others.length === 0) {
      others = fresh.slice(0, 1)
      await engine.ledger.transaction((tx) => noteFresh(tx, account, others))
    }
    return fresh
  }
  await world.sync()
  assert.equal(others.length, 1)
  const { listed, stored } = await world.status()
  assert.deepEqual({ listed, stored }, { listed: 8, stored: 8 }, 'the other process counts its own')
})

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

  test('is none where most answers fail at times, and no message is bad for that', async (t) => {
    const world = await syncWorld(t, { messages: 60 })
    world.sim.faults.add({ do: 'error', status: 503, on: 'part', probability: 0.65 })
    await world.sync()
    const { listed, stored, bad } = await world.status()
    assert.deepEqual({ listed, stored, bad }, { listed: 60, stored: 60, bad: 0 })
  })

  test('poison messages all over the mailbox do not pass for one', async (t) => {
    const world = await syncWorld(t, { messages: 14 })
    const victims = [...world.sim.gmail.mailbox(ADDRESS).dump()].filter((_, index) => index % 3 === 0)
    for (const { id } of victims) world.sim.faults.poison({ id, mode: 'batch' })
    await world.sync()
    const { stored, bad } = await world.status()
    assert.deepEqual({ stored, bad }, { stored: 14 - victims.length, bad: victims.length })
  })
})

test('what did not come with new mail is as urgent as new mail', async (t) => {
  const world = await syncWorld(t, { messages: 6 })
  await world.sync()
  for (const subject of ['one', 'two', 'three']) {
    world.sim.gmail.mailbox(ADDRESS).insert({
      raw: Buffer.from(`Subject: ${subject}\r\n\r\nmail`),
      labelIds: ['INBOX'],
      internalMs: Date.now(),
    })
  }
  const before = (await fetches(world)).length
  world.sim.faults.add({ do: 'error', status: 503, on: 'part', max: 1 })
  await world.follow()
  const news = (await fetches(world)).slice(before)
  assert.deepEqual(
    news.map(({ lane, items }) => [lane, items]),
    [
      ['interactive', 3],
      ['interactive', 1],
    ],
  )
  const { listed, stored } = await world.status()
  assert.equal(listed, stored)
})

async function fetches({ engine }: SyncWorld): Promise<JobRow[]> {
  const jobs = await engine.ledger.jobs({ kind: 'mail.fetch', limit: 1_000 })
  return jobs.toSorted((a, b) => a.id - b.id)
}

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
      for (let turn = 0; turn < 12_000 && !(await is()); turn++) await pause(20)
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
    const [first] = [...world.sim.gmail.mailbox(ADDRESS).dump()].sort((a, b) => a.internalMs - b.internalMs)
    assert.equal((await world.status()).stored, 0)
    assert.ok((await world.status()).mark_at * 1000 <= first!.internalMs)
    await engine.resume('kind', 'mail.fetch')
    await engine.drained()
    const { listed, stored } = await world.status()
    assert.deepEqual({ listed, stored }, { listed: 60, stored: 60 })
  })
})

describe('planning', () => {
  test('that fails after every second call goes on where it was, and from the same history id', async (t) => {
    const world = await syncWorld(t, { messages: 10 })
    const { client } = world.account
    const plain = client.listIds.bind(client)
    const asked: string[] = []
    client.listIds = async (page) => {
      if (page.maxResults !== 1) return plain(page)
      asked.push(page.query ?? '')
      // As a process that is killed leaves it: the call was made, and what it said is lost.
      if (asked.length % 3 === 0 && asked.length < 10)
        throw new TidemarkError('killed', { kind: 'transient' })
      return plain(page)
    }
    await world.sync()
    assert.equal((await world.status()).stored, 10)
    const repeated = asked.length - new Set(asked).size
    assert.ok(repeated <= 3, `${repeated} of ${asked.length} steps were made again`)
  })
})

describe('a bad message', () => {
  test('that a comparison finds missing stands once among the bad ones, with its tries, until it can be had', async (t) => {
    const world = await syncWorld(t, { messages: 30 })
    const { engine, kinds, account } = world
    const victims = [...world.sim.gmail.mailbox(ADDRESS).dump()].slice(3, 5).map(({ id }) => id)
    const getRaw = account.client.getRaw.bind(account.client)
    account.client.getRaw = (ids, { onAnswer, ...options }) =>
      getRaw(ids, {
        ...options,
        onAnswer: ({ id, ...answer }) =>
          onAnswer(
            victims.includes(id)
              ? { id, ok: false, error: new TidemarkError('malformed', { kind: 'permanent' }) }
              : ({ id, ...answer } as Parameters<typeof onAnswer>[0]),
          ),
      })
    await world.sync()
    const compare = async (): Promise<void> => {
      await engine.enqueue(kinds.reconcile, { account: ADDRESS }, { stream: account.stream })
      await engine.drained()
    }
    const rows = async (): Promise<[string, number][]> =>
      (await engine.ledger.badItems()).map(({ item, tries }): [string, number] => [item, tries])
    const expected = (tries: number): [string, number][] => victims.map((id) => [id, tries])
    assert.deepEqual((await rows()).sort(), expected(1).sort())
    for (const tries of [2, 3]) {
      await compare()
      assert.deepEqual((await rows()).sort(), expected(tries).sort())
      assert.equal((await world.status()).bad, 2)
    }
    account.client.getRaw = getRaw
    await compare()
    const { listed, stored, bad } = await world.status()
    assert.deepEqual(
      { listed, stored, bad, rows: await rows() },
      { listed: 30, stored: 30, bad: 0, rows: [] },
    )
  })
})

describe('what is stored', () => {
  test('an imported message is fetched by the sync, and the bytes of the cloud take its place', async (t) => {
    const world = await syncWorld(t, { messages: 10 })
    const [message] = [...world.sim.gmail.mailbox(ADDRESS).dump()]
    const { archive } = world.account
    await archive.store([
      {
        id: message!.id,
        threadId: message!.threadId,
        historyId: '0',
        labelIds: [],
        internalMs: message!.internalMs,
        raw: Buffer.from('Subject: other\r\n\r\n'),
        source: 'import',
      },
    ])
    await world.sync()
    const stored = await archive.message(message!.id)
    assert.deepEqual([stored?.source, stored?.sha256], ['gmail', message!.sha256()])
    assert.equal((await world.status()).stored, 10)
  })

  test("files that were imported before the first sync are Gmail's messages after it, each once", async (t) => {
    const world = await syncWorld(t, { messages: 12 })
    const { archive } = world.account
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    mailbox.insert({ raw: Buffer.from('Subject: without id\r\n\r\ntext'), labelIds: ['INBOX'] })
    const all = [...mailbox.dump()]
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-eml-'))
    t.after(async () => rmSync(folder, { recursive: true }))
    for (const [at, { id }] of all.entries()) {
      const raw = Buffer.from(mailbox.get(id)!.raw())
      // As a program saves it that ends lines with LF alone.
      const unix = Buffer.from(raw.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')
      const isSame = Buffer.from(unix.toString('latin1').replaceAll('\n', '\r\n'), 'latin1').equals(raw)
      writeFileSync(join(folder, `${id}.eml`), at % 2 === 0 && isSame ? unix : raw)
    }
    const bring = async () =>
      importMessages({ archive, source: await openSource({ path: folder }), clock: systemClock })
    assert.equal((await bring()).added, 13)
    await world.sync()
    const entries: IdEntry[] = []
    for await (const page of archive.entries({ fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }))
      entries.push(...page)
    assert.deepEqual(
      entries.map(({ id, internalMs, source }) => [id, internalMs, source]).sort(),
      all.map(({ id, internalMs }) => [id, internalMs, 'gmail']).sort(),
    )
    for (const { id, sha256 } of all) {
      assert.equal(
        createHash('sha256')
          .update(await archive.raw(id))
          .digest('hex'),
        sha256(),
      )
    }
    assert.deepEqual([(await bring()).added, (await bring()).known], [0, 13], 'nor do they come in again')
  })

  test('a message that was seen to be gone is marked, though the attempt that stored it ended before it looked', async (t) => {
    const world = await syncWorld(t, { messages: 10 })
    const { engine, kinds, account } = world
    await world.sync()
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    const { id } = [...mailbox.dump()][0]!
    mailbox.delete(id)
    await engine.transaction((tx) => noteGone(tx, ADDRESS, [id], Date.now()))
    await engine.enqueue(kinds.fetch, { account: ADDRESS, ids: [id] }, { stream: account.stream })
    await engine.drained()
    assert.notEqual((await account.archive.message(id))?.deletedAtMs, null)
  })

  for (const refresh of [true, undefined]) {
    const what = refresh ? 'fetched again' : 'in a batch whose last attempt ended before it could say so'
    test(`a message that was seen to be gone and is there after all is not marked, when it is ${what}`, async (t) => {
      const world = await syncWorld(t, { messages: 10 })
      const { engine, kinds, account } = world
      await world.sync()
      const { id } = [...world.sim.gmail.mailbox(ADDRESS).dump()][0]!
      await engine.transaction((tx) => noteGone(tx, ADDRESS, [id], Date.now()))
      if (refresh) await account.archive.apply([{ id, historyId: `${2n ** 64n - 1n}`, deletedAtMs: 1 }])
      await pause(2)
      const payload = { account: ADDRESS, ids: [id], ...(refresh ? { refresh } : {}) }
      await engine.enqueue(kinds.fetch, payload, { stream: account.stream })
      await engine.drained()
      assert.equal((await account.archive.message(id))?.deletedAtMs, null)
      assert.equal((await world.tables.gone(ADDRESS, [id])).size, 0)
    })
  }
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
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
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
