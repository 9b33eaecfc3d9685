import assert from 'node:assert/strict'
import { chmodSync, closeSync, linkSync, openSync, statSync, utimesSync, writeSync } from 'node:fs'
import { describe, test } from 'node:test'
import { type ActWorld, actWorlds, MIB, noise } from './act-world.suite.ts'

const world = actWorlds()

/** In place, with the same size; the times are those of before. */
function editUnseen(w: ActWorld, name: string, content: string | Uint8Array, at = 0): void {
  const { atime, mtime } = statSync(w.path(name))
  const file = openSync(w.path(name), 'r+')
  writeSync(file, Buffer.from(content), 0, content.length, at)
  closeSync(file)
  utimesSync(w.path(name), atime, mtime)
}

/** Two records of 160 bytes change places: what QuickXorHash cannot tell. */
function exchanged(content: Buffer): Buffer {
  return Buffer.concat([content.subarray(160, 320), content.subarray(0, 160), content.subarray(320)])
}

const text = (w: ActWorld, path: string): string => w.there.device.read(path)!.toString()

describe('an edit that keeps size and time', () => {
  test('is uploaded', async () => {
    const w = await world()
    w.write('a.txt', 'as it was', Date.UTC(2021, 4, 6))
    await w.sync()
    editUnseen(w, 'a.txt', 'as it is ')
    assert.deepEqual(await w.sync(), ['check', 'upload'])
    assert.equal(text(w, '/a.txt'), 'as it is ')
  })

  test('and comes with an edit in OneDrive is a conflict, in which both are kept', async () => {
    const w = await world()
    w.write('a.txt', 'as it was', Date.UTC(2021, 4, 6))
    await w.sync()
    editUnseen(w, 'a.txt', 'as it is ')
    w.there.device.edit('/a.txt', 'theirs')
    await w.sync()
    assert.equal(w.read('a.txt'), 'theirs')
    const [copy] = await w.conflicts()
    assert.equal(w.read(copy!.copyPath!), 'as it is ')
  })

  test('of a file that OneDrive has deleted is kept', async () => {
    const w = await world()
    w.write('a.txt', 'as it was', Date.UTC(2021, 4, 6))
    await w.sync()
    editUnseen(w, 'a.txt', 'as it is ')
    w.there.device.delete('/a.txt')
    await w.sync()
    assert.equal(text(w, '/a.txt'), 'as it is ')
  })

  test('while it is uploaded in fragments leaves nothing torn in OneDrive', async () => {
    const w = await world({ chunkBytes: MIB })
    const size = 5 * MIB
    const before = noise(size, 1)
    w.write('a.bin', before)
    await w.sync()
    const during = noise(size, 2)
    w.write('a.bin', during)
    await w.run(await w.only('check'))
    const after = Buffer.from(during)
    noise(1000, 3).copy(after)
    let isEdited = false
    const action = await w.plan().then(([upload]) => upload!)
    assert.equal(action.verb, 'upload')
    const { outcome } = await w.run(action, {
      // In the middle of the last fragment, when the beginning was sent long ago.
      onProgress: (done) => {
        if (isEdited || done < size - MIB / 2 || done === size) return
        isEdited = true
        editUnseen(w, 'a.bin', after.subarray(0, 1000))
      },
    })
    assert.ok(isEdited)
    assert.match(outcome.skip ?? '', /changed here meanwhile/)
    assert.ok(w.there.device.read('/a.bin')!.equals(before), 'OneDrive has what it had')
    assert.equal(w.there.sessions.open, 0)
    await w.sync()
    assert.ok(w.there.device.read('/a.bin')!.equals(after))
  })
})

