import assert from 'node:assert/strict'
import { chmodSync, renameSync, unlinkSync } from 'node:fs'
import { describe, test } from 'node:test'
import { asTidemarkError } from '../../../base/errors.ts'
import type { Action } from '../plan-order.ts'
import { type ActWorld, actWorlds, MIB, noise, type WorldOptions } from './act-world.suite.ts'

const world = actWorlds()

const CHUNK_BYTES = 4 * 320 * 1024
const AT_MS = Date.UTC(2021, 4, 6, 7, 8, 9, 123)
const sent = (w: ActWorld): number => w.sim.log.bytesOf('graph.session.put').received
const text = (w: ActWorld, path: string): string => w.there.device.read(path)!.toString()
const fsModifiedMs = (w: ActWorld, path: string): number => w.there.device.item(path).fsModifiedMs

async function checkpointOf(running: Promise<unknown>): Promise<unknown> {
  try {
    await running
  } catch (thrown) {
    return (thrown as { checkpoint?: unknown }).checkpoint
  }
  throw new Error('It was not stopped.')
}

async function stoppedAt(w: ActWorld, action: Action, bytes: number): Promise<unknown> {
  const stop = new AbortController()
  const onProgress = (done: number): void => void (done >= bytes && stop.abort())
  return checkpointOf(w.run(action, { signal: stop.signal, onProgress }))
}

/** Of progress: something happens when so much is sent, and only then. */
function once(bytes: number, happen: () => unknown): (done: number) => void {
  let isOver = false
  return (done) => {
    if (done < bytes || isOver) return
    isOver = true
    happen()
  }
}

/** A fragment is taken, and nobody hears of it. */
const lostAnswer = ({ skip }: { skip: number }) =>
  ({ do: 'reset', when: 'after', methods: ['graph.session.put'], skip, max: 1 }) as const

/** What follows from an edit: a check, and then this. */
async function edited(w: ActWorld, name: string, content: string | Uint8Array): Promise<Action> {
  w.write(name, content)
  await w.run(await w.only('check'))
  return w.only('upload')
}

