import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEFT_ALONE } from './action.ts'
import { streamOf } from './folder-pair.ts'
import type { ActionVerb } from './plan-order.ts'
import { fileStatus } from './status.ts'
import { setFolderPair } from './store/file-store.ts'
import { assertInStep, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'

const CHUNK_BYTES = 4 * 320 * 1024

async function accounts(world: FileWorld): Promise<Record<string, number>> {
  const streams = await world.engine.ledger.streams()
  const { listed, stored, skipped, bad } = streams.find(({ name }) => name === streamOf(PAIR))!
  return { listed, stored, skipped, bad }
}

test('checks and transfers have kinds of their own, everything else is one', () =>
  withFileWorld({}, async ({ files }) => {
    const verbs: ActionVerb[] = ['check', 'download', 'upload', 'conflict', 'move-local', 'delete-remote']
    const kinds = verbs.map((verb) => files.kinds.kindOf(verb).kind)
    const changes = ['files.change', 'files.change', 'files.change']
    assert.deepEqual(kinds, ['files.check', 'files.download', 'files.upload', ...changes])
  }))

test('an upload that broke off goes on from its checkpoint, and is counted once', () =>
  withFileWorld({}, async (world) => {
    const content = Buffer.alloc(6 * CHUNK_BYTES, 'content ')
    world.write('big.bin', content)
    const rule = {
      do: 'reset' as const,
      when: 'after' as const,
      methods: ['graph.session.put'],
      skip: 3,
      max: 1,
    }
    world.sim.faults.set({ rules: [rule] })
    await world.sync()
    assert.ok(world.there.device.read('big.bin')!.equals(content))
    assert.equal(world.sim.log.bytesOf('graph.session.put').received, content.length)
    assert.deepEqual(await accounts(world), { listed: 1, stored: 1, skipped: 0, bad: 0 })
  }))

test('a download that broke off goes on by Range', () =>
  withFileWorld({}, async (world) => {
    const content = Buffer.alloc(16 * 1024 * 1024, 'content ')
    world.there.device.write('big.bin', content)
    const rule = { do: 'truncate' as const, share: 0.75, methods: ['graph.download'], max: 1 }
    world.sim.faults.set({ rules: [rule] })
    await world.sync()
    assertInStep(world)
    const { sent } = world.sim.log.bytesOf('graph.download')
    assert.ok(sent < 1.2 * content.length, `${sent} bytes for ${content.length}`)
    assert.deepEqual(await accounts(world), { listed: 1, stored: 1, skipped: 0, bad: 0 })
  }))

test('no more uploads run at a time than are allowed', () =>
  withFileWorld({ settings: { parallelUploads: 2 } }, async (world) => {
    for (let at = 0; at < 12; at++) world.write(`${at}.txt`, `file ${at}`)
    let most = 0
    const { transfers } = world.files
    const begin = transfers.begin.bind(transfers)
    transfers.begin = (input) => {
      const transfer = begin(input)
      most = Math.max(most, transfers.numbers().upload.count)
      return transfer
    }
    await world.sync()
    assertInStep(world)
    assert.equal(most, 2)
  }))

test('an outage costs no tries, however long it is', () =>
  withFileWorld({}, async (world) => {
    for (let at = 0; at < 5; at++) world.write(`${at}.txt`, `file ${at}`)
    const methods = ['graph.content.put', 'graph.items.get']
    world.sim.faults.set({ rules: [{ do: 'error', status: 500, methods }] })
    await world.syncStopped(async () => world.files.kinds.obstacles.of(PAIR)?.where === 'cloud')
    world.sim.faults.set({ rules: [] })
    await world.settled()
    assertInStep(world)
    assert.equal(world.files.kinds.obstacles.of(PAIR), undefined)
    assert.deepEqual(await accounts(world), { listed: 5, stored: 5, skipped: 0, bad: 0 })
  }))

test('what OneDrive refuses for good is left alone with its reason, and holds up nothing else', () =>
  withFileWorld({}, async (world) => {
    world.sim.faults.set({ rules: [{ do: 'error', status: 413, methods: ['graph.session.create'] }] })
    world.write('large.bin', Buffer.alloc(5 * 1024 * 1024, 'x'))
    world.write('small.txt', 'small')
    await world.sync()
    assert.equal(world.there.device.read('small.txt')!.toString(), 'small')
    const [open] = await world.files.store.openNodes(PAIR, { limit: 10 })
    assert.match(open!.because ?? '', /too large/)
    assert.deepEqual(await accounts(world), { listed: 2, stored: 1, skipped: 1, bad: 0 })
  }))

test('a OneDrive that is full keeps uploads waiting, nothing else, and the status says so until there is room', () =>
  withFileWorld({}, async (world) => {
    const { engine, files } = world
    world.there.device.write('theirs.txt', 'theirs')
    world.there.state.quotaBytes = 100
    world.write('large.txt', 'x'.repeat(1_000))
    world.write('small.txt', 'small')
    await world.syncStopped(async () => world.there.device.has('small.txt') && world.has('theirs.txt'))
    // What arrived is written down a moment later.
    await world.until(async () => {
      const { isFull, open } = await fileStatus({ store: files.store, ledger: engine.ledger }, PAIR)
      return isFull && open.inWork === 1
    })
    const { state, text, open } = await fileStatus({ store: files.store, ledger: engine.ledger }, PAIR)
    assert.equal(state, 'needs you')
    assert.match(
      text,
      /^The OneDrive is full: uploads wait, everything else goes on\. Delete something there/,
    )
    assert.deepEqual(open, { unplanned: 0, inWork: 1, waiting: 0, reported: 0 })
    const [job] = await engine.ledger.jobs({ kind: 'files.upload', state: 'pending', limit: 1 })
    assert.deepEqual([job!.failures, job!.note], [0, 'waits: The OneDrive is full'])
    world.there.state.quotaBytes = 10_000
    files.kinds.obstacles.roomMade(PAIR)
    await engine.ledger.wakeStream(streamOf(PAIR))
    await world.settled()
    assertInStep(world)
    assert.equal((await fileStatus({ store: files.store, ledger: engine.ledger }, PAIR)).text, 'In step.')
  }))

test('what was deleted in OneDrive between hearing of it and fetching it goes here, without a further sync', () =>
  withFileWorld({ files: { '/a.txt': 'one', '/b.txt': 'kept' } }, async (world) => {
    await world.engine.pause('kind', 'files.download')
    world.there.device.edit('a.txt', 'two')
    await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork === 1)
    world.there.device.delete('a.txt')
    await world.engine.resume('kind', 'files.download')
    await world.settled()
    assert.equal(world.has('a.txt'), false)
    assertInStep(world)
  }))

