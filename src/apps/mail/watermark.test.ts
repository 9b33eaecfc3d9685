import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openLedger } from '../../ledger/open.ts'
import type { DumpedMessage } from '../../sim/gmail/mailbox-contract.ts'
import { markOf } from './plan.ts'
import { mailStatus } from './status.ts'
import { MailTables, schemaOf } from './store/tables.ts'
import { ADDRESS, type SyncWorld, startSync } from './sync.suite.ts'
import { watermarkOf, withWatermarks } from './watermark.ts'

const DAY_MS = 86_400_000
const FROM_MS = Date.UTC(2024, 0, 1)
const TO_MS = FROM_MS + 240 * DAY_MS
/** Not in the middle of a slice by chance: a month and a half before the last message. */
const LATE_MS = TO_MS - 45 * DAY_MS

class Gate {
  readonly #opened = Promise.withResolvers<void>()
  open(): void {
    this.#opened.resolve()
  }
  get opened(): Promise<void> {
    return this.#opened.promise
  }
}

type Context = { after(fn: () => Promise<void>): void }

/** A mailbox of eight months, of which some messages are fetched only when their gate opens. */
async function gatedWorld(t: Context): Promise<SyncWorld & { hold(id: string, gate: Gate): void }> {
  const accounts = [{ address: ADDRESS, messages: 80, fromMs: FROM_MS, toMs: TO_MS }]
  const world = await startSync({ messages: 80, slice: 'month', sim: { gmail: { accounts } } })
  const gates = new Map<string, Gate>()
  const { client } = world.account
  const getRaw = client.getRaw.bind(client)
  client.getRaw = async (ids, options) => {
    await Promise.all(ids.map((id) => gates.get(id)?.opened))
    return getRaw(ids, options)
  }
  t.after(async () => {
    for (const gate of gates.values()) gate.open()
    await world.close()
  })
  return { ...world, hold: (id, gate) => void gates.set(id, gate) }
}

/** Whatever is said at any time while it is waited for: what the watermark speaks of is stored. */
async function until(world: SyncWorld, arrived: Arrived, is: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 24_000; turn++) {
    const isSaid = await isCovered(world, arrived)
    assert.ok(!isSaid || (await isStored(world, arrived)), 'it is below the watermark and not stored')
    if (await is()) return
    await pause(10)
  }
  assert.fail('it never came to that')
}

type Arrived = { message: { id: string; internalMs: number }; atMs: number }

async function isCovered({ engine, tables }: SyncWorld, { message, atMs }: Arrived): Promise<boolean> {
  const [status] = await mailStatus(engine.ledger, tables, [ADDRESS])
  // A watermark that names no time would speak of the mailbox as it is now.
  const { watermarkMs, watermarkAsOfMs = Infinity } = status!
  return (watermarkMs ?? 0) > message.internalMs && (watermarkAsOfMs ?? Infinity) > atMs
}

async function isStored({ account }: SyncWorld, { message }: Arrived): Promise<boolean> {
  return (await account.archive.stored([message.id])).size > 0
}

const dump = ({ sim }: SyncWorld): DumpedMessage[] =>
  [...sim.gmail.mailbox(ADDRESS).dump()].sort((a, b) => a.internalMs - b.internalMs)

const begin = ({ engine, kinds, account }: SyncWorld, kind: 'plan' | 'history') =>
  engine.enqueue(kinds[kind], { account: ADDRESS }, { stream: account.stream })

const cursorOf = async ({ engine, account }: SyncWorld): Promise<string | null> =>
  (await engine.ledger.stream(account.stream)).cursor

