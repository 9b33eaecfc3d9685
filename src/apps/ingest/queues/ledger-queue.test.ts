import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { FakeClock } from '../../../base/clock.ts'
import { type QueueHome, type SentMessage, take, testQueue, textOf } from '../../../cloud/queue.suite.ts'
import { ReusedDatabase } from '../../../ledger/home.suite.ts'
import { openLedger } from '../../../ledger/open.ts'
import { InboxTables } from '../store/inbox.ts'
import { LedgerQueue } from './ledger-queue.ts'

const VISIBILITY_MS = 30_000
const root = mkdtempSync(join(tmpdir(), 'tidemark-inbox-'))
const reused = new ReusedDatabase()
after(async () => {
  rmSync(root, { recursive: true, force: true })
  await reused.remove()
})
let files = 0

async function openSite(url: string) {
  const clock = new FakeClock()
  const ledger = await openLedger(url, { clock })
  const neighbour = await openLedger(url, { clock })
  const inbox = await InboxTables.open(ledger)
  const queueOf = (tables: InboxTables) =>
    new LedgerQueue({ inbox: tables, pipeline: 'logs', clock, visibilityMs: VISIBILITY_MS })
  const otherInbox = await InboxTables.open(neighbour)
  return {
    clock,
    ledger,
    inbox,
    queue: queueOf(inbox),
    other: queueOf(otherInbox),
    send: async (messages: readonly SentMessage[]) => {
      await ledger.transaction(async (tx) => {
        await inbox.put(
          tx,
          'logs',
          messages.map(({ body, attributes = {} }) => ({
            body: Buffer.from(body),
            attributes: Object.fromEntries(
              Object.entries(attributes).map(([name, value]) => [name.toLowerCase(), value]),
            ),
          })),
        )
      })
      inbox.arrived()
    },
    pass: (share: number) => clock.advance(share * VISIBILITY_MS),
    close: async () => {
      await neighbour.close()
      await ledger.close()
    },
  }
}

async function sqlite(): Promise<string> {
  files += 1
  return `sqlite:${join(root, `${files}.db`)}`
}

const postgres = (): Promise<string> => reused.empty()

const HOMES: QueueHome[] = [
  { name: 'the ledger on SQLite', open: async () => openSite(await sqlite()) },
  { name: 'the ledger on PostgreSQL', open: async () => openSite(await postgres()) },
]
for (const home of HOMES) testQueue(home)

for (const [name, database] of [
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
] as const) {
  describe(`the inbox on ${name}`, () => {
    test('has no message of a transaction that was rolled back', async () => {
      const site = await openSite(await database())
      const put = site.ledger.transaction(async (tx) => {
        await site.inbox.put(tx, 'logs', [{ body: Buffer.from('m'), attributes: {} }])
        throw new Error('not this time')
      })
      await assert.rejects(put, /not this time/)
      assert.equal(await site.inbox.hasVisible('logs'), false)
      await site.close()
    })

    test('keeps the messages of pipelines apart', async () => {
      const site = await openSite(await database())
      await site.send([{ body: 'm' }])
      const { inbox, clock } = site
      const queue = new LedgerQueue({ inbox, pipeline: 'other', clock })
      assert.deepEqual(await queue.receive({ max: 1, waitMs: 0, signal: new AbortController().signal }), [])
      assert.deepEqual((await take(site.queue, 1)).map(textOf), ['m'])
      await site.close()
    })

    test('gives each message to one of many readers', async () => {
      const site = await openSite(await database())
      const bodies = Array.from({ length: 60 }, (_, at) => `m${at}`)
      await site.send(bodies.map((body) => ({ body })))
      const readers = Array.from({ length: 6 }, (_, at) => (at % 2 === 0 ? site.queue : site.other))
      const signal = new AbortController().signal
      const got: string[] = []
      // Who finds the database locked waits by the clock.
      const ticking = setInterval(() => void site.clock.advance(1), 5)
      while (got.length < bodies.length) {
        const pages = await Promise.all(
          readers.map((reader) => reader.receive({ max: 5, waitMs: 0, signal })),
        )
        got.push(...pages.flat().map(textOf))
      }
      clearInterval(ticking)
      assert.deepEqual(got.sort(), [...bodies].sort())
      await site.close()
    })

    test('says of a message that another was given since that acknowledging it is lost', async () => {
      const site = await openSite(await database())
      await site.send([{ body: 'm' }])
      const first = await take(site.queue, 1)
      await site.pass(1)
      const again = await take(site.other, 1)
      assert.deepEqual(await site.queue.acknowledge(first), ['lost'])
      assert.deepEqual(await site.other.acknowledge(again), ['acknowledged'])
      await site.close()
    })
  })
}

test('an inbox that is full takes nothing more until something of it is acknowledged', async () => {
  const ledger = await openLedger(await sqlite())
  try {
    const inbox = await InboxTables.open(ledger, { max: 3 })
    const put = (count: number, pipeline = 'logs'): Promise<void> =>
      ledger.transaction((tx) =>
        inbox.put(
          tx,
          pipeline,
          Array.from({ length: count }, () => ({ body: Buffer.from('m'), attributes: {} })),
        ),
      )
    await put(2)
    await assert.rejects(put(2), { code: 'inbox-full' })
    await put(1)
    await assert.rejects(put(1), { code: 'inbox-full' })
    await put(1, 'other')
    const [first] = await inbox.receive('logs', { max: 1, visibleAtMs: ledger.now() + 1_000 })
    await inbox.acknowledge([first!])
    await put(1)
    assert.equal((await inbox.depth('logs')).waiting, 3)
  } finally {
    await ledger.close()
  }
})
