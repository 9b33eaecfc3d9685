/** An archive, or a file of it, that was put back from an older backup. */
import assert from 'node:assert/strict'
import { copyFileSync, cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../base/clock.ts'
import { streamOf } from './account.ts'
import { noticeLosses } from './losses.ts'
import type { FetchedMessage } from './message.ts'
import { type MailStatus, mailStatus } from './status.ts'
import { openArchive } from './store/archive.ts'
import { missingIds, noteMark } from './store/missing-messages.ts'
import { staleIds } from './store/stale-labels.ts'
import { ADDRESS, type SyncWorld, startSync } from './sync.suite.ts'

const MESSAGES = 12
/** Long before all other mail: far below the watermark. */
const ARRIVED_MS = Date.UTC(2001, 4, 1)
const SHARD = '2001'

async function worldFor(t: TestContext): Promise<SyncWorld> {
  const world = await startSync({ messages: MESSAGES })
  t.after(() => world.close())
  return world
}

function mail(subject: string): Buffer {
  return Buffer.from(
    `From: bob@example.com\r\nSubject: ${subject}\r\nMessage-ID: <${subject}@x>\r\n\r\n${subject}\r\n`,
  )
}

function arrive({ sim }: SyncWorld, subject: string): string {
  const message = { raw: mail(subject), labelIds: ['INBOX'], internalMs: ARRIVED_MS }
  return sim.gmail.mailbox(ADDRESS).insert(message).id
}

/** As `tidemark mail status` has it, and what the files really hold. */
async function look(world: SyncWorld): Promise<MailStatus & { inFiles: number }> {
  const { engine, tables, accounts } = world
  const account = await accounts.get(ADDRESS)
  await noticeLosses({ ledger: engine.ledger, tables, clock: systemClock }, account)
  const [status] = await mailStatus(engine.ledger, tables, [ADDRESS])
  const inFiles = (await account.archive.shards()).reduce((sum, { messages }) => sum + messages, 0)
  return { ...status!, inFiles }
}

async function until(is: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 12_000 && !(await is()); turn++) await pause(20)
  assert.ok(await is())
}

/** Nobody has the files open while they are changed. */
async function closed(world: SyncWorld, change: (folder: string) => void): Promise<void> {
  const { folder } = (await world.accounts.get(ADDRESS)).archive
  await world.accounts.close()
  change(folder)
}

test('a shard that is put back from an older copy is not claimed, and what it lacks is fetched again', async (t) => {
  const world = await worldFor(t)
  await world.sync()
  const early = arrive(world, 'early')
  await world.follow()
  await closed(world, (folder) => copyFileSync(join(folder, `${SHARD}.db`), join(folder, 'copy')))
  const late = [arrive(world, 'late-1'), arrive(world, 'late-2')]
  world.sim.gmail.mailbox(ADDRESS).modify(early, { add: ['STARRED'] })
  await world.follow()
  const before = await look(world)
  assert.deepEqual([before.stored, before.inFiles, before.missing], [MESSAGES + 3, MESSAGES + 3, 0])
  await closed(world, (folder) => copyFileSync(join(folder, 'copy'), join(folder, `${SHARD}.db`)))

  const opened = await look(world)
  assert.deepEqual([opened.stored, opened.inFiles, opened.missing], [MESSAGES + 1, MESSAGES + 1, 2])
  assert.equal(opened.onTheirWay, 2)
  assert.ok(opened.watermarkMs! <= ARRIVED_MS, 'the watermark is above what is missing')

  await world.follow()
  const after = await look(world)
  assert.deepEqual(
    [after.stored, after.inFiles, after.missing, after.lost],
    [MESSAGES + 3, MESSAGES + 3, 0, 0],
  )
  assert.ok(after.watermarkMs! >= before.watermarkMs!)
  const { archive } = await world.accounts.get(ADDRESS)
  assert.deepEqual([...(await archive.stored(late))].sort(), [...late].sort())
  const labels = (await archive.message(early))?.labelIds
  assert.deepEqual(labels, ['INBOX', 'STARRED'], 'labels of the older copy')
})

test('a sync alone finds an older shard, and says which message nobody has any more', async (t) => {
  const world = await worldFor(t)
  await world.sync()
  arrive(world, 'early')
  await world.follow()
  await closed(world, (folder) => copyFileSync(join(folder, `${SHARD}.db`), join(folder, 'copy')))
  const [kept, deleted] = [arrive(world, 'kept'), arrive(world, 'deleted')]
  const { archive } = await world.accounts.get(ADDRESS)
  const raw = Buffer.from('Subject: imported\r\n\r\nfrom a file\r\n')
  const imported = {
    id: 'import-1',
    threadId: 'import-1',
    historyId: '0',
    labelIds: [],
    internalMs: ARRIVED_MS,
  }
  await archive.store([{ ...imported, raw, source: 'import' }])
  await world.follow()
  world.sim.gmail.mailbox(ADDRESS).delete(deleted)
  await world.follow()
  await closed(world, (folder) => copyFileSync(join(folder, 'copy'), join(folder, `${SHARD}.db`)))
  await world.follow()
  const after = await look(world)
  assert.deepEqual([after.missing, after.lost, after.lostImports], [0, 1, 1])
  assert.deepEqual([after.stored, after.inFiles, after.onTheirWay], [MESSAGES + 2, MESSAGES + 2, 0])
  const again = (await world.accounts.get(ADDRESS)).archive
  assert.deepEqual([...(await again.stored([kept, deleted]))], [kept])
  // What comes back by any way is not missing any more.
  await again.store([{ ...imported, raw, source: 'import' }])
  assert.equal((await look(world)).lostImports, 0)
})