describe('a small upload', () => {
  test('brings a new file with its time', async () => {
    const w = await world()
    w.write('a.txt', 'hello', AT_MS)
    await w.run(await w.only('upload'))
    assert.equal(text(w, '/a.txt'), 'hello')
    assert.equal(fsModifiedMs(w, '/a.txt'), AT_MS)
    await w.assertSettled()
  })

  test('of an empty file is one too', async () => {
    for (const type of ['personal', 'business'] as const) {
      const w = await world({ type, quirks: { hashMissingOnEmpty: true }, files: { 'a.txt': '' } })
      assert.equal(text(w, '/a.txt'), '')
      assert.deepEqual(await w.sync(), [])
    }
  })

  test('of a version replaces the one that it was decided on', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    w.write('a.txt', 'two two')
    const [check] = [await w.only('check')]
    await w.run(check)
    await w.run(await w.only('upload'))
    assert.equal(text(w, '/a.txt'), 'two two')
    assert.equal(w.there.device.item('/a.txt').versions.length, 1)
    assert.deepEqual(await w.sync(), [])
  })

  test('makes one version and no more on a Business drive', async () => {
    const w = await world({ type: 'business' })
    w.write('a.txt', 'one', AT_MS)
    await w.sync()
    assert.equal(w.there.device.item('/a.txt').versions.length, 0)
    assert.equal(fsModifiedMs(w, '/a.txt'), AT_MS)
    w.write('a.txt', 'two two')
    await w.sync()
    assert.equal(w.there.device.item('/a.txt').versions.length, 1)
  })

  test('does not replace what was edited in OneDrive meanwhile', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    const action = await edited(w, 'a.txt', 'ours, edited')
    w.there.device.edit('/a.txt', 'theirs')
    assert.match((await w.run(action)).outcome.skip ?? '', /changed in OneDrive/)
    assert.equal(text(w, '/a.txt'), 'theirs')
    await w.sync()
    assert.equal(w.read('a.txt'), 'theirs')
    assert.equal((await w.conflicts()).length, 1)
    assert.deepEqual(await w.differences(), [])
  })

  test('takes the new tag of what was only renamed or shared meanwhile', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    const action = await edited(w, 'a.txt', 'two two')
    w.there.device.setTimes('/a.txt', { modifiedMs: AT_MS })
    assert.match((await w.run(action)).outcome.skip ?? '', /changed in OneDrive/)
    await w.sync()
    assert.equal(text(w, '/a.txt'), 'two two')
    assert.equal((await w.conflicts()).length, 0)
  })

  test('that was accepted before the process died is recognised', async () => {
    const w = await world()
    w.write('a.txt', 'hello', AT_MS)
    const action = await w.only('upload')
    await w.run(action, { isLost: true })
    const again = await w.run(action)
    assert.equal(again.outcome.skip, undefined)
    assert.equal(w.there.device.item('/a.txt').versions.length, 0)
    await w.assertSettled()
    w.write('a.txt', 'hello again', AT_MS + 5_000)
    await w.run(await w.only('check'))
    const second = await w.only('upload')
    await w.run(second, { isLost: true })
    assert.equal((await w.run(second)).outcome.skip, undefined)
    assert.equal(w.there.device.item('/a.txt').versions.length, 1)
    assert.deepEqual(await w.sync(), [])
  })

  test('finds its name taken by another file, which is kept', async () => {
    const w = await world()
    w.write('a.txt', 'ours')
    const action = await w.only('upload')
    w.there.device.write('/a.txt', 'theirs!')
    assert.match((await w.run(action)).outcome.skip ?? '', /something else has its name/)
    await w.sync()
    assert.equal(w.read('a.txt'), 'theirs!')
    const [copy] = await w.conflicts()
    assert.equal(text(w, `/${copy!.copyPath}`), 'ours')
    assert.deepEqual(await w.differences(), [])
  })

  test('of what somebody else has just uploaded with the same content adopts that', async () => {
    const w = await world()
    w.write('a.txt', 'the same')
    const action = await w.only('upload')
    const { id } = w.there.device.write('/a.txt', 'the same', { modifiedMs: Date.UTC(2024, 0, 1) })
    assert.match((await w.run(action)).outcome.skip ?? '', /something else has its name/)
    assert.deepEqual(await w.sync(), ['check', 'conflict'])
    assert.equal(w.there.device.item('/a.txt').id, id)
    assert.deepEqual([await w.conflicts(), await w.differences()], [[], []])
  })

  test('of a file that was edited after it was seen is not made', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    const action = await w.only('upload')
    w.write('a.txt', 'one and a half')
    assert.match((await w.run(action)).outcome.skip ?? '', /changed here/)
    assert.equal(w.there.device.has('/a.txt'), false)
    await w.sync()
    assert.equal(text(w, '/a.txt'), 'one and a half')
  })

  test('of a file that is not there waits for a look, which tells a move from a deletion', async () => {
    const w = await world({ files: { 'a.txt': 'one' } })
    const action = await edited(w, 'a.txt', 'one, edited')
    renameSync(w.path('a.txt'), w.path('b.txt'))
    const first = await w.run(action)
    assert.ok(first.outcome.again)
    w.nowMs += 10_000
    const second = await w.run(action, { checkpoint: first.checkpoint })
    assert.match(second.outcome.note ?? '', /waits for the next look/)
    assert.deepEqual(await w.plan(), [])
    assert.deepEqual(await w.sync(), ['move-remote', 'check', 'upload'])
    assert.equal(text(w, '/b.txt'), 'one, edited')
    assert.equal(w.there.device.has('/a.txt'), false)
    assert.deepEqual(await w.differences(), [])
  })

  test('of a file that may not be read is reported, and nothing is concluded from it', async (t) => {
    if (process.getuid?.() === 0) {
      // Root may read everything: the rule is then that it is uploaded.
      const w = await world()
      w.write('a.txt', 'one')
      chmodSync(w.path('a.txt'), 0)
      await w.sync()
      assert.equal(text(w, '/a.txt'), 'one')
      return
    }
    t.diagnostic('as a plain user')
    const w = await world()
    w.write('a.txt', 'one')
    const action = await w.only('upload')
    chmodSync(w.path('a.txt'), 0)
    assert.match((await w.run(action)).outcome.skip ?? '', /may not be read/)
    assert.equal(w.there.device.has('/a.txt'), false)
  })

  test('into a folder that was deleted in OneDrive goes on as soon as that is known', async () => {
    const w = await world({ files: { '/sub/': '' } })
    w.write('sub/a.txt', 'one')
    const action = await w.only('upload')
    w.there.device.delete('/sub')
    const { outcome, checkpoint } = await w.run(action)
    assert.match(outcome.note ?? '', /lists its folder, but does not give it/)
    await w.hear()
    assert.match((await w.run(action, { checkpoint })).outcome.skip ?? '', /does not have it any more/)
    await w.sync()
    assert.equal(text(w, '/sub/a.txt'), 'one')
    assert.deepEqual(await w.differences(), [])
  })

  test('works where fresh folders and items are not found at first', async () => {
    const quirks = { freshChildNotFound: true, freshItemNotFound: true, freshPathNotFound: true }
    const w = await world({ quirks: { ...quirks, mkdirEmptyBody: true } })
    w.write('one/two/a.txt', 'deep', AT_MS)
    await w.sync()
    assert.equal(text(w, '/one/two/a.txt'), 'deep')
    assert.deepEqual(await w.differences(), [])
  })

  test('that the service rewrites is not sent again', async () => {
    for (const quirk of ['rewritesUploads', 'rewritesUploadsLater'] as const) {
      const w = await world({
        type: 'business',
        quirks: { [quirk]: true },
        files: { 'a.docx': 'a document' },
      })
      assert.equal(w.sim.log.counts().requests['graph.session.create']?.['200'], 1, quirk)
      assert.deepEqual(await w.sync(), [])
      w.there.device.write('/a.docx', 'another document')
      await w.sync()
      assert.equal(w.read('a.docx'), 'another document')
    }
  })

  test('does not hide an edit that was seen while it ran', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    const action = await w.only('upload')
    const lost = await w.run(action, { isLost: true })
    w.write('a.txt', 'two two')
    await w.look()
    await w.commit(lost.outcome.effects!)
    const verbs = await w.sync()
    assert.ok(verbs.includes('upload'), verbs.join(' '))
    assert.equal(text(w, '/a.txt'), 'two two')
  })

  test('does not hide a deletion that was seen while it ran', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    const action = await w.only('upload')
    const lost = await w.run(action, { isLost: true })
    unlinkSync(w.path('a.txt'))
    await w.look()
    await w.commit(lost.outcome.effects!)
    await w.sync()
    assert.equal(w.there.device.has('/a.txt'), false)
    assert.deepEqual(await w.differences(), [])
  })

  test('waits without costing a try while OneDrive cannot be reached', async () => {
    const w = await world()
    w.write('a.txt', 'one')
    const action = await w.only('upload')
    w.sim.faults.set({ rules: [{ do: 'error', status: 500 }] })
    const ran = await w.run(action, { failures: 4 })
    assert.ok(ran.outcome.again)
    assert.equal(w.obstacles.of('docs')?.where, 'cloud')
    w.sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['graph.content.put'], max: 1 }] })
    w.obstacles.over('docs')
    await assert.rejects(w.run(action), (thrown) => asTidemarkError(thrown).code === 'server-error')
  })

  test('waits without costing a try where OneDrive is full, and goes up when there is room', async () => {
    const w = await world()
    w.there.state.quotaBytes = 3
    w.write('a.txt', 'more than that')
    const action = await w.only('upload')
    const { outcome } = await w.run(action, { failures: 4 })
    assert.equal(outcome.note, 'waits: The OneDrive is full')
    const waitMs = outcome.again!.afterMs!
    assert.ok(waitMs >= 60_000 && waitMs <= 300_000, `${waitMs}`)
    assert.equal(w.obstacles.of('docs'), undefined)
    assert.equal(w.obstacles.ofUploads('docs')?.where, 'quota')
    const calls = JSON.stringify(w.sim.log.counts())
    assert.ok((await w.run(action)).outcome.again)
    assert.equal(JSON.stringify(w.sim.log.counts()), calls, 'OneDrive was asked again at once')
    w.there.state.quotaBytes = 1_000
    w.obstacles.roomMade('docs')
    await w.run(action)
    assert.equal(text(w, '/a.txt'), 'more than that')
    assert.equal(w.obstacles.ofUploads('docs'), undefined)
    assert.deepEqual(await w.sync(), [])
  })

  test('of something smaller goes up where a larger one finds no room, and so does everything else', async () => {
    const w = await world({ files: { '/theirs.txt': '0123456789', '/old.txt': '0123456789' } })
    w.there.state.quotaBytes = 30
    w.write('large.txt', 'a'.repeat(100))
    w.write('small.txt', 'tiny')
    w.write('sub/none.txt', '')
    w.there.device.edit('/theirs.txt', 'edited')
    unlinkSync(w.path('old.txt'))
    assert.deepEqual((await w.sync()).sort(), [
      'delete-remote',
      'download',
      'mkdir-remote',
      'upload',
      'upload',
      'upload',
    ])
    assert.deepEqual(
      [text(w, '/small.txt'), text(w, '/sub/none.txt'), w.read('theirs.txt')],
      ['tiny', '', 'edited'],
    )
    assert.deepEqual([w.there.device.has('/large.txt'), w.there.device.has('/old.txt')], [false, false])
    assert.deepEqual(await w.store.openCounts('docs'), { unplanned: 0, inWork: 1, waiting: 0, reported: 0 })
  })
})

