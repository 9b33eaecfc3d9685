import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sleep, systemClock } from '../../../base/clock.ts'
import { TidemarkError } from '../../../base/errors.ts'
import { Obstacles } from '../../../engine/obstacles.ts'
import {
  ADDRESS,
  CUTOFF_MS,
  cleanUpBench,
  finished,
  labelsOf,
  ran,
  sha256,
  tamper,
  undone,
  wantedRun,
} from './clean-up.suite.ts'
import type { CleanUpPoint } from './kinds.ts'

test('exactly the proven messages leave the inbox, and nothing else about any message changes', async (t) => {
  const bench = await cleanUpBench(t, { old: 12, young: 3 })
  const before = labelsOf(bench)
  const run = await ran(bench)
  assert.deepEqual([run.planned, run.done, run.refused], [12, 12, 0])
  const after = labelsOf(bench)
  for (const id of bench.ids) {
    const expected = bench.oldIds.includes(id)
      ? before.get(id)!.filter((label) => label !== 'INBOX')
      : before.get(id)
    assert.deepEqual(after.get(id), expected)
  }
  for (const id of bench.oldIds) {
    assert.ok(!(await bench.account.archive.message(id))!.labelIds.includes('INBOX'), 'the archive knows it')
  }
  const again = await ran(bench)
  assert.equal(again.planned, 0)
})

test('deleting for good deletes the proven ones, marks them in the archive and keeps their bytes', async (t) => {
  const bench = await cleanUpBench(t, { old: 6, young: 2 })
  const bytes = new Map(bench.oldIds.map((id) => [id, sha256(bench.mailbox.get(id)!.raw())]))
  const run = await bench.runs.start(wantedRun({ action: 'delete', approved: false }))
  const asks = await bench.runs.wait(run.id)
  assert.equal(asks.end, 'asks')
  assert.equal(bench.mailbox.deleted.size, 0, 'nothing happens before the word')
  await bench.runs.approve(run.id)
  await finished(bench, run.id)
  assert.deepEqual([...bench.mailbox.deleted.keys()].sort(), [...bench.oldIds].sort())
  for (const id of bench.oldIds) {
    assert.notEqual((await bench.account.archive.message(id))!.deletedAtMs, null)
    assert.equal(sha256(await bench.account.archive.raw(id)), bytes.get(id))
  }
})

test('a limit and a query bound what is taken', async (t) => {
  const bench = await cleanUpBench(t, { old: 8, young: 0 })
  const limited = await ran(bench, { messagesMax: 3 })
  assert.equal(limited.done, 3)
  const found = await ran(bench, { query: 'subject:number7' })
  assert.deepEqual([found.planned, found.done], [1, 1])
  assert.deepEqual(bench.mailbox.get(bench.oldIds[7]!)!.labelIds.has('INBOX'), false)
})

test('messages above the watermark, bad, imported or deleted ones are passed over by class', async (t) => {
  const bench = await cleanUpBench(t, {
    old: 6,
    young: 0,
    markS: Math.floor(CUTOFF_MS / 1000) - 100_000_000,
  })
  const run = await ran(bench)
  assert.equal(run.done, 0)
  assert.equal(run.passedOver['above-watermark']?.messages, 6)

  const other = await cleanUpBench(t, { old: 6, young: 0 })
  await other.registerBad(other.oldIds[0]!)
  await other.account.archive.apply([{ id: other.oldIds[1]!, historyId: '9'.repeat(18), deletedAtMs: 5 }])
  const imported = await other.importMessage()
  const second = await ran(other)
  assert.equal(second.done, 4)
  assert.deepEqual(
    Object.entries(second.passedOver)
      .map(([what, { messages }]) => [what, messages])
      .sort(),
    [
      ['bad', 1],
      ['deleted', 1],
      ['imported', 1],
    ],
  )
  assert.equal(second.passedOver.imported?.example, imported)
  assert.ok(other.mailbox.get(other.oldIds[0]!)!.labelIds.has('INBOX'))
})

test('a watermark that is lower when the batch comes stops what was planned below the old one', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0 })
  const run = await bench.runs.start(wantedRun({ action: 'delete', approved: false }))
  await bench.runs.wait(run.id)
  await bench.setMark(Math.floor(CUTOFF_MS / 1000) - 100_000_000)
  await bench.runs.approve(run.id)
  const end = await finished(bench, run.id)
  assert.deepEqual([end.done, end.refused], [0, 4])
  assert.equal(bench.mailbox.deleted.size, 0)
})

