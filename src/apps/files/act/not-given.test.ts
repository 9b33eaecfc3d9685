/** OneDrive answers "not found" for items that it lists. Nothing that anybody has is deleted for that. */
import assert from 'node:assert/strict'
import { renameSync, rmSync } from 'node:fs'
import { describe, test } from 'node:test'
import { LEFT_ALONE } from '../action.ts'
import type { Action } from '../plan-order.ts'
import { type ActWorld, actWorlds, MIB, noise, type Ran } from './act-world.suite.ts'
import { FOLDER_NOT_GIVEN, NOT_GIVEN } from './fresh-look.ts'

const world = actWorlds()

const HOUR_MS = 3_600_000
const TRIES_MAX = 20

function hide(w: ActWorld): void {
  w.there.setQuirks({ changedNotFoundMs: HOUR_MS })
}

function show(w: ActWorld): void {
  w.there.setQuirks({ changedNotFoundMs: 0 })
}

/** For a minute and more, with delta heard before each try, as it is asked for. */
async function tryLong(w: ActWorld, action: Action): Promise<{ ran: Ran; tries: number; forMs: number }> {
  const beganMs = w.nowMs
  let ran = await w.run(action)
  for (let tries = 1; tries < TRIES_MAX; tries++) {
    if (!ran.outcome.again) return { ran, tries, forMs: w.nowMs - beganMs }
    assert.match(ran.outcome.note ?? '', /^waits: OneDrive lists/)
    w.nowMs += ran.outcome.again.afterMs ?? 0
    await w.hear()
    ran = await w.run(action, { checkpoint: ran.checkpoint })
  }
  throw new Error('It goes on and on.')
}

async function reasons(w: ActWorld): Promise<(string | null)[]> {
  return (await w.store.openNodes('docs', { limit: 10 })).map(({ because }) => because)
}