describe('the watermark that is reported', () => {
  test('covers old-dated mail that arrives in mid-backfill only when it is stored', async (t) => {
    const world = await gatedWorld(t)
    const backfill = new Gate()
    for (const { id, internalMs } of dump(world)) if (internalMs > LATE_MS) world.hold(id, backfill)
    await begin(world, 'plan')
    const none: Arrived = { message: dump(world)[0]!, atMs: Infinity }
    await until(world, none, async () => (await world.status()).mark_at * 1000 > FROM_MS + 90 * DAY_MS)

    const message = world.sim.gmail.mailbox(ADDRESS).insert({
      raw: Buffer.from('Subject: old\r\n\r\nmail'),
      labelIds: ['INBOX'],
      internalMs: FROM_MS + 40 * DAY_MS,
    })
    const arrived = { message, atMs: Date.now() }
    const fetching = new Gate()
    world.hold(message.id, fetching)
    assert.equal(await isCovered(world, arrived), false, 'nobody has heard of it yet')

    // So that the history is read in a later millisecond than that of its arrival.
    await pause(2)
    const cursor = await cursorOf(world)
    await begin(world, 'history')
    await until(world, arrived, async () => (await cursorOf(world)) !== cursor)
    assert.equal(await isCovered(world, arrived), false, 'it is listed and not stored')
    fetching.open()
    await until(world, arrived, () => isCovered(world, arrived))
    assert.equal((await mailStatus(world.engine.ledger, world.tables, [ADDRESS]))[0]!.phase, 'backfill')
    backfill.open()
    await world.engine.drained()
    assert.equal(await isCovered(world, arrived), true)
    const { listed, stored } = await world.status()
    assert.deepEqual({ listed, stored }, { listed: 81, stored: 81 })
  })

  test('waits for a message that the history named before its slice was listed', async (t) => {
    const world = await gatedWorld(t)
    const { client } = world.account
    const [listing, fetching] = [new Gate(), new Gate()]
    t.after(async () => listing.open())
    const middle = dump(world)[40]!
    const listIds = client.listIds.bind(client)
    client.listIds = async (page) => {
      const answer = await listIds(page)
      if (page.maxResults === 1 || !answer.ids.some(({ id }) => id === middle.id)) return answer
      await listing.opened
      return listIds(page)
    }
    await begin(world, 'plan')
    const arrived = { message: middle, atMs: 0 }
    const isMarkUnder = async (): Promise<boolean> =>
      (await world.status()).mark_at * 1000 > middle.internalMs - 60 * DAY_MS
    await until(world, arrived, isMarkUnder)

    world.hold(middle.id, fetching)
    world.sim.gmail.mailbox(ADDRESS).modify(middle.id, { add: ['STARRED'] })
    const cursor = await cursorOf(world)
    await begin(world, 'history')
    await until(world, arrived, async () => (await cursorOf(world)) !== cursor)
    listing.open()
    // Its slice has nothing left to list, and all the slices are settled without it.
    await until(world, arrived, async () => (await world.status()).mark_at * 1000 > TO_MS)
    assert.equal(await isStored(world, arrived), false)
    const { ledger } = world.engine
    const [status] = await mailStatus(ledger, world.tables, [ADDRESS])
    const [shown] = await withWatermarks(ledger, world.tables, await ledger.streams())
    assert.equal(shown!.mark_at * 1000, status!.watermarkMs ?? 0, 'others show another one')
    assert.equal(shown!.mark, status!.watermarkMs === null ? null : markOf(shown!.mark_at))
    fetching.open()
    await until(world, arrived, () => isCovered(world, arrived))
    await world.engine.drained()
    assert.equal((await world.status()).stored, 80)
  })

  test('of a ledger from before it was held back is none while slices and news are under way', async (t) => {
    const ledger = await openLedger('sqlite::memory:')
    t.after(() => ledger.close())
    await ledger.migrateApp('mail-archive', schemaOf('sqlite').slice(0, 4))
    await ledger.transaction((tx) =>
      tx.run(
        `INSERT INTO mail_boxes(account, archive_id, planned_at, checked_at) VALUES (?, 'a', 9000, 9500)`,
        [ADDRESS],
      ),
    )
    const tables = await MailTables.open(ledger)
    const mailbox = await tables.findMailbox(ADDRESS)
    const { id } = await ledger.stream('mail:ann')
    assert.deepEqual(await watermarkOf(ledger, { id, mark_at: 5 }, mailbox), { markS: 5, asOfMs: 9_500 })
    await ledger.write({
      segments: [
        { streamId: id, from: 0, to: 9 },
        { streamId: id, from: 9, to: 10 },
      ],
    })
    assert.deepEqual(await watermarkOf(ledger, { id, mark_at: 5 }, mailbox), { markS: 0, asOfMs: 9_000 })
    assert.deepEqual(await watermarkOf(ledger, { id, mark_at: 9 }, mailbox), { markS: 9, asOfMs: 9_000 })
  })
})