describe('a change that is none of the content', () => {
  test('costs a hash and no upload', async () => {
    const w = await world({ files: { 'a.txt': 'one', 'b.txt': 'two' } })
    chmodSync(w.path('a.txt'), 0o600)
    assert.deepEqual(await w.sync(), ['check'])
    linkSync(w.path('b.txt'), w.path('c.txt'))
    assert.deepEqual((await w.sync()).sort(), ['check', 'upload'])
    await w.assertSettled()
  })

  test('and was made by Tidemark itself costs nothing', async () => {
    const w = await world()
    w.there.device.write('/a.txt', 'one')
    assert.deepEqual(await w.sync(), ['download'])
    w.there.device.edit('/a.txt', 'one, edited')
    assert.deepEqual(await w.sync(), ['download'])
    w.there.device.rename('/a.txt', 'b.txt')
    assert.deepEqual(await w.sync(), ['move-local'])
    assert.deepEqual(await w.sync(), [])
    // A conflict copy is renamed, and then sent as it is.
    w.there.device.edit('/b.txt', 'theirs')
    w.write('b.txt', 'ours')
    assert.deepEqual((await w.sync()).sort(), ['check', 'conflict', 'download', 'upload'])
    assert.deepEqual(await w.sync(), [])
  })
})

describe('an edit that QuickXorHash does not tell', () => {
  const content = noise(640)

  for (const type of ['personal', 'business'] as const) {
    test(`is uploaded, to a ${type} drive`, async () => {
      const w = await world({ type, files: { 'a.db': content } })
      w.write('a.db', exchanged(content))
      assert.deepEqual(await w.sync(), ['check', 'upload'])
      assert.ok(w.there.device.read('/a.db')!.equals(exchanged(content)))
      assert.deepEqual(await w.sync(), [])
    })
  }

  test('is uploaded although what is in OneDrive, which was only renamed, has the same hash', async () => {
    const w = await world({ files: { 'a.db': content } })
    w.write('a.db', exchanged(content))
    await w.run(await w.only('check'))
    const [action] = await w.plan()
    // Its tag is another one by now, so the upload is refused.
    w.there.device.rename('/a.db', 'b.db')
    await w.run(action!)
    await w.sync()
    assert.ok(w.there.device.read('/b.db')!.equals(exchanged(content)))
    assert.ok(w.bytes('b.db').equals(exchanged(content)))
  })

  test('and was sent without an answer is recognised as what it is', async () => {
    const w = await world({ files: { 'a.db': content } })
    w.write('a.db', exchanged(content))
    await w.run(await w.only('check'))
    const [action] = await w.plan()
    await w.run(action!, { isLost: true })
    await w.run(action!)
    await w.sync()
    assert.deepEqual(await w.conflicts(), [])
    assert.ok(w.there.device.read('/a.db')!.equals(exchanged(content)))
    assert.deepEqual(await w.differences(), [])
  })

  test('comes down from OneDrive, also where it was touched here meanwhile', async () => {
    const w = await world({ files: { 'a.db': content } })
    w.there.device.edit('/a.db', exchanged(content))
    const action = await w.only('download')
    w.write('a.db', content)
    await w.run(action)
    await w.sync()
    assert.ok(w.bytes('a.db').equals(exchanged(content)))
    assert.deepEqual(await w.conflicts(), [])
  })

  test('on both sides, each another one, is a conflict', async () => {
    const w = await world({ files: { 'a.db': content } })
    const theirs = Buffer.concat([
      content.subarray(0, 320),
      content.subarray(480),
      content.subarray(320, 480),
    ])
    w.there.device.edit('/a.db', theirs)
    w.write('a.db', exchanged(content))
    await w.sync()
    const [conflict] = await w.conflicts()
    assert.ok(w.bytes('a.db').equals(theirs))
    assert.ok(w.bytes(conflict!.copyPath!).equals(exchanged(content)))
  })

  for (const isKnown of [true, false]) {
    test(`is found by a deep check${isKnown ? '' : ', also in a home from before SHA-256 was kept'}`, async () => {
      const w = await world({ files: { 'a.db': content } })
      if (!isKnown) await w.store.write((tx) => tx.run('UPDATE file_base SET sha256 = NULL'))
      // Nobody says that it changed: as where a disk of the service had lost something.
      w.there.device.item('/a.db').content = w.there.state.addContent(exchanged(content))
      const found = await w.verify({ deep: true })
      assert.deepEqual(
        found.map(({ what, side }) => `${side} ${what}`),
        ['there damaged'],
      )
      assert.deepEqual(await w.verify({ deep: false }), [])
    })
  }
})
