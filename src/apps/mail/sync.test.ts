import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { startLibsql } from '../../../scripts/libsql.ts'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { onLibsql } from '../../ledger/home.suite.ts'
import { ADDRESS, type SyncOptions, type SyncWorld, startSync } from './sync.suite.ts'

type Context = { after(fn: () => Promise<void>): void }

async function syncWorld(t: Context, options: SyncOptions): Promise<SyncWorld> {
  const world = await startSync(options)
  t.after(() => world.close())
  return world
}

/** Requests to the batch endpoint so far, whatever their answer. */
function batches({ sim }: SyncWorld): number {
  const byStatus = sim.log.counts().requests.batch ?? {}
  return Object.values(byStatus).reduce((sum, n) => sum + n, 0)
}

const DAY_MS = 86_400_000

/** All messages within one slice, so that they are one batch. */
function oneBatch(messages: number): Pick<SyncOptions, 'sim' | 'messages' | 'batch'> {
  const toMs = Date.UTC(2024, 5, 20)
  return {
    messages,
    batch: messages,
    sim: { gmail: { accounts: [{ address: ADDRESS, messages, fromMs: toMs - 5 * DAY_MS, toMs }] } },
  }
}

describe('a poison message in a batch of 300', () => {
  let undisturbed: number
  before(async () => {
    const world = await startSync(oneBatch(300))
    await world.sync()
    undisturbed = batches(world)
    await world.close()
  })

  for (const mode of ['batch', 'part'] as const) {
    const how = mode === 'batch' ? 'fails every request that it is part of' : 'is named by the answer'
    test(`that ${how} is isolated within 20 extra requests, and all others are stored`, async (t) => {
      const world = await syncWorld(t, oneBatch(300))
      const [victim] = [...world.sim.gmail.mailbox(ADDRESS).dump()].slice(123)
      world.sim.faults.poison({ id: victim!.id, mode })
      await world.sync()
      const { listed, stored, bad } = await world.status()
      assert.deepEqual({ listed, stored, bad }, { listed: 300, stored: 299, bad: 1 })
      const [item] = await world.engine.ledger.badItems()
      assert.equal(item?.item, victim!.id)
      assert.ok(item!.reason.length > 0)
      const extra = batches(world) - undisturbed
      assert.ok(extra <= 20, `${extra} extra requests`)
      assert.ok((await world.status()).mark_at > 0, 'it blocks nothing')

      world.sim.faults.clear()
      await world.engine.ledger.retryBad()
      world.engine.wake()
      await world.engine.drained()
      const mended = await world.status()
      assert.deepEqual({ stored: mended.stored, bad: mended.bad }, { stored: 300, bad: 0 })
    })
  }
})

describe('choices', () => {
  test('spam that is not wanted is neither listed nor stored, and comes when it is moved out of spam', async (t) => {
    const world = await syncWorld(t, { messages: 40, choices: { spam: false, trash: true } })
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    const spam = mailbox.insert({ raw: Buffer.from('Subject: win\r\n\r\nnow'), labelIds: ['SPAM'] })
    await world.sync()
    assert.equal(await world.account.archive.message(spam.id), null)
    mailbox.modify(spam.id, { remove: ['SPAM'], add: ['INBOX'] })
    await world.follow()
    assert.deepEqual((await world.account.archive.message(spam.id))?.labelIds, ['INBOX'])
  })

  test('a label that dominates is listed in two parts, and every message once', async (t) => {
    const world = await syncWorld(t, { messages: 120, sliceByLabel: 'INBOX' })
    await world.sync()
    const { listed, stored } = await world.status()
    assert.deepEqual({ listed, stored }, { listed: 120, stored: 120 })
  })
})

describe('deep slices', () => {
  test('a slice of more than 20 pages is cut, and every message is listed once', async (t) => {
    const messages = 10_600
    const toMs = Date.UTC(2024, 5, 20)
    const world = await syncWorld(t, {
      messages,
      slice: 'month',
      sim: {
        gmail: {
          accounts: [{ address: ADDRESS, messages, fromMs: toMs - 3 * DAY_MS, toMs, profile: 'small' }],
        },
      },
    })
    // The bytes are not what this is about.
    await world.engine.pause('kind', 'mail.fetch')
    await world.engine.enqueue(world.kinds.plan, { account: ADDRESS }, { stream: world.account.stream })
    await until(async () => {
      const tallies = await world.engine.ledger.tallies()
      return (
        tallies.every(({ kind, stage }) => kind !== 'mail.list' || stage === 'done') &&
        tallies.some(({ kind }) => kind === 'mail.list')
      )
    })
    const segments = await world.engine.ledger.segments(
      (await world.engine.streams.open(world.account.stream)).id,
    )
    assert.equal(
      segments.reduce((sum, { listed }) => sum + listed, 0),
      messages,
    )
    assert.equal(await world.tables.listedCount(ADDRESS), messages)
    assert.ok(segments.length > 2, `${segments.length} slices`)
  })
})

async function until(is: () => Promise<boolean>): Promise<void> {
  for (let turns = 0; turns < 100_000; turns++) {
    if (await is()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.fail('it never came to that')
}

/** Under faults, until nothing is left: every message that lives is in the archive, and the books balance. */
async function syncOn(place: { url: string; remove(): Promise<void> }, messages: number): Promise<void> {
  const world = await startSync({
    messages,
    ledgerUrl: place.url,
    sim: { faults: { profile: 'listing' } },
  })
  try {
    await world.sync()
    world.sim.faults.clear()
    await world.follow()
    const { listed, stored, gone, skipped, bad } = await world.status()
    assert.equal(listed, stored + gone + skipped + bad)
    const living = [...world.sim.gmail.mailbox(ADDRESS).dump()]
      .filter(({ deleted }) => !deleted)
      .map(({ id }) => id)
    assert.equal((await world.account.archive.stored(living)).size, living.length)
  } finally {
    await world.close()
    await place.remove()
  }
}

describe('ledgers', () => {
  test('the sync runs on PostgreSQL as on SQLite', async () => {
    const { url, drop } = await freshDatabase()
    await syncOn({ url, remove: drop }, 120)
  })

  onLibsql(() => {
    test('the sync runs on libSQL as on SQLite', async () => {
      const { url, stop } = await startLibsql()
      await syncOn({ url, remove: stop }, 120)
    })
  })
})