describe('an upload in fragments', () => {
  test('brings a large file with its time, and saves its address before the first byte', async () => {
    const w = await world({ chunkBytes: 2 * MIB })
    const content = noise(9 * MIB + 17)
    w.write('big.bin', content, AT_MS)
    const ran = await w.run(await w.only('upload'))
    assert.equal(ran.saves, 2)
    assert.match(JSON.stringify(ran.checkpoint), /"uploadUrl":/)
    assert.ok(w.there.device.read('/big.bin')!.equals(content))
    assert.equal(fsModifiedMs(w, '/big.bin'), AT_MS)
    assert.deepEqual(await w.sync(), [])
    assert.equal(w.there.sessions.open, 0)
  })

  test('goes on where it was stopped, and the bytes on the wire prove it', async () => {
    const w = await world()
    const content = noise(12 * MIB)
    w.write('big.bin', content)
    const action = await w.only('upload')
    const checkpoint = await stoppedAt(w, action, 8.5 * MIB)
    w.sim.log.reset()
    const ran = await w.run(action, { checkpoint })
    assert.equal(ran.outcome.skip, undefined)
    assert.ok(sent(w) <= 4 * MIB, `${sent(w)}`)
    assert.ok(w.there.device.read('/big.bin')!.equals(content))
    assert.deepEqual(await w.sync(), [])
  })

  test('does not go on with a file that has changed since', async () => {
    const w = await world()
    w.write('big.bin', noise(6 * MIB, 1))
    const action = await w.only('upload')
    const checkpoint = await stoppedAt(w, action, 3.5 * MIB)
    const content = noise(6 * MIB, 2)
    w.write('big.bin', content)
    await w.look()
    await w.run(action, { checkpoint })
    await w.sync()
    assert.ok(w.there.device.read('/big.bin')!.equals(content))
    assert.equal(w.there.sessions.open, 0)
  })

  test('whose last answer was lost is recognised and not sent again', async () => {
    const w = await world({ chunkBytes: CHUNK_BYTES })
    const content = noise(5 * CHUNK_BYTES)
    w.write('big.bin', content)
    const action = await w.only('upload')
    w.sim.faults.set({ rules: [lostAnswer({ skip: 4 })] })
    const checkpoint = await checkpointOf(w.run(action))
    assert.ok(w.there.device.has('/big.bin'))
    w.sim.log.reset()
    const ran = await w.run(action, { checkpoint })
    assert.equal(ran.outcome.skip, undefined)
    assert.equal(sent(w), 0)
    assert.deepEqual(await w.sync(), [])
    assert.equal((await w.conflicts()).length, 0)
  })

  test('asks where OneDrive stands when an answer in the middle was lost', async () => {
    const w = await world({ chunkBytes: CHUNK_BYTES })
    const content = noise(5 * CHUNK_BYTES)
    w.write('big.bin', content)
    const action = await w.only('upload')
    w.sim.faults.set({ rules: [lostAnswer({ skip: 2 })] })
    const checkpoint = await checkpointOf(w.run(action))
    w.sim.log.reset()
    await w.run(action, { checkpoint })
    assert.ok(sent(w) === 2 * CHUNK_BYTES, `${sent(w)}`)
    assert.ok(w.there.device.read('/big.bin')!.equals(content))
  })

  test('begins anew where the session is gone', async () => {
    const w = await world()
    const content = noise(6 * MIB)
    w.write('big.bin', content)
    const action = await w.only('upload')
    const checkpoint = await stoppedAt(w, action, 3.5 * MIB)
    const { uploadUrl } = (checkpoint as { upload: { uploadUrl: string } }).upload
    await w.pair.client.cancelUpload(uploadUrl)
    await w.run(action, { checkpoint })
    assert.ok(w.there.device.read('/big.bin')!.equals(content))
    assert.deepEqual(await w.sync(), [])
  })

  test('is stopped at once when its file is seen to change, and nothing of it is visible', async () => {
    const w = await world()
    w.write('big.bin', noise(8 * MIB, 1))
    const action = await w.only('upload')
    const row = await w.store.localAt('docs', ['big.bin'])
    let stopped = 0
    const ran = await w.run(action, {
      onProgress: (done) => {
        if (done < 3 * MIB || stopped > 0) return
        w.write('big.bin', 'short now')
        stopped = w.transfers.changed('docs', [row!.id])
      },
    })
    assert.equal(stopped, 1)
    assert.match(ran.outcome.skip ?? '', /changed here/)
    assert.equal(w.there.device.has('/big.bin'), false)
    assert.equal(w.there.sessions.open, 0)
    await w.sync()
    assert.equal(text(w, '/big.bin'), 'short now')
  })

  test('of a file that changed before its last fragment is taken back', async () => {
    const w = await world()
    w.write('big.bin', noise(5 * MIB, 1))
    const action = await w.only('upload')
    const ran = await w.run(action, {
      onProgress: once(2 * MIB, () => w.write('big.bin', noise(5 * MIB, 2))),
    })
    assert.match(ran.outcome.skip ?? '', /changed here/)
    assert.equal(w.there.device.has('/big.bin'), false)
    assert.equal(w.there.sessions.open, 0)
  })

  test('of a version does not replace what was edited in OneDrive meanwhile, even where tags are ignored', async () => {
    const quirks: WorldOptions['quirks'][] = [
      {},
      { sessionIfMatchRefused: true },
      { sessionIfMatchForgotten: true },
    ]
    for (const quirk of quirks) {
      const w = await world(quirk ? { quirks: quirk } : {})
      w.write('big.bin', noise(5 * MIB, 1))
      await w.sync()
      const action = await edited(w, 'big.bin', noise(5 * MIB, 2))
      const ran = await w.run(action, {
        onProgress: once(2 * MIB, () => w.there.device.edit('/big.bin', 'theirs')),
      })
      assert.match(ran.outcome.skip ?? '', /changed in OneDrive/, JSON.stringify(quirk))
      assert.equal(text(w, '/big.bin'), 'theirs')
      await w.sync()
      assert.equal(w.read('big.bin'), 'theirs')
      assert.equal((await w.conflicts()).length, 1)
      assert.deepEqual(await w.differences(), [])
    }
  })

  test('finds its name taken with its last fragment', async () => {
    const w = await world()
    const content = noise(5 * MIB)
    w.write('big.bin', content)
    const action = await w.only('upload')
    const ran = await w.run(action, {
      onProgress: once(2 * MIB, () => w.there.device.write('/big.bin', 'theirs')),
    })
    assert.match(ran.outcome.skip ?? '', /something else has its name/)
    assert.equal(text(w, '/big.bin'), 'theirs')
    await w.sync()
    const [conflict] = await w.conflicts()
    assert.ok(w.there.device.read(`/${conflict!.copyPath}`)!.equals(content))
  })

  test('shows how far it is, in both numbers and list', async () => {
    const w = await world()
    w.write('big.bin', noise(6 * MIB))
    const action = await w.only('upload')
    let seen: unknown
    await w.run(action, {
      onProgress: (done) => {
        if (done >= 3 * MIB)
          seen ??= { ...w.transfers.numbers('docs').upload, path: w.transfers.list()[0]!.path }
      },
    })
    const { count, totalBytes, doneBytes, path } = seen as Record<string, number>
    assert.deepEqual([count, totalBytes, path], [1, 6 * MIB, 'big.bin'])
    assert.ok(doneBytes! >= 3 * MIB && doneBytes! <= 6 * MIB)
    assert.deepEqual(w.transfers.numbers().upload, { count: 0, doneBytes: 0, totalBytes: 0 })
  })
})