test('an archive that is put back as a whole from an older copy is not claimed, and is completed again', async (t) => {
  const world = await worldFor(t)
  await world.sync()
  let copy = ''
  await closed(world, (folder) => {
    copy = `${folder}-copy`
    cpSync(folder, copy, { recursive: true })
  })
  arrive(world, 'late-1')
  arrive(world, 'late-2')
  await world.follow()
  await closed(world, (folder) => {
    rmSync(folder, { recursive: true })
    cpSync(copy, folder, { recursive: true })
  })
  const opened = await look(world)
  assert.deepEqual([opened.stored, opened.inFiles, opened.missing], [MESSAGES, MESSAGES, 2])
  await world.follow()
  const after = await look(world)
  assert.deepEqual(
    [after.stored, after.inFiles, after.missing, after.lost],
    [MESSAGES + 2, MESSAGES + 2, 0, 0],
  )
})

/** Puts the archive back as it is now. */
async function restorable(world: SyncWorld): Promise<() => Promise<void>> {
  let copy = ''
  await closed(world, (folder) => {
    copy = `${folder}-copy`
    cpSync(folder, copy, { recursive: true })
  })
  return () =>
    closed(world, (folder) => {
      rmSync(folder, { recursive: true })
      cpSync(copy, folder, { recursive: true })
    })
}

function imported(n: number): FetchedMessage {
  const id = `import-${n}`
  const raw = Buffer.from(`Subject: ${id}\r\n\r\nfrom a file\r\n`)
  return { id, threadId: id, historyId: '0', labelIds: [], internalMs: ARRIVED_MS, raw, source: 'import' }
}

test('an older archive is noticed however much was stored in it since it was put back', async (t) => {
  const world = await worldFor(t)
  const { ledger } = world.engine
  await world.sync()
  const { folder } = world.account.archive
  const restore = await restorable(world)
  const late = arrive(world, 'late')
  await world.follow()
  const { stores: before } = (await world.tables.findMailbox(ADDRESS))!
  await restore()
  // By somebody who did not look first; and what it came to is told to the ledger, as a fetch does.
  const archive = await openArchive({
    folder,
    account: ADDRESS,
    archiveId: 'archive-1',
    shardBy: 'year',
    shardBytesMax: 4e9,
    now: () => systemClock.now(),
  })
  for (let n = 0; n < before + 1; n++) await archive.store([imported(n)])
  const mark = await archive.mark()
  await archive.close()
  assert.ok(mark.stores > before)
  await ledger.transaction((tx) => noteMark(tx, ADDRESS, mark))

  assert.deepEqual((await look(world)).missing, 1)
  await world.follow()
  const again = (await world.accounts.get(ADDRESS)).archive
  assert.deepEqual([...(await again.stored([late]))], [late])
  assert.equal((await look(world)).missing, 0)
})

test('an older archive is noticed before a fetch that was waiting stores anything in it', async (t) => {
  const world = await worldFor(t)
  const { engine, kinds, tables } = world
  await world.sync()
  const restore = await restorable(world)
  const [late, waiting] = [arrive(world, 'late'), arrive(world, 'waiting')]
  await world.follow()
  await restore()
  await engine.enqueue(kinds.fetch, { account: ADDRESS, ids: [waiting] }, { stream: streamOf(ADDRESS) })
  await engine.drained()
  assert.deepEqual(await missingIds(engine.ledger, ADDRESS, { states: ['noted'], limit: 9 }), [late])
  assert.equal((await mailStatus(engine.ledger, tables, [ADDRESS]))[0]!.missing, 1)
})

test('what an archive took in before the ledger could note it does not make it older, nor does a home without a tip', async (t) => {
  const world = await worldFor(t)
  const { engine, tables } = world
  await world.sync()
  const { archive } = world.account
  for (let n = 0; n < 3; n++) {
    await archive.store([imported(n)])
    await archive.mark()
  }
  await look(world)
  const noted = (await tables.findMailbox(ADDRESS))!
  assert.deepEqual([noted.older, noted.tip], [0, (await archive.mark()).tips[0]])
  await engine.ledger.transaction((tx) => tx.run(`UPDATE mail_boxes SET tip = ''`))
  await look(world)
  assert.deepEqual(await tables.findMailbox(ADDRESS), noted)
})