test('a job of a folder that another machine has is put back for that one, and costs no try', () =>
  withFileWorld({}, async (world) => {
    const { store, pairs } = world.files
    const { machine } = await store.folderPair(PAIR)
    world.write('a.txt', 'a')
    await store.write((tx) => setFolderPair(tx, PAIR, { machine: 'another' }))
    await pairs.reload()
    await world.syncStopped(async () => {
      const jobs = await world.engine.ledger.jobs({ kind: 'files.look', limit: 1 })
      return jobs[0]?.state === 'pending' && /another machine|the machine that has/.test(jobs[0].note ?? '')
    })
    await store.write((tx) => setFolderPair(tx, PAIR, { machine }))
    await pairs.reload()
    await world.settled()
    assertInStep(world)
    assert.deepEqual(await world.engine.ledger.jobs({ state: 'failed', limit: 1 }), [])
  }))

test('while folders are still to be looked at, the status does not say that both sides are in step', () =>
  withFileWorld({ files: { 'a.txt': 'a' } }, async (world) => {
    const status = () => fileStatus({ store: world.files.store, ledger: world.engine.ledger }, PAIR)
    assert.equal((await status()).state, 'in step')
    await world.engine.pause('kind', 'files.look')
    const { look } = world.files.kinds
    await world.engine.enqueue(look, { drive: PAIR, folders: [[]] }, { stream: streamOf(PAIR) })
    assert.deepEqual((await status()).text, 'Something in the folder is still to be looked at.')
    await world.engine.resume('kind', 'files.look')
    await world.settled()
    assert.equal((await status()).state, 'in step')
  }))

test('a folder that nobody looks at any more is stopped, since its last process ended', () =>
  withFileWorld({ files: { 'a.txt': 'a' } }, async (world) => {
    const { ledger } = world.engine
    const status = () => fileStatus({ store: world.files.store, ledger }, PAIR)
    await world.engine.pause('kind', 'files.look')
    const { look } = world.files.kinds
    await world.engine.enqueue(look, { drive: PAIR, folders: [[]] }, { stream: streamOf(PAIR) })
    assert.equal((await status()).stoppedSinceMs, null)
    const beforeMs = ledger.now()
    await world.engine.stop()
    const { state, text, stoppedSinceMs } = await status()
    assert.equal(state, 'stopped')
    assert.equal(text, 'Something in the folder is still to be looked at, and no process works on it.')
    assert.ok(stoppedSinceMs! >= Math.floor(beforeMs), `${stoppedSinceMs} is before ${beforeMs}`)
  }))

test('a folder that was never looked at to its end is left to do when nobody works on it', () =>
  withFileWorld({}, async (world) => {
    const { ledger } = world.engine
    const status = () => fileStatus({ store: world.files.store, ledger }, PAIR)
    assert.equal((await status()).stoppedSinceMs, null)
    await world.engine.stop()
    const { state, stoppedSinceMs } = await status()
    assert.equal(state, 'not begun')
    assert.notEqual(stoppedSinceMs, null)
  }))

test('uploads whose folder is renamed before they begin find it without a further sync', () =>
  withFileWorld({ files: { 'still.txt': 'stays' } }, async (world) => {
    for (let n = 0; n < 12; n++) world.write(`a/deep/${n}.txt`, `number ${n}`)
    await world.engine.pause('kind', 'files.upload')
    await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork === 12)
    world.move('a', 'b')
    await world.engine.resume('kind', 'files.upload')
    await world.settled()
    assertInStep(world)
    assert.deepEqual(await world.files.store.openNodes(PAIR, { limit: 10 }), [])
  }))

test('what OneDrive refused once is tried again by the next sync, and is not told as done before', () =>
  withFileWorld({}, async (world) => {
    const done: string[] = []
    world.engine.events.on((event) => {
      if (event.type === 'job' && event.what === 'done') done.push(event.kind)
    })
    world.sim.faults.set({ rules: [{ do: 'error', status: 403, methods: ['graph.content.put'] }] })
    world.write('a.txt', 'a')
    await world.sync()
    assert.equal(world.there.device.has('a.txt'), false)
    assert.ok(!done.includes('files.upload'))
    const [open] = await world.files.store.openNodes(PAIR, { limit: 10 })
    assert.match(open!.because ?? '', /does not allow/)
    const [job] = await world.engine.ledger.jobs({ kind: 'files.upload', limit: 1 })
    assert.match(job!.note ?? '', new RegExp(`^${LEFT_ALONE}`))
    world.sim.faults.set({ rules: [] })
    await world.sync()
    assertInStep(world)
    assert.deepEqual(await world.files.store.openNodes(PAIR, { limit: 10 }), [])
    assert.deepEqual(await world.engine.ledger.badItems({ limit: 10 }), [])
  }))
