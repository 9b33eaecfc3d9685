import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import { TidemarkError } from '../../../base/errors.ts'
import {
  ADDRESS,
  type Bench,
  CUTOFF_MS,
  cleanUpBench,
  contentsOf,
  finished,
  labelsOf,
  ran,
  sha256,
  undone,
  wantedRun,
} from './clean-up.suite.ts'
import { REDATED, REWRITTEN, UNDATED } from './reinsertion.ts'

test('an undo brings every label back as it was, after unlabel and after trash, and is done once', async (t) => {
  for (const action of ['unlabel', 'trash'] as const) {
    const bench = await cleanUpBench(t, { old: 7, young: 2 })
    const own = bench.mailbox.createLabel({ name: 'own' })
    bench.mailbox.modify(bench.oldIds[0]!, { add: [own.id, 'STARRED'] })
    await bench.resync()
    const before = labelsOf(bench)
    const run = await ran(bench, { action })
    assert.equal(run.done, 7)
    assert.notDeepEqual(labelsOf(bench), before)
    await bench.runs.undo(run.id)
    const undone = await bench.runs.wait(run.id, { undo: true })
    assert.equal(undone.end, 'done')
    assert.deepEqual(labelsOf(bench), before)
    for (const id of bench.oldIds) {
      assert.deepEqual([...(await bench.account.archive.message(id))!.labelIds].sort(), before.get(id))
    }
    const calls = bench.calls('messages.batchModify')
    await bench.runs.undo(run.id)
    await bench.runs.wait(run.id, { undo: true })
    assert.equal(bench.calls('messages.batchModify'), calls, 'a second undo does nothing')
    assert.deepEqual(labelsOf(bench), before)
  }
})

test('an undo of a deletion inserts the same bytes with the date and the labels of before', async (t) => {
  const bench = await cleanUpBench(t, { old: 5, young: 1 })
  const before = contentsOf(bench)
  const run = await ran(bench, { action: 'delete' })
  assert.equal(bench.mailbox.deleted.size, 5)
  await undone(bench, run)
  assert.deepEqual(contentsOf(bench), before)
  await bench.runs.undo(run.id)
  await bench.runs.wait(run.id, { undo: true })
  assert.deepEqual(contentsOf(bench), before, 'a second undo inserts nothing')
})

for (const point of ['inserting', 'inserted'] as const) {
  test(`an undo of a deletion that crashes when ${point} inserts nothing twice`, async (t) => {
    const bench = await cleanUpBench(t, { old: 4, young: 1, twins: true, crashAt: [point] })
    const before = contentsOf(bench)
    const run = await ran(bench, { action: 'delete' })
    await undone(bench, run)
    assert.equal(bench.crashes, 1)
    assert.deepEqual(contentsOf(bench), before)
  })
}

test('an undo covers what a stopped run intended and did, and leaves the rest alone', async (t) => {
  const bench = await cleanUpBench(t, { old: 5, young: 0, stuckAt: 'called' })
  const before = labelsOf(bench)
  const run = await bench.runs.start(wantedRun({ action: 'trash' }))
  await bench.stuck
  assert.notDeepEqual(labelsOf(bench), before)
  await bench.runs.undo(run.id)
  bench.unstick()
  const end = await bench.runs.wait(run.id, { undo: true })
  assert.equal(end.end, 'done')
  assert.equal(end.run.state, 'abandoned')
  assert.deepEqual(labelsOf(bench), before)
})

test('where the Date header says another time, an undo keeps the bytes, or the time of arrival if asked, and says so', async (t) => {
  for (const keepDates of [false, true]) {
    const bench = await cleanUpBench(t, { old: 2, young: 0, headerLateMs: 3_600_000 })
    const before = bench.mailbox.get(bench.oldIds[0]!)!
    const run = await ran(bench, { action: 'delete' })
    await undone(bench, run, { keepDates })
    const [restored] = await newOnes(bench)
    assert.equal(restored?.internalMs, before.internalMs + (keepDates ? 0 : 3_600_000))
    assert.equal(restored?.raw().equals(before.raw()), !keepDates)
    assert.deepEqual(await (await bench.runs.journal()).undoDetails(run.id), [
      { detail: keepDates ? REWRITTEN : REDATED, messages: 2 },
    ])
  }
})

test('a message without a date in it is inserted again as it is and said to be of today, and the archive keeps when it arrived', async (t) => {
  const bench = await cleanUpBench(t, { old: 0, young: 0 })
  const internalMs = CUTOFF_MS - 86_400_000
  bench.mailbox.insert({
    raw: Buffer.from('Subject: undated\r\n\r\ntext\r\n'),
    labelIds: ['INBOX'],
    internalMs,
  })
  await bench.resync()
  const { archive } = bench.account
  const before = await archive.message([...bench.mailbox.dump()][0]!.id)
  const run = await ran(bench, { action: 'delete' })
  await undone(bench, run)
  const [restored] = [...bench.mailbox.dump()].filter(({ deleted }) => !deleted)
  assert.ok(restored!.internalMs > internalMs)
  const after = (await archive.message(restored!.id))!
  assert.deepEqual([after.internalMs, after.storedAtMs], [internalMs, before!.storedAtMs])
  assert.ok(
    after.problems.some((note) => note.includes(before!.id)),
    'its id of before',
  )
  assert.deepEqual(await (await bench.runs.journal()).undoDetails(run.id), [{ detail: UNDATED, messages: 1 }])
})