describe('what OneDrive lists and does not give', () => {
  test('stays in the folder, and its new version comes when it is given', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.edit('/a.txt', 'two')
    hide(w)
    const action = await w.only('download')
    const { outcome, checkpoint } = await w.run(action)
    assert.deepEqual(outcome.again, { afterMs: 1_000 })
    await w.hear()
    assert.equal(w.read('a.txt'), 'one')
    show(w)
    await w.run(action, { checkpoint })
    assert.equal(w.read('a.txt'), 'two')
    assert.deepEqual(await w.differences(), [])
  })

  test('for longer than delta lags is left alone with its reason, and tried again with the next look', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.edit('/a.txt', 'two')
    hide(w)
    const { ran, tries, forMs } = await tryLong(w, await w.only('download'))
    assert.equal(ran.outcome.skip, LEFT_ALONE + NOT_GIVEN)
    assert.ok(forMs >= 60_000 && tries < 12, `${tries} tries in ${forMs} ms`)
    assert.deepEqual(await reasons(w), [NOT_GIVEN])
    const counts = await w.store.openCounts('docs')
    assert.deepEqual(counts, { unplanned: 0, inWork: 0, waiting: 0, reported: 1 })
    assert.deepEqual(await w.plan(), [])
    assert.deepEqual([w.read('a.txt'), w.trash()], ['one', []])
    show(w)
    await w.sync()
    assert.equal(w.read('a.txt'), 'two')
    assert.deepEqual(await w.differences(), [])
  })

  test('and is deleted goes here as well, as soon as delta says so', async () => {
    const w = await world({ files: { '/a.txt': 'one' } })
    w.there.device.edit('/a.txt', 'two')
    const action = await w.only('download')
    w.there.device.delete('/a.txt')
    const { checkpoint } = await w.run(action)
    assert.equal(w.read('a.txt'), 'one')
    await w.hear()
    assert.match((await w.run(action, { checkpoint })).outcome.skip ?? '', /not needed any more/)
    await w.sync()
    assert.deepEqual([w.has('a.txt'), w.trash()], [false, ['one']])
    assert.deepEqual(await w.differences(), [])
  })

  test('keeps the local edit of it as an edit', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.write('a.txt', 'edited here')
    await w.run(await w.only('check'))
    hide(w)
    const { ran } = await tryLong(w, await w.only('upload'))
    assert.equal(ran.outcome.skip, LEFT_ALONE + NOT_GIVEN)
    show(w)
    await w.sync()
    assert.equal(w.there.device.read('/a.txt')!.toString(), 'edited here')
    assert.deepEqual([(await w.conflicts()).length, w.trash()], [0, []])
    assert.deepEqual(await w.differences(), [])
  })

  test('takes no folder away: what is in it stays, and what is new goes up later', async () => {
    const w = await world({ files: { '/sub/kept.txt': 'kept' } })
    w.write('sub/new.txt', 'new')
    const action = await w.only('upload')
    // The folder is not given, nor can anything be put into it.
    hide(w)
    const refused = {
      do: 'error',
      status: 404,
      reason: 'itemNotFound',
      methods: ['graph.content.put'],
    } as const
    w.sim.faults.set({ rules: [refused] })
    const { ran } = await tryLong(w, action)
    assert.equal(ran.outcome.skip, LEFT_ALONE + FOLDER_NOT_GIVEN)
    assert.deepEqual([w.read('sub/kept.txt'), w.read('sub/new.txt'), w.trash()], ['kept', 'new', []])
    w.sim.faults.clear()
    show(w)
    await w.sync()
    assert.equal(w.there.device.read('/sub/new.txt')!.toString(), 'new')
    assert.deepEqual(await w.differences(), [])
  })

  test('is not forgotten when it was deleted here: it is deleted there when it is given', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    rmSync(w.path('a.txt'))
    const action = await w.only('delete-remote')
    hide(w)
    const { outcome, checkpoint } = await w.run(action)
    assert.match(outcome.note ?? '', /lists it, but does not give it/)
    show(w)
    await w.run(action, { checkpoint })
    assert.equal(w.there.device.has('/a.txt'), false)
    await w.assertSettled()
  })

  test('is not forgotten as a folder, either', async () => {
    const w = await world({ files: { 'sub/': '' } })
    rmSync(w.path('sub'), { recursive: true })
    const action = await w.only('delete-remote')
    hide(w)
    const { ran } = await tryLong(w, action)
    assert.equal(ran.outcome.skip, LEFT_ALONE + NOT_GIVEN)
    show(w)
    await w.sync()
    assert.equal(w.there.device.has('/sub'), false)
    assert.deepEqual(await w.differences(), [])
  })

  test('is moved when it is given', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    renameSync(w.path('a.txt'), w.path('b.txt'))
    const action = await w.only('move-remote')
    hide(w)
    const { outcome, checkpoint } = await w.run(action)
    assert.match(outcome.note ?? '', /lists it, but does not give it/)
    show(w)
    await w.run(action, { checkpoint })
    assert.equal(w.there.device.has('/b.txt'), true)
    await w.sync()
    assert.deepEqual(await w.differences(), [])
  })

  test('at the end of a large upload costs none of its bytes', async () => {
    const w = await world({ files: { 'big.bin': noise(5 * MIB, 1) } })
    const content = noise(5 * MIB, 2)
    w.write('big.bin', content)
    await w.run(await w.only('check'))
    const action = await w.only('upload')
    const bytes = (): number => w.sim.log.bytesOf('graph.session.put').received
    const before = bytes()
    const { outcome, checkpoint } = await w.run(action, {
      onProgress: (done) => {
        if (done >= MIB) hide(w)
      },
    })
    assert.match(outcome.note ?? '', /lists it, but does not give it/)
    assert.equal(w.there.sessions.open, 1)
    show(w)
    await w.run(action, { checkpoint })
    assert.deepEqual(w.there.device.read('/big.bin'), content)
    assert.equal(bytes() - before, content.length)
    assert.deepEqual(await w.differences(), [])
  })

  test('makes no copy of what is in conflict with it', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.write('a.txt', 'edited here')
    await w.run(await w.only('check'))
    w.there.device.edit('/a.txt', 'edited there')
    const action = await w.only('conflict')
    hide(w)
    const { outcome } = await w.run(action)
    assert.match(outcome.note ?? '', /lists it, but does not give it/)
    assert.deepEqual([w.read('a.txt'), await w.conflicts()], ['edited here', []])
  })
})