test('a message whose bytes in the archive were tampered with is refused, and its neighbours are not', async (t) => {
  const bench = await cleanUpBench(t, { old: 5, young: 0 })
  const victim = bench.oldIds[2]!
  await tamper(bench, victim)
  const run = await ran(bench, { action: 'trash' })
  assert.deepEqual([run.done, run.refused], [4, 1])
  const tallies = await (await bench.runs.journal()).tallies(run.id)
  const refused = tallies.find(({ state }) => state === 'refused')
  assert.ok(refused?.class === 'mismatch' || refused?.class === 'unreadable')
  assert.equal(refused.example, victim)
  assert.deepEqual([...bench.mailbox.get(victim)!.labelIds].includes('TRASH'), false)
})

test('what was starred, relabelled, trashed or deleted between plan and act is refused', async (t) => {
  const bench = await cleanUpBench(t, { old: 6, young: 0 })
  const [starred, labelled, trashed, deleted, read, same] = bench.oldIds as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const run = await bench.runs.start(wantedRun({ action: 'delete', approved: false }))
  await bench.runs.wait(run.id)
  const own = bench.mailbox.createLabel({ name: 'keep' })
  bench.mailbox.modify(starred, { add: ['STARRED'] })
  bench.mailbox.modify(labelled, { add: [own.id] })
  bench.mailbox.trash(trashed)
  bench.mailbox.delete(deleted)
  bench.mailbox.modify(read, { remove: ['UNREAD'] })
  await bench.runs.approve(run.id)
  const end = await finished(bench, run.id)
  assert.deepEqual([end.done, end.refused], [2, 4])
  const tallies = await (await bench.runs.journal()).tallies(run.id)
  assert.deepEqual(
    tallies.filter(({ state }) => state === 'refused').map((tally) => [tally.class, tally.messages]),
    [
      ['changed', 3],
      ['gone', 1],
    ],
  )
  assert.deepEqual([...bench.mailbox.deleted.keys()].sort(), [deleted, read, same].sort())
})

const POINTS: readonly CleanUpPoint[] = ['examined', 'intended', 'called', 'told']

for (const action of ['unlabel', 'trash', 'delete'] as const) {
  for (const point of POINTS) {
    test(`a crash of ${action} when it has ${point} ends as if there had been none`, async (t) => {
      const bench = await cleanUpBench(t, { old: 5, young: 2, crashAt: [point] })
      const run = await ran(bench, { action })
      assert.equal(bench.crashes, 1)
      assert.deepEqual([run.done, run.refused, run.planned], [5, 0, 5])
      for (const id of bench.ids) {
        const isOld = bench.oldIds.includes(id)
        const message = bench.mailbox.get(id)
        if (action === 'delete') assert.equal(message === undefined, isOld)
        else if (action === 'trash') assert.equal(message!.labelIds.has('TRASH'), isOld)
        else assert.equal(message!.labelIds.has('INBOX'), !isOld)
      }
      const calls = bench.calls(action === 'delete' ? 'messages.batchDelete' : 'messages.batchModify')
      assert.equal(calls, 1, 'the call was made once')
    })
  }
}

test('a crash while an earlier one is being cleared up ends as if there had been none', async (t) => {
  const bench = await cleanUpBench(t, { old: 5, young: 0, crashAt: ['called', 'finished'] })
  const run = await ran(bench)
  assert.equal(bench.crashes, 2)
  assert.deepEqual([run.done, run.refused], [5, 0])
  assert.equal(bench.calls('messages.batchModify'), 1)
})

test('an answer that is lost after the call has worked does not repeat the call', async (t) => {
  const bench = await cleanUpBench(t, { old: 5, young: 0 })
  bench.loseAnswers('messages.batchDelete', 1)
  const run = await ran(bench, { action: 'delete' })
  assert.deepEqual([run.done, run.refused], [5, 0])
  assert.equal(bench.mailbox.deleted.size, 5)
})

test('what others changed before the archive heard of it is not lost by telling it of our own change', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const id = bench.oldIds[0]!
  bench.mailbox.modify(id, { remove: ['UNREAD'] })
  const { historyId } = bench.mailbox.get(id)!
  await ran(bench)
  await bench.account.archive.apply([{ id, historyId: String(historyId), removeLabelIds: ['UNREAD'] }])
  assert.deepEqual((await bench.account.archive.message(id))!.labelIds, [])
})