test('what an undo inserted and failed to take in is not listed as if it were stored, and the next undo takes it in', async (t) => {
  const bench = await cleanUpBench(t, { old: 1, young: 0 })
  const { archive, client } = bench.account
  const run = await ran(bench, { action: 'delete' })
  const get = client.get.bind(client)
  client.get = () => Promise.reject(new TidemarkError('refused', { kind: 'permanent' }))
  await bench.runs.undo(run.id)
  await bench.engine.drained()
  const [restored] = [...bench.mailbox.dump()].filter(({ deleted }) => !deleted)
  assert.equal((await bench.tables.listed(ADDRESS, [restored!.id])).size, 0)
  assert.equal((await bench.runs.get(run.id)).undo, 'undoing')
  client.get = get
  await undone(bench, run)
  assert.equal((await archive.message(restored!.id))?.deletedAtMs, null)
  assert.equal((await bench.tables.listed(ADDRESS, [restored!.id])).size, 1)
})

for (const crashAt of [[], ['inserted'], ['reinserted']] as const) {
  test(`what an undo inserted again is in the archive once, under its new id${crashAt.length > 0 ? `, also after a crash when ${crashAt[0]}` : ''}`, async (t) => {
    const bench = await cleanUpBench(t, { old: 3, young: 1, headerLateMs: 86_400_000 * 400, crashAt })
    const { archive } = bench.account
    const run = await ran(bench, { action: 'delete' })
    await undone(bench, run)
    await bench.engine.drained()
    const all = [...bench.mailbox.dump()]
    const there = all.filter(({ deleted }) => !deleted)
    // Gmail dates them anew; the archive knows when they arrived.
    const arrived = new Map(all.map((one) => [one.sha256(), one.internalMs]))
    for (const one of all.filter(({ deleted }) => deleted)) arrived.set(one.sha256(), one.internalMs)
    const entries = []
    for await (const page of archive.entries({ fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }))
      entries.push(...page)
    const inArchive = entries.map(({ id, internalMs, deletedAtMs }) => [id, internalMs, deletedAtMs])
    assert.deepEqual(
      inArchive.sort(),
      there.map(({ id, sha256: hash }) => [id, arrived.get(hash()), null]).sort(),
    )
    for (const { id, sha256: hash } of there) assert.equal(sha256(await archive.raw(id)), hash())
    assert.equal(bench.crashes, crashAt.length)
    const added = await bench.tables.listed(
      ADDRESS,
      there.map(({ id }) => id),
    )
    assert.equal(added.size, 3, 'the sync does not count them as new')
  })
}

test('on PostgreSQL a run that crashes and its undo that crashes end as if they had not', async (t) => {
  const database = await freshDatabase()
  const bench = await cleanUpBench(t, {
    old: 4,
    young: 1,
    crashAt: ['called', 'inserted'],
    ledgerUrl: database.url,
  })
  t.after(() => database.drop())
  const before = contentsOf(bench)
  const run = await ran(bench, { action: 'delete' })
  assert.deepEqual([run.done, bench.mailbox.deleted.size, bench.calls('messages.batchDelete')], [4, 4, 1])
  await undone(bench, run)
  assert.equal(bench.crashes, 2)
  assert.deepEqual(contentsOf(bench), before)
})

test('messages that left the trash for good are inserted again by an undo', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const before = contentsOf(bench)
  const run = await ran(bench, { action: 'trash' })
  bench.mailbox.delete(bench.oldIds[1]!)
  await undone(bench, run)
  assert.deepEqual(contentsOf(bench), before)
})

test('what others delete while a trash run is about to call is not inserted again by its undo', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0, stuckAt: 'intended' })
  const run = await bench.runs.start(wantedRun({ action: 'trash' }))
  await bench.stuck
  bench.mailbox.delete(bench.oldIds[2]!)
  bench.unstick()
  const end = await finished(bench, run.id)
  assert.deepEqual([end.done, end.refused], [3, 1])
  await undone(bench, run)
  const there = [...bench.mailbox.dump()].filter((message) => !message.deleted)
  assert.deepEqual(there.map(({ id }) => id).sort(), bench.oldIds.toSpliced(2, 1).sort())
  for (const { labels } of there) assert.ok(labels.includes('INBOX') && !labels.includes('TRASH'))
})

test('what others delete is seen also where each message was asked for, and has not changed for longer than the history goes', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0, stuckAt: 'intended' })
  bench.mailbox.expireHistory()
  const run = await bench.runs.start(wantedRun({ action: 'trash' }))
  await bench.stuck
  bench.mailbox.delete(bench.oldIds[2]!)
  bench.unstick()
  const end = await finished(bench, run.id)
  assert.deepEqual([end.done, end.refused], [3, 1])
  await undone(bench, run)
  assert.equal([...bench.mailbox.dump()].filter(({ deleted }) => !deleted).length, 3, 'inserted again')
})

test('what left the trash before a stopped run was seen to have put it there is inserted again by its undo', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0, stuckAt: 'called' })
  const before = contentsOf(bench)
  const run = await bench.runs.start(wantedRun({ action: 'trash' }))
  await bench.stuck
  bench.mailbox.delete(bench.oldIds[2]!)
  await bench.runs.undo(run.id)
  bench.unstick()
  assert.equal((await bench.runs.wait(run.id, { undo: true })).end, 'done')
  assert.deepEqual(contentsOf(bench), before)
})

test('what others delete after its label was taken off is not inserted again by the undo', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const run = await ran(bench)
  bench.mailbox.delete(bench.oldIds[0]!)
  await undone(bench, run)
  assert.equal([...bench.mailbox.dump()].filter((message) => !message.deleted).length, 2)
})

/** What an undo has inserted, in the order of what it stands for. */
async function newOnes({ mailbox, oldIds, runs }: Bench) {
  const found = new Map<string, string | null>()
  for await (const page of (await runs.journal()).allEntries(1))
    for (const { id, newId } of page) found.set(id, newId)
  return oldIds.map((id) => mailbox.get(found.get(id) ?? ''))
}
