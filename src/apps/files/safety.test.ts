/**
 * The rules that keep files safe, S1 to S7, and the holes that a simpler design has, each by its name. S4 is also in
 * act/delete.test.ts, S5 and S6 in disasters.test.ts, names under S5 in held-names.test.ts.
 */
import assert from 'node:assert/strict'
import {
  appendFileSync,
  cpSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { sendJson, startServer } from '../../cloud/scripted-server.suite.ts'
import { type ActWorld, actWorld, MIB, noise, type WorldOptions } from './act/act-world.suite.ts'
import { folderPairSettings, streamOf } from './folder-pair.ts'
import { RECENT_MS, SHARE_MS } from './guard.ts'
import { RULES_MAX } from './ignore-rules.ts'
import { partialPath } from './local/place.ts'
import { openRoot } from './local/root.ts'
import { IGNORE_FILE } from './names.ts'
import { setFolderPair } from './store/file-store.ts'
import { changeSettings } from './store/filter-change.ts'
import { countDelete, freeHeld } from './store/guard.ts'
import { deleteUnlisted, keepListed, remoteRows } from './store/remote-tree.ts'
import { assertInStep, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'
import { ASIDE, type RemoteRow, unreadableText } from './trees.ts'

async function withActWorld(options: WorldOptions, run: (w: ActWorld) => Promise<void>): Promise<void> {
  const w = await actWorld(options)
  try {
    await run(w)
  } finally {
    await w.close()
  }
}

const FILES = Array.from({ length: 12 }, (_, n) => `f${n}.txt`)

const BEGUN = { files: Object.fromEntries(FILES.map((name) => [name, `first ${name}`])) }

/** Nobody says yes by himself. */
const UNANSWERED = { isUnanswered: true }

function deletions(actions: readonly string[]): string[] {
  return actions.filter((action) => action.startsWith('delete'))
}

async function choose(world: FileWorld, choices: Record<string, unknown>): Promise<void> {
  const { store } = world.files
  const row = await store.folderPair(PAIR)
  await store.write((tx) => changeSettings(tx, row, folderPairSettings.parse(choices)))
  await world.files.pairs.reload()
}

test('S1: what was never agreed on is not deleted, whichever side lacks it', () =>
  withFileWorld({}, async (world) => {
    for (const name of FILES) world.there.device.write(name, `there ${name}`)
    world.write('only-here.txt', 'here')
    await world.sync()
    await world.sync()
    assertInStep(world)
    assert.equal(world.here().size, FILES.length + 1)
    assert.deepEqual(deletions(await world.actions()), [])
  }))

test('S2: while a reading of OneDrive has not come to its end, nothing is planned', () =>
  withFileWorld(BEGUN, async (world) => {
    world.remove('f0.txt')
    await world.files.store.write((tx) => setFolderPair(tx, PAIR, { isReading: true }))
    const stream = streamOf(PAIR)
    await world.engine.enqueue(world.files.kinds.look, { drive: PAIR }, { stream })
    await world.engine.drained()
    assert.ok(world.there.device.has('f0.txt'))
    assert.equal((await world.files.store.openCounts(PAIR)).unplanned, 1)
    await world.sync()
    assert.ok(!world.there.device.has('f0.txt'))
  }))

test('S2: an item that a whole reading names without its name or place is not deleted', () =>
  withActWorld({}, async (w) => {
    const [half, gone] = ['/half.txt', '/gone.txt'].map((path) => w.there.device.write(path, path).id)
    await w.sync()
    await w.store.write(async (tx) => {
      await keepListed(tx, 'docs', [half!], 2)
      await deleteUnlisted(tx, 'docs', 2)
    })
    const rows = await w.store.write((tx) => remoteRows(tx, 'docs', [half!, gone!]))
    assert.deepEqual([rows.get(half!)?.isDeleted, rows.get(gone!)?.isDeleted], [false, true])
  }))

test('S2: pages of changes that lead in circles come to no end, and nothing is concluded from them', async () => {
  let asked = 0
  const server = await startServer(({ headers }, answer) => {
    asked += 1
    const nextLink = `http://${headers.host}/v1.0/drives/d/root/delta?token=${asked % 3}`
    sendJson(answer, { value: [], '@odata.nextLink': nextLink })
  })
  try {
    await withFileWorld({ settings: { apiUrl: `${server.url}/v1.0` } }, async (world) => {
      await world.syncStopped(async () => {
        const [job] = await world.engine.ledger.jobs({ kind: 'files.delta', limit: 1 })
        return /circles/.test(JSON.stringify(job ?? ''))
      })
      assert.ok(asked >= 4 && asked < 100)
      assert.equal((await world.files.store.folderPair(PAIR)).heardAt, null)
    })
  } finally {
    await server.close()
  }
})

test('S2: a drive that is not found as a whole deletes nothing here', () =>
  withActWorld({ files: { '/a.txt': 'one' } }, async (w) => {
    w.there.device.write('/a.txt', 'two')
    const action = await w.only('download')
    w.sim.faults.set({ rules: [{ do: 'error', status: 404, reason: 'itemNotFound' }] })
    const { outcome } = await w.run(action)
    assert.ok(outcome.again, 'it waits, and that costs no try')
    await w.look()
    assert.deepEqual(await w.plan(), [])
    assert.equal(w.read('a.txt'), 'one')
    w.sim.faults.set({ rules: [] })
    w.nowMs += 60_000
    w.obstacles.over('docs')
    await w.run(action)
    assert.equal(w.read('a.txt'), 'two')
  }))

test('S2: what is missing in an old copy that took the place of the folder comes back from OneDrive', () =>
  withFileWorld(BEGUN, async (world) => {
    cpSync(world.root, `${world.root}-copy`, { recursive: true, preserveTimestamps: true })
    world.write('later/new.txt', 'made after the copy')
    await world.sync()
    renameSync(world.root, `${world.root}-broken`)
    renameSync(`${world.root}-copy`, world.root)
    await world.sync()
    assert.equal(world.read('later/new.txt'), 'made after the copy')
    assertInStep(world)
    assert.deepEqual(deletions(await world.actions()), [])
    rmSync(world.path('f1.txt'))
    await world.sync()
    assert.ok(!world.there.device.has('f1.txt'), 'from then on a deletion is one')
  }))

test('S2: what was deleted here while it was left out comes back when it takes part again', () =>
  withFileWorld(BEGUN, async (world) => {
    world.write('videos/long.txt', 'a film')
    await world.sync()
    await choose(world, { filter: { skip: ['videos/'] } })
    await world.sync()
    world.remove('videos')
    await world.sync()
    assert.ok(world.there.device.has('videos/long.txt'))
    await choose(world, {})
    const folders = [['videos'], []]
    const stream = streamOf(PAIR)
    await world.engine.enqueue(world.files.kinds.look, { drive: PAIR, folders }, { stream })
    await world.settled()
    await world.sync()
    assert.equal(world.read('videos/long.txt'), 'a film')
    assertInStep(world)
    assert.deepEqual(deletions(await world.actions()), [])
  }))

const PHOTOS = ['photos/a.jpg', 'photos/2026/b.jpg']

async function reasonsOf(world: FileWorld): Promise<Map<string, string>> {
  const reported = await world.files.store.reported(PAIR, { limit: 100 })
  return new Map(reported.map(({ path, because }) => [path, because]))
}

test('S2: a folder that became a link stays in OneDrive, and what changes there waits until it is back', () =>
  withFileWorld({ ...BEGUN, ...UNANSWERED }, async (world) => {
    for (const path of PHOTOS) world.write(path, path)
    await world.sync()
    renameSync(world.path('photos'), `${world.root}-photos`)
    symlinkSync(`${world.root}-photos`, world.path('photos'))
    await world.sync()
    await world.sync()
    for (const path of PHOTOS) assert.ok(world.there.device.has(path), path)
    assert.equal((await reasonsOf(world)).get('photos'), unreadableText(ASIDE.link))
    // What changes in it meanwhile waits, and is told with its folder.
    world.there.device.write('photos/a.jpg', 'edited there')
    world.there.device.write('photos/new.jpg', 'new there')
    world.there.device.delete('photos/2026/b.jpg')
    await world.sync()
    const left = await reasonsOf(world)
    for (const path of ['photos/a.jpg', 'photos/new.jpg', 'photos/2026/b.jpg'])
      assert.equal(left.get(path), 'its folder is left alone', path)
    assert.deepEqual(readdirSync(`${world.root}-photos`).sort(), ['2026', 'a.jpg'])
    rmSync(world.path('photos'))
    renameSync(`${world.root}-photos`, world.path('photos'))
    await world.sync()
    assert.equal(world.read('photos/a.jpg'), 'edited there')
    assert.equal(world.read('photos/new.jpg'), 'new there')
    assertInStep(world)
    assert.deepEqual(deletions(await world.actions()), ['delete-local photos/2026/b.jpg'])
  }))

test('S2: when a link goes that had taken the place of something, deleting that in OneDrive waits for a yes', () =>
  withFileWorld({ ...BEGUN, ...UNANSWERED }, async (world) => {
    for (const path of PHOTOS) world.write(path, path)
    await world.sync()
    world.remove('photos')
    symlinkSync('/nowhere', world.path('photos'))
    await world.sync()
    rmSync(world.path('photos'))
    await world.sync()
    assert.ok(world.there.device.has('photos/a.jpg'))
    await world.sayYes()
    await world.settled()
    assert.ok(!world.there.device.has('photos'))
    assertInStep(world)
  }))

test('S2: what a link has taken the place of, and OneDrive deletes, is forgotten without a trace', () =>
  withFileWorld(BEGUN, async (world) => {
    for (const path of PHOTOS) world.write(path, path)
    await world.sync()
    world.remove('photos')
    symlinkSync('/nowhere', world.path('photos'))
    await world.sync()
    world.there.device.delete('photos')
    await world.sync()
    await world.sync()
    assert.deepEqual([...(await reasonsOf(world)).keys()], ['photos'])
    rmSync(world.path('photos'))
    await world.sync()
    assert.equal((await world.files.store.openNodes(PAIR, { limit: 1 })).length, 0)
    assertInStep(world)
  }))

test('S2: what links led to stays in OneDrive when they are not followed any more', () =>
  withFileWorld({ choices: { follow_symlinks: true }, ...BEGUN }, async (world) => {
    world.write('real/a.txt', 'a')
    symlinkSync('real', world.path('linked'))
    await world.sync()
    assert.ok(world.there.device.has('linked/a.txt'))
    await choose(world, { follow_symlinks: false })
    await world.sync()
    await world.sync()
    assert.ok(world.there.device.has('linked/a.txt'))
    assert.equal((await reasonsOf(world)).get('linked'), unreadableText(ASIDE.link))
    await choose(world, { follow_symlinks: true })
    await world.sync()
    assert.equal((await world.files.store.openNodes(PAIR, { limit: 1 })).length, 0)
    assert.deepEqual(deletions(await world.actions()), [])
  }))

test('S2: a file that is renamed to a name that is left out stays in OneDrive', () =>
  withFileWorld({ ...BEGUN, ...UNANSWERED }, async (world) => {
    world.move('f0.txt', 'f0.tmp')
    await world.sync()
    await world.sync()
    assert.ok(world.there.device.has('f0.txt'))
    assert.equal((await reasonsOf(world)).get('f0.txt'), unreadableText(ASIDE.renamed))
    world.move('f0.tmp', 'back.txt')
    await world.sync()
    assertInStep(world)
    assert.deepEqual(deletions(await world.actions()), [])
  }))

test('S2: a link that takes the place of what is just being deleted in OneDrive stops that', () =>
  withActWorld({}, async (w) => {
    for (let n = 0; n < 12; n++) w.write(`f${n}`, 'x')
    w.write('d/a.txt', 'a')
    await w.sync()
    rmSync(w.path('d'), { recursive: true })
    await w.hear()
    await w.look()
    const actions = await w.plan()
    assert.deepEqual(actions.map(({ verb }) => verb).sort(), ['delete-remote', 'delete-remote'])
    symlinkSync('/nowhere', w.path('d'))
    for (const action of actions) await w.run(action)
    await w.sync()
    assert.ok(w.there.device.has('/d/a.txt'))
  }))

test(`S2: while ${IGNORE_FILE} cannot be read, nothing is uploaded that it may leave out`, () =>
  withFileWorld({}, async (world) => {
    world.write(IGNORE_FILE, 'secret.txt\n')
    await world.sync()
    rmSync(world.path(IGNORE_FILE))
    // Leads to itself: it is there, and nobody can read it.
    symlinkSync(IGNORE_FILE, world.path(IGNORE_FILE))
    world.write('secret.txt', 'for nobody')
    await world.syncStopped(async () => {
      const [job] = await world.engine.ledger.jobs({ kind: 'files.look', limit: 1 })
      return /cannot be read/.test(`${job?.error} ${job?.note}`)
    })
    assert.ok(!world.there.device.has('secret.txt'))
  }))

test(`S2: a ${IGNORE_FILE} from OneDrive with more patterns than can be matched quickly stops the sync, and says so`, () =>
  withFileWorld({}, async (world) => {
    world.there.device.write(`/${IGNORE_FILE}`, 'a*b*c*\n'.repeat(RULES_MAX + 1))
    await world.sync()
    world.write('perhaps-secret.txt', 'for nobody')
    await world.syncStopped(async () => {
      const [job] = await world.engine.ledger.jobs({ kind: 'files.look', limit: 1 })
      return /holds more patterns than Tidemark reads/.test(`${job?.error} ${job?.note}`)
    })
    assert.ok(!world.there.device.has('perhaps-secret.txt'))
  }))

test(`S2: a ${IGNORE_FILE} made to be slow holds nothing up`, () =>
  withFileWorld({}, async (world) => {
    world.there.device.write(`/${IGNORE_FILE}`, `${'**/a/'.repeat(11)}b\n`)
    world.there.device.write(`/${'a/'.repeat(40)}c.txt`, 'deep down')
    await world.sync()
    await world.sync()
    assert.equal(world.read(`${'a/'.repeat(40)}c.txt`), 'deep down')
    assertInStep(world)
  }))

test('S3: a download whose bytes are not those that OneDrive promised is never seen under its name', () =>
  withActWorld({}, async (w) => {
    w.there.device.write('/a.bin', noise(MIB))
    const action = await w.only('download')
    w.sim.faults.set({ rules: [{ do: 'truncate', share: 0.5, close: false, methods: ['graph.download'] }] })
    await assert.rejects(w.run(action))
    assert.ok(!w.has('a.bin'))
    w.sim.faults.set({ rules: [] })
    await w.run(action)
    assert.deepEqual(w.bytes('a.bin'), noise(MIB))
  }))

test('S3: what is left of a download that was already in its place is not written to any more', () =>
  withActWorld({}, async (w) => {
    w.there.device.write('/a.txt', 'from there')
    const action = await w.only('download')
    await w.run(action, { isLost: true })
    // It died after the file had got its name, and before the partial file lost its own.
    const { itemId, cTag } = (await w.store.nodeCase('docs', action.node)).remote as RemoteRow
    linkSync(w.path('a.txt'), partialPath(openRoot(w.pair.root, w.pair.markerId), { itemId, cTag }))
    appendFileSync(w.path('a.txt'), ', and what somebody added')
    await w.run(action)
    await w.sync()
    const [copy] = readdirSync(w.pair.root).filter((name) => name.includes('.conflict-'))
    assert.equal(w.read(copy!), 'from there, and what somebody added')
    assert.equal(w.read('a.txt'), 'from there')
    assert.deepEqual(await w.differences(), [])
  }))

test('S3: a download that another process has finished meanwhile writes nothing more', () =>
  withActWorld({}, async (w) => {
    const bytes = noise(4 * MIB)
    w.there.device.write('/a.bin', bytes)
    const action = await w.only('download')
    let isTaken = false
    const late = w.run(action, {
      isLost: true,
      onProgress: (done) => {
        if (isTaken || done < MIB) return
        isTaken = true
        // The other one has put it in its place, and somebody has written to it since.
        const partials = join(w.pair.root, '.tidemark/partial')
        renameSync(join(partials, readdirSync(partials)[0]!), w.path('a.bin'))
        writeFileSync(w.path('a.bin'), 'edited', { flag: 'r+' })
        truncateSync(w.path('a.bin'), 6)
      },
    })
    await assert.rejects(late, /Another process/)
    assert.ok(isTaken)
    assert.equal(w.read('a.bin'), 'edited')
  }))

test('S3: a small download that another process has finished meanwhile writes nothing', () =>
  withActWorld({}, async (w) => {
    w.there.device.write('/a.txt', 'from there')
    const action = await w.only('download')
    const partials = join(w.pair.root, '.tidemark/partial')
    let isTaken = false
    const takeOver = (): void => {
      // Its file is being made, in a thread: what comes after that waits for this to end.
      for (let tries = 0; !isTaken && tries < 1_000_000; tries++) {
        const [name] = readdirSync(partials)
        if (name === undefined) continue
        renameSync(join(partials, name), w.path('a.txt'))
        writeFileSync(w.path('a.txt'), 'what somebody has written since')
        isTaken = true
      }
    }
    const late = w.run(action, { isLost: true, onProgress: () => void setImmediate(takeOver) })
    await assert.rejects(late, /Another process/)
    assert.ok(isTaken)
    assert.equal(w.read('a.txt'), 'what somebody has written since')
  }))

test('S4: a file that was edited after it was seen survives its deletion in OneDrive', () =>
  withActWorld({ files: { 'a.txt': 'one' } }, async (w) => {
    w.there.device.delete('/a.txt')
    const action = await w.only('delete-local')
    writeFileSync(w.path('a.txt'), 'two')
    await w.run(action)
    await w.sync()
    assert.equal(w.read('a.txt'), 'two')
    assert.equal(w.there.device.read('/a.txt')?.toString(), 'two')
  }))

test('S5: a yes is for as many deletions as were asked about, and later ones are asked about anew', () =>
  withFileWorld(UNANSWERED, async (world) => {
    const names = Array.from({ length: 40 }, (_, n) => `f${n}.txt`)
    for (const name of names) world.write(name, name)
    await world.sync()
    for (const name of names.slice(0, 22)) world.remove(name)
    await world.sync()
    assert.equal(world.thereTree().size, 40)
    await world.files.store.write(async (tx) => {
      await setFolderPair(tx, PAIR, { forcedDeletes: 22, heldDeletes: null })
      await freeHeld(tx, PAIR)
    })
    await world.engine.enqueue(world.files.kinds.plan, { drive: PAIR }, { stream: streamOf(PAIR) })
    await world.settled()
    assert.equal(world.thereTree().size, 18)
    for (const name of names.slice(22)) world.remove(name)
    await world.sync()
    assert.equal(world.thereTree().size, 18)
    const { heldDeletes } = await world.files.store.folderPair(PAIR)
    assert.deepEqual(JSON.parse(heldDeletes ?? 'null'), { local: 0, remote: 18 })
  }))

test('S5: many deletions are asked about although they come little by little', () =>
  withFileWorld({ ...BEGUN, ...UNANSWERED }, async (world) => {
    world.remove('f0.txt')
    await world.sync()
    assert.ok(!world.there.device.has('f0.txt'))
    const nowMs = systemClock.now()
    const { store } = world.files
    assert.deepEqual(await store.recentDeletes(PAIR, nowMs), { lately: 1, items: 1, files: 1 })
    await store.write(async (tx) => {
      for (let count = 1; count < 1_000; count++) await countDelete(tx, PAIR, { nowMs, items: 1, files: 1 })
    })
    world.remove('f1.txt')
    await world.sync()
    assert.ok(world.there.device.has('f1.txt'))
    // They are forgotten in time.
    const { lately, items } = await store.recentDeletes(PAIR, nowMs + 2 * RECENT_MS)
    assert.deepEqual([lately, items], [0, 1_000])
    assert.equal((await store.recentDeletes(PAIR, nowMs + 2 * SHARE_MS)).items, 0)
  }))

for (const [side, remove] of [
  ['here', (world: FileWorld, name: string) => world.remove(name)],
  ['in OneDrive', (world: FileWorld, name: string) => world.there.device.delete(name)],
] as const) {
  const count = (world: FileWorld): number[] => [world.here().size, world.thereTree().size].sort()

  test(`S5: a folder of nine files that is emptied ${side} waits for a yes`, () =>
    withFileWorld(UNANSWERED, async (world) => {
      for (const name of FILES.slice(0, 9)) world.write(name, name)
      await world.sync()
      for (const name of FILES.slice(0, 9)) remove(world, name)
      await world.sync()
      await world.sync()
      assert.deepEqual(count(world), [0, 9])
      await world.sayYes()
      await world.settled()
      assert.deepEqual(count(world), [0, 0])
    }))

  test(`S5: a folder that is emptied ${side} one by one waits for a yes at its half`, () =>
    withFileWorld(UNANSWERED, async (world) => {
      for (const name of FILES) world.write(name, name)
      await world.sync()
      for (const name of FILES) {
        remove(world, name)
        await world.sync()
      }
      assert.deepEqual(count(world), [0, FILES.length / 2])
    }))
}

test('S7: unfinished files of either side stay where they are, and half an upload is not seen', () =>
  withActWorld({}, async (w) => {
    const unfinished = ['a.partial', 'b.tmp', '~c', '.~d', 'e.swp', 'f.crdownload']
    for (const name of unfinished) w.write(`here/${name}`, name)
    for (const name of unfinished) w.there.device.write(`/there/${name}`, name)
    await w.sync()
    assert.deepEqual(readdirSync(w.path('there')), [])
    assert.deepEqual(readdirSync(w.path('here')).sort(), [...unfinished].sort())
    for (const name of unfinished) assert.ok(!w.there.device.has(`/here/${name}`))
    w.write('big.bin', noise(5 * MIB))
    const action = await w.only('upload')
    w.sim.faults.set({ rules: [{ do: 'reset', methods: ['graph.session.put'], skip: 2 }] })
    await assert.rejects(w.run(action))
    assert.ok(!w.there.device.has('/big.bin'))
  }))

test('hole 1: what a later plan has done does not move the mark past an earlier one that is not settled', () =>
  withFileWorld({ settings: { silenceMs: 30_000 }, ...BEGUN }, async (world) => {
    const { ledger } = world.engine
    world.there.device.write('slow.txt', 'slow')
    const latency = { kind: 'fixed' as const, ms: 3_000 }
    world.sim.faults.set({ rules: [{ do: 'latency', latency, methods: ['graph.content.get'] }] })
    await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork > 0)
    const before = await ledger.stream(streamOf(PAIR))
    world.write('quick.txt', 'quick')
    await world.syncStopped(async () => world.there.device.has('quick.txt'))
    const during = await ledger.stream(streamOf(PAIR))
    assert.ok(!world.has('slow.txt'))
    assert.ok(during.tail_at > before.tail_at)
    assert.equal(during.mark_at, before.mark_at)
    await world.settled()
    const after = await ledger.stream(streamOf(PAIR))
    assert.equal(after.mark_at, after.tail_at)
    assertInStep(world)
  }))

test('hole 2: what was moved and edited in OneDrive between two readings is moved and edited here', () =>
  withFileWorld(BEGUN, async (world) => {
    world.there.device.move('f0.txt', 'there/moved.txt')
    world.there.device.edit('there/moved.txt', 'edited there')
    await world.sync()
    assert.equal(world.read('there/moved.txt'), 'edited there')
    assertInStep(world)
  }))

test('hole 3: two files without a hash are not equal because both have none', () =>
  withFileWorld({ drive: { quirks: { hashMissing: true } } }, async (world) => {
    for (const name of FILES) world.write(name, `here  ${name}`)
    for (const name of FILES) world.there.device.write(name, `there ${name}`)
    await world.sync()
    const contents = new Set(world.here().values())
    for (const name of FILES) assert.ok(contents.has(`here  ${name}`) && contents.has(`there ${name}`), name)
    assertInStep(world)
  }))

test('hole 4: what came into a folder in OneDrive a moment before its deletion is not deleted with it', () =>
  withActWorld({ files: { 'd/': '' } }, async (w) => {
    rmSync(w.path('d'), { recursive: true })
    const action = await w.only('delete-remote')
    w.there.device.write('/d/fresh.txt', 'just made')
    await w.run(action)
    await w.sync()
    assert.equal(w.read('d/fresh.txt'), 'just made')
    assert.deepEqual(await w.differences(), [])
  }))

test('hole 5: of a deleted folder and of a renamed one, OneDrive need not name what is in it', () =>
  withFileWorld(BEGUN, async (world) => {
    for (const name of ['gone/deep/a.txt', 'kept/deep/b.txt']) world.write(name, name)
    await world.sync()
    world.there.device.delete('gone')
    world.there.device.rename('kept', 'renamed')
    await world.sync()
    assert.ok(!world.has('gone') && !world.has('kept'))
    assert.equal(world.read('renamed/deep/b.txt'), 'kept/deep/b.txt')
    assertInStep(world)
  }))

test('hole 6: a reading that is gone on with after an interruption concludes nothing before its end', () =>
  withFileWorld(BEGUN, async (world) => {
    world.there.expireDelta()
    const rule = { do: 'error' as const, status: 500, methods: ['graph.delta'], skip: 1 }
    world.sim.faults.set({ rules: [rule] })
    await world.syncStopped(async () => (await world.files.store.folderPair(PAIR)).isEnumerating)
    await world.engine.enqueue(world.files.kinds.plan, { drive: PAIR }, { stream: streamOf(PAIR) })
    await world.until(async () => {
      const [plan] = await world.engine.ledger.jobs({ kind: 'files.plan', limit: 1 })
      return plan?.state === 'done' || plan?.state === 'skipped'
    })
    assert.equal(world.here().size, FILES.length)
    world.sim.faults.set({ rules: [] })
    await world.sync()
    assertInStep(world)
    assert.deepEqual(deletions(await world.actions()), [])
  }))

test('hole 7: where changes only go to OneDrive, what was changed there is not overwritten', () =>
  withFileWorld({ choices: { mode: 'upload-only' }, ...BEGUN }, async (world) => {
    world.write('f0.txt', 'edited here')
    world.there.device.write('f0.txt', 'edited there')
    await world.sync()
    assert.equal(world.there.device.read('f0.txt')?.toString(), 'edited there')
    assert.equal(world.read('f0.txt'), 'edited here')
  }))