test('labels of an older copy count as compared only when a comparison has ended, however often one is canceled', async (t) => {
  const world = await worldFor(t)
  const { engine, tables } = world
  await world.sync()
  const early = arrive(world, 'early')
  await world.follow()
  await closed(world, (folder) => copyFileSync(join(folder, `${SHARD}.db`), join(folder, 'copy')))
  world.sim.gmail.mailbox(ADDRESS).modify(early, { add: ['STARRED'] })
  await world.follow()
  await closed(world, (folder) => copyFileSync(join(folder, 'copy'), join(folder, `${SHARD}.db`)))
  const isCompared = async (): Promise<boolean> => {
    const account = await world.accounts.get(ADDRESS)
    const { older, compared } = await noticeLosses(
      { ledger: engine.ledger, tables, clock: systemClock },
      account,
    )
    return older === compared
  }
  assert.equal(await isCompared(), false)
  await engine.pause('kind', 'mail.reconcile')
  for (let time = 0; time < 2; time++) {
    const stream = (await world.accounts.get(ADDRESS)).stream
    const { id } = await engine.enqueue(world.kinds.history, { account: ADDRESS }, { stream })
    await until(async () => (await engine.ledger.job(id))?.job.state === 'done')
    const [waiting] = await engine.ledger.jobs({ kind: 'mail.reconcile', state: 'pending' })
    assert.ok(waiting)
    assert.equal(await isCompared(), false)
    await engine.cancel(waiting.id)
    assert.equal(await isCompared(), false)
  }
  await engine.resume('kind', 'mail.reconcile')
  await world.follow()
  assert.equal(await isCompared(), true)
  const { archive } = await world.accounts.get(ADDRESS)
  assert.deepEqual((await archive.message(early))?.labelIds, ['INBOX', 'STARRED'])
})

test('a change that comes in while the mailbox is compared does not hide what an older copy has lost', async (t) => {
  const world = await worldFor(t)
  const { engine, kinds } = world
  await world.sync()
  const early = arrive(world, 'early')
  await world.follow()
  await closed(world, (folder) => copyFileSync(join(folder, `${SHARD}.db`), join(folder, 'copy')))
  const mailbox = world.sim.gmail.mailbox(ADDRESS)
  mailbox.modify(early, { add: ['STARRED'] })
  await world.follow()
  await closed(world, (folder) => copyFileSync(join(folder, 'copy'), join(folder, `${SHARD}.db`)))

  // The comparison has noted where the history stands, and has not looked yet.
  const { client, archive, stream } = await world.accounts.get(ADDRESS)
  const labels = client.labels.bind(client)
  client.labels = async (options) => {
    client.labels = labels
    mailbox.modify(early, { add: ['IMPORTANT'] })
    const { id } = await engine.enqueue(kinds.history, { account: ADDRESS }, { stream })
    await until(async () => (await engine.ledger.job(id))?.job.state === 'done')
    assert.deepEqual((await archive.message(early))?.labelIds, ['IMPORTANT', 'INBOX'])
    return labels(options)
  }
  await engine.enqueue(kinds.reconcile, { account: ADDRESS }, { stream })
  await engine.drained()
  assert.deepEqual((await archive.message(early))?.labelIds, ['IMPORTANT', 'INBOX', 'STARRED'])
  assert.deepEqual(await staleIds(engine.ledger, ADDRESS), new Set())
})

test('the labels of an archive that was there before the first sync are compared, whoever plans it', async (t) => {
  const world = await worldFor(t)
  const id = arrive(world, 'before')
  const old = { threadId: id, historyId: '1', labelIds: ['INBOX', 'STARRED'], internalMs: ARRIVED_MS }
  await world.account.archive.store([{ id, ...old, raw: mail('before'), source: 'gmail' }])
  await world.engine.enqueue(world.kinds.plan, { account: ADDRESS }, { stream: world.account.stream })
  await world.engine.drained()
  const deps = { ledger: world.engine.ledger, tables: world.tables, clock: systemClock }
  const planned = await noticeLosses(deps, world.account)
  assert.notEqual(planned.older, planned.compared, 'they count as compared')
  await world.follow()
  assert.deepEqual((await world.account.archive.message(id))?.labelIds, ['INBOX'])
  const { older, compared } = await noticeLosses(deps, world.account)
  assert.equal(older, compared)
})

test('a catalogue that is lost makes nothing missing', async (t) => {
  const world = await worldFor(t)
  await world.sync()
  await closed(world, (folder) => rmSync(join(folder, 'catalogue.db')))
  const { stored, inFiles, missing } = await look(world)
  assert.deepEqual([stored, inFiles, missing], [MESSAGES, MESSAGES, 0])
  await world.follow()
  assert.equal((await look(world)).stored, MESSAGES)
})