test('a run that was stopped by hand goes on only when it is approved again', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0, stuckAt: 'examined' })
  const run = await bench.runs.start(wantedRun())
  await bench.stuck
  await bench.runs.halt(run.id)
  bench.unstick()
  await bench.engine.drained()
  assert.equal((await bench.runs.get(run.id)).state, 'planned')
  assert.equal(bench.calls('messages.batchModify'), 0)
  await bench.runs.approve(run.id)
  assert.equal((await finished(bench, run.id)).done, 4)
})

test('an account has one run at a time, and an abandoned one makes room', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const first = await bench.runs.start(wantedRun({ action: 'delete', approved: false }))
  await assert.rejects(bench.runs.start(wantedRun()), { code: 'run-unfinished' })
  await bench.runs.wait(first.id)
  assert.equal(await bench.runs.abandon(first.id), true)
  const second = await ran(bench)
  assert.equal(second.done, 3)
  assert.equal(bench.mailbox.deleted.size, 0)
})

test('a token without the scope stops the run with the reason, and changes nothing', async (t) => {
  const bench = await cleanUpBench(t, {
    old: 3,
    young: 0,
    scopes: ['https://www.googleapis.com/auth/gmail.modify'],
  })
  const run = await bench.runs.start(wantedRun({ action: 'delete' }))
  const end = await bench.runs.wait(run.id)
  assert.equal(end.end, 'stuck')
  assert.match(end.end === 'stuck' ? end.reason : '', /did not allow/)
  assert.equal(bench.mailbox.deleted.size, 0)
})

test('a batch that fails for a while is tried again, and one that fails for good can be resumed', async (t) => {
  const bench = await cleanUpBench(t, { old: 4, young: 0 })
  const error = new TidemarkError('away', { kind: 'transient' })
  bench.failWith(error)
  const run = await bench.runs.start(wantedRun())
  const end = await bench.runs.wait(run.id)
  assert.equal(end.end, 'stuck')
  assert.match(end.end === 'stuck' ? end.reason : '', /away/)
  bench.failWith(undefined)
  await bench.runs.resume(run.id)
  assert.equal((await finished(bench, run.id)).done, 4)
})

test('a run that ended while somebody looked for what is in its way is in no trouble', async (t) => {
  const bench = await cleanUpBench(t, { old: 3, young: 0 })
  const seen = await bench.runs.start(wantedRun())
  const end = await finished(bench, seen.id)
  assert.equal(await bench.runs.trouble(seen), undefined)
  await undone(bench, end)
  assert.equal(await bench.runs.trouble({ ...end, undo: 'undoing' }), undefined)
})

test('a batch waits out an outage that is longer than all its tries, and goes on by itself', async (t) => {
  const obstacles = new Obstacles<'cloud' | 'archive'>(systemClock)
  const bench = await cleanUpBench(t, { old: 4, young: 0, obstacles })
  bench.failWith(new TidemarkError('away', { kind: 'transient' }))
  const run = await bench.runs.start(wantedRun())
  // It is looked for again and again, and found away each time.
  const times = new Set<number>()
  while (times.size < 4) {
    const obstacle = obstacles.of(ADDRESS)
    if (obstacle) times.add(obstacle.nextMs)
    await sleep(systemClock, 20)
  }
  assert.deepEqual(await bench.engine.ledger.jobs({ state: 'failed' }), [])
  bench.failWith(undefined)
  assert.equal((await finished(bench, run.id)).done, 4)
})

test('a run that waits for longer than anybody wants to is stuck, and can be resumed', async (t) => {
  const bench = await cleanUpBench(t, {
    old: 4,
    young: 0,
    obstacles: new Obstacles(systemClock),
    patienceMs: 500,
  })
  bench.failWith(new TidemarkError('away', { kind: 'transient' }))
  const run = await bench.runs.start(wantedRun())
  const end = await bench.runs.wait(run.id)
  assert.equal(end.end === 'stuck' ? end.reason : end.end, 'away')
  bench.failWith(undefined)
  await bench.runs.resume(run.id)
  await bench.engine.drained()
  assert.equal((await bench.runs.get(run.id)).done, 4)
})
