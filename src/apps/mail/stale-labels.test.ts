/** Messages of which the history says only that something happened: their labels are known when they were read again. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { noteStale, staleIds } from './store/stale-labels.ts'
import { ADDRESS, type SyncOptions, type SyncWorld, startSync } from './sync.suite.ts'

/** A synced mailbox whose history names changed messages without their labels. */
async function unclearWorld(
  t: TestContext,
  options: Partial<SyncOptions> = {},
): Promise<SyncWorld & { id: string }> {
  const world = await startSync({ messages: 3, ...options })
  t.after(() => world.close())
  const raw = Buffer.from('Subject: named\r\n\r\nonly\r\n')
  const { id } = world.sim.gmail.mailbox(ADDRESS).insert({ raw, labelIds: ['INBOX'] })
  await world.sync()
  const { client } = world.account
  const history = client.history.bind(client)
  client.history = async (page) => {
    const answer = await history(page)
    const records = answer.records.map(({ labelsAdded, ...record }) => ({
      ...record,
      labelsAdded: [],
      touched: [...record.touched, ...labelsAdded],
    }))
    return { ...answer, records }
  }
  return { ...world, id }
}

async function until(is: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 12_000 && !(await is()); turn++) await pause(10)
  assert.ok(await is())
}

const labelsOf = async ({ account, id }: SyncWorld & { id: string }) =>
  (await account.archive.message(id))?.labelIds

test('it stays noted when its fetch is canceled and pruned, until a later one has read it', async (t) => {
  const world = await unclearWorld(t)
  const { engine, kinds, account, id } = world
  const { ledger } = engine
  const mailbox = world.sim.gmail.mailbox(ADDRESS)
  mailbox.modify(id, { add: ['STARRED'] })
  await engine.pause('kind', 'mail.fetch')
  const history = await engine.enqueue(kinds.history, { account: ADDRESS }, { stream: account.stream })
  await until(async () => (await ledger.job(history.id))?.job.state === 'done')
  const [fetch] = await ledger.jobs({ kind: 'mail.fetch', state: 'pending' })
  await engine.cancel(fetch!.id)
  assert.deepEqual(await staleIds(ledger, ADDRESS), new Set([id]))
  await ledger.transaction((tx) => tx.run(`DELETE FROM jobs WHERE id = ?`, [fetch!.id]))
  assert.deepEqual(await staleIds(ledger, ADDRESS), new Set([id]))
  assert.deepEqual(await labelsOf(world), ['INBOX'])

  await engine.resume('kind', 'mail.fetch')
  mailbox.modify(id, { add: ['IMPORTANT'] })
  await world.follow()
  assert.deepEqual(await labelsOf(world), ['IMPORTANT', 'INBOX', 'STARRED'])
  assert.deepEqual(await staleIds(ledger, ADDRESS), new Set())
})

test('a fetch that had begun before it was noted again does not settle it', async (t) => {
  const { engine, kinds, account, id } = await unclearWorld(t)
  const getRaw = account.client.getRaw.bind(account.client)
  account.client.getRaw = async (ids, options) => {
    account.client.getRaw = getRaw
    await getRaw(ids, options)
    await engine.ledger.transaction((tx) => noteStale(tx, ADDRESS, [id]))
  }
  const refresh = { account: ADDRESS, ids: [id], refresh: true }
  await engine.enqueue(kinds.fetch, refresh, { stream: account.stream })
  await engine.drained()
  assert.deepEqual(await staleIds(engine.ledger, ADDRESS), new Set([id]))
  await engine.enqueue(kinds.fetch, refresh, { stream: account.stream })
  await engine.drained()
  assert.deepEqual(await staleIds(engine.ledger, ADDRESS), new Set())
})

test('of a stored message that is in spam now the archive learns it, although spam is not wanted', async (t) => {
  const world = await unclearWorld(t, { choices: { spam: false, trash: true } })
  world.sim.gmail.mailbox(ADDRESS).modify(world.id, { add: ['SPAM'] })
  await world.follow()
  assert.deepEqual(await labelsOf(world), ['SPAM'])
})

test('one that is left out by its labels stays noted: a fetch that began before may still store it', async (t) => {
  const world = await startSync({ messages: 3, choices: { spam: false, trash: true } })
  t.after(() => world.close())
  await world.sync()
  const { engine, kinds, account } = world
  const mailbox = world.sim.gmail.mailbox(ADDRESS)
  const { id } = mailbox.insert({ raw: Buffer.from('Subject: slow\r\n\r\nbytes\r\n'), labelIds: ['INBOX'] })
  const getRaw = account.client.getRaw.bind(account.client)
  const [read, later] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  account.client.getRaw = async (ids, options) => {
    if (!ids.includes(id)) return getRaw(ids, options)
    account.client.getRaw = getRaw
    const answers: Parameters<typeof options.onAnswer>[0][] = []
    await getRaw(ids, { ...options, onAnswer: (answer) => void answers.push(answer) })
    mailbox.modify(id, { add: ['SPAM'] })
    read.resolve()
    await later.promise
    for (const answer of answers) await options.onAnswer(answer)
  }
  const history = { account: ADDRESS }
  const first = await engine.enqueue(kinds.history, history, { stream: account.stream })
  await read.promise
  await until(async () => (await engine.ledger.job(first.id))?.job.state === 'done')
  await engine.enqueue(kinds.history, history, { stream: account.stream })
  const ended = () => engine.ledger.jobs({ kind: 'mail.fetch', state: 'done', segmentId: null })
  await until(async () => (await ended()).length > 0)
  later.resolve()
  await engine.drained()
  assert.deepEqual((await account.archive.message(id))?.labelIds, ['INBOX'])
  assert.deepEqual(await staleIds(engine.ledger, ADDRESS), new Set([id]))
})
